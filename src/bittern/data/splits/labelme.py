"""The ties paper's split of LabelMe."""

from __future__ import annotations

from bittern.data.balance import AtRandom, Draws
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.data.splits.standard import seen_database

__all__ = ["labelme_20k"]


def labelme_20k(
    dataset: Dataset,
    draws: Draws,
    *,
    queries: int = 2_000,
    train: int = 5_000,
    validation_queries: int = 0,
    validation_database: int = 0,
) -> Split:
    """2,000 random images as queries, the rest is database, 5,000 of it train.

    Section 5.1 of [He-Cakir-Bargal-Sclaroff-2018].  Its "20K" is taken as all the rest: 20,019 of
    LabelMe's 22,019.  Plain random, for LabelMe has no labels.  The paper states no validation
    sets.
    """
    sizes = {
        "queries": queries,
        "train": train,
        "validation_queries": validation_queries,
        "validation_database": validation_database,
    }
    return seen_database("labelme-20k", dataset, draws, sizes, AtRandom())
