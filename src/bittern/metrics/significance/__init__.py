"""Paired tests, intervals and effect sizes, corrected for many tests.

Two sets of per-query values (or of per-run values) go in, a small frozen record comes out::

    paired_t_test, wilcoxon, sign_test, randomisation_test   is there a difference?
    bootstrap_interval                                       how large may it be? cohen_d, hedges_g,
    rank_biserial, dominance              how large is it, relative to its spread? holm, compare
    several questions at once
"""

from bittern.metrics.significance.comparison import (
    TESTS,
    Comparison,
    Comparisons,
    Correction,
    compare,
    holm,
)
from bittern.metrics.significance.paired_tests import (
    ALTERNATIVES,
    Significance,
    paired_t_test,
    sign_test,
    wilcoxon,
)
from bittern.metrics.significance.pairs import cohen_d, dominance, hedges_g, rank_biserial
from bittern.metrics.significance.resampling import (
    DifferenceInterval,
    bootstrap_interval,
    randomisation_test,
    randomisation_tests,
)

__all__ = [
    "ALTERNATIVES",
    "TESTS",
    "Comparison",
    "Comparisons",
    "Correction",
    "DifferenceInterval",
    "Significance",
    "bootstrap_interval",
    "cohen_d",
    "compare",
    "dominance",
    "hedges_g",
    "holm",
    "paired_t_test",
    "randomisation_test",
    "randomisation_tests",
    "rank_biserial",
    "sign_test",
    "wilcoxon",
]


def __dir__() -> list[str]:
    return sorted(__all__)
