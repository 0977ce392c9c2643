"""Items of a sharded database, read shard by shard as a collection is filled."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.scale.shard import Shard
from bittern.scale.shards import MANIFEST, Shards
from bittern.store.recipe import Recipe


def is_sharded(source: Path) -> bool:
    """Whether a folder holds a sharded database, not images."""
    return (source / MANIFEST).is_file()


@dataclass(frozen=True, slots=True)
class ShardColumn:
    """One part of all shards, of which slices are read on demand."""

    shards: Shards
    part: str

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """The values of rows ``rows.start … rows.stop - 1``."""
        return np.concatenate([getattr(s, self.part)[some] for s, some in _parts(self, rows)])


@dataclass(frozen=True, slots=True, eq=False)
class ShardItems:
    """Codes in shards, with their ids and labels; files are mapped, not read at once."""

    shards: Shards
    left_out: tuple[Any, ...] = ()

    @classmethod
    def open(cls, source: Path, recipe: Recipe) -> ShardItems:
        """The shards of a folder, checked to hold codes that the recipe's hasher can have made."""
        shards = Shards.open(source)
        if "codes" not in shards.parts:
            raise InputError(
                f"{source}: its shards have no codes; 'bittern shards encode' makes them."
            )
        if recipe.is_crossmodal or (recipe.hasher is not None and not recipe.is_fitted):
            raise InputError(
                f"{source}: its shards hold codes; give the fitted model that made them (--hasher "
                "FILE.npz), or no hasher."
            )
        if recipe.hasher is not None and recipe.hasher.n_stored_bits != shards.n_bits:
            raise InputError(
                f"{source}: has codes of {shards.n_bits} bits, but the model makes codes of "
                f"{recipe.hasher.n_stored_bits}."
            )
        return cls(shards)

    def __len__(self) -> int:
        return self.shards.n_items

    @property
    def n_bits(self) -> int:
        """Length of the codes."""
        assert self.shards.n_bits is not None
        return self.shards.n_bits

    @property
    def metadata(self) -> dict[str, Any]:
        """The label of each item, if the shards have labels."""
        return {"label": _Lists(self.shards, "labels")} if "labels" in self.shards.parts else {}

    @property
    def ids(self) -> Any:
        """The ids of the shards, sliced on demand; None if they are positions."""
        return ShardColumn(self.shards, "ids") if "ids" in self.shards.parts else None

    @property
    def learnable(self) -> PositionArray:
        """None: a hasher learns from vectors."""
        return np.arange(0)

    def fitted(self, recipe: Recipe, rows: PositionArray) -> Recipe:
        """The recipe as it is."""
        return recipe

    def encode(self, recipe: Recipe, rows: slice) -> Codes:
        """Some of the codes."""
        words = [shard.codes.words[some] for shard, some in _parts(self, rows)]
        return Codes(np.ascontiguousarray(np.concatenate(words)), self.n_bits)

    def digest(self) -> str:
        """A hash of the checksums of all files, in order."""
        content = hashlib.blake2b(f"{self.n_bits}".encode(), digest_size=16)
        for shard in self.shards:
            for part in ("codes", "labels", "ids"):
                if part in shard.files:
                    content.update(f"{shard.n} {part} {shard.files[part].sha256}".encode())
        return content.hexdigest()


class _Lists(ShardColumn):
    """A column whose slices are lists, as metadata are."""

    def __getitem__(self, rows: slice) -> Any:
        return super().__getitem__(rows).tolist()


def _parts(items: ShardColumn | ShardItems, rows: slice) -> list[tuple[Shard, slice]]:
    """The shards that hold these rows, each with its own slice."""
    return [
        (shard, slice(max(0, rows.start - shard.start), min(shard.n, rows.stop - shard.start)))
        for shard in items.shards
        if shard.start < rows.stop and rows.start < shard.stop
    ]
