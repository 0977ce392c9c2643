"""Trellis-coded quantisation of principal components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, row_blocks
from bittern.data.steps import MEMORY
from bittern.kernels.trellis import decode_trellis, encode_trellis, score_pairs, segments_of
from bittern.parallel import run_blocks
from bittern.quantise.base import Kept
from bittern.quantise.components import ComponentQuantiser
from bittern.quantise.stored import Bytes, QuantisedCodes
from bittern.quantise.trellis_levels import trellis_levels

BLOCK = 1 << 18  # bytes of components coded at a time
PAIRS = 1 << 14  # scored at a time


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
        z, levels = self._projected(residuals), trellis_levels()[0]
        out = np.zeros((len(z), self._n_payload), np.uint8)
        run_blocks(
            lambda some: encode_trellis(z[some], self.n_bits_, self.scales_, levels, out[some]),
            row_blocks(len(z), 4 * max(1, z.shape[1]), BLOCK),
        )
        return out

    def keep(self, stored: QuantisedCodes) -> Kept:
        """The scale and the squared length of each item: eight bytes."""
        self._check_stored(stored)
        kept = Kept(np.empty(len(stored), np.float32), np.empty(len(stored), np.float32))
        for some in row_blocks(len(stored), 8 * max(1, len(self.n_bits_)), MEMORY):
            items, kept.scales[some] = self._scaled(stored.bytes[some])
            kept.lengths[some] = items.lengths
        return kept

    def _pair_products(
        self,
        vectors: Float32Array,
        rows: Bytes,
        queries: NDArray[np.intp],
        items: NDArray[np.intp],
    ) -> Float32Array:
        weights = np.ascontiguousarray((vectors * self.scales_)[:, ::-1])
        out = np.empty(len(items), np.float32)
        segments, levels = segments_of(self.n_bits_), trellis_levels()[0]
        skip = int(len(self.centres_) > 1)
        run_blocks(
            lambda some: score_pairs(
                weights, rows, skip, queries[some], items[some], segments, levels, out[some]
            ),
            row_blocks(len(items), 1, PAIRS),
        )
        return out

    def _values(self, payload: Bytes) -> Float32Array:
        out = np.empty((len(payload), len(self.n_bits_)), np.float32)
        decode_trellis(payload, self.n_bits_, self.scales_, trellis_levels()[0], out)
        return out
