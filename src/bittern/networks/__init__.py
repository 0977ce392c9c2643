"""Image networks: images to feature rows, with or without a hash layer on top.

The classes need PyTorch and load it when first used; :mod:`bittern.networks.onnx` runs a network
from an ONNX file without it.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from bittern.errors import MissingExtraError

if TYPE_CHECKING:
    from bittern.networks.alexnet import VGGF, AlexNet
    from bittern.networks.base import Backbone
    from bittern.networks.efficientnet import EfficientNetLite0
    from bittern.networks.small import SmallNet
    from bittern.registry import Registry

    #: Every network by its name.
    BACKBONES: Registry[type[Backbone]]

__all__ = [
    "BACKBONES",
    "VGGF",
    "AlexNet",
    "Backbone",
    "EfficientNetLite0",
    "SmallNet",
    "require_torch",
]

MODULES = {
    "SmallNet": "small",
    "EfficientNetLite0": "efficientnet",
    "VGGF": "alexnet",
    "AlexNet": "alexnet",
}


def require_torch(owner: str) -> None:
    """Raise an error that says how to install PyTorch, unless it is installed."""
    if importlib.util.find_spec("torch") is None:  # importing it takes seconds
        raise MissingExtraError(f"{owner}: needs PyTorch; pip install 'bittern[deep]'.")


def __getattr__(name: str) -> Any:
    """Import a network when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch(f"{__name__}.{name}")
    if name == "BACKBONES":
        value: Any = _backbones()
    else:
        value = getattr(importlib.import_module(f"{__name__}.{MODULES.get(name, 'base')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _backbones() -> Registry[type[Backbone]]:
    from bittern.registry import Registry

    classes: list[type[Backbone]] = [__getattr__(name) for name in MODULES]
    return Registry("backbone", {network.name: network for network in classes})
