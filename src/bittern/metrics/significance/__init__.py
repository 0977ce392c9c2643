"""Is the difference real?  Paired tests, intervals and effect sizes, corrected over a family.

Two sets of per-query values (or of per-run values) in, a small frozen record out::

    paired_t_test, wilcoxon, sign_test, randomisation_test   is there a difference?
    bootstrap_interval                                       how large may it be?
    cohen_d, hedges_g, rank_biserial, dominance              how large beside its spread?
    holm, compare                                            several questions at once
"""

from bittern.metrics.significance.comparison import TESTS, Comparison, Comparisons, compare
from bittern.metrics.significance.correction import Correction, holm
from bittern.metrics.significance.effects import cohen_d, dominance, hedges_g, rank_biserial
from bittern.metrics.significance.outcome import ALTERNATIVES, Significance
from bittern.metrics.significance.randomisation import randomisation_test
from bittern.metrics.significance.resampling import DifferenceInterval, bootstrap_interval
from bittern.metrics.significance.signed_rank import wilcoxon
from bittern.metrics.significance.signs import sign_test
from bittern.metrics.significance.t_test import paired_t_test

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
    "rank_biserial",
    "sign_test",
    "wilcoxon",
]
