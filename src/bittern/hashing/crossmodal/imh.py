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

    λ is ``smoothness``; :math:`\beta_m` is ``ridge`` times the number of rows, for features with a
    mean square of 1; the defaults were the best of a few on held-out training rows of Wiki.  The
    original also takes items without a partner; this is its solution for pairs.  There are n - 1
    eigenvectors for n rows; bits beyond are 0 for every row.

    Reference: [Song-Yang-Yang-Huang-Shen-2013].
    """

    name = "imh"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        smoothness: float = 10.0,
        n_neighbours: int = 5,
        ridge: float = 1.0,
        n_rows: int = 2000,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.smoothness = smoothness
        self.n_neighbours = n_neighbours
        self.ridge = ridge
        self.n_rows = n_rows
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        from scipy.linalg import eigh

        check_number(self.smoothness, f"{self._title}: smoothness", least=0)
        check_count(self.n_neighbours, f"{self._title}: n_neighbours")
        check_count(self.n_rows, f"{self._title}: n_rows")
        check_number(self.ridge, f"{self._title}: ridge", above=0)
        rng = self._generator()
        rows = np.sort(rng.permutation(len(images))[: self.n_rows])
        views = [View.linear(part[rows]) for part in (images, texts)]
        total = np.full((len(rows), len(rows)), LARGE)  # moves the constant function to the end
        for view in views:
            total += unpredictable(view, self.ridge)
            total += self.smoothness * laplacian(view.features, self.n_neighbours)
        n = max(1, min(self.n_bits, len(rows) - 1))
        F = eigh(total, subset_by_index=(0, n - 1))[1]
        image, text = (
            self._function(view, view.ridge_map(self.ridge).solve(F)[0]) for view in views
        )
        self._keep(image_function_=image, text_function_=text)

    def _function(self, view: View, W: Float64Array) -> dict[str, Any]:
        """The hash function with medians as thresholds, and constant bits up to ``n_bits``."""
        median = np.median(view.features @ W, axis=0)
        missing = self.n_bits - W.shape[1]
        return view.function(np.pad(W, ((0, 0), (0, missing))), np.pad(-median, (0, missing)))


def unpredictable(view: View, ridge: float) -> Float64Array:
    """The matrix A: I minus the regression on the features."""
    unit = np.eye(len(view.features))
    return unit - view.features @ view.ridge_map(ridge).solve(unit)[0]


def laplacian(X: Float64Array, n_neighbours: int) -> Float64Array:
    """The Laplacian ``(n, n)`` of the graph that joins each row to its nearest."""
    from sklearn.neighbors import kneighbors_graph

    k = min(n_neighbours, len(X) - 1)
    if k == 0:
        return np.zeros((len(X), len(X)))
    near = kneighbors_graph(X, k).toarray()
    near = np.maximum(near, near.T)
    return np.diag(near.sum(axis=1)) - near
