"""Short binary codes: made, searched, and honestly evaluated.

Everything below loads when first used, so that importing the package is quick.

>>> import bittern as bt
>>> queries = bt.Codes.from_bits([[0, 0, 1]])
>>> database = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
>>> relevance = bt.Relevance.from_classes([7], [7, 7, 3])
>>> bt.evaluate(queries, database, relevance, ["ap"])["ap"].mean
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bittern import (
        data,
        experiments,
        features,
        fusion,
        hashing,
        index,
        metrics,
        report,
        store,
    )
    from bittern.codes import Codes
    from bittern.data import (
        DATASETS,
        SPLITS,
        Dataset,
        Split,
        distance_percentiles,
        load,
        make_split,
    )
    from bittern.errors import (
        BitternError,
        FileError,
        InputError,
        MissingExtraError,
        NotFittedError,
        PositionError,
        UnknownNameError,
    )
    from bittern.index import (
        INDEXES,
        FlatIndex,
        Hits,
        MultiIndex,
        TableIndex,
        table_profile,
        table_surface,
    )
    from bittern.metrics import (
        METRICS,
        Curve,
        MetricName,
        Score,
        Scores,
        evaluate,
        interpolated_pr_curve,
        pr_curve,
        rmse,
    )
    from bittern.profile import TieProfile
    from bittern.relevance import Relevance, ball_radius

# Where each public name lives.
_HOMES = {
    "metrics": {
        "METRICS",
        "Curve",
        "MetricName",
        "Score",
        "Scores",
        "evaluate",
        "interpolated_pr_curve",
        "pr_curve",
        "rmse",
    },
    "codes": {"Codes"},
    "data": {
        "DATASETS",
        "SPLITS",
        "Dataset",
        "Split",
        "distance_percentiles",
        "load",
        "make_split",
    },
    "errors": {
        "BitternError",
        "FileError",
        "InputError",
        "MissingExtraError",
        "NotFittedError",
        "PositionError",
        "UnknownNameError",
    },
    "index": {
        "INDEXES",
        "FlatIndex",
        "Hits",
        "MultiIndex",
        "TableIndex",
        "table_profile",
        "table_surface",
    },
    "profile": {"TieProfile"},
    "relevance": {"Relevance", "ball_radius"},
}
_MODULES = {
    "data",
    "experiments",
    "features",
    "fusion",
    "hashing",
    "index",
    "metrics",
    "report",
    "store",
}

__all__ = [
    "DATASETS",
    "INDEXES",
    "METRICS",
    "SPLITS",
    "BitternError",
    "Codes",
    "Curve",
    "Dataset",
    "FileError",
    "FlatIndex",
    "Hits",
    "InputError",
    "MetricName",
    "MissingExtraError",
    "MultiIndex",
    "NotFittedError",
    "PositionError",
    "Relevance",
    "Score",
    "Scores",
    "Split",
    "TableIndex",
    "TieProfile",
    "UnknownNameError",
    "ball_radius",
    "data",
    "distance_percentiles",
    "evaluate",
    "experiments",
    "features",
    "fusion",
    "hashing",
    "index",
    "interpolated_pr_curve",
    "load",
    "make_split",
    "metrics",
    "pr_curve",
    "report",
    "rmse",
    "store",
    "table_profile",
    "table_surface",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"bittern.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"bittern.{home}"), name)
    raise AttributeError(f"module 'bittern' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
