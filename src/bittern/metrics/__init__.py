"""Metrics: pure functions of a tie profile, and the scores made of them."""

from bittern.metrics import significance
from bittern.metrics.curves import Curve, interpolated_pr_curve, pr_curve
from bittern.metrics.names import MetricName
from bittern.metrics.scores import Score, Scores
from bittern.metrics.scoring import DEFAULT_METRICS, evaluate
from bittern.metrics.similarity import rmse
from bittern.metrics.table import METRICS, parse

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Curve",
    "MetricName",
    "Score",
    "Scores",
    "evaluate",
    "interpolated_pr_curve",
    "parse",
    "pr_curve",
    "rmse",
    "significance",
]
