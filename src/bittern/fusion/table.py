"""The fusions that need no training, by their names."""

from __future__ import annotations

from bittern.fusion.borda import borda
from bittern.fusion.comb_max import comb_max
from bittern.fusion.comb_min import comb_min
from bittern.fusion.comb_mnz import comb_mnz
from bittern.fusion.comb_sum import comb_sum
from bittern.fusion.reciprocal_rank import reciprocal_rank
from bittern.fusion.sources import Fusion
from bittern.fusion.weighted_sum import weighted_sum
from bittern.registry import Registry

__all__ = ["FUSIONS"]

#: Every fusion that needs no training by its name.
FUSIONS: Registry[Fusion] = Registry(
    "fusion",
    {
        "comb-min": comb_min,
        "comb-max": comb_max,
        "comb-sum": comb_sum,
        "comb-mnz": comb_mnz,
        "borda": borda,
        "reciprocal-rank": reciprocal_rank,
        "weighted-sum": weighted_sum,
    },
)
