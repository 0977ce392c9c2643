"""Inter-media hashing: codes that are smooth within and equal across modalities."""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.checks import Float64Array, check_count, check_number
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.projections import ProjectionHasher, View
from bittern.hashing.targets import Targets

LARGE = 1e3


class IMH(ProjectionHasher):
    r"""Inter-media hashing: functions that neighbours share, and that an image and its text share.

    For the centred images :math:`X_1` and texts :math:`X_2` of at most ``n_rows`` random pairs,

    .. math:: A_m = I - X_m (X_m^\top X_m + \beta_m I)^{-1} X_m^\top

    says how badly a function of the pairs can be predicted from a modality, and the Laplacian
    :math:`L_m` of the graph of ``n_neighbours`` nearest rows (0 or 1, in either order) how rough it
    is.  The hash values F are the ``n_bits`` eigenvectors of smallest eigenvalue of

    .. math:: A_1 + A_2 + \lambda (L_1 + L_2),

    without the constant one, which no centred row predicts.

    Rows of a modality get :math:`W_m = (X_m^\top X_m + \beta_m I)^{-1} X_m^\top F`, and a bit is 1
    above the median of the training rows.

    λ is ``smoothness``; :math:`\beta_m` is ``regularisation`` times the mean nonzero eigenvalue of
    :math:`X_m^\top X_m`.  The original also takes items without a partner; this is its solution for
    pairs.  There are n - 1 eigenvectors for n rows; bits beyond are 0 for every row.

    Reference: [Song-Yang-Yang-Huang-Shen-2013].
    """

    name = "imh"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        smoothness: float = 1.0,
        n_neighbours: int = 5,
        regularisation: float = 1.0,
        n_rows: int = 2000,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.smoothness = smoothness
        self.n_neighbours = n_neighbours
        self.regularisation = regularisation
        self.n_rows = n_rows
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        from scipy.linalg import eigh

        check_number(self.smoothness, f"{self._title}: smoothness", least=0)
        check_count(self.n_neighbours, f"{self._title}: n_neighbours")
        check_number(self.regularisation, f"{self._title}: regularisation", above=0)
        check_count(self.n_rows, f"{self._title}: n_rows")
        rng = self._generator()
        rows = np.sort(rng.permutation(len(images))[: self.n_rows])
        views = [View.linear(part[rows]) for part in (images, texts)]
        solvers = [self._solver(view.features) for view in views]
        total = np.full((len(rows), len(rows)), LARGE)  # moves the constant function to the end
        for view, solver in zip(views, solvers, strict=True):
            total += unpredictable(view.features, solver)
            total += self.smoothness * laplacian(view.features, self.n_neighbours)
        n = max(1, min(self.n_bits, len(rows) - 1))
        F = eigh(total, subset_by_index=(0, n - 1))[1]
        functions = [
            self._function(view, solver @ F) for view, solver in zip(views, solvers, strict=True)
        ]
        self._keep(image_function_=functions[0], text_function_=functions[1])

    def _solver(self, X: Float64Array) -> Float64Array:
        """(X'X + βI)⁻¹ X', which regresses functions of the rows on them."""
        values = np.linalg.svd(X, compute_uv=False) ** 2
        beta = self.regularisation * (values.sum() / max(1, np.linalg.matrix_rank(X))) or 1.0
        solver: Float64Array = np.linalg.solve(X.T @ X + beta * np.eye(X.shape[1]), X.T)
        return solver

    def _function(self, view: View, W: Float64Array) -> dict[str, Any]:
        """The hash function with medians as thresholds, and constant bits up to ``n_bits``."""
        median = np.median(view.features @ W, axis=0)
        missing = self.n_bits - W.shape[1]
        return view.function(np.pad(W, ((0, 0), (0, missing))), np.pad(-median, (0, missing)))


def unpredictable(X: Float64Array, solver: Float64Array) -> Float64Array:
    """The matrix A: I minus the regression on the rows."""
    return np.eye(len(X)) - X @ solver


def laplacian(X: Float64Array, n_neighbours: int) -> Float64Array:
    """The Laplacian ``(n, n)`` of the graph that joins each row to its nearest."""
    from sklearn.neighbors import kneighbors_graph

    k = min(n_neighbours, len(X) - 1)
    if k == 0:
        return np.zeros((len(X), len(X)))
    near = kneighbors_graph(X, k).toarray()
    near = np.maximum(near, near.T)
    return np.diag(near.sum(axis=1)) - near
