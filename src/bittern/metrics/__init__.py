"""Metrics: pure functions of a tie profile, and scores."""

from bittern.metrics import significance
from bittern.metrics.curves import Curve, interpolated_pr_curve, pr_curve
from bittern.metrics.names import METRICS, Metric, MetricName, parse
from bittern.metrics.overlap import Overlap, truth_overlap
from bittern.metrics.scores import DEFAULT_METRICS, Score, Scores, evaluate, evaluate_codes
from bittern.metrics.similarity import rmse
from bittern.metrics.systems import SystemScores, compare_systems

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Curve",
    "Metric",
    "MetricName",
    "Overlap",
    "Score",
    "Scores",
    "SystemScores",
    "compare_systems",
    "evaluate",
    "evaluate_codes",
    "interpolated_pr_curve",
    "parse",
    "pr_curve",
    "rmse",
    "significance",
    "truth_overlap",
]


def __dir__() -> list[str]:
    return sorted(__all__)
