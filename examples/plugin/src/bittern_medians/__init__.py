"""A plug-in for Bittern: a hash function and a metric.

``pip install ./examples/plugin`` adds both to the tables: a protocol may then say
``name = "median"`` and ``metrics = ["ap", "first-distance"]``.
"""

from bittern_medians.hasher import MedianHasher
from bittern_medians.metric import FIRST_DISTANCE

__all__ = ["FIRST_DISTANCE", "MedianHasher"]
