"""Cross-view hashing: signs of canonical variables."""

from __future__ import annotations

import warnings

import numpy as np

from bittern.checks import check_number
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.projections import ProjectionHasher, View, canonical_pairs
from bittern.hashing.targets import Targets


class CVH(ProjectionHasher):
    r"""Cross-view hashing of pairs without labels: signs of canonical variables.

    With X and Y the centred and scaled images and texts, bit k of an image is the sign of
    :math:`x^\top w_k`, and of a text the sign of :math:`y^\top v_k`, where

    .. math:: X^\top Y (Y^\top Y + \rho_Y I)^{-1} Y^\top X \, w_k
        = \lambda_k^2 \, (X^\top X + \rho_X I) \, w_k, \qquad
        v_k = \lambda_k^{-1} (Y^\top Y + \rho_Y I)^{-1} Y^\top X \, w_k,

    with the largest correlations :math:`\lambda_k` first.  :math:`\rho_X` is ``regularisation``
    times the mean nonzero eigenvalue of :math:`X^\top X`, and likewise :math:`\rho_Y`.

    There are at most min(p, q) directions for p and q columns, and one fewer if the columns of a
    modality sum to a constant, such as shares of topics.  ``n_directions_`` counts them.  Further
    bits are 0 for every row, and a warning says so; they change no distance.

    The original minimises distances under any similarity of the items; with paired rows and no
    other similarity, its solution is this one.

    Reference: [Kumar-Udupa-2011].
    """

    name = "cvh"

    n_directions_: int

    def __init__(
        self, n_bits: int = 32, *, regularisation: float = 1.0, random_state: int | None = 0
    ):
        self.n_bits = n_bits
        self.regularisation = regularisation
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        check_number(self.regularisation, f"{self._title}: regularisation", above=0)
        views = View.linear(images), View.linear(texts)
        W, V, correlations = canonical_pairs(*views, self.regularisation, self.n_bits)
        k = len(correlations)
        if k < self.n_bits:
            warnings.warn(
                f"{self._title}: images of {images.shape[1]:,} columns and texts of "
                f"{texts.shape[1]:,} have {k} correlated directions; the other "
                f"{self.n_bits - k} of {self.n_bits} bits are 0 for every row.",
                stacklevel=6,
            )
        padding = ((0, 0), (0, self.n_bits - k))
        self._keep(
            image_function_=views[0].function(np.pad(W, padding)),
            text_function_=views[1].function(np.pad(V, padding)),
            n_directions_=k,
        )
