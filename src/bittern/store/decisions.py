"""Decisions about near-duplicates: which items to keep and which to reject, beside a collection."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from bittern.errors import FileError, InputError
from bittern.io.files import check_version, existing_file, reading, write_text
from bittern.io.locks import locked
from bittern.store.base import Collection
from bittern.store.queries import image_file

Decision = Literal["keep", "reject"]
DECISIONS = get_args(Decision)
FORMAT, VERSION = "bittern decisions", 1
SUFFIX = ".decisions.json"
COLUMNS = ("id", "decision", "name", "file")


class Decisions:
    """The decisions about the items of one collection, in a file beside it.

    The file is read anew each time, and replaced whole, so that several programs may use it.
    """

    def __init__(self, collection: Collection) -> None:
        if collection.folder is None:
            raise InputError(
                f"{collection.place}: is on a server; decisions are stored beside a file."
            )
        self._collection = collection
        self.path = Path(f"{collection.place}{SUFFIX}")

    def read(self) -> dict[int, Decision]:
        """The decision about each item that has one, by its id."""
        if not self.path.exists():
            return {}
        with reading(self.path, "file of decisions"):
            plain = json.loads(existing_file(self.path).read_text(encoding="utf-8"))
            if plain.get("format") != FORMAT:
                raise FileError(f"{self.path}: is not a file of decisions.")
            check_version(self.path, plain.get("version"), VERSION)
            known = {int(id_): decision for id_, decision in plain["decisions"].items()}
        if not all(one in DECISIONS for one in known.values()):
            raise FileError(f"{self.path}: decisions must be one of {', '.join(DECISIONS)}.")
        return known

    def change(self, changes: Mapping[int, Decision | None]) -> dict[int, Decision]:
        """Decide about items, with None to take a decision back; returns all decisions."""
        for id_, decision in changes.items():
            if decision is not None and decision not in DECISIONS:
                raise InputError(
                    f"decisions: must be {' or '.join(DECISIONS)}, got {decision!r} for {id_}."
                )
        self._collection.get(list(changes))  # fails if an id is unknown
        with locked(Path(f"{self.path}.lock"), wait=True):
            known = {**self.read(), **changes}
            left = {id_: one for id_, one in sorted(known.items()) if one is not None}
            plain = {"format": FORMAT, "version": VERSION, "decisions": left}
            write_text(self.path, json.dumps(plain, indent=1) + "\n")
        return left

    def to_csv(self) -> str:
        """A row for each decision: id, decision, name and file; without items that are gone."""
        known = self.read()
        there = set(self._collection.ids.tolist())
        ids = [id_ for id_ in known if id_ in there]
        items = self._collection.get(ids)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for id_, about in zip(ids, items.metadata, strict=True):
            writer.writerow([id_, known[id_], *_named(about, self._collection.folder)])
        return text.getvalue()


def _named(about: dict[str, Any], folder: Path | None) -> tuple[str, str]:
    file = image_file(about, folder)
    return str(about.get("path", about.get("name", ""))), "" if file is None else str(file)
