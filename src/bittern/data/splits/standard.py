"""The literature's standard split: test queries held out, the rest is database and training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bittern.data.balance import Balance, Draws, balance_of, disjoint_sets
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.errors import InputError

__all__ = ["seen_database", "sizes_or_defaults", "standard"]

# The chapter gives no sizes; these are ours: so many items, or a share where they are too few.
DEFAULTS = {
    "queries": (1_000, 10),
    "train": (10_000, 5),
    "validation_queries": (1_000, 10),
    "validation_database": (10_000, 5),
}


def standard(
    dataset: Dataset,
    draws: Draws,
    *,
    queries: int | None = None,
    train: int | None = None,
    validation_queries: int | None = None,
    validation_database: int | None = None,
    balanced: bool = True,
) -> Split:
    """Test queries are held out; all else is the database, and in part trains and validates.

    Section 3.5.1 of [Moran-2016].  Training and the two validation sets lie inside the database
    and are disjoint from each other.  The chapter gives no sizes: without any, 1,000 queries,
    10,000 to train on, 1,000 and 10,000 to validate, or a tenth, a fifth, a tenth and a fifth of
    the items where that is fewer.  Each drawn set is balanced by class; the database is what is
    left and as balanced as the dataset.
    """
    sizes = sizes_or_defaults(
        "standard",
        len(dataset),
        {
            "queries": queries,
            "train": train,
            "validation_queries": validation_queries,
            "validation_database": validation_database,
        },
    )
    return seen_database("standard", dataset, draws, sizes, balance_of(dataset, balanced))


def seen_database(
    name: str,
    dataset: Dataset,
    draws: Draws,
    sizes: Mapping[str, int],
    balance: Balance,
    among: NDArray[np.intp] | None = None,
) -> Split:
    """Queries drawn from ``among``; the rest of it is the database, which holds the other sets."""
    items = np.arange(len(dataset)) if among is None else among
    sets = disjoint_sets(balance, sizes, items, draws, name)
    return Split(
        name=name,
        n_items=len(dataset),
        **sets,
        database=np.setdiff1d(items, sets["queries"], assume_unique=True),
        parts=tuple((inner, "database") for inner in sets if inner != "queries"),
        balanced_by=balance.by,
        random_state=draws.random_state,
        run=draws.run,
    )


def sizes_or_defaults(name: str, n: int, asked: Mapping[str, int | None]) -> dict[str, int]:
    """The sizes asked for, and for None so many items or so large a share of ``n``."""
    sizes = {}
    for what, size in asked.items():
        most, share = DEFAULTS[what]
        sizes[what] = min(most, n // share) if size is None else size
        if size is None and not sizes[what]:
            raise InputError(
                f"{name}: {n} items are too few for {what}, by default one of every {share}; "
                f"give {what}=."
            )
    return sizes
