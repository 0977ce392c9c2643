"""Records to :class:`Analysis`: the numbers that reports write down, each computed once.

``analyse(records)`` computes everything; each part is also a function::

    summarise                     how good is each method?
    best_by_length, leaders       which is best, and how far ahead?
    compare_methods               which differences are significant?
    areas_against_means           do AUPRC and mAP agree?
    per_class, costs              for which classes, and at what cost?
    sweep_of                      how does quality change with a parameter?
    search_outcomes               what did the search of each grid find?
    compare_experiments           what changes from one experiment to another?
    rank_agreement                do two experiments rank the methods alike?
"""

from bittern.analysis.analysis import Analysis, analyse
from bittern.analysis.areas import AreaAndMean, AreasAgainstMeans, Skew, areas_against_means
from bittern.analysis.comparison import Verdict, Verdicts, compare_methods
from bittern.analysis.curves import Sweep, Training, sweep_of
from bittern.analysis.differences import Difference, Differences, compare_experiments, compare_tasks
from bittern.analysis.rankings import RankAgreement, rank_agreement
from bittern.analysis.search import SearchOutcome, Tried, search_outcomes
from bittern.analysis.summary import (
    ClassMeans,
    Cost,
    Leader,
    Summary,
    best_by_length,
    costs,
    leaders,
    per_class,
    summarise,
)

__all__ = [
    "Analysis",
    "AreaAndMean",
    "AreasAgainstMeans",
    "ClassMeans",
    "Cost",
    "Difference",
    "Differences",
    "Leader",
    "RankAgreement",
    "SearchOutcome",
    "Skew",
    "Summary",
    "Sweep",
    "Training",
    "Tried",
    "Verdict",
    "Verdicts",
    "analyse",
    "areas_against_means",
    "best_by_length",
    "compare_experiments",
    "compare_methods",
    "compare_tasks",
    "costs",
    "leaders",
    "per_class",
    "rank_agreement",
    "search_outcomes",
    "summarise",
    "sweep_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
