"""Several sources of evidence to one ranking, one file a method.

A fusion takes scores ``(sources, queries, items)``, larger is better, and gives one score for each
item of each query.  Turned into distances they make a :class:`~bittern.TieProfile`, so that every
metric applies:

>>> import numpy as np, bittern as bt
>>> scores = np.array([[[0.9, 0.2, 0.1]], [[5.0, 9.0, 1.0]]])  # two sources, a query, three items
>>> fused = bt.fusion.FUSIONS["comb-sum"](scores)
>>> relevance = bt.Relevance.from_classes([7], [7, 3, 7])
>>> profile = bt.TieProfile.from_distances(-fused, relevance)
>>> round(bt.evaluate(profile, ["ap"])["ap"].mean, 4)
0.8333
"""

from __future__ import annotations

from bittern.fusion.borda import borda
from bittern.fusion.comb_max import comb_max
from bittern.fusion.comb_min import comb_min
from bittern.fusion.comb_mnz import comb_mnz
from bittern.fusion.comb_sum import comb_sum
from bittern.fusion.examples import (
    Ranking,
    draw_negatives,
    rank_by_examples,
    similarities,
    similarity,
)
from bittern.fusion.lists import FusedLists, FusedRun, fuse_hits, fuse_lists, fuse_runs
from bittern.fusion.normalise import NORMALISATIONS
from bittern.fusion.predictor import STATISTICS, WeightPredictor, score_statistics
from bittern.fusion.raster import (
    OracleWeights,
    RasterFusion,
    oracle_weights,
    precision_of_weights,
    simplex,
)
from bittern.fusion.reciprocal_rank import reciprocal_rank
from bittern.fusion.sources import Fusion
from bittern.fusion.svm import SVMFusion
from bittern.fusion.table import FUSIONS
from bittern.fusion.weighted_sum import weighted_sum

__all__ = [
    "FUSIONS",
    "NORMALISATIONS",
    "STATISTICS",
    "FusedLists",
    "FusedRun",
    "Fusion",
    "OracleWeights",
    "Ranking",
    "RasterFusion",
    "SVMFusion",
    "WeightPredictor",
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
