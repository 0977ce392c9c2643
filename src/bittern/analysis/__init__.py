"""Statistics: numbers computed from records, which reports only write down.

Means with their deviation and interval, paired tests between methods, areas against means, values
by class, and what quality costs::

    summarise                     how good is each method?
    best_by_length, leaders       which is best, and how far ahead?
    compare_methods               which differences are real?
    areas_against_means           do AUPRC and mAP say the same?
    per_class, costs              where, and at what price?
    compare_experiments           what changed from one experiment to another?
    sweep_of                      how does it change with a parameter?
"""

from bittern.analysis.areas import (
    AreaAndMean,
    AreasAgainstMeans,
    Skew,
    areas_against_means,
)
from bittern.analysis.classes import ClassMeans, per_class
from bittern.analysis.comparing import compare_methods
from bittern.analysis.costs import Cost, costs
from bittern.analysis.differences import Difference, Differences, compare_experiments
from bittern.analysis.leaders import Leader, leaders
from bittern.analysis.summary import Summary, best_by_length, summarise
from bittern.analysis.sweeps import Sweep, sweep_of
from bittern.analysis.verdicts import Verdict, Verdicts

__all__ = [
    "AreaAndMean",
    "AreasAgainstMeans",
    "ClassMeans",
    "Cost",
    "Difference",
    "Differences",
    "Leader",
    "Skew",
    "Summary",
    "Sweep",
    "Verdict",
    "Verdicts",
    "areas_against_means",
    "best_by_length",
    "compare_experiments",
    "compare_methods",
    "costs",
    "leaders",
    "per_class",
    "summarise",
    "sweep_of",
]
