"""Split: which items an experiment may use for what, and which sets may share items."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field, fields
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_count, check_positions, check_same_length
from bittern.data.dataset import Dataset
from bittern.errors import FileError, InputError
from bittern.io.files import existing_file
from bittern.io.npz import load_arrays, write_arrays
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.data.leaks import LeakReport

SETS = ("train", "validation_queries", "validation_database", "queries", "database")


def _empty() -> PositionArray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Split:
    """Five sets of positions, sorted and distinct, in a dataset of ``n_items``.

    ``parts`` lists the pairs (inner, outer) of sets where the first is inside the second on
    purpose.  All other pairs are disjoint, which is verified here, so a ``Split`` always states
    which sets overlap.  Queries and database are never empty; validation queries and validation
    database are both given or both empty.

    ``random_state`` and ``run`` are None if nothing was drawn at random.
    """

    name: str
    n_items: int
    queries: PositionArray
    database: PositionArray
    train: PositionArray = field(default_factory=_empty)
    validation_queries: PositionArray = field(default_factory=_empty)
    validation_database: PositionArray = field(default_factory=_empty)
    parts: tuple[tuple[str, str], ...] = ()
    balanced_by: str = "nothing"
    random_state: int | None = None
    run: int | None = None

    def __post_init__(self) -> None:
        check_count(self.n_items, f"{self.name}: n_items")
        for name in SETS:
            object.__setattr__(self, name, self._clean(name))
        object.__setattr__(self, "parts", tuple((str(a), str(b)) for a, b in self.parts))
        self._check_sizes()
        for inner, outer in self.parts:
            self._check_part(inner, outer)
        for one, other in self.disjoint_pairs:
            self._check_disjoint(one, other)

    @property
    def sets(self) -> dict[str, PositionArray]:
        """The five sets by name."""
        return {name: getattr(self, name) for name in SETS}

    @property
    def disjoint_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of non-empty sets that must share no item."""
        joined = {frozenset(pair) for pair in self.parts}
        filled = [name for name in SETS if len(getattr(self, name))]
        return tuple(pair for pair in combinations(filled, 2) if frozenset(pair) not in joined)

    walls = disjoint_pairs  # the old name

    @property
    def overlaps(self) -> str:
        """A sentence about the sets that overlap on purpose."""
        pairs = [
            f"{inner} is {'the same as' if self._same(inner, outer) else 'part of'} {outer}"
            for inner, outer in self.parts
            if len(getattr(self, inner))
        ]
        return (
            f"{'; '.join(pairs)}; all other sets are disjoint" if pairs else "all sets are disjoint"
        )

    @property
    def fingerprint(self) -> str:
        """Short hash of positions and overlaps; equal for equal splits, however they were made."""
        digest = hashlib.sha256(f"{self.n_items} {sorted(self.parts)}".encode())
        for name, positions in sorted(self._arrays().items()):
            digest.update(f"{name} {positions.shape}".encode())
            digest.update(np.ascontiguousarray(positions, dtype="<i8").tobytes())
        return digest.hexdigest()[:12]

    def check(self, dataset: Dataset, modality: str | None = None) -> LeakReport:
        """Look for identical rows in sets that must be disjoint.

        Reads every row of every set once, in all modalities unless one is named.
        """
        from bittern.data.leaks import find_leaks

        return find_leaks(dataset, self, modality)

    def check_size(self, dataset: Dataset) -> None:
        """Raise an error if the dataset has another number of items."""
        check_same_length(len(dataset), self.n_items, f"{self.name}: items of dataset and split")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.npz`` file that :meth:`load` reads back."""
        if Path(path).suffix != ".npz":
            raise InputError(f"{path}: save a split as .npz.")
        arrays = self._arrays()
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        rest = {name: value for name, value in values.items() if name not in arrays}
        head = {"kind": type(self).__name__, "fingerprint": self.fingerprint, "fields": rest}
        write_arrays(path, {"split": np.array(json.dumps(head)), **arrays}, compressed=True)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Split:
        """Read a file of :meth:`save` and verify its fingerprint."""
        source = existing_file(path)
        arrays: dict[str, Any] = load_arrays(source)
        try:
            head = json.loads(str(arrays.pop("split")))
            split = _kinds()[head["kind"]](**arrays, **head["fields"])
            fingerprint = head["fingerprint"]
        except Exception as error:  # JSON and the split itself raise many kinds of errors
            raise FileError(f"{source}: not a readable split ({error}).") from error
        if split.fingerprint != fingerprint:
            raise FileError(
                f"{source}: has the fingerprint {split.fingerprint}, but states {fingerprint}."
            )
        return split

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(p):,} {name}" for name, p in self.sets.items() if len(p))
        return f"<{type(self).__name__} {self.name}{self._origin()}: {sizes}; {self.fingerprint}>"

    def __str__(self) -> str:
        """A table of the sets, and which of them overlap."""
        used = np.unique(np.concatenate(list(self.sets.values())))
        rows = [(name, len(positions)) for name, positions in self.sets.items()]
        rows.append(("in no set", self.n_items - len(used)))
        width = max(len(f"{n:,}") for _, n in rows)
        lines = [f"{self.name}{self._origin()}: {self.n_items:,} items, {self.fingerprint}"]
        lines += [f"  {name:<19}  {n:>{width},}" for name, n in rows]
        return "\n".join([*lines, f"  {self.overlaps}; balanced by {self.balanced_by}"])

    def _origin(self) -> str:
        if self.random_state is None:
            return ""
        return f" (random_state {self.random_state}, run {self.run})"

    def _arrays(self) -> dict[str, NDArray[Any]]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def _same(self, one: str, other: str) -> bool:
        return np.array_equal(getattr(self, one), getattr(self, other))

    def _clean(self, name: str) -> PositionArray:
        given = np.asarray(getattr(self, name))
        given = given.astype(np.intp) if given.size == 0 else given  # [] is an array of floats
        positions = check_positions(given, f"{self.name}: {name}", self.n_items)
        distinct = np.unique(positions).astype(np.intp)
        if len(distinct) < len(positions):
            raise InputError(
                f"{self.name}: {name} must be distinct positions, "
                f"got {len(positions):,} of which {len(distinct):,} are distinct."
            )
        distinct.flags.writeable = False
        return distinct

    def _check_sizes(self) -> None:
        for name in ("queries", "database"):
            if not len(getattr(self, name)):
                listed = ", ".join(f"{name} {len(p):,}" for name, p in self.sets.items())
                raise InputError(
                    f"{self.name}: {name} must not be empty; of {self.n_items:,} items: {listed}."
                )
        n_queries, n_database = len(self.validation_queries), len(self.validation_database)
        if (n_queries == 0) != (n_database == 0):
            raise InputError(
                f"{self.name}: validation needs queries and a database or neither, "
                f"got {n_queries:,} and {n_database:,}."
            )

    def _check_part(self, inner: str, outer: str) -> None:
        if inner not in SETS or outer not in SETS or inner == outer:
            raise InputError(f"{self.name}: parts are pairs of {SETS}, got {(inner, outer)}.")
        outside = np.setdiff1d(getattr(self, inner), getattr(self, outer), assume_unique=True)
        if len(outside):
            raise InputError(
                f"{self.name}: {inner} must be inside {outer}, but {len(outside):,} items are not, "
                f"the first at position {outside[0]}."
            )

    def _check_disjoint(self, one: str, other: str) -> None:
        shared = np.intersect1d(getattr(self, one), getattr(self, other), assume_unique=True)
        if len(shared):
            raise InputError(
                f"{self.name}: {one} and {other} must be disjoint, but share {len(shared):,} "
                f"items, the first at position {shared[0]}; list intended overlaps in parts."
            )


def _kinds() -> Registry[type[Split]]:
    from bittern.data.splits.evidence_paper import CorelSplit, TrecvidSplit

    kinds = {kind.__name__: kind for kind in (Split, CorelSplit, TrecvidSplit)}
    return Registry("kind of split", kinds)
