"""Linear support vector machines with the squared hinge loss, for many bits at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bittern.checks import Float64Array, row_blocks
from bittern.hashing.base import Bits

TOLERANCE = 1e-3  # of the gradient, relative to that of weights 0
N_NEWTON, N_CONJUGATE = 50, 20  # the most steps, and the most of each inner solution
FORCING = 0.1  # residual of the inner solution, relative to the gradient
ARMIJO = 1e-4  # least share of the expected decrease


def support_vectors(
    X: Float64Array, wanted: Bits, C: float, *, balanced: bool = False
) -> Float64Array:
    r"""Weights ``(dim + 1, n_bits)`` of a machine for each column of ``wanted``; constants last.

    A constant 1 is appended to each row :math:`x_i`.  With signs :math:`s_i = \pm 1` for the bits,
    the weights w of a bit minimise

    .. math:: \tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - s_i w^\top x_i)^2,

    until the gradient is at most a thousandth of its length at w = 0 (or after 50 steps).  All
    :math:`C_i` are ``C`` or, if ``balanced``, larger for the rarer bit, so that both bits count the
    same.  A bit that all rows share is a constant.

    The sum is convex and piecewise quadratic.  Newton's method minimises it, as in
    [Keerthi-DeCoste-2005], with steps by conjugate gradients, for many bits at once.  They share a
    preconditioner: the inverse of the second derivatives where every row is short of its margin.
    """
    n, dim = X.shape
    if dim > n:  # the weights are combinations of rows
        basis, coordinates = np.linalg.qr(X.T)
        found = support_vectors(coordinates.T, wanted, C, balanced=balanced)
        return np.vstack((basis @ found[:-1], found[-1:]))
    out = np.zeros((dim + 1, wanted.shape[1]))
    ones = wanted.sum(axis=0)
    out[-1] = np.where(ones > 0, 1.0, -1.0)
    varied = np.flatnonzero((ones > 0) & (ones < n))
    rows = np.hstack((X, np.ones((n, 1))))
    gram = rows.T @ rows
    for some in row_blocks(len(varied), 64 * n, 1 << 27):
        bits = wanted[:, varied[some]]
        costs = np.full(bits.shape, C, np.float64)
        if balanced:
            share = bits.mean(axis=0)
            costs *= np.where(
                bits, np.maximum(1 / share - 1, 1), np.maximum(share / (1 - share), 1)
            )
        out[:, varied[some]] = _minimum(rows, gram, np.where(bits, 1.0, -1.0), costs)
    return out


def _minimum(
    X: Float64Array, gram: Float64Array, signs: Float64Array, costs: Float64Array
) -> Float64Array:
    """Weights ``(dim, n_bits)`` for signs and costs ``(n, n_bits)``, by Newton's method."""
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(np.eye(len(gram)) + 2 * costs.mean() * gram, overwrite_a=True)
    weights, values = np.zeros((len(gram), signs.shape[1])), np.zeros_like(signs)
    live = np.arange(signs.shape[1])  # bits that are not solved yet
    target = np.zeros(len(live))
    for step in range(N_NEWTON):
        s, c = signs[:, live], costs[:, live]
        short = np.maximum(1 - s * values[:, live], 0)
        gradient = weights[:, live] - 2 * X.T @ (c * s * short)
        length = np.linalg.norm(gradient, axis=0)
        if not step:
            target = TOLERANCE * length
        left = length > target[live]
        if not left.any():
            break
        live, gradient, s, c = live[left], gradient[:, left], s[:, left], c[:, left]
        curvature = 2 * c * (short[:, left] > 0)
        move, change = _newton_step(X, gradient, curvature, lambda r: cho_solve(factor, r))
        size = _step_size(weights[:, live], values[:, live], move, change, gradient, s, c)
        weights[:, live] += size * move
        values[:, live] += size * change
    return weights


def _newton_step(
    X: Float64Array,
    gradient: Float64Array,
    curvature: Float64Array,
    precondition: Callable[[Float64Array], Float64Array],
) -> tuple[Float64Array, Float64Array]:
    """Nearly the solutions of ``(I + X' diag(curvature) X) move = -gradient``, and ``X @ move``."""
    move, change = np.zeros_like(gradient), np.zeros_like(curvature)
    residual = -gradient
    z = precondition(residual)
    direction, energy = z, _dot(residual, z)
    enough = FORCING**2 * energy
    for _ in range(N_CONJUGATE):
        along = X @ direction
        image = direction + X.T @ (curvature * along)
        size = _ratio(energy, _dot(direction, image))
        move += size * direction
        change += size * along
        residual -= size * image
        z = precondition(residual)
        before, energy = energy, _dot(residual, z)
        if (energy <= enough).all():
            break
        direction = z + _ratio(energy, before) * direction
    return move, change


def _step_size(
    weights: Float64Array,
    values: Float64Array,
    move: Float64Array,
    change: Float64Array,
    gradient: Float64Array,
    signs: Float64Array,
    costs: Float64Array,
) -> Float64Array:
    """For each bit the largest of 1, 1/2, 1/4 … that decreases its sum enough."""

    def total(size: Float64Array) -> Float64Array:
        short = np.maximum(1 - signs * (values + size * change), 0)
        moved = weights + size * move
        return _dot(moved, moved) / 2 + _dot(costs, short**2)

    size = np.ones(weights.shape[1])
    start, slope = total(0 * size), _dot(gradient, move)
    for _ in range(30):
        bad = total(size) > start + ARMIJO * size * slope
        if not bad.any():
            break
        size[bad] /= 2
    return size


def _dot(a: Float64Array, b: Float64Array) -> Float64Array:
    """The inner products of the columns."""
    return np.einsum("ij,ij->j", a, b)


def _ratio(a: Float64Array, b: Float64Array) -> Float64Array:
    """Quotients, and 0 where b is 0: the column is solved."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
