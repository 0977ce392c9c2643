"""The collection as a worker sees it: mapped files for reading, calls to the writer for writing."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.codes import Codes
from bittern.io.files import write_text
from bittern.io.metadata import Metadata
from bittern.store.recipe import PARTS, Recipe
from bittern.web.found import Found, Ids
from bittern.web.refusal import Refusal
from bittern.web.shared import tail
from bittern.web.shared.calls import Caller
from bittern.web.shared.generation import Generation, SharedNumbers
from bittern.web.shared.view import Allowed, View
from bittern.web.source import Rows, Source, no_item, rows_at

STATE = "state"  # the file of a few numbers
GENERATION, WORKERS, N_STATE = 0, 1, 8  # places: the generation, workers begun; how many places
REMEMBERED = 32  # conditions


@dataclass(frozen=True, slots=True)
class About:
    """What does not change while a collection is served."""

    place: str
    n_bits: int
    read_only: bool
    is_crossmodal: bool
    folder: str
    uploads: str | None
    roots: tuple[str, ...]

    @classmethod
    def read(cls, run: Path) -> About:
        """Read what the writer wrote."""
        return cls(**json.loads((run / "about.json").read_text()))

    def write(self, run: Path) -> None:
        """Write it for the workers."""
        write_text(run / "about.json", json.dumps(asdict(self)))


class SharedFiles:
    """The mapped files, as one process knows them now.

    ``root`` has the generations, and ``run`` what belongs to one run of the server.
    """

    def __init__(self, root: Path, run: Path) -> None:
        self.root, self.run, self.about = root, run, About.read(run)
        self._state = SharedNumbers(run / STATE, N_STATE)
        self._lock = threading.Lock()
        self._view: View | None = None

    def now(self) -> View:
        """The items with all acknowledged writes; waits for nobody."""
        view = self._view
        if view is not None and self._is_current(view):
            return view
        with self._lock:
            view = self._view
            while view is None or not self._is_current(view):
                view = self._view = self._caught_up(view)
        return view

    def _is_current(self, view: View) -> bool:
        generation = view.generation
        return (
            generation.number == self._state[GENERATION]
            and generation.committed[0] == view.committed
        )

    def _caught_up(self, view: View | None) -> View:
        if view is None or view.generation.number != self._state[GENERATION]:
            view = View.of(self._open(), self.about.n_bits)
        committed = view.generation.committed[0]
        if committed == view.committed:
            return view
        try:
            records = tail.read_between(view.generation.tail, view.committed, committed)
        except FileNotFoundError:
            if view.generation.number == self._state[GENERATION]:
                raise
            return view  # a newer generation has just replaced it
        return view.after(tail.parse(records), committed)

    def _open(self) -> Generation:
        """The current generation; a newer one may replace it while it is opened."""
        for _ in range(100):
            number = self._state[GENERATION]
            try:
                return Generation.open(self.root, number)
            except (OSError, ValueError):
                if number == self._state[GENERATION]:
                    raise
                time.sleep(0.001)
        raise Refusal(503, "The collection changes too fast; try again in a moment.")

    @cached_property
    def recipe(self) -> Recipe:
        """The hasher and the features, read on first use."""
        files = {name: self.run / "recipe" / f"{name}.npz" for name in PARTS}
        blobs = {name: file.read_bytes() for name, file in files.items() if file.exists()}
        return Recipe.from_blobs(blobs, self.about.n_bits, self.about.place)


class Conditions:
    """The items that meet conditions, remembered as long as nothing is written."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._lock = caller, threading.Lock()
        self._known: OrderedDict[tuple[Any, ...], Allowed] = OrderedDict()

    def allowed(self, view: View, where: str) -> Allowed:
        """The items of the view that meet the condition."""
        key = view.generation.number, view.committed, where
        with self._lock:
            known = self._known.get(key)
        if known is None:
            known = view.allowed(self._caller.ask("matching", where))
            with self._lock:
                self._known[key] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return known


class SharedSource(Source):
    """The collection of a writer; what :meth:`now` gives is fixed at one moment."""

    is_quick = True

    def __init__(
        self, files: SharedFiles, caller: Caller, *, vectors: NDArray[Any] | None = None
    ) -> None:
        self._files, self._caller, self._vectors = files, caller, vectors
        self._conditions = Conditions(caller)
        self._fixed: View | None = None
        about = files.about
        self.place, self.n_bits, self.read_only = about.place, about.n_bits, about.read_only
        self.folder = Path(about.folder)
        self.uploads = None if about.uploads is None else Path(about.uploads)
        self.roots = tuple(map(Path, about.roots))

    def now(self) -> Source:
        """The collection as it is now, whatever is written meanwhile."""
        fixed = copy(self)
        fixed._fixed = self._files.now()
        return fixed

    @property
    def recipe(self) -> Recipe:
        """The hasher and the features that make codes."""
        return self._files.recipe

    @property
    def is_crossmodal(self) -> bool:
        """Whether it holds images and texts in one code space."""
        return self._files.about.is_crossmodal

    def search(self, queries: Codes, k: int, where: str | None = None) -> list[Found]:
        """The k nearest items of each query that meet the condition."""
        return self._view.search(queries, k, self._allowed(where))

    def within(self, queries: Codes, radius: int, where: str | None = None) -> list[Found]:
        """All items within the radius of each query that meet the condition."""
        return self._view.within(queries, radius, self._allowed(where))

    def histogram(self, query: Codes, where: str | None = None) -> NDArray[np.int64]:
        """How many items are at each distance from one query, ``(n_bits + 1,)``."""
        return self._view.histogram(query, self._allowed(where))

    def known(self, ids: Ids) -> list[bytes]:
        """The metadata of items as JSON text."""
        return self._view.metadata(self._view.rows_of(ids))

    def get(self, ids: Ids) -> Rows:
        """Items by ids, in this order; a Refusal (404) if one is unknown."""
        view = self._view
        rows = view.rows_of(ids)
        if (rows < 0).any():
            raise no_item(int(ids[rows < 0][0]))
        return Rows(ids, view.codes(rows), view.metadata(rows))

    def page(self, start: int, size: int, where: str | None = None) -> tuple[Rows, int]:
        """Items in the order of adding, from the ``start``-th on, and how many there are in all."""
        view, allowed = self._view, self._allowed(where)
        if allowed is None:
            rows = view.rows()
        else:
            first = np.empty(0, np.bool_) if allowed.first is None else allowed.first
            late = view.n_first + np.flatnonzero(allowed.late)
            rows = np.concatenate([np.flatnonzero(first), late])
        return self.get(view.ids_at(rows[start : start + size])), len(rows)

    def count(self) -> int:
        """Number of items."""
        return self._view.count

    def info(self) -> dict[str, Any]:
        """What the collection says about itself."""
        return self._caller.ask("info")

    def add(self, codes: Codes, ids: Ids | None, metadata: Metadata, *, replace: bool) -> Ids:
        """Add items, or ``replace`` those with the same ids; durable when it returns."""
        return self._caller.tell("add", codes.words, ids, metadata, replace)

    def delete(self, ids: Ids | None, where: str | None) -> int:
        """Delete items, and return how many; durable when it returns."""
        return self._caller.tell("delete", ids, where)

    def vectors_of(self, ids: Ids) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """Stored vectors of items, and which of them have one; None if none are stored."""
        return None if self._vectors is None else rows_at(self._vectors, ids)

    @property
    def _view(self) -> View:
        return self._fixed or self._files.now()

    def _allowed(self, where: str | None) -> Allowed | None:
        return None if where is None else self._conditions.allowed(self._view, where)
