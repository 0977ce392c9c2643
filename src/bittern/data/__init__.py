"""The papers' datasets, read from their published files, and splits without leaks."""

from bittern.data.catalogue import DATASETS, load
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.percentiles import distance_percentiles
from bittern.data.splits import SPLITS, Split, make_split, ten_runs

__all__ = [
    "DATASETS",
    "SPLITS",
    "Dataset",
    "DatasetSpec",
    "Split",
    "distance_percentiles",
    "load",
    "make_split",
    "ten_runs",
]


def __dir__() -> list[str]:
    return sorted(__all__)
