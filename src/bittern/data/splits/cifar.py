"""The two settings of CIFAR-10 in the ties paper."""

from __future__ import annotations

import numpy as np

from bittern.checks import check_count
from bittern.data.balance import Balance, ByClass, Draws, balance_of, disjoint_sets
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.data.splits.official import official
from bittern.data.splits.standard import seen_database
from bittern.errors import InputError

__all__ = ["cifar_s1", "cifar_s2"]


def cifar_s1(
    dataset: Dataset,
    draws: Draws,
    *,
    queries_per_class: int = 100,
    train_per_class: int = 500,
    validation_queries_per_class: int = 0,
    validation_database_per_class: int = 0,
) -> Split:
    """100 images of each class as queries, the rest is database, 500 of each class train.

    The first setting of section 5.1 of [He-Cakir-Bargal-Sclaroff-2018].  It states no validation
    sets; those asked for are drawn from the part of the database that does not train.
    """
    balance = _classes(dataset, "cifar-s1")
    per_class = {
        "queries": queries_per_class,
        "train": train_per_class,
        "validation_queries": validation_queries_per_class,
        "validation_database": validation_database_per_class,
    }
    k = len(balance.classes)
    sizes = {
        name: k * check_count(n, f"cifar-s1: {name}_per_class", least=int(name == "queries"))
        for name, n in per_class.items()
    }
    return seen_database("cifar-s1", dataset, draws, sizes, balance)


def cifar_s2(
    dataset: Dataset,
    draws: Draws,
    *,
    queries_per_class: int | None = None,
    validation_queries: int = 0,
    validation_database: int = 0,
) -> Split:
    """The publisher's 10,000 test images as queries, 50,000 as database, all of which train.

    The second setting of section 5.1 of [He-Cakir-Bargal-Sclaroff-2018], "a standard 10K/50K
    split".  Some authors draw the queries at random instead: ``queries_per_class=1000`` does.
    Validation sets, of which the paper has none, are taken out of training and stay in the
    database.
    """
    balance: Balance
    if queries_per_class is None:
        held = official(dataset, draws)
        queries, database = held.queries, held.database
        balance = balance_of(dataset)
    else:
        by_class = balance = _classes(dataset, "cifar-s2")
        n = len(by_class.classes) * check_count(queries_per_class, "cifar-s2: queries_per_class")
        items = np.arange(len(dataset))
        queries = balance.sample(n, items, draws, "cifar-s2: queries")
        database = np.setdiff1d(items, queries, assume_unique=True)
    sizes = {"validation_queries": validation_queries, "validation_database": validation_database}
    sets = disjoint_sets(balance, sizes, database, draws, "cifar-s2")
    is_random = queries_per_class is not None or any(sizes.values())
    return Split(
        name="cifar-s2",
        n_items=len(dataset),
        **sets,
        queries=queries,
        database=database,
        train=np.setdiff1d(database, np.concatenate(list(sets.values()))),
        parts=tuple((name, "database") for name in ("train", *sizes)),
        balanced_by=balance.by if is_random else "the publisher",
        random_state=draws.random_state if is_random else None,
        run=draws.run if is_random else None,
    )


def _classes(dataset: Dataset, owner: str) -> ByClass:
    if dataset.labels is None or (dataset.labels < 0).all():
        raise InputError(f"{owner}: needs class labels, {dataset.name} has none.")
    return ByClass(dataset.labels, dataset.class_names)
