"""Shards: a database cut into files, with a manifest that counts and checks them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import (
    check_array,
    check_count,
    check_labels,
    check_same_length,
    check_type,
    row_blocks,
)
from bittern.codes import MAX_BITS, Codes
from bittern.errors import FileError, InputError
from bittern.io.cache import fingerprint_of
from bittern.io.files import check_path, check_version, make_folder, reading, write_text
from bittern.io.locks import locked
from bittern.progress import track
from bittern.scale.shard import PARTS, Shard, StoredFile, write_part

MANIFEST = "shards.json"
VERSION = 1
SIZE = 1_000_000  # items of a shard, unless given


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """A database cut into shards: a folder of files, and a manifest.

    >>> import bittern as bt, numpy as np, tempfile
    >>> codes = bt.Codes.from_bits(np.eye(10, 64, dtype=bool))
    >>> shards = bt.scale.Shards.create(tempfile.mkdtemp() + "/db", codes, shard_size=4)
    >>> shards
    <3 shards of 10 items: codes of 64 bits>
    """

    folder: Path
    n_bits: int | None
    shard_size: int
    is_complete: bool
    shards: tuple[Shard, ...] = ()
    made_by: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | os.PathLike[str] | Shards) -> Shards:
        """Read the manifest of a folder; an error names what does not fit."""
        if isinstance(folder, Shards):
            return folder
        path = Path(folder) / MANIFEST
        shards = cls._read(path)
        if not shards.is_complete:
            raise FileError(
                f"{path.parent}: is not finished ({shards.n_items:,} items so far); create it "
                "again from the same files to go on."
            )
        return shards

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        codes: Codes | None = None,
        *,
        labels: ArrayLike | None = None,
        tags: Any = None,
        vectors: Any = None,
        ids: ArrayLike | None = None,
        shard_size: int = SIZE,
    ) -> Shards:
        """Cut a database into shards; a run that was stopped goes on where it was.

        ``codes``, ``vectors`` or both are needed; they may be memory maps.  ``ids`` must ascend, so
        that ties are in the same order however the database is cut.
        """
        given = {"codes": codes, "labels": labels, "tags": tags, "vectors": vectors, "ids": ids}
        parts = _check_parts({name: part for name, part in given.items() if part is not None})
        n = len(next(iter(parts.values())))
        size = check_count(shard_size, "Shards: shard_size")
        target = make_folder(Path(folder).resolve())
        with locked(target / ".lock", wait=False) as is_ours:
            if not is_ours:
                raise InputError(f"{target}: another process writes it; wait for it.")
            begun = cls._begun(target, parts, n, size)
            for leftover in target.glob(".*.tmp"):  # of a killed process
                leftover.unlink()
            for start in track(range(begun.n_items, n, size), "write shards"):
                rows = slice(start, min(n, start + size))
                begun = begun._with(_written(target, len(begun.shards), rows, parts), n)
        return begun

    @property
    def n_items(self) -> int:
        """Items of all shards."""
        return sum(shard.n for shard in self.shards)

    @property
    def parts(self) -> tuple[str, ...]:
        """What every shard holds: codes, labels, tags, vectors, ids."""
        return tuple(self.shards[0].files) if self.shards else ()

    @property
    def n_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for shard in self.shards for file in shard.files.values())

    def verify(self) -> list[str]:
        """Read every file, and say what is wrong; nothing if all is well."""
        return [problem for shard in track(self.shards, "verify") for problem in shard.verify()]

    def add_part(self, part: str, files: Mapping[str, StoredFile], **changes: Any) -> Shards:
        """The same shards, with another file for those named; the manifest is written."""
        shards = tuple(
            replace(shard, files={**shard.files, part: files[shard.name]})
            if shard.name in files
            else shard
            for shard in self.shards
        )
        changed = replace(self, shards=shards, **changes)
        changed._write()
        return changed

    def __len__(self) -> int:
        return len(self.shards)

    def __iter__(self) -> Iterator[Shard]:
        return iter(self.shards)

    def __repr__(self) -> str:
        held = [f"codes of {self.n_bits} bits" if p == "codes" else p for p in self.parts]
        n = len(self.shards)
        return f"<{n} shard{'s' * (n != 1)} of {self.n_items:,} items: {', '.join(held)}>"

    @classmethod
    def _begun(cls, folder: Path, parts: Mapping[str, Any], n: int, size: int) -> Shards:
        """The shards already there, if they are the beginning of these arrays; else none."""
        n_bits = parts["codes"].n_bits if "codes" in parts else None
        if not (folder / MANIFEST).exists():
            return cls(folder, n_bits, size, False)
        found = cls._read(folder / MANIFEST)
        if found.is_complete:
            raise InputError(
                f"{folder}: has a sharded database already; remove it, or choose another folder."
            )
        same = (found.n_bits, found.shard_size) == (n_bits, size) and found.n_items < n
        last = found.shards[-1] if found.shards else None
        if same and last is not None:
            same = tuple(last.files) == tuple(parts) and _holds(last, parts)
        if not same:
            raise InputError(
                f"{folder}: has the beginning of another database; remove it, or choose another "
                "folder."
            )
        return found

    def _with(self, shard: Shard, n: int) -> Shards:
        grown = replace(self, shards=(*self.shards, shard), is_complete=shard.stop == n)
        grown._write()
        return grown

    def _write(self) -> None:
        listed = [
            {"name": s.name, "n": s.n, "files": {p: asdict(f) for p, f in s.files.items()}}
            for s in self.shards
        ]
        manifest = {
            "format": "bittern shards",
            "version": VERSION,
            "n_bits": self.n_bits,
            "n_items": self.n_items,
            "shard_size": self.shard_size,
            "is_complete": self.is_complete,
            "made_by": self.made_by,
            "shards": listed,
        }
        manifest["checksum"] = fingerprint_of(manifest)
        write_text(self.folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")

    @classmethod
    def _read(cls, path: Path) -> Self:
        if not check_path(path).is_file():
            raise FileError(
                f"{path.parent}: is not a sharded database (it has no {MANIFEST}); "
                "'bittern shards create' makes one."
            )
        with reading(path, "manifest of shards"):
            manifest = json.loads(path.read_text())
            check_version(path, manifest["version"], VERSION)
            said = manifest.pop("checksum", None)  # earlier manifests have none
            if said not in (None, fingerprint_of(manifest)):
                raise FileError(f"{path}: is damaged (its checksum differs).")
            shards, start = [], 0
            for one in manifest["shards"]:
                files = {part: _stored_file(file) for part, file in one["files"].items()}
                name, n = str(one["name"]), check_count(one["n"], "items of a shard", most=None)
                if not files or not set(files) <= set(PARTS) or not name.isalnum():
                    raise ValueError(f"shard {name!r} has files that no shard has")
                shards.append(Shard(path.parent.resolve(), name, start, n, files))
                start += n
            if start != manifest["n_items"]:
                raise ValueError(f"it promises {manifest['n_items']} items and lists {start}")
            n_bits = manifest["n_bits"]
            if n_bits is not None:
                check_count(n_bits, "n_bits", most=MAX_BITS)
            return cls(
                path.parent.resolve(),
                n_bits,
                check_count(manifest["shard_size"], "shard_size"),
                bool(manifest["is_complete"]),
                tuple(shards),
                dict(manifest["made_by"]),
            )


def _stored_file(given: Mapping[str, Any]) -> StoredFile:
    """Size and checksum of a file, as the manifest has them."""
    file = StoredFile(**given)
    check_count(file.bytes, "bytes of a file", least=0)
    check_type(file.sha256, str, "the checksum of a file")
    return file


def _written(folder: Path, number: int, rows: slice, parts: Mapping[str, Any]) -> Shard:
    name = f"{number:06d}"
    shard = Shard(folder, name, rows.start, rows.stop - rows.start, {})
    for part, values in parts.items():
        shard.files[part] = write_part(shard.path(part), part, values[rows])
    return shard


def _check_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """Each part as something that can be sliced by rows, all with equally many rows."""
    if "codes" not in parts and "vectors" not in parts:
        raise InputError("Shards: codes or vectors are needed.")
    if "codes" in parts:
        check_type(parts["codes"], Codes, "Shards: codes")
    if "labels" in parts:
        parts["labels"] = check_labels(parts["labels"], "Shards: labels")
    if "tags" in parts:
        parts["tags"] = _tag_bits(parts["tags"])
    if "vectors" in parts and getattr(parts["vectors"], "ndim", 0) != 2:
        parts["vectors"] = check_array(parts["vectors"], "Shards: vectors")
        if parts["vectors"].ndim != 2:
            raise InputError(f"Shards: vectors must be 2-D, got shape {parts['vectors'].shape}.")
    if "ids" in parts:
        parts["ids"] = _check_ids(parts["ids"])
    first, *others = parts
    for name in others:
        check_same_length(len(parts[first]), len(parts[name]), f"Shards: {first} and {name}")
    if len(parts[first]) == 0:
        raise InputError("Shards: there are no items.")
    return parts


def _tag_bits(tags: Any) -> Codes:
    dense = tags.toarray() if hasattr(tags, "toarray") else tags
    return Codes.from_bits(dense)


def _check_ids(ids: ArrayLike) -> NDArray[np.int64]:
    i = check_array(ids, "Shards: ids")
    if i.ndim != 1 or i.dtype.kind not in "iu" or (np.diff(i.astype(np.int64)) <= 0).any():
        raise InputError(
            "Shards: ids must be whole numbers that ascend, each once; sort the rows by id."
        )
    if len(i) and i.min() < 0:
        raise InputError(f"Shards: ids must not be negative, got {i.min()}.")
    return i.astype(np.int64)


def _holds(shard: Shard, parts: Mapping[str, Any]) -> bool:
    """Whether a shard holds these rows of the arrays."""
    for part, values in parts.items():
        rows, stored = values[shard.start : shard.stop], getattr(shard, part)
        if part == "codes":
            rows, stored = rows.words, stored.words
        elif part == "tags":
            rows = rows.to_bits()
        if len(rows) != len(stored) or not all(
            np.array_equal(rows[some], stored[some]) for some in row_blocks(len(stored), 64)
        ):
            return False
    return True
