"""Scale: the same sums over shards, in this process, in several, or on a cluster."""

from bittern.scale.duplicates import duplicates
from bittern.scale.encoding import encode
from bittern.scale.evaluating import evaluate, profile
from bittern.scale.fitting import fit, kmeans
from bittern.scale.planning import COSTS, Costs, Measurement, Plan, plan
from bittern.scale.searching import search
from bittern.scale.shard import Shard
from bittern.scale.shards import Shards
from bittern.scale.surfaces import table_surface
from bittern.scale.truth import Balls, Classes, Neighbours, Tags

__all__ = [
    "COSTS",
    "Balls",
    "Classes",
    "Costs",
    "Measurement",
    "Neighbours",
    "Plan",
    "Shard",
    "Shards",
    "Tags",
    "duplicates",
    "encode",
    "evaluate",
    "fit",
    "kmeans",
    "plan",
    "profile",
    "search",
    "table_surface",
]


def __dir__() -> list[str]:
    return sorted(__all__)
