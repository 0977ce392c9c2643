"""Splits of the ties paper, section 5.1 of [He-Cakir-Bargal-Sclaroff-2018]."""

from __future__ import annotations

import numpy as np

from bittern.checks import check_count
from bittern.data.balance import (
    AtRandom,
    Balance,
    ByClass,
    ByRarestLabel,
    Shuffler,
    balance_of,
    disjoint_sets,
    most_frequent,
)
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.data.splits.general import official, seen_database
from bittern.errors import InputError


def cifar_s1(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    queries_per_class: int = 100,
    train_per_class: int = 500,
    validation_queries_per_class: int = 0,
    validation_database_per_class: int = 0,
) -> Split:
    """100 images of each class as queries, the rest is the database, 500 per class train.

    The paper's first setting for CIFAR-10.  It has no validation sets; with a size, they are drawn
    from the part of the database that does not train.
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
    return seen_database("cifar-s1", dataset, shuffler, sizes, balance)


def cifar_s2(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    queries_per_class: int | None = None,
    validation_queries: int = 0,
    validation_database: int = 0,
) -> Split:
    """The publisher's 10,000 test images as queries, 50,000 as database, all of which train.

    The paper's second setting for CIFAR-10, "a standard 10K/50K split".  Some authors draw the
    queries at random instead: use ``queries_per_class=1000``.  The paper has no validation sets;
    with a size, they are taken out of training and stay in the database.
    """
    balance: Balance
    if queries_per_class is None:
        published = official(dataset, shuffler)
        queries, database = published.queries, published.database
        balance = balance_of(dataset)
    else:
        by_class = balance = _classes(dataset, "cifar-s2")
        n = len(by_class.classes) * check_count(queries_per_class, "cifar-s2: queries_per_class")
        items = np.arange(len(dataset))
        queries = balance.sample(n, items, shuffler, "cifar-s2: queries")
        database = np.setdiff1d(items, queries, assume_unique=True)
    sizes = {"validation_queries": validation_queries, "validation_database": validation_database}
    sets = disjoint_sets(balance, sizes, database, shuffler, "cifar-s2")
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
        random_state=shuffler.random_state if is_random else None,
        run=shuffler.run if is_random else None,
    )


def nuswide_21(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    n_labels: int = 21,
    queries_per_label: int = 100,
    train_per_label: int = 500,
    validation_queries_per_label: int = 0,
    validation_database_per_label: int = 0,
) -> Split:
    """Images with one of the 21 most frequent labels: 100 per label as queries, 500 train.

    In the paper: 2,100 queries; the other images with such a label (of 196k) are the database, and
    10,500 of them train.  An image with several labels is drawn for one of them, the rarest label
    drawing first, so that all drawn images are distinct; the paper does not say how it does this.
    Images with none of the labels are in no set.  The ground truth must use the same labels:
    ``dataset.tags[:, most_frequent(dataset.tags, 21)]``.  The paper has no validation sets.
    """
    if dataset.tags is None:
        raise InputError(f"nuswide-21: needs tags, but {dataset.name} has none.")
    n_used = int(np.count_nonzero(np.asarray(dataset.tags.sum(axis=0))))
    if check_count(n_labels, "nuswide-21: n_labels") > n_used:
        raise InputError(
            f"nuswide-21: needs {n_labels} labels, {dataset.name} uses {n_used}; pass n_labels=."
        )
    columns = most_frequent(dataset.tags, n_labels)
    tags = dataset.tags[:, columns]
    balance = ByRarestLabel(tags, tuple(dataset.tag_names[column] for column in columns))
    per_label = {
        "queries": queries_per_label,
        "train": train_per_label,
        "validation_queries": validation_queries_per_label,
        "validation_database": validation_database_per_label,
    }
    sizes = {
        name: n_labels * check_count(n, f"nuswide-21: {name}_per_label", int(name == "queries"))
        for name, n in per_label.items()
    }
    among = np.flatnonzero(np.asarray(tags.sum(axis=1)).ravel())
    return seen_database("nuswide-21", dataset, shuffler, sizes, balance, among)


def labelme_20k(
    dataset: Dataset,
    shuffler: Shuffler,
    *,
    queries: int = 2_000,
    train: int = 5_000,
    validation_queries: int = 0,
    validation_database: int = 0,
) -> Split:
    """2,000 random images as queries, the rest is the database, 5,000 of it train.

    The paper's "20K" is taken as all the rest: 20,019 of LabelMe's 22,019.  Drawn at random,
    because LabelMe has no labels.  The paper has no validation sets.
    """
    sizes = {
        "queries": queries,
        "train": train,
        "validation_queries": validation_queries,
        "validation_database": validation_database,
    }
    return seen_database("labelme-20k", dataset, shuffler, sizes, AtRandom())


def _classes(dataset: Dataset, owner: str) -> ByClass:
    if dataset.labels is None or (dataset.labels < 0).all():
        raise InputError(f"{owner}: needs class labels, but {dataset.name} has none.")
    return ByClass(dataset.labels, dataset.class_names)
