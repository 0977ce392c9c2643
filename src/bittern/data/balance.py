"""Balanced random samples, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_count
from bittern.data.dataset import Dataset
from bittern.errors import InputError

# Separates our stream from that of default_rng(random_state), which the hashers use.
STREAM = int.from_bytes(b"split", "big")


class Shuffler:
    """Random orders that depend only on ``random_state`` and ``run``.

    Sorts the raw output of PCG64: NumPy promises (NEP 19) that bit generators never change, but
    does not promise it for ``Generator.permutation``.
    """

    def __init__(self, random_state: int = 0, run: int = 0) -> None:
        self.random_state = check_count(random_state, "random_state", least=0)
        self.run = check_count(run, "run", least=0)
        seed = np.random.SeedSequence([self.random_state, self.run, STREAM])
        self._bits = np.random.PCG64(seed)

    def shuffled(self, items: NDArray[Any]) -> NDArray[Any]:
        """The items in random order."""
        return items[np.argsort(self._bits.random_raw(len(items)), kind="stable")]


class Balance(Protocol):
    """A rule for drawing samples."""

    @property
    def by(self) -> str:
        """The name of what is balanced, for reports."""
        ...

    def sample(
        self, n: int, available: PositionArray, shuffler: Shuffler, what: str
    ) -> PositionArray:
        """``n`` of the ``available`` positions, sorted; errors start with ``what``."""
        ...


@dataclass(frozen=True, slots=True)
class AtRandom:
    """Every item is equally likely."""

    by: str = "nothing (plain random)"

    def sample(
        self, n: int, available: PositionArray, shuffler: Shuffler, what: str
    ) -> PositionArray:
        """``n`` of the ``available`` positions, sorted."""
        _check_enough(n, available, what)
        return np.sort(shuffler.shuffled(available)[:n])


@dataclass(frozen=True, slots=True, eq=False)
class ByClass:
    """Per-class counts differ by at most one; items without a class (-1) are never drawn.

    If ``n`` is not a multiple of the number of classes, the classes with the most remaining items
    provide one more, so that classes of equal size stay equal to within one item.
    """

    labels: NDArray[np.int64]  # (n_items,)
    names: tuple[str, ...]
    by: str = "class"

    @property
    def classes(self) -> NDArray[np.int64]:
        """The classes that have items."""
        return np.unique(self.labels[self.labels >= 0])

    def sample(
        self, n: int, available: PositionArray, shuffler: Shuffler, what: str
    ) -> PositionArray:
        """``n`` of the ``available`` positions, sorted."""
        _check_enough(n, available, what)
        shuffled = shuffler.shuffled(available)
        order = np.argsort(self.labels[shuffled], kind="stable")
        items, labels = shuffled[order], self.labels[shuffled[order]]
        first = np.searchsorted(labels, self.classes)
        counts = np.searchsorted(labels, self.classes, side="right") - first
        quotas = _quotas(n, counts, shuffler)
        self._check(n, quotas, counts, what)
        chosen = [items[f : f + q] for f, q in zip(first, quotas, strict=True)]
        return np.sort(np.concatenate(chosen))

    def counts(self, available: PositionArray) -> NDArray[np.int64]:
        """The number of available items of each class."""
        labels = np.sort(self.labels[available])
        ends = [np.searchsorted(labels, self.classes, side) for side in ("left", "right")]
        return ends[1] - ends[0]

    def without_small(self, least: int) -> ByClass:
        """The same without classes of fewer than ``least`` items; their items lose their class."""
        counts = self.counts(np.arange(len(self.labels)))
        kept = np.isin(self.labels, self.classes[counts >= least])
        return replace(self, labels=np.where(kept, self.labels, -1))

    def needs(self, sizes: Iterable[int], available: PositionArray) -> NDArray[np.int64]:
        """The number of items of each class that sets of these sizes take together."""
        counts = self.counts(available)
        taken = np.zeros_like(counts)
        for n in sizes:
            taken += _shares(n, counts - taken, np.arange(len(counts)))
        return taken

    def _check(
        self, n: int, quotas: NDArray[np.int64], counts: NDArray[np.int64], what: str
    ) -> None:
        short = np.flatnonzero(quotas > counts)
        if len(short):
            worst = short[np.argmin(counts[short])]
            name = self.names[self.classes[worst]]
            raise InputError(
                f"{what}: {n:,} items over {len(quotas)} classes need {quotas[worst]:,} of class "
                f"'{name}', but {counts[worst]:,} are left; ask for fewer."
            )


class ByRarestLabel:
    """Per-label counts of the items drawn *for* a label differ by at most one.

    An item may have several labels but is drawn for one of them.  The label with the fewest
    remaining items draws first, so that frequent labels do not use up the items of rare ones;
    items without any label are never drawn.
    """

    by = "rarest label"

    def __init__(self, tags: Any, names: tuple[str, ...]) -> None:
        import scipy.sparse

        rows = (scipy.sparse.csr_array(tags) != 0).astype(np.int64)
        present = np.flatnonzero(np.asarray(rows.sum(axis=0)).ravel())
        self._rows = rows[:, present]
        self._columns = self._rows.tocsc()
        self.names = tuple(names[column] for column in present)

    def sample(
        self, n: int, available: PositionArray, shuffler: Shuffler, what: str
    ) -> PositionArray:
        """``n`` of the ``available`` positions, sorted."""
        _check_enough(n, available, what)
        free = np.zeros(self._rows.shape[0], dtype=bool)
        free[available] = True
        counts = self._count(available)
        quotas = _quotas(n, counts, shuffler)
        waiting = set(range(len(counts)))
        chosen: list[PositionArray] = []
        while waiting:
            label = min(waiting, key=lambda one: (counts[one], one))
            waiting.remove(label)
            items = self._items(label)
            items = items[free[items]]
            self._check(label, int(quotas[label]), len(items), what)
            drawn = shuffler.shuffled(items)[: quotas[label]]
            free[drawn] = False
            counts = counts - self._count(drawn)
            chosen.append(drawn)
        return np.sort(np.concatenate(chosen))

    def _items(self, label: int) -> PositionArray:
        start, end = self._columns.indptr[label : label + 2]
        return np.sort(self._columns.indices[start:end]).astype(np.intp)

    def _count(self, items: PositionArray) -> NDArray[np.int64]:
        return np.asarray(self._rows[items].sum(axis=0)).ravel()

    def _check(self, label: int, quota: int, n_left: int, what: str) -> None:
        if quota > n_left:
            raise InputError(
                f"{what}: {quota:,} items needed for '{self.names[label]}', but {n_left:,} are "
                f"left after the rarer labels; ask for fewer."
            )


def balance_of(dataset: Dataset, balanced: bool = True) -> Balance:
    """Balance by class if there are classes, by rarest label if there are tags, or not at all.

    ``balanced=False`` is for ground truth without classes, such as ε-balls (section 3.5 of
    [Moran-2016] balances "when class-based ground-truth is used").
    """
    if balanced and dataset.labels is not None and (dataset.labels >= 0).any():
        return ByClass(dataset.labels, dataset.class_names)
    if balanced and dataset.tags is not None and dataset.tags.sum() > 0:
        return ByRarestLabel(dataset.tags, dataset.tag_names)
    return AtRandom()


def disjoint_sets(
    balance: Balance,
    sizes: Mapping[str, int],
    available: PositionArray,
    shuffler: Shuffler,
    owner: str,
) -> dict[str, Any]:
    """Samples of the given sizes, one after another, each from the items not yet drawn."""
    sets: dict[str, PositionArray] = {}
    left = available
    for name, n in sizes.items():
        least = 1 if name == "queries" else 0
        check_count(n, f"{owner}: {name}", least=least)
        sets[name] = balance.sample(n, left, shuffler, f"{owner}: {name}") if n else left[:0]
        left = np.setdiff1d(left, sets[name], assume_unique=True)
    return sets


def most_frequent(tags: Any, n: int) -> NDArray[np.intp]:
    """Columns of the ``n`` most frequent tags, ascending; ties go to the first."""
    counts = np.asarray(tags.sum(axis=0)).ravel()
    n_used = int(np.count_nonzero(counts))
    if check_count(n, "most_frequent: n") > n_used:
        raise InputError(f"most_frequent: n must be at most {n_used}, the labels in use, got {n}.")
    return np.sort(np.argsort(-counts.astype(np.int64), kind="stable")[:n])


def _quotas(n: int, counts: NDArray[np.int64], shuffler: Shuffler) -> NDArray[np.int64]:
    """``n`` divided into shares that differ by at most one; larger where more items remain."""
    return _shares(n, counts, shuffler.shuffled(np.arange(len(counts))))  # random among equals


def _shares(n: int, counts: NDArray[np.int64], order: NDArray[Any]) -> NDArray[np.int64]:
    """These shares; among equal counts, the first in ``order`` get more."""
    share, extra = divmod(n, len(counts))
    order = order[np.argsort(-counts[order], kind="stable")]
    quotas = np.full(len(counts), share, dtype=np.int64)
    quotas[order[:extra]] += 1
    return quotas


def _check_enough(n: int, available: PositionArray, what: str) -> None:
    if n > len(available):
        raise InputError(
            f"{what}: {n:,} items asked for, but only {len(available):,} are available."
        )
