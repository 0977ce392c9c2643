"""Splits: which items may be used for what, one file for each protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from bittern.data.balance import Draws
from bittern.data.dataset import Dataset
from bittern.data.splits.base import SETS, Split
from bittern.data.splits.cifar import cifar_s1, cifar_s2
from bittern.data.splits.corel import CorelSplit, ExampleQueries, corel
from bittern.data.splits.improved import improved
from bittern.data.splits.labelme import labelme_20k
from bittern.data.splits.nuswide import nuswide_21
from bittern.data.splits.official import official
from bittern.data.splits.standard import standard
from bittern.data.splits.trecvid import TrecvidSplit, trecvid
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
    """The split of that name; the same ``random_state`` and ``run`` give the same everywhere.

    ``sizes`` are the split's own keyword arguments, with its paper's sizes as defaults.
    """
    make = SPLITS[name]
    known = list(inspect.signature(make).parameters)[2:]
    for size in sizes:
        if size not in known:
            table = Registry(f"argument of {name}", dict.fromkeys(known))
            raise InputError(f"make_split: {table.refusal(size)}")
    return make(dataset, Draws(random_state, run), **sizes)


def ten_runs(name: str, dataset: Dataset, random_state: int = 0, **sizes: Any) -> list[Split]:
    """Ten different splits, runs 0…9 (repeated random subsampling, 3.5.1 of [Moran-2016])."""
    first = make_split(name, dataset, random_state=random_state, **sizes)
    if first.random_state is None:
        raise InputError(f"ten_runs: {name} is one split, nothing of it is random; use make_split.")
    rest = (
        make_split(name, dataset, random_state=random_state, run=run, **sizes)
        for run in range(1, 10)
    )
    return [first, *rest]
