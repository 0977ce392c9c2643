"""Semantic correlation maximisation: bits, one after the other, that agree with the labels."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_number
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.projections import ProjectionHasher, View
from bittern.hashing.kernel_maps import unit_rows
from bittern.hashing.targets import Targets
from bittern.progress import track


class SCM(ProjectionHasher):
    r"""Semantic correlation maximisation, bit by bit.

    X and Y are the centred and scaled images and texts; :math:`\tilde L` are the classes or tags of
    the pairs, with rows of length 1, and :math:`S = 2 \tilde L \tilde L^\top - 1 1^\top`.  Products
    of codes shall approach :math:`b S`.  Given the bits so far, with signs :math:`f_j` of the
    images and :math:`g_j` of the texts, the next pair of directions maximises

    .. math:: w^\top X^\top \Big( b S - \sum_j f_j g_j^\top \Big) Y v, \qquad
        w^\top (X^\top X + \rho_X I) w = v^\top (Y^\top Y + \rho_Y I) v = 1.

    :math:`\rho_X` is ``regularisation`` times the mean nonzero eigenvalue of :math:`X^\top X`, and
    likewise :math:`\rho_Y`.  As the columns of X and Y have mean 0, the :math:`1 1^\top` in S has
    no effect.  For a Relevance, :math:`\tilde L` are the affinities to at most 256 random rows.

    The original regularises by 10⁻⁶.  Its published code takes directions of unsupervised canonical
    correlation for all further bits once the maximum rises from one bit to the next; here no bit
    does.

    Reference: [Zhang-Li-2014].
    """

    name = "scm-seq"
    needs_y = True

    def __init__(
        self, n_bits: int = 32, *, regularisation: float = 0.1, random_state: int | None = 0
    ):
        self.n_bits = n_bits
        self.regularisation = regularisation
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_number(self.regularisation, f"{self._title}: regularisation", above=0)
        L = unit_rows(targets.indicators(self._generator()).astype(np.float64))
        views = View.linear(images), View.linear(texts)
        (A, X), (B, Y) = (view.whitened(self.regularisation) for view in views)
        C = 2 * self.n_bits * (X.T @ L) @ (L.T @ Y)
        W, V = np.zeros((X.shape[1], self.n_bits)), np.zeros((Y.shape[1], self.n_bits))
        for k in track(range(self.n_bits), f"{self._title}: learning the bits"):
            W[:, k], V[:, k] = _leading_pair(C)
            signs = (np.where(rows @ w > 0, 1.0, -1.0) for rows, w in ((X, W[:, k]), (Y, V[:, k])))
            f, g = signs
            C -= np.outer(f @ X, g @ Y)
            self._keep(
                image_function_=views[0].function(A @ W), text_function_=views[1].function(B @ V)
            )


def _leading_pair(C: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The singular vectors of C ``(r, s)`` with the largest singular value; 0 if C is empty."""
    from scipy.linalg import eigh

    if not C.size:
        return np.zeros(C.shape[0]), np.zeros(C.shape[1])
    is_tall = C.shape[0] >= C.shape[1]
    M = C if is_tall else C.T
    last = M.shape[1] - 1
    v = eigh(M.T @ M, subset_by_index=(last, last))[1][:, 0]
    w = M @ v
    w /= np.linalg.norm(w) or 1.0
    return (w, v) if is_tall else (v, w)
