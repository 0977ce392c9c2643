"""Tables: which bits of a code make the keys of hash tables, and what they are sure to find."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.errors import InputError

__all__ = ["MOST_KEY_BITS", "SEGMENTS", "Tables"]

SEGMENTS = ("consecutive", "random")
MOST_KEY_BITS = 64
MOST_TABLES = 1 << 12
MOST_PROBES = 1 << 20


@dataclass(frozen=True, eq=False)
class Tables:
    """A setting of hash tables: bit j of a key of table t is bit ``bits[t, j]`` of the code.

    A query *collides* with an item if in at least one table their keys differ in at most ``probe``
    bits: it looks into the bucket of its own key and, if ``probe`` is above 0, into those around.

    Reference: sections 3.4.2 and 3.4.3 of [Moran-2016], after [Gionis-Indyk-Motwani-1999].
    """

    bits: NDArray[np.int64]  # (n_tables, bits_per_table)
    n_bits: int
    probe: int = 0

    def __post_init__(self) -> None:
        b = self.bits
        if b.ndim != 2 or b.dtype != np.int64 or not b.size or b.shape[1] > MOST_KEY_BITS:
            raise InputError(
                f"Tables: bits must be int64 (n_tables, bits_per_table), with keys of at most "
                f"{MOST_KEY_BITS} bits, got {b.dtype} of shape {b.shape}."
            )
        if b.min() < 0 or b.max() >= self.n_bits:
            raise InputError(f"Tables: bits must lie in [0, {self.n_bits}).")

    @classmethod
    def choose(
        cls,
        owner: str,
        n_bits: int,
        n_tables: int,
        bits_per_table: int,
        segments: str = "consecutive",
        probe: int = 0,
        random_state: int = 0,
    ) -> Tables:
        """Tables over consecutive segments of a code, or over random bits.

        Segment t is bits :math:`tK … tK + K - 1`, so that :math:`L K` may not exceed the length.
        Random table t has the first K bits of the t-th random permutation: no bit twice in one
        table, tables may share bits, and a larger K or L adds to what a smaller one has.
        """
        n_tables = check_count(n_tables, f"{owner}: n_tables", most=MOST_TABLES)
        most = min(MOST_KEY_BITS, n_bits)
        width = check_count(bits_per_table, f"{owner}: bits_per_table", most=most)
        probe = check_count(probe, f"{owner}: probe", least=0, most=width)
        random_state = check_count(random_state, f"{owner}: random_state", least=0)
        if segments not in SEGMENTS:
            raise InputError(
                f"{owner}: segments must be 'consecutive' or 'random', got {segments!r}."
            )
        if segments == "consecutive" and n_tables * width > n_bits:
            raise InputError(
                f"{owner}: {n_tables} segments of {width} bits do not fit into codes of {n_bits} "
                "bits; take fewer or shorter ones, or segments='random'."
            )
        if sum(comb(width, i) for i in range(probe + 1)) > MOST_PROBES:
            raise InputError(
                f"{owner}: keys of {width} bits have more than {MOST_PROBES} others within "
                f"{probe} bits; take a smaller probe, or compare with all codes."
            )
        if segments == "consecutive":
            return cls(np.arange(n_tables * width).reshape(n_tables, width), n_bits, probe)
        orders = [_permutation(n_bits, random_state, t)[:width] for t in range(n_tables)]
        return cls(np.stack(orders), n_bits, probe)

    @property
    def n_tables(self) -> int:
        """L, the number of tables."""
        return len(self.bits)

    @property
    def bits_per_table(self) -> int:
        """K, the length of a key."""
        return self.bits.shape[1]

    @property
    def probes(self) -> NDArray[Any]:
        """What a query's key is XORed with to find the keys of its buckets, nearest first."""
        return _masks(self.bits_per_table, self.probe).astype(self.key_type)

    @property
    def n_look_ups(self) -> int:
        """Buckets that one query looks into, over all tables."""
        return self.n_tables * sum(comb(self.bits_per_table, i) for i in range(self.probe + 1))

    @property
    def certain_radius(self) -> int:
        r"""A radius within which every item is sure to collide.

        An item that collides in none of :math:`L` tables differs in :math:`p + 1` bits of each.  If
        the :math:`d` bits that occur most often occur fewer than :math:`L (p + 1)` times, distance
        :math:`d` is too small for that.  Segments share no bits: there the radius is
        :math:`L (p + 1) - 1`, and no larger one is sure.
        """
        times = np.sort(np.bincount(self.bits.ravel(), minlength=self.n_bits))[::-1]
        return int(np.count_nonzero(np.cumsum(times) < self.n_tables * (self.probe + 1)))

    @property
    def farthest(self) -> int:
        r"""The largest distance at which an item may still collide, :math:`b - K + p`."""
        return self.n_bits - self.bits_per_table + self.probe

    @property
    def key_type(self) -> type[np.uint32] | type[np.uint64]:
        """The type that keys are kept in."""
        return np.uint32 if self.bits_per_table <= 32 else np.uint64

    def keys(self, words: NDArray[np.uint64], table: int) -> NDArray[Any]:
        """The key of each code in one table."""
        from bittern.kernels import buckets

        keys = np.empty(len(words), self.key_type)
        buckets.gather_keys(words, self._pieces[table], keys)
        return keys

    def all_keys(self, words: NDArray[np.uint64]) -> NDArray[Any]:
        """The keys of each code in all tables, ``(n_tables, n)``."""
        return np.stack([self.keys(words, table) for table in range(self.n_tables)])

    @cached_property
    def _pieces(self) -> list[NDArray[np.uint64]]:
        return [_pieces(bits) for bits in self.bits]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tables):
            return NotImplemented
        same = self.n_bits == other.n_bits and self.probe == other.probe
        return same and np.array_equal(self.bits, other.bits)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        probe = f", probing {self.probe}" if self.probe else ""
        return f"<{self.n_tables} tables of {self.bits_per_table} of {self.n_bits} bits{probe}>"


def _permutation(n_bits: int, random_state: int, table: int) -> NDArray[np.int64]:
    return np.random.default_rng([random_state, table]).permutation(n_bits)


@cache
def _masks(n_bits: int, most: int) -> NDArray[np.uint64]:
    """All masks of so many bits with at most ``most`` of them set."""
    sets = (combinations(range(n_bits), size) for size in range(most + 1))
    return np.array([sum(1 << j for j in chosen) for each in sets for chosen in each], np.uint64)


def _pieces(bits: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Runs of neighbouring bits of one word, as ``kernels.buckets.gather_keys`` moves them."""
    begins = np.diff(bits, prepend=-2) != 1
    begins |= bits % 64 == 0
    left = np.flatnonzero(begins)
    lengths = np.diff(np.append(left, len(bits)))
    masks = [(1 << int(length)) - 1 for length in lengths]
    first = bits[left]
    columns = (first // 64, first % 64, np.array(masks, np.uint64), left)
    return np.stack([column.astype(np.uint64) for column in columns], axis=1)
