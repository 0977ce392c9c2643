"""The improved split: queries and database are both unseen in training."""

from __future__ import annotations

import numpy as np

from bittern.data.balance import Draws, balance_of, disjoint_sets
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.data.splits.standard import sizes_or_defaults
from bittern.errors import InputError

__all__ = ["improved"]


def improved(
    dataset: Dataset,
    draws: Draws,
    *,
    queries: int | None = None,
    train: int | None = None,
    validation_queries: int | None = None,
    validation_database: int | None = None,
    database: int | None = None,
    balanced: bool = True,
) -> Split:
    """Five disjoint sets: neither test queries nor test database are seen before the test.

    Section 3.5.2 of [Moran-2016], which gives no sizes: without any, those of ``standard``, and
    the database is all that is left (as balanced as the dataset); a given ``database`` is drawn
    balanced too.  For one ``random_state`` and run, all but the database are the very sets of
    ``standard``; so what a seen database is worth can be measured pairwise.
    """
    asked = {
        "queries": queries,
        "train": train,
        "validation_queries": validation_queries,
        "validation_database": validation_database,
    }
    sizes = sizes_or_defaults("improved", len(dataset), asked)
    balance = balance_of(dataset, balanced)
    items = np.arange(len(dataset))
    if database is not None:
        sizes["database"] = database
    sets = disjoint_sets(balance, sizes, items, draws, "improved")
    if database is None:
        sets["database"] = np.setdiff1d(items, np.concatenate(list(sets.values())))
        if not len(sets["database"]):
            listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
            raise InputError(
                f"improved: of {len(items):,} items none is left for the database after {listed}."
            )
    return Split(
        name="improved",
        n_items=len(dataset),
        **sets,
        balanced_by=balance.by,
        random_state=draws.random_state,
        run=draws.run,
    )
