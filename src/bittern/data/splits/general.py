"""Splits for any dataset: the literature's standard one, the improved one, the publisher's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_count
from bittern.data.balance import Balance, ByClass, Shuffler, balance_of, disjoint_sets
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.errors import InputError

# [Moran-2016] gives no sizes; these are ours: at most this many items, at most one in this many.
DEFAULTS = {
    "queries": (1_000, 10),
    "train": (10_000, 5),
    "validation_queries": (1_000, 10),
    "validation_database": (10_000, 5),
}

MOST_NAMED = 5  # classes in an error

# The publishers' names of the sets, and ours.
ROLES = {
    "train": "train",
    "learn": "train",
    "test": "queries",
    "query": "queries",
    "queries": "queries",
    "base": "database",
    "database": "database",
    "validation_queries": "validation_queries",
    "validation_database": "validation_database",
}


def standard(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    queries: int | None = None,
    train: int | None = None,
    validation_queries: int | None = None,
    validation_database: int | None = None,
    balanced: bool = True,
    min_per_class: int | None = None,
) -> Split:
    """Hold out test queries; the rest is the database, and parts of it train and validate.

    Section 3.5.1 of [Moran-2016].  Training and the two validation sets lie inside the database and
    are disjoint from each other.  The paper gives no sizes: the defaults are 1,000 queries, 10,000
    training items, 1,000 validation queries and a validation database of 10,000, or a tenth, a
    fifth, a tenth and a fifth of the items if that is fewer.  Each drawn set is balanced by class;
    the database is the rest, as balanced as the dataset.  Classes of fewer than ``min_per_class``
    items are left out of every set.
    """
    asked = (queries, train, validation_queries, validation_database)
    items = _large_classes(dataset, min_per_class, "standard")
    sizes = _sizes_or_defaults("standard", len(items), asked)
    balance = _balance(dataset, balanced, min_per_class, sizes, items, "standard")
    return seen_database("standard", dataset, shuffler, sizes, balance, items)


def improved(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    queries: int | None = None,
    train: int | None = None,
    validation_queries: int | None = None,
    validation_database: int | None = None,
    database: int | None = None,
    balanced: bool = True,
    min_per_class: int | None = None,
) -> Split:
    """Five disjoint sets: neither the test queries nor the test database are seen in training.

    Section 3.5.2 of [Moran-2016], which gives no sizes: the defaults are those of ``standard``, and
    the database is all that remains (as balanced as the dataset); with a size, ``database`` is
    drawn balanced too.  For one ``random_state`` and run, all sets except the database are the same
    as in ``standard``, so that the effect of a seen database can be measured pairwise.  Classes of
    fewer than ``min_per_class`` items are left out of every set.
    """
    asked = (queries, train, validation_queries, validation_database)
    items = _large_classes(dataset, min_per_class, "improved")
    sizes = _sizes_or_defaults("improved", len(items), asked)
    if database is not None:
        sizes["database"] = database
    balance = _balance(dataset, balanced, min_per_class, sizes, items, "improved")
    sets = disjoint_sets(balance, sizes, items, shuffler, "improved")
    if database is None:
        sets["database"] = np.setdiff1d(items, np.concatenate(list(sets.values())))
        if not len(sets["database"]):
            listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
            raise InputError(
                f"improved: no item of {len(items):,} is left for the database after {listed}."
            )
    return Split(
        name="improved",
        n_items=len(dataset),
        **sets,
        balanced_by=balance.by,
        random_state=shuffler.random_state,
        run=shuffler.run,
    )


def official(dataset: Dataset, shuffler: Shuffler) -> Split:
    """The publisher's own sets; nothing is random.

    The test set becomes the queries.  Without a database, the training set is the database (so it
    is seen in training, as in ``standard``); without a training set, the database trains.
    Validation queries without their own database search the training set.
    """
    del shuffler  # every split takes one; nothing is random here
    sets = _roles(dataset)
    if "queries" not in sets or not sets.keys() & {"train", "database"}:
        named = ", ".join(f"{name} {len(p):,}" for name, p in dataset.official.items()) or "nothing"
        raise InputError(
            f"official: needs the publisher's test and training sets, {dataset.name} names {named}."
        )
    sets.setdefault("database", sets.get("train", np.empty(0, np.intp)))
    sets.setdefault("train", sets["database"])
    if "validation_queries" in sets:
        sets.setdefault("validation_database", sets["train"])
    return Split(
        name="official",
        n_items=len(dataset),
        **sets,
        parts=_nested(sets),
        balanced_by="the publisher",
    )


def seen_database(
    name: str,
    dataset: Dataset,
    shuffler: Shuffler,
    sizes: Mapping[str, int],
    balance: Balance,
    among: PositionArray | None = None,
) -> Split:
    """Draw queries from ``among``; the rest of it is the database, which holds the other sets."""
    items = np.arange(len(dataset)) if among is None else among
    sets = disjoint_sets(balance, sizes, items, shuffler, name)
    return Split(
        name=name,
        n_items=len(dataset),
        **sets,
        database=np.setdiff1d(items, sets["queries"], assume_unique=True),
        parts=tuple((inner, "database") for inner in sets if inner != "queries"),
        balanced_by=balance.by,
        random_state=shuffler.random_state,
        run=shuffler.run,
    )


def _large_classes(dataset: Dataset, min_per_class: int | None, name: str) -> PositionArray:
    """The items, without those of classes that have fewer than ``min_per_class``."""
    items = np.arange(len(dataset))
    if min_per_class is None:
        return items
    check_count(min_per_class, f"{name}: min_per_class")
    if dataset.labels is None:
        raise InputError(f"{name}: min_per_class is for datasets with classes.")
    kept = ByClass(dataset.labels, dataset.class_names).without_small(min_per_class)
    if not len(kept.classes):
        raise InputError(f"{name}: no class has min_per_class = {min_per_class:,} items.")
    return items[(dataset.labels < 0) | (kept.labels >= 0)]


def _balance(
    dataset: Dataset,
    balanced: bool,
    min_per_class: int | None,
    sizes: Mapping[str, int],
    items: PositionArray,
    name: str,
) -> Balance:
    """How sets are drawn from the items; fails if some classes are too small for that."""
    balance = balance_of(dataset, balanced)
    if not isinstance(balance, ByClass):
        return balance
    if min_per_class is not None:
        n_classes = len(balance.classes)
        balance = balance.without_small(min_per_class)
        left_out = n_classes - len(balance.classes)
        note = f"class; {left_out} classes of fewer than {min_per_class:,} items are left out"
        balance = replace(balance, by=note if left_out else balance.by)
    numbers = [check_count(n, f"{name}: {what}", least=0) for what, n in sizes.items()]
    if sum(numbers) <= len(items):
        _check_classes(balance, numbers, items, name)
    return balance


def _check_classes(balance: ByClass, sizes: Sequence[int], items: PositionArray, name: str) -> None:
    """Raise InputError if classes are too small: which, and what to do."""
    counts, needs = balance.counts(items), balance.needs(sizes, items)
    short = np.flatnonzero(needs > counts)
    if not len(short):
        return
    short = short[np.argsort(counts[short], kind="stable")]
    labels = balance.classes[short]
    listed = [f"'{balance.names[c]}' {n:,}" for c, n in zip(labels, counts[short], strict=True)]
    more = f" and {len(short) - MOST_NAMED} more" if len(short) > MOST_NAMED else ""
    raise InputError(
        f"{name}: balanced sets of these sizes take {needs[short].max():,} items of each class, "
        f"but {len(short)} of {len(counts)} classes have fewer: "
        f"{', '.join(listed[:MOST_NAMED])}{more}; ask for fewer items, "
        f"{_smallest_fit(sizes, counts)}or draw without regard to classes: balanced=false."
    )


def _smallest_fit(sizes: Sequence[int], counts: NDArray[np.int64]) -> str:
    """The advice to leave out classes, so few that the others have enough; empty if impossible."""
    for least in np.unique(counts):
        kept = counts[counts >= least]
        if sum(-(-n // len(kept)) for n in sizes) <= least:
            return (
                f"leave out small classes (min_per_class={least} keeps {len(kept)} of "
                f"{len(counts)}), "
            )
    return ""


def _sizes_or_defaults(name: str, n: int, asked: tuple[int | None, ...]) -> dict[str, int]:
    """The given sizes; the default for None."""
    sizes = {}
    for (what, (most, share)), size in zip(DEFAULTS.items(), asked, strict=True):
        sizes[what] = min(most, n // share) if size is None else size
        if size is None and not sizes[what]:
            raise InputError(
                f"{name}: {n} items are too few for {what}, by default one of every {share}; "
                f"give {what}=."
            )
    return sizes


def _nested(sets: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The pairs where the publisher put one set inside the other; test queries are in no other."""
    outward = ("validation_queries", "validation_database", "train", "database")
    pairs = combinations([name for name in outward if name in sets], 2)
    return tuple(pair for pair in pairs if np.isin(sets[pair[0]], sets[pair[1]]).all())


def _roles(dataset: Dataset) -> dict[str, Any]:
    sets: dict[str, PositionArray] = {}
    for name, positions in dataset.official.items():
        role = ROLES.get(name)
        if role is None or role in sets:
            raise InputError(
                f"official: sets are called {', '.join(ROLES)}, one for each role, "
                f"{dataset.name} names {', '.join(dataset.official)}."
            )
        sets[role] = positions
    return sets
