"""Canonical variables of images and texts, rotated towards their signs."""

from __future__ import annotations

import numpy as np

from bittern.checks import check_count, check_number
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.projections import ProjectionHasher, View, canonical_pairs
from bittern.hashing.itq import rotations
from bittern.hashing.targets import Targets


class CCAITQ(ProjectionHasher):
    r"""Rotate the canonical variables of images and texts so that taking signs loses least.

    The canonical directions :math:`w_k, v_k` and correlations :math:`\lambda_k` are those of
    :class:`~bittern.hashing.crossmodal.CVH`.  With V the canonical variables
    :math:`\lambda_k x^\top w_k` of the training images above those of the texts,
    :math:`\lambda_k y^\top v_k`, one rotation R for both modalities minimises
    :math:`\lVert B - V R \rVert_F^2` with :math:`B \in \{-1, 1\}^{2n \times b}`, as in
    :class:`~bittern.hashing.ITQ`.

    If there are only r < b directions, R has r orthonormal rows, so that every bit mixes all of
    them; ``n_directions_`` is r.

    Reference: [Gong-Lazebnik-2011].
    """

    name = "cca-itq"

    n_directions_: int

    def __init__(
        self,
        n_bits: int = 32,
        *,
        regularisation: float = 1.0,
        n_iter: int = 50,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.regularisation = regularisation
        self.n_iter = n_iter
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        check_number(self.regularisation, f"{self._title}: regularisation", above=0)
        check_count(self.n_iter, f"{self._title}: n_iter")
        rng = self._generator()
        views = View.linear(images), View.linear(texts)
        W, V, correlations = canonical_pairs(*views, self.regularisation, self.n_bits)
        W, V = W * correlations, V * correlations
        both = np.vstack((views[0].features @ W, views[1].features @ V))
        for R in rotations(both, self.n_bits, self.n_iter, rng, f"{self._title}: rotating"):
            self._keep(
                image_function_=views[0].function(W @ R),
                text_function_=views[1].function(V @ R),
                n_directions_=len(correlations),
            )
