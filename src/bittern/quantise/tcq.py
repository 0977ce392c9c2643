"""Trellis-coded quantisation of principal components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, row_blocks
from bittern.data.steps import MEMORY
from bittern.kernels.trellis import decode_trellis, encode_trellis
from bittern.kernels.trellis_scan import lookups_of, multiplies_bytes, nearest_of_many, rounded
from bittern.kernels.trellis_scores import (
    Asked,
    Held,
    Reading,
    distances_of_pairs,
    first_segments,
    nearest_rows,
    segments_of,
)
from bittern.parallel import available_threads, run_blocks
from bittern.quantise.base import PARTS, Kept, Queries, squared_float32
from bittern.quantise.components import ComponentQuantiser
from bittern.quantise.stored import Bytes, QuantisedCodes
from bittern.quantise.trellis_levels import trellis_levels

BLOCK = 1 << 18  # bytes of components coded at a time
PAIRS = 1 << 14  # scored at a time
FEWEST = 1 << 15  # items that are worth a thread


class TCQ(ComponentQuantiser):
    r"""Codes principal components together, as a path through a trellis of 256 states.

    Component j has :math:`b_j` bits by reverse water-filling, and its value is
    :math:`\sigma_j` times a level that depends on the last eight bits written, its own and those
    of the components before it.  Viterbi's algorithm finds the bits with the least squared error
    of the whole vector.  So each component is coded with a finer set of levels than its own bits
    could name, and decoding is one look-up a component.

    The levels are learned for a Gaussian: at 1 and 2 bits they leave .282 and .077 of its variance,
    where separate components (Lloyd–Max) leave .363 and .118, and no code less than .25 and .0625.

    With ``centres`` an item also has one byte for the nearest of 256 centres, and with
    ``correction`` one or two bytes for length and angle; "auto" chooses on training rows.

    Transform coding, trellis-coded quantisation [Marcellin-Fischer-1990] on a bit-shift trellis
    [Tseng-2024], and residual centres are published; we know of no earlier use of
    them together for search.
    """

    name = "tcq"

    @property
    def _distortions(self) -> Float64Array:
        return trellis_levels()[1]

    def _payload(self, residuals: Float32Array) -> Bytes:
        z, levels = self._projected(residuals) * self.weights_, trellis_levels()[0]
        scales = self.scales_ * self.weights_
        out = np.zeros((len(z), self._n_payload), np.uint8)
        run_blocks(
            lambda some: encode_trellis(z[some], self.n_bits_, scales, levels, out[some]),
            row_blocks(len(z), 4 * max(1, z.shape[1]), BLOCK),
        )
        return out

    def keep(self, stored: QuantisedCodes) -> Kept:
        """The scale and the lengths of each item: twelve bytes."""
        self._check_stored(stored)
        kept = Kept(np.empty((len(stored), 3), np.float32))
        rest = self._reading()[1]
        for some in row_blocks(len(stored), 8 * max(1, len(self.n_bits_)), MEMORY):
            items, scales = self._scaled(stored.bytes[some])
            rests = np.sqrt(squared_float32(items.vectors[:, rest]))
            kept.numbers[some] = np.stack([scales, items.lengths, rests], axis=1)
        return kept

    def _reading(self) -> tuple[Reading, slice]:
        """How codes are read, and the components that are not first."""
        segments = segments_of(self.n_bits_)
        n_first, n_components = first_segments(segments)
        rest = slice(0, len(self.n_bits_) - n_components)
        return Reading(segments, n_first, trellis_levels()[0]), rest

    def _asked(self, queries: Queries, rest: slice) -> Asked:
        weights = np.ascontiguousarray((queries.vectors * self.scales_)[:, ::-1])
        rests = np.sqrt(squared_float32(queries.vectors[:, rest]))
        by = np.array(PARTS[self.metric], np.float32)
        return Asked(weights, queries.to_centres, queries.lengths, rests, by)

    def _pair_distances(
        self,
        asked: Queries,
        rows: Bytes,
        kept: Kept,
        queries: NDArray[np.intp],
        items: NDArray[np.intp],
    ) -> Float32Array:
        reading, rest = self._reading()
        of_queries, held = self._asked(asked, rest), Held(rows, kept.numbers)
        out = np.empty(len(items), np.float32)
        run_blocks(
            lambda some: distances_of_pairs(
                of_queries, held, queries[some], items[some], reading, out[some]
            ),
            row_blocks(len(items), 1, PAIRS),
        )
        return out

    def _looks_up(self, n_queries: int) -> bool:
        return super()._looks_up(n_queries) or multiplies_bytes()

    def _nearest(
        self, asked: Queries, rows: Bytes, kept: Kept, k: int, allowed: NDArray[np.bool_]
    ) -> tuple[Float32Array, NDArray[np.int64]]:
        reading, rest = self._reading()
        of_queries, held = self._asked(asked, rest), Held(rows, kept.numbers)
        parts = row_blocks(len(rows), 1, max(FEWEST, -(-len(rows) // available_threads())))
        nearest = np.full((len(parts), len(asked.lengths), k), np.inf, np.float32)
        found = np.full(nearest.shape, -1, np.int64)

        def search_one_by_one(part: int) -> None:
            ends = parts[part].start, parts[part].stop
            for q, (best, places) in enumerate(zip(nearest[part], found[part], strict=True)):
                nearest_rows(of_queries, q, held, *ends, allowed, reading, best, places)

        def search_together(part: int) -> None:
            ends = parts[part].start, parts[part].stop
            nearest_of_many(
                of_queries,
                whole,
                held,
                *ends,
                allowed,
                reading,
                lookups,
                nearest[part],
                found[part],
            )

        if super()._looks_up(len(asked.lengths)):
            run_blocks(search_one_by_one, range(len(parts)))
        else:
            whole = rounded(of_queries, self.n_bits_, reading.levels)
            lookups = lookups_of(self.n_bits_, reading.levels)
            run_blocks(search_together, range(len(parts)))
        joined, places = (np.concatenate(list(one), axis=1) for one in (nearest, found))
        order = np.argsort(joined, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(joined, order, 1), np.take_along_axis(places, order, 1)

    def _values(self, payload: Bytes) -> Float32Array:
        out = np.empty((len(payload), len(self.n_bits_)), np.float32)
        decode_trellis(payload, self.n_bits_, self.scales_, trellis_levels()[0], out)
        return out
