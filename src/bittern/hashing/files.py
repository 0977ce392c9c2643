"""Hashers by name and settings, fitted on files of vectors; and files encoded by fitted ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bittern import inputs
from bittern.checks import PositionArray, check_count
from bittern.codes import MAX_BITS, Codes
from bittern.errors import InputError
from bittern.hashing.base import CodeLearner
from bittern.hashing.crossmodal.base import CrossModalHasher
from bittern.inputs import VectorFile
from bittern.registry import Registry

Files = Mapping[str, VectorFile]  # by side: "vectors", or "images" and "texts"


def make_hasher(
    name: str, n_bits: int, settings: Mapping[str, Any] | None = None, *, random_state: int = 0
) -> Any:
    """An unfitted hasher, of one modality or two, by its name; ``settings`` are its parameters."""
    from bittern.hashing import HASHERS
    from bittern.hashing.crossmodal import CROSSMODAL

    kind: type[Any] = CROSSMODAL[name] if name in CROSSMODAL else HASHERS[name]
    known = {key: None for key in kind._get_param_names() if key not in ("n_bits", "random_state")}
    given = dict(settings or {})
    for key in given:
        if key not in known:
            raise InputError(f"--set {key}: {Registry(f'setting of {name}', known).refusal(key)}")
    check_count(n_bits, "--bits", most=MAX_BITS)
    check_count(random_state, "--random-state", least=0)
    made = kind(n_bits=n_bits, **given)
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=random_state)
    return made


def draw_rows(rows: PositionArray, most: int | None, random_state: int) -> PositionArray:
    """At most so many of the rows, drawn at random, in order; all if there is no limit."""
    if most is not None:
        check_count(most, "--fit-sample")
    if most is None or len(rows) <= most:
        return rows
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(rows, most, replace=False))


def read_targets(labels: Path | None, tags: Path | None, beside: VectorFile) -> dict[str, Any]:
    """Labels or tags of the rows of a file, by that name: from files of their own, or from it.

    Empty if there are none.
    """
    if labels is not None and tags is not None:
        raise InputError("give --labels or --tags, not both.")
    if labels is None and tags is None:
        own = {"labels": beside.rows.labels, "tags": beside.rows.tags}
        return next(({kind: y} for kind, y in own.items() if y is not None), {})
    kind, path = ("labels", labels) if labels is not None else ("tags", tags)
    assert path is not None
    y = inputs.read_classes(path, "--tags") if kind == "labels" else inputs.read_tags(path)
    y = y.toarray() if hasattr(y, "toarray") else y
    if y.shape[0] != len(beside):
        raise InputError(
            f"--{kind}: {path} has {y.shape[0]:,} rows, but {beside.path} has {len(beside):,}."
        )
    return {kind: y}


def fit_files(
    hasher: CodeLearner, files: Files, y: Any, *, fit_sample: int | None = None
) -> PositionArray:
    """Fit on the rows of a file, or of two files of pairs; returns the rows that were used.

    ``fit_sample`` limits their number.  ``y`` are labels or tags of all rows, or None.
    """
    wanted = {"images", "texts"} if isinstance(hasher, CrossModalHasher) else {"vectors"}
    if set(files) != wanted:
        raise InputError(_wrong_files(hasher, "and"))
    lengths = {side: len(file) for side, file in files.items()}
    if len(set(lengths.values())) > 1:
        listed = " and ".join(f"{n:,} {side}" for side, n in lengths.items())
        raise InputError(f"images and texts must come in pairs, got {listed}.")
    if hasher.needs_y and y is None:
        raise InputError(
            f"{hasher.name} learns from labels or tags: give --labels or --tags, or vectors in a "
            "file with an array 'labels' or 'tags'."
        )
    n = next(iter(lengths.values()))
    rows = draw_rows(np.arange(n), fit_sample, hasher.random_state or 0)
    chosen = slice(None) if len(rows) == n else rows
    learned_from = y[chosen] if y is not None and hasher._takes_y else None
    model: Any = hasher
    model.fit(*(files[side][chosen] for side in sorted(wanted)), learned_from)
    if model.stopped_early_:
        raise KeyboardInterrupt
    return rows


def encode_file(hasher: Any, files: Files) -> Codes:
    """The codes of the rows of one file, read block by block."""
    sides = ("images", "texts") if isinstance(hasher, CrossModalHasher) else ("vectors",)
    if len(files) != 1 or not set(files) <= set(sides):
        raise InputError(_wrong_files(hasher, "or"))
    ((side, file),) = files.items()
    fitted_on = hasher.n_features_in_ if side == "vectors" else hasher._dim(side)
    if (width := int(np.prod(file.shape[1:]))) != fitted_on:
        raise InputError(
            f"{file.path}: has rows of {width:,} numbers, but {hasher.name} was fitted on rows of "
            f"{fitted_on:,}."
        )
    return hasher.encode(file) if side == "vectors" else hasher.encode(**{side: file})


def _wrong_files(hasher: CodeLearner, word: str) -> str:
    if isinstance(hasher, CrossModalHasher):
        return f"{hasher.name} hashes images and texts: give --images {word} --texts."
    return f"{hasher.name} hashes vectors of one kind: give --vectors."
