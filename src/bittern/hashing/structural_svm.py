"""A structural support vector machine that ranks rows by weighted Hamming distances."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array
from bittern.hashing.ranking_lists import BitColumn, Longs, RankingLists

RELATIVE_GAP = 0.01  # share of the regularised risk that a better w could still gain
MAX_PLANES = 30  # added for each bit


class StructuralSVM:
    r"""The 1-slack structural support vector machine for the bits so far, by cutting planes.

    A plane is one ranking for every query and level.  It has a loss, and a coefficient for each
    pair: the constraint says that loss - Σ coefficient · weighted distance of the pair ≤ ξ.
    """

    def __init__(self, lists: RankingLists, C: float):
        self.lists = lists
        self.penalty = min(1 / C, 1e9)  # cost of max w, if ξ costs 1; at 1e9 it outweighs any gain
        self.w = np.zeros(0)
        self.apart = np.zeros((0, len(lists.query)), np.uint8)  # by bit and pair
        coefficients, loss = self._most_violated(self.w)
        self.objective = loss
        self.planes = [coefficients]  # each (n_pairs,)
        self.losses = [loss]
        self.bit_terms = np.zeros((1, 0))  # (n_planes, n_bits): the sum over pairs for each bit
        self.duals = np.ones(1)

    def pair_weights(self) -> Float64Array:
        """The gain in the next bit's objective if it differs between a pair's rows."""
        total = np.zeros(len(self.lists.query))
        for dual, plane in zip(self.duals, self.planes, strict=True):
            total += dual * plane
        return total

    def add(self, bits: BitColumn) -> float:
        """Add a bit, solve for w again, and return the regularised risk, divided by C."""
        apart = self.lists.differ(bits)
        terms = [float(plane @ apart.astype(plane.dtype)) for plane in self.planes]
        self.bit_terms = np.column_stack((self.bit_terms, terms))
        self.apart = np.vstack((self.apart, apart.astype(np.uint8)))
        self.w = np.append(self.w, 0.0)
        for _ in range(MAX_PLANES):
            if self._improve():
                break
        used = np.flatnonzero(self.duals > 0)
        self.planes = [self.planes[p] for p in used]
        self.losses = [self.losses[p] for p in used]
        self.bit_terms, self.duals = self.bit_terms[used], self.duals[used]
        return self.objective

    def _improve(self) -> bool:
        """Solve for the planes so far and add another; return whether w is good enough."""
        w, bound, self.duals = _solve(self.bit_terms, np.array(self.losses), self.penalty)
        coefficients, loss = self._most_violated(w)
        terms = _sum_by_bit(coefficients, self.apart)
        objective = self.penalty * w.max() + loss - terms @ w
        if objective < self.objective:
            self.w, self.objective = w, float(objective)
        if self.objective - bound <= RELATIVE_GAP * self.objective:
            return True
        self.planes.append(coefficients)
        self.losses.append(loss)
        self.bit_terms = np.vstack((self.bit_terms, terms))
        self.duals = np.append(self.duals, 0.0)
        return False

    def _most_violated(self, w: Float64Array) -> tuple[Float32Array, float]:
        """The most violated plane: its coefficient for each pair, and the mean loss."""
        lists = self.lists
        coefficients = np.zeros(len(lists.query), np.float32)
        distance = _weighted_distance(w, self.apart)
        levels = lists.first, lists.n_relevant, lists.weight
        loss = worst_rankings(distance, lists.start, *levels, lists.is_ndcg, coefficients)
        return coefficients, float(loss)


def _solve(
    bit_terms: Float64Array, losses: Float64Array, penalty: float
) -> tuple[Float64Array, float, Float64Array]:
    """For these planes alone: w, the regularised risk over C, and the planes' multipliers."""
    from scipy.optimize import linprog

    n_planes, n_bits = bit_terms.shape
    planes = np.column_stack((-bit_terms, -np.ones(n_planes), np.zeros(n_planes)))
    largest = np.column_stack((np.eye(n_bits), np.zeros(n_bits), -np.ones(n_bits)))
    found = linprog(
        np.concatenate((np.zeros(n_bits), [1.0, penalty])),  # of w, ξ and max w
        A_ub=np.vstack((planes, largest)),
        b_ub=np.concatenate((-losses, np.zeros(n_bits))),
        method="highs-ds",
    )
    duals = np.maximum(-found.ineqlin.marginals[:n_planes], 0)
    return np.maximum(found.x[:n_bits], 0), float(found.fun), duals


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _weighted_distance(w: Float64Array, apart: NDArray[np.uint8]) -> Float64Array:
    """The weighted Hamming distance of each pair."""
    distance = np.zeros(apart.shape[1])
    for b in range(apart.shape[0]):
        if w[b] > 0:
            for p in range(apart.shape[1]):
                distance[p] += w[b] * apart[b, p]
    return distance


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sum_by_bit(coefficients: Float32Array, apart: NDArray[np.uint8]) -> Float64Array:
    """The sum, for each bit, of the coefficients of the pairs in which it differs."""
    sums = np.zeros(apart.shape[0])
    for b in range(apart.shape[0]):
        total = 0.0
        for p in range(apart.shape[1]):
            total += coefficients[p] * apart[b, p]
        sums[b] = total
    return sums


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def worst_rankings(
    distance: Float64Array,
    start: Longs,
    first: Longs,
    n_relevant: Longs,
    weight: Float64Array,
    is_ndcg: bool,
    coefficients: Float32Array,
) -> float:
    """Add the coefficients of the most violated rankings; return their mean loss."""
    total, n_queries = 0.0, len(start) - 1
    for i in range(n_queries):
        for level in range(first[i], first[i + 1]):
            low, middle, high = start[i], start[i] + n_relevant[level], start[i + 1]
            near, far = np.argsort(distance[low:middle]), np.argsort(distance[middle:high])
            p, q = len(near), len(far)
            before = np.empty(p, np.int64)  # irrelevant rows before each relevant one
            relevant, irrelevant = distance[low:middle][near], distance[middle:high][far]
            if is_ndcg:
                total += weight[level] * _worst_ndcg(relevant, irrelevant, before)
            else:
                total += weight[level] * _worst_auc(relevant, irrelevant, before)
            share = weight[level] / (p * q * n_queries)
            r = 0
            for rank in range(p):
                coefficients[low + near[rank]] -= share * before[rank]
            for rank in range(q):
                while r < p and before[r] <= rank:
                    r += 1
                coefficients[middle + far[rank]] += share * (p - r)
    return total / max(1, n_queries)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _worst_auc(relevant: Float64Array, irrelevant: Float64Array, before: Longs) -> float:
    """Fill in how many irrelevant rows come before each relevant one; return the loss.

    Distances are sorted.
    """
    b, wrong = 0, 0
    for r in range(len(relevant)):
        while b < len(irrelevant) and irrelevant[b] < relevant[r] + 1:
            b += 1
        before[r] = b
        wrong += b
    return wrong / (len(relevant) * len(irrelevant))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _worst_ndcg(relevant: Float64Array, irrelevant: Float64Array, before: Longs) -> float:
    """Fill in how many irrelevant rows come before each relevant one; return the loss.

    Distances are sorted.
    """
    p, q = len(relevant), len(irrelevant)
    discount = 1 / np.log2(2.0 + np.arange(p + q))
    ideal = discount[:p].sum()
    value, choice = np.zeros(q + 1), np.zeros((p, q + 1), np.int64)
    for r in range(p):
        best, away = 0, 0.0  # the best b of the previous row; Σ over k of d_ik - d_ij
        kept = value[0]
        for b in range(q + 1):
            if b > 0:
                away += irrelevant[b - 1] - relevant[r]
                if value[b] > kept:
                    best, kept = b, value[b]
            choice[r, b] = best
            value[b] = kept - discount[r + b] / ideal - away / (p * q)
    b, gain = int(np.argmax(value)), 0.0
    for r in range(p - 1, -1, -1):
        before[r] = b
        gain += discount[r + b]
        b = choice[r, b]
    return 1 - gain / ideal
