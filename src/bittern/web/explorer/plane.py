"""The map of the codes view: every item as a point in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import InputError
from bittern.web.explorer.codes import BLOCK, bit_moments
from bittern.web.explorer.contents import Contents

MOST_POINTS = 200_000  # a sample of more items is drawn
NUMERIC = ("BIGINT", "DOUBLE", "INTEGER", "FLOAT")


def about(contents: Contents, columns: tuple[str, str] | None) -> dict[str, Any]:
    """What the axes are, the classes, and how many of the items are drawn."""
    rows, _, axes = _points(contents, columns)
    return {
        "n_items": len(contents.ids),
        "n_points": len(rows),
        "axes": axes,
        "classes": [] if contents.labels is None else list(contents.labels.names),
        "columns": [name for name, kind in contents.kinds.items() if kind in NUMERIC],
    }


def points(contents: Contents, columns: tuple[str, str] | None) -> bytes:
    """The points as they are in memory: ids (float64), x and y (float32), classes (int32).

    Little-endian, each array whole, after the number of points as a float64.
    """
    rows, at, _ = _points(contents, columns)
    classes = np.full(len(rows), -1) if contents.labels is None else contents.labels.numbers[rows]
    parts = (
        np.array([len(rows)], "<f8"),
        contents.ids[rows].astype("<f8"),
        at[:, 0].astype("<f4"),
        at[:, 1].astype("<f4"),
        classes.astype("<i4"),
    )
    return b"".join(part.tobytes() for part in parts)


def _points(
    contents: Contents, columns: tuple[str, str] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[str]]:
    """Positions of the items that are drawn, their places, and the names of the axes."""
    return contents.once(("plane", columns), lambda: _compute(contents, columns))


def _compute(
    contents: Contents, columns: tuple[str, str] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[str]]:
    rows = contents.comparable
    if len(rows) > MOST_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_POINTS, replace=False))
    if columns is not None:
        at = np.stack([_numbers(contents, name)[rows] for name in columns], axis=1)
        known = np.isfinite(at).all(axis=1)
        return rows[known], at[known], list(columns)
    mean, covariance = bit_moments(contents.codes)
    shares, axes = np.linalg.eigh(covariance)
    two = axes[:, ::-1][:, :2]
    if two.shape[1] < 2:
        two = np.pad(two, ((0, 0), (0, 1)))
    two = two * np.where(two[np.abs(two).argmax(axis=0), [0, 1]] < 0, -1, 1)  # a sign of its own
    at = np.concatenate(
        [
            (contents.codes[rows[first : first + BLOCK]].to_bits() - mean) @ two
            for first in range(0, len(rows), BLOCK)
        ]
        or [np.empty((0, 2))]
    )
    whole = max(float(shares.sum()), 1e-12)
    first, second = (float(share) / whole for share in (*shares[::-1][:2], 0.0)[:2])
    names = [f"first component, {first:.0%} of variance", f"second, {second:.0%}"]
    return rows, at, names


def _numbers(contents: Contents, name: str) -> NDArray[np.float64]:
    if contents.kinds.get(name) not in NUMERIC:
        raise InputError(f"codes: {name!r} is not a column of numbers.")
    values = contents.collection.column(name)
    return np.array([np.nan if value is None else float(value) for value in values], np.float64)
