"""Several sources of evidence to one ranking.

A fusion takes scores ``(sources, queries, items)``, larger is better, and gives one score for each
item of each query.  Negated, these scores are distances for a :class:`~bittern.TieProfile`, so that
every metric applies:

>>> import numpy as np, bittern as bt
>>> scores = np.array([[[0.9, 0.2, 0.1]], [[5.0, 9.0, 1.0]]])  # two sources, a query, three items
>>> fused = bt.fusion.FUSIONS["comb-sum"](scores)
>>> relevance = bt.Relevance.from_classes([7], [7, 3, 7])
>>> profile = bt.TieProfile.from_distances(-fused, relevance)
>>> round(bt.evaluate(profile, ["ap"])["ap"].mean, 4)
0.8333
"""

from __future__ import annotations

import inspect
from typing import Any

from bittern.errors import InputError
from bittern.fusion.boosting import Boosted, boost, boosted_scores
from bittern.fusion.combine import comb_max, comb_min, comb_mnz, comb_sum, weighted_sum
from bittern.fusion.examples import (
    Ranking,
    draw_negatives,
    rank_by_examples,
    similarities,
    similarity,
)
from bittern.fusion.lists import FusedLists, FusedRun, fuse_hits, fuse_lists, fuse_runs
from bittern.fusion.predictor import STATISTICS, WeightPredictor, score_statistics
from bittern.fusion.ranks import borda, reciprocal_rank
from bittern.fusion.raster import (
    OracleWeights,
    RasterFusion,
    oracle_weights,
    precision_of_weights,
    simplex,
)
from bittern.fusion.scores import NORMALISATIONS, Fusion
from bittern.fusion.svm import SVMFusion
from bittern.registry import OpenRegistry


def _accept(value: Any, title: str) -> Fusion:
    """A function whose first argument is the scores."""
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{title}: must be a function of scores, got {value!r}.")
    try:
        inspect.signature(value).bind(None)
    except (TypeError, ValueError):
        raise InputError(f"{title}: must be a function that takes the scores alone.") from None
    return value


#: Every fusion that needs no training, by its name; installed packages may add to it.
FUSIONS: OpenRegistry[Fusion] = OpenRegistry(
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
    group="bittern.fusions",
    accept=_accept,
)

__all__ = [
    "FUSIONS",
    "NORMALISATIONS",
    "STATISTICS",
    "Boosted",
    "FusedLists",
    "FusedRun",
    "Fusion",
    "OracleWeights",
    "Ranking",
    "RasterFusion",
    "SVMFusion",
    "WeightPredictor",
    "boost",
    "boosted_scores",
    "borda",
    "comb_max",
    "comb_min",
    "comb_mnz",
    "comb_sum",
    "draw_negatives",
    "fuse_hits",
    "fuse_lists",
    "fuse_runs",
    "oracle_weights",
    "precision_of_weights",
    "rank_by_examples",
    "reciprocal_rank",
    "score_statistics",
    "similarities",
    "similarity",
    "simplex",
    "weighted_sum",
]


def __dir__() -> list[str]:
    return sorted(__all__)
