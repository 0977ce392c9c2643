"""Arrays in, good arrays out, or an error that says what to do."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.errors import InputError

__all__ = [
    "check_count",
    "check_labels",
    "check_positions",
    "check_same_length",
    "check_vectors",
    "row_blocks",
]


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int within [least, most]; booleans and fractions are refused."""
    bound = f"at least {least}" if most is None else f"between {least} and {most}"
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be a whole number {bound}, got {value!r}.")
    if count < least or (most is not None and count > most):
        raise InputError(f"{name} must be {bound}, got {count}.")
    return count


def check_vectors(vectors: ArrayLike, name: str) -> NDArray[np.floating[Any]]:
    """``vectors`` as a finite ``(n, dim)`` array of float32 or float64, C-contiguous.

    float32 and float64 stay what they are; float16 becomes float32 and integers float64.
    """
    v = np.asarray(vectors)
    if v.ndim != 2:
        raise InputError(f"{name} must be 2-D (n, dim), got shape {v.shape}.")
    if v.dtype.kind not in "fiub":
        raise InputError(f"{name} must be numbers, got dtype {v.dtype}.")
    if len(v) == 0 or v.shape[1] == 0:
        raise InputError(f"{name} must have at least one row and one column, got shape {v.shape}.")
    target = np.float32 if v.dtype in (np.float16, np.float32) else np.float64
    v = np.ascontiguousarray(v, dtype=target)
    for rows in row_blocks(len(v), v.shape[1]):
        finite = np.isfinite(v[rows]).all(axis=1)
        if not finite.all():
            raise InputError(
                f"{name} must be finite, row {rows.start + int(finite.argmin())} is not."
            )
    return v


def check_labels(labels: ArrayLike, name: str, n: int | None = None) -> NDArray[Any]:
    """``labels`` as a 1-D array of integers, booleans or strings, one per row.

    Real numbers are taken only where each is whole, so that NaN never equals NaN by accident.
    """
    y = np.asarray(labels)
    if y.ndim != 1:
        hint = "; for multi-hot rows use Relevance.from_tags()" if y.ndim == 2 else ""
        raise InputError(f"{name} must be 1-D, got shape {y.shape}{hint}.")
    if y.dtype == object:
        y = _text_labels(y, name)
    if y.dtype.kind == "f":
        if not (np.isfinite(y).all() and (y == np.trunc(y)).all()):
            raise InputError(f"{name} must be whole numbers or strings, got fractions or NaN.")
        y = y.astype(np.int64)
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    if y.dtype.kind not in "biuU":
        raise InputError(f"{name} must be integers or strings, got dtype {y.dtype}.")
    if n is not None and len(y) != n:
        raise InputError(f"{name} must have one entry for each of {n} rows, got {len(y)}.")
    return y


def check_positions(positions: ArrayLike, name: str, n: int, *, none: int | None = None) -> Any:
    """``positions`` as int64 in [0, n); the value ``none``, if given, also passes."""
    p = np.asarray(positions)
    if p.ndim != 1 or p.dtype.kind not in "iu":
        raise InputError(f"{name} must be a 1-D array of whole numbers, got {p.dtype} {p.shape}.")
    p = p.astype(np.int64)
    wrong = (p < 0) | (p >= n)
    if none is not None:
        wrong &= p != none
    if wrong.any():
        raise InputError(f"{name} must lie in [0, {n}), got {p[wrong][0]}.")
    return p


def check_same_length(a: int, b: int, what: str) -> None:
    """Refuse two lengths that should agree."""
    if a != b:
        raise InputError(f"{what} must agree, got {a} and {b}.")


def row_blocks(n: int, row_bytes: int, memory: int = 1 << 24) -> list[slice]:
    """Slices that cover ``range(n)``, each of at most ``memory`` bytes, at least one row."""
    step = max(1, memory // max(1, row_bytes))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def _text_labels(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Object labels as strings if all are strings, as integers if all are integers."""
    kinds = {type(label) for label in labels.tolist()}
    if all(issubclass(kind, str) for kind in kinds):
        return labels.astype(str)
    if all(issubclass(kind, int | np.integer) for kind in kinds):
        return labels.astype(np.int64)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"{name} must be all integers or all strings, got {names}.")
