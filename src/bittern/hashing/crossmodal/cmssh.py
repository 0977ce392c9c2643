"""Cross-modal similarity-sensitive hashing: bits boosted on pairs of images and texts."""

from __future__ import annotations

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.pairs import Boosting, Pairs
from bittern.hashing.crossmodal.projections import ProjectionHasher, View
from bittern.hashing.targets import Targets
from bittern.progress import track

N_LEVELS = 31  # quantiles that a threshold may take


class CMSSH(ProjectionHasher):
    r"""Cross-modal similarity-sensitive hashing: boosting on similar and dissimilar pairs.

    There are ``n_pairs`` pairs k of an image :math:`x_k` and a text :math:`y_k`, half of them
    similar by ``y`` (:math:`s_k = 1`), half not (:math:`s_k = -1`), with equal weights
    :math:`w_k` at first.  For each bit, p and q are the leading singular vectors of

    .. math:: C = \sum_k w_k s_k \, x_k y_k^\top,

    which maximise the agreement without signs.  With signs, the thresholds a and b maximise

    .. math:: r = \sum_k w_k s_k h_k, \qquad
        h_k = \operatorname{sgn}(p^\top x_k + a) \operatorname{sgn}(q^\top y_k + b),

    over a grid of 31 quantiles for each.  Then pairs on which the bit errs gain weight, as in
    AdaBoost: :math:`w_k \leftarrow w_k \exp(-\alpha s_k h_k)`, scaled to a sum of 1, with
    :math:`\alpha = \frac12 \ln \frac{1 + r}{1 - r}`.  Distances count the bits without the weights
    α.  If no pair of directions agrees with the pairs (r = 0), or one agrees with all, boosting
    begins anew with other pairs.  After Ctrl-C, bits that are not learned yet are 0 for every row.

    Reference: [Bronstein-Bronstein-Michel-Paragios-2010].
    """

    name = "cmssh"
    needs_y = True

    def __init__(self, n_bits: int = 32, *, n_pairs: int = 100_000, random_state: int | None = 0):
        self.n_bits = n_bits
        self.n_pairs = n_pairs
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_count(self.n_pairs, f"{self._title}: n_pairs", 2)
        image, text = View.linear(images), View.linear(texts)
        boosting = Boosting(targets, self.n_pairs, self._generator())
        W, V = (np.zeros((view.features.shape[1], self.n_bits)) for view in (image, text))
        a, b = np.zeros((2, self.n_bits))
        for k in track(range(self.n_bits), f"{self._title}: learning the bits"):
            pairs = boosting.pairs
            signed = boosting.weights * np.where(pairs.similar, 1.0, -1.0)
            W[:, k], V[:, k] = leading_pair(image.features, text.features, pairs, signed)
            z, t = image.features @ W[:, k], text.features @ V[:, k]
            a[k], b[k] = best_thresholds(z, t, pairs, signed)
            boosting.after(z + a[k] > 0, t + b[k] > 0)
            self._keep(
                image_function_=image.function(W.copy(), a.copy()),
                text_function_=text.function(V.copy(), b.copy()),
            )


def leading_pair(
    X: Float64Array, Y: Float64Array, pairs: Pairs, signed: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The leading singular vectors of the weighted products; their largest entry is positive."""
    from scipy.sparse import coo_array

    products = coo_array((signed, (pairs.images, pairs.texts)), shape=(len(X), len(Y)))
    C = X.T @ (products.tocsr() @ Y)
    p, q = _leading(C) if C.shape[0] >= C.shape[1] else _leading(C.T)[::-1]
    sign = np.sign(p[np.abs(p).argmax()]) or 1.0
    return sign * p, sign * q


def _leading(C: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The leading singular vectors of a matrix with few columns."""
    from scipy.linalg import eigh

    last = C.shape[1] - 1
    right = eigh(C.T @ C, subset_by_index=(last, last))[1][:, 0]
    left = C @ right
    return left / (np.linalg.norm(left) or 1.0), right


def best_thresholds(
    z: Float64Array, t: Float64Array, pairs: Pairs, signed: Float64Array
) -> tuple[float, float]:
    """The constants a and b with the largest agreement, among quantiles of the projections."""
    levels = np.linspace(0, 1, N_LEVELS + 2)[1:-1]
    a, b = (-np.quantile(values, levels) for values in (z, t))
    left, right = (np.where(v[:, None] + c > 0, 1.0, -1.0) for v, c in ((z, a), (t, b)))
    agreement = (left[pairs.images] * signed[:, None]).T @ right[pairs.texts]
    i, j = np.unravel_index(agreement.argmax(), agreement.shape)
    return float(a[i]), float(b[j])
