"""Contents: the items of a collection as the views need them, read when first used."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_same_length
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.store.paths import STATE, located
from bittern.store.queries import image_file
from bittern.store.recipe import IMAGE, TEXT
from bittern.web.asked import hex_of
from bittern.web.source import CollectionSource

LABEL = "label"
TITLES = ("name", "path", "file")  # metadata that name an item, the first that is there
HIDDEN = (STATE, "text", "modality", LABEL)  # not repeated among the details of a tile
MOST_LABELS = 1000  # with more, they are names rather than classes
LONGEST = 300  # letters of a value that are shown
MOST_VALUES = 60  # of a key that filters offer
CACHED = 24  # results that are kept
Ids = NDArray[np.int64]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The class of each item, as a position in ``names``; -1 for items without one."""

    numbers: NDArray[np.int64]  # (n_items,)
    names: tuple[str, ...]


class Contents:
    """All ids, codes and labels of a collection, and what is shown of an item.

    Results that take long are kept, as long as they are among the last ones asked for.
    """

    def __init__(self, source: CollectionSource, images: str = "/items") -> None:
        self.source, self.collection = source, source.collection
        self._images = images  # where the addresses of images start
        self._lock, self._kept = RLock(), OrderedDict[Hashable, Any]()

    @cached_property
    def ids(self) -> Ids:
        """The ids of all items, in the order of adding."""
        return self.collection.ids

    @cached_property
    def codes(self) -> Codes:
        """The codes of all items, in the order of the ids."""
        return self.collection.codes

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The SQL type of each key of the metadata; empty where the store does not tell."""
        return dict(self.collection.info().get("metadata") or {})

    @cached_property
    def labels(self) -> Labels | None:
        """The classes of the items; None if they have none, or only one, or each its own."""
        given = self.once(("column", LABEL), lambda: self.collection.column(LABEL))
        names = sorted({str(one) for one in given if one is not None})
        if not 2 <= len(names) <= min(MOST_LABELS, max(2, len(given) - 1)):
            return None
        numbers = {name: number for number, name in enumerate(names)}
        numbered = [-1 if one is None else numbers[str(one)] for one in given]
        return Labels(np.array(numbered, np.int64), tuple(names))

    def values_of(self, column: str) -> list[str]:
        """The most frequent values of a key of the metadata, for filters."""
        given = self.once(("column", column), lambda: self.collection.column(column))
        known = Counter(str(one) for one in given if isinstance(one, str | int | float | bool))
        return [value for value, _ in known.most_common(MOST_VALUES)]

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.ids, kind="stable")

    def rows_of(self, ids: Sequence[int] | Ids) -> NDArray[np.int64]:
        """The positions of items by their ids; InputError if an id is unknown."""
        wanted = np.asarray(ids, np.int64)
        if len(self.ids) == 0 and len(wanted):
            raise InputError(f"explore: no item has the id {wanted[0]}; the collection is empty.")
        places = np.searchsorted(self.ids, wanted, sorter=self._order)
        rows = self._order[np.minimum(places, len(self.ids) - 1)] if len(wanted) else places
        missing = self.ids[rows] != wanted
        if missing.any():
            raise InputError(f"explore: no item has the id {wanted[missing][0]}.")
        return rows

    def code_of(self, id_: int) -> Codes:
        """The code of one item."""
        return self.codes[self.rows_of([id_])]

    def label_of(self, id_: int) -> int:
        """The class of one item, -1 without one."""
        return -1 if self.labels is None else int(self.labels.numbers[self.rows_of([id_])[0]])

    def tiles(self, ids: Sequence[int] | Ids, **more: Sequence[Any]) -> list[dict[str, Any]]:
        """What is shown of items, with more values for each by name."""
        if len(ids) == 0:
            return []
        known = self.collection.get(np.asarray(ids, np.int64))
        for name, values in more.items():
            check_same_length(len(values), len(known), f"explore: items and {name}")
        listed = zip(known.ids.tolist(), known.metadata, hex_of(known.codes), strict=True)
        return [
            tile(id_, about, code, self._address(id_, about))
            | {name: values[i] for name, values in more.items()}
            for i, (id_, about, code) in enumerate(listed)
        ]

    def _address(self, id_: int, about: dict[str, Any]) -> str | None:
        """Where the image of an item is; None if it has none."""
        if about.get("modality") == TEXT or image_file(about, self.collection.folder) is None:
            return None
        return f"{self._images}/{id_}/image"

    @cached_property
    def names(self) -> list[str]:
        """What an item is called in any collection of the same things: its image, name or id."""
        if "path" in self.kinds or not self.kinds:
            paths, kinds = self.collection.column("path"), self.collection.column("modality")
            folder = self.collection.folder
            if any(path is not None for path in paths):
                return [
                    f"{kind or IMAGE} {path and located(str(path), folder)}"
                    for path, kind in zip(paths, kinds, strict=True)
                ]
        named = self.collection.column("name")
        every = zip(named, self.ids.tolist(), strict=True)
        return [f"id {id_}" if name is None else f"name {name}" for name, id_ in every]

    @cached_property
    def comparable(self) -> NDArray[np.int64]:
        """Positions of the items that are compared with each other: images, if there are texts."""
        if not self.source.is_crossmodal:
            return np.arange(len(self.ids))
        kinds = self.collection.column("modality")
        return np.flatnonzero(np.array([kind == IMAGE for kind in kinds], np.bool_))

    def once(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """What ``compute`` gives, from the last ones kept if it was asked for before."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = compute()
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > CACHED:
                self._kept.popitem(last=False)
        return found


def tile(id_: int, about: dict[str, Any], code: str, src: str | None) -> dict[str, Any]:
    """What is shown of an item: plain texts, and its code for items without image."""
    key = next((key for key in TITLES if about.get(key) is not None), None)
    title = f"item {id_}" if key is None else str(about[key])
    details = {
        key: _shown(value)
        for key, value in about.items()
        if key not in HIDDEN and key not in TITLES and value is not None
    }
    return {
        "id": id_,
        "title": title,
        "short": title.rsplit("/", 1)[-1] if key == "path" else title,
        "label": None if about.get(LABEL) is None else _shown(about[LABEL]),
        "text": None if about.get("text") is None else _shown(about["text"]),
        "src": src,
        "code": code,
        "details": details,
    }


def _shown(value: Any) -> str:
    """A value as a text that is not too long; lists with commas."""
    plain = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
