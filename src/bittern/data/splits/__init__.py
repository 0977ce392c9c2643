"""Splits by name: which items an experiment may use for what."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from bittern.data.balance import Shuffler
from bittern.data.dataset import Dataset
from bittern.data.splits.base import SETS, Split
from bittern.data.splits.evidence_paper import (
    CorelSplit,
    ExampleQueries,
    TrecvidSplit,
    corel,
    trecvid,
)
from bittern.data.splits.general import improved, official, standard
from bittern.data.splits.ties_paper import cifar_s1, cifar_s2, labelme_20k, nuswide_21
from bittern.errors import InputError
from bittern.registry import Registry

__all__ = [
    "SETS",
    "SPLITS",
    "CorelSplit",
    "ExampleQueries",
    "Split",
    "TrecvidSplit",
    "make_split",
    "ten_runs",
]

SPLITS: Registry[Callable[..., Split]] = Registry(
    "split",
    {
        "standard": standard,
        "improved": improved,
        "cifar-s1": cifar_s1,
        "cifar-s2": cifar_s2,
        "nuswide-21": nuswide_21,
        "labelme-20k": labelme_20k,
        "corel": corel,
        "trecvid": trecvid,
        "official": official,
    },
)


def make_split(
    name: str, dataset: Dataset, *, random_state: int = 0, run: int = 0, **sizes: Any
) -> Split:
    """The split of that name; the same ``random_state`` and ``run`` give the same on any machine.

    ``sizes`` are the split's own keyword arguments; the defaults are the sizes of its paper.
    """
    make = SPLITS[name]
    known = list(inspect.signature(make).parameters)[2:]
    for size in sizes:
        if size not in known:
            table = Registry(f"argument of {name}", dict.fromkeys(known))
            raise InputError(f"make_split: {table.refusal(size)}")
    return make(dataset, Shuffler(random_state, run), **sizes)


def ten_runs(name: str, dataset: Dataset, random_state: int = 0, **sizes: Any) -> list[Split]:
    """Ten different splits, runs 0…9 (repeated random subsampling, 3.5.1 of [Moran-2016])."""
    first = make_split(name, dataset, random_state=random_state, **sizes)
    if first.random_state is None:
        raise InputError(
            f"ten_runs: {name} has no random part, so all runs are the same; use make_split."
        )
    rest = (
        make_split(name, dataset, random_state=random_state, run=run, **sizes)
        for run in range(1, 10)
    )
    return [first, *rest]
