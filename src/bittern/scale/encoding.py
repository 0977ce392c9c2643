"""Encode shards of vectors where they are."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from pathlib import Path

from bittern.codes import Codes
from bittern.errors import BitternError, InputError
from bittern.hashing import load
from bittern.io.files import checksum, existing_file
from bittern.scale.shard import Shard, StoredFile, write_part
from bittern.scale.shards import Shards
from bittern.scale.tasks import Runner

ROWS = 1 << 14  # encoded at a time


def encode(
    hasher: str | os.PathLike[str],
    shards: str | os.PathLike[str] | Shards,
    *,
    executor: Executor | None = None,
) -> Shards:
    """Give each shard of vectors its codes, by a fitted hasher in a file.

    Each task reads the hasher and its shard, and writes the codes beside the vectors; the manifest
    says which hasher made them.  Shards that this hasher has encoded already are left alone.
    """
    path = existing_file(hasher).resolve()
    opened, made_by = Shards.open(shards), {"hasher": path.name, "sha256": checksum(path)}
    if "vectors" not in opened.parts:
        raise InputError(f"{opened.folder}: its shards have no vectors to encode.")
    n_bits = load(path).n_bits
    has_codes = any("codes" in shard.files for shard in opened)
    if has_codes and opened.made_by.get("sha256") != made_by["sha256"]:
        raise InputError(f"{opened.folder}: has codes of another hasher already.")
    tasks = {shard.name: (path, shard) for shard in opened if "codes" not in shard.files}
    for name, stored in Runner(executor)(_encode_shard, tasks, "encode"):
        opened = opened.add_part("codes", {name: stored}, n_bits=n_bits, made_by=made_by)
    return opened


def _encode_shard(task: tuple[Path, Shard]) -> StoredFile:
    """Encode one shard, where this runs, and write its codes beside its vectors."""
    path, shard = task
    hasher, vectors = load(path), shard.vectors
    try:
        codes = Codes.concatenate(
            hasher.encode(vectors[start : start + ROWS]) for start in range(0, shard.n, ROWS)
        )
    except BitternError as error:
        raise type(error)(f"shard {shard.name}: {error}") from None
    return write_part(shard.path("codes"), "codes", codes)
