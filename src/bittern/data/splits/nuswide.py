"""The ties paper's split of NUS-WIDE: the most frequent labels, and so many images of each."""

from __future__ import annotations

import numpy as np

from bittern.checks import check_count
from bittern.data.balance import ByRarestLabel, Draws, most_frequent
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.data.splits.standard import seen_database
from bittern.errors import InputError

__all__ = ["nuswide_21"]


def nuswide_21(
    dataset: Dataset,
    draws: Draws,
    *,
    n_labels: int = 21,
    queries_per_label: int = 100,
    train_per_label: int = 500,
    validation_queries_per_label: int = 0,
    validation_database_per_label: int = 0,
) -> Split:
    """Of the images with one of the 21 most frequent labels, 100 a label as queries, 500 to train.

    Section 5.1 of [He-Cakir-Bargal-Sclaroff-2018]: 2,100 queries, the other images with such a
    label (of 196k) are the database, and 10,500 of them train.  An image with several labels is
    drawn for one of them, the rarest label drawing first, so that all are distinct; the paper does
    not say how it resolves this.  Images with none of the labels are in no set.  Ground truth must
    know the same labels: ``dataset.tags[:, most_frequent(dataset.tags, 21)]``.  The paper states no
    validation sets.
    """
    if dataset.tags is None:
        raise InputError(f"nuswide-21: needs tags, {dataset.name} has none.")
    n_used = int(np.count_nonzero(np.asarray(dataset.tags.sum(axis=0))))
    if check_count(n_labels, "nuswide-21: n_labels") > n_used:
        raise InputError(
            f"nuswide-21: needs {n_labels} labels, {dataset.name} uses {n_used}; give n_labels=."
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
    return seen_database("nuswide-21", dataset, draws, sizes, balance, among)
