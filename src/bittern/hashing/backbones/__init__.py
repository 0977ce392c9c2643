"""Image networks to put before a hash layer: pictures to feature rows, one file a network."""

from __future__ import annotations

from bittern.hashing.backbones.alexnet import AlexNet
from bittern.hashing.backbones.base import Backbone
from bittern.hashing.backbones.efficientnet import EfficientNetLite0
from bittern.hashing.backbones.small import SmallNet
from bittern.hashing.backbones.vggf import VGGF
from bittern.registry import Registry

NETWORKS: tuple[type[Backbone], ...] = (SmallNet, EfficientNetLite0, VGGF, AlexNet)

#: Every network by its name.
BACKBONES: Registry[type[Backbone]] = Registry(
    "backbone", {network.name: network for network in NETWORKS}
)

__all__ = ["BACKBONES", "VGGF", "AlexNet", "Backbone", "EfficientNetLite0", "SmallNet"]
