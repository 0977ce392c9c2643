"""Averages over runs of precision-recall curves and of the surfaces of hash tables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bittern.checks import Float64Array
from bittern.experiments.records import Records
from bittern.metrics import Curve

RECALLS = np.arange(101) / 100


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Retrieval by hash tables for each K (rows) and L (columns); NaN if impossible."""

    bits_per_table: tuple[int, ...]
    n_tables: tuple[int, ...]
    precision: Float64Array
    recall: Float64Array
    f1: Float64Array


def mean_curve(records: Records, method: str, n_bits: int | None, kind: str) -> Curve | None:
    """The mean over runs of a method's ``micro`` or ``interpolated`` curve; None if it has none.

    Points with the same recalls or radii are averaged one by one.  Rankings by real distances
    have different radii in each run: their precision is averaged at recalls 0, 0.01, …, 1.
    """
    found = [record.curves.get(kind) for record in records.of(method, n_bits)]
    curves = [curve for curve in found if curve is not None]
    if not curves:
        return None
    if len(curves) > 1 and not _is_one_grid(curves):
        curves = [_at_recalls(curve) for curve in curves]
    recall, precision = (
        _mean([getattr(curve, side) for curve in curves]) for side in ("recall", "precision")
    )
    return Curve(recall, precision, curves[0].radius)


def mean_surface(records: Records, method: str, n_bits: int | None) -> Surface | None:
    """The mean over runs of a method's retrieval by hash tables; None if it has none."""
    surfaces = [r.surface for r in records.of(method, n_bits) if r.surface is not None]
    if not surfaces:
        return None
    sides = {
        side: _mean([_grid(surface, side) for surface in surfaces])
        for side in ("precision", "recall", "f1")
    }
    return Surface(tuple(surfaces[0]["bits_per_table"]), tuple(surfaces[0]["n_tables"]), **sides)


def _is_one_grid(curves: Sequence[Curve]) -> bool:
    sides = [curve.recall if curve.radius is None else curve.radius for curve in curves]
    return all(np.array_equal(side, sides[0]) for side in sides)


def _at_recalls(curve: Curve) -> Curve:
    defined = ~np.isnan(curve.precision)
    if not defined.any():
        return Curve(RECALLS, np.full(len(RECALLS), np.nan))
    return Curve(RECALLS, np.interp(RECALLS, curve.recall[defined], curve.precision[defined]))


def _mean(arrays: Sequence[Float64Array]) -> Float64Array:
    """The mean of the defined values, point by point; NaN where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a point that no run defines stays NaN
        return np.nanmean(np.stack(arrays), axis=0)


def _grid(surface: dict[str, Any], side: str) -> Float64Array:
    return np.array(surface[side], dtype=np.float64)  # None, as JSON has it, becomes NaN
