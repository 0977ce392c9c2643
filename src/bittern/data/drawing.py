"""Shapes drawn with NumPy: filled outlines with smooth edges and patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.registry import Registry

Colour = tuple[int, int, int]
FINE = 3  # sub-pixels per side of a pixel
SHADE = 0.45  # brightness of the darker part of a pattern


@dataclass(frozen=True, slots=True)
class Mark:
    """One shape of an image: its outline, its place in pixels, its colour and its pattern."""

    shape: str
    x: float
    y: float
    radius: float
    angle: float  # in radians
    colour: Colour
    fill: str = "plain"


def draw(canvas: Float64Array, mark: Mark) -> None:
    """Paint a mark on a ``(side, side, 3)`` canvas of values 0 … 255."""
    side, reach = len(canvas), int(np.ceil(mark.radius)) + 1
    top, left = max(0, int(mark.y) - reach), max(0, int(mark.x) - reach)
    bottom, right = min(side, int(mark.y) + reach + 1), min(side, int(mark.x) + reach + 1)
    fine_y, fine_x = _sub_pixels(top, bottom), _sub_pixels(left, right)
    down, across = np.meshgrid((fine_y - mark.y), (fine_x - mark.x), indexing="ij")
    turn = np.array([np.cos(mark.angle), np.sin(mark.angle)])
    u = (across * turn[0] + down * turn[1]) / mark.radius  # to the right, -1 … 1 in the shape
    v = (down * turn[0] - across * turn[1]) / mark.radius  # downwards
    inside = _pixels(SHAPES[mark.shape](u, v).astype(np.float64))
    light = _pixels(np.where(FILLS[mark.fill](u, v), 1.0, SHADE))
    paint = light[..., None] * np.array(mark.colour)
    part = canvas[top:bottom, left:right]
    part += inside[..., None] * (paint - part)


def pattern(side: int, fill: str, colour: Colour, contrast: float) -> Float64Array:
    """A canvas of one colour, with a faint pattern on it."""
    rows, columns = np.meshgrid(*[np.linspace(-2, 2, side)] * 2, indexing="ij")
    light = np.where(FILLS[fill](columns, rows), 1.0, 1.0 - contrast)
    return light[..., None] * np.array(colour, np.float64)


def _sub_pixels(start: int, stop: int) -> Float64Array:
    return start + (np.arange((stop - start) * FINE) + 0.5) / FINE - 0.5


def _pixels(fine: Float64Array) -> Float64Array:
    """Means over the sub-pixels of each pixel."""
    height, width = fine.shape[0] // FINE, fine.shape[1] // FINE
    means: Float64Array = fine.reshape(height, FINE, width, FINE).mean(axis=(1, 3))
    return means


def _circle(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    return u**2 + v**2 < 0.9


def _ring(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    return _circle(u, v) & (u**2 + v**2 > 0.3)


def _square(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    return np.maximum(np.abs(u), np.abs(v)) < 0.75


def _triangle(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    return (v < 0.65) & (np.abs(u) < 0.55 * (v + 0.95))


def _diamond(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    return 1.6 * np.abs(u) + np.abs(v) < 1


def _star(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    angle = np.arctan2(u, -v) % (2 * np.pi / 5)
    return np.hypot(u, v) < 0.42 + 0.58 * np.abs(angle / (np.pi / 5) - 1) ** 1.5


def _cross(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    a, b = np.abs(u), np.abs(v)
    return (np.minimum(a, b) < 0.28) & (np.maximum(a, b) < 0.92)


def _crescent(u: Float64Array, v: Float64Array) -> NDArray[np.bool_]:
    return _circle(u, v) & ((u - 0.45) ** 2 + v**2 > 0.55)


#: Which points ``(u, v)`` of the square -1 … 1 are inside a shape; ``v`` points down.
SHAPES: Registry[Callable[[Float64Array, Float64Array], NDArray[np.bool_]]] = Registry(
    "shape",
    {
        "circle": _circle,
        "ring": _ring,
        "square": _square,
        "triangle": _triangle,
        "diamond": _diamond,
        "star": _star,
        "cross": _cross,
        "crescent": _crescent,
    },
)

#: Which points of a pattern are light.
FILLS: Registry[Callable[[Float64Array, Float64Array], NDArray[np.bool_]]] = Registry(
    "fill",
    {
        "plain": lambda u, v: np.ones(np.broadcast(u, v).shape, np.bool_),
        "striped": lambda u, v: (v * 2) % 1 < 0.5,
        "dotted": lambda u, v: ((u * 1.6) % 1 - 0.5) ** 2 + ((v * 1.6) % 1 - 0.5) ** 2 > 0.08,
        "checked": lambda u, v: ((u * 2) % 2 < 1) == ((v * 2) % 2 < 1),
    },
)
