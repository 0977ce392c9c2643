"""Image networks to put before a hash layer: images to feature rows, one file a network."""

from __future__ import annotations

from bittern.networks.alexnet import AlexNet
from bittern.networks.base import Backbone
from bittern.networks.efficientnet import EfficientNetLite0
from bittern.networks.small import SmallNet
from bittern.networks.vggf import VGGF
from bittern.registry import Registry

NETWORKS: tuple[type[Backbone], ...] = (SmallNet, EfficientNetLite0, VGGF, AlexNet)

#: Every network by its name.
BACKBONES: Registry[type[Backbone]] = Registry(
    "backbone", {network.name: network for network in NETWORKS}
)

__all__ = ["BACKBONES", "VGGF", "AlexNet", "Backbone", "EfficientNetLite0", "SmallNet"]
