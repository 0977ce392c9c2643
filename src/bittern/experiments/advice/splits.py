"""One split of the rows: training rows, databases of several sizes, and what is relevant there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.errors import InputError
from bittern.experiments.advice.counting import Rescorer, count_by_vectors
from bittern.experiments.advice.data import Sample
from bittern.quantise import Int8
from bittern.relevance import Relevance

STORES = ("float32", "int8")  # of the vectors that rescore candidates


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Training rows and items, disjoint, and the ground truth of databases of several sizes.

    The database of size n is the first n items.
    """

    number: int
    train: Float32Array
    train_labels: NDArray[Any] | None
    items: Float32Array
    sizes: tuple[int, ...]  # ascending
    truths: tuple[Relevance, ...]  # of each size
    ceilings: tuple[Float64Array, ...]  # relevant items among the first k by the vectors
    rescorers: tuple[Rescorer, ...]  # of STORES

    @classmethod
    def of(cls, number: int, sample: Sample, sizes: tuple[int, ...], k: int) -> Split:
        """Read the rows of a split, and find what is relevant."""
        train, database = sample.divide(number)
        database = database[: sizes[-1]]
        rows, items = sample.rows(train), sample.rows(database)
        floats = Rescorer.of_floats(items)
        int8 = Rescorer.of_int8(items, Int8().fit(rows))
        truths = tuple(sample.truth_of(items[:n], database[:n], k) for n in sizes)
        ceilings = tuple(
            _ceiling(sample, floats.first(n), truth, k)
            for n, truth in zip(sizes, truths, strict=True)
        )
        return cls(
            number=number,
            train=rows,
            train_labels=None if sample.labels is None else sample.labels[train],
            items=items,
            sizes=sizes,
            truths=truths,
            ceilings=ceilings,
            rescorers=(floats, int8),
        )


def _ceiling(sample: Sample, floats: Rescorer, truth: Relevance, k: int) -> Float64Array:
    """Relevant items among the first k by the vectors; NaN for a query with nothing relevant."""
    n_items = len(floats.rows)
    if sample.truth == "neighbours":  # found perfectly, by definition
        return np.full(len(sample.queries), float(min(k, n_items)))
    n_relevant = truth.n_relevant
    for part in (sample.validation, sample.test):
        if not n_relevant[part].any():
            raise InputError(
                f"advise: none of {part.stop - part.start} queries has anything relevant among "
                f"{n_items} items; are these {_called(sample)}?"
            )
    found = count_by_vectors(sample.queries, floats, truth, min(k, n_items))
    return np.where(n_relevant > 0, found, np.nan)


def _called(sample: Sample) -> str:
    return {"classes": "class labels", "tags": "tags"}.get(sample.truth, "the ids of these rows")
