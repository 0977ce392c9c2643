"""Regularised cross-modal hashing: bits of texts on which neighbours vote, learned by both."""

from __future__ import annotations

from bittern.hashing.base import Rows
from bittern.hashing.classifiers import (
    bit_classifiers,
    check_regularisation,
    regularised_classifiers,
)
from bittern.hashing.crossmodal.projections import ProjectionHasher, make_views
from bittern.hashing.targets import Targets
from bittern.progress import track


class RCMH(ProjectionHasher):
    r"""Regularised cross-modal hashing: graph-regularised bits of texts, which images learn too.

    :math:`B_0` are the bits of the training texts under random hyperplanes.  As in
    :class:`~bittern.hashing.GRH`, ``n_iter`` times,

    .. math:: B \leftarrow \operatorname{sgn}(\alpha D^{-1} S B + (1 - \alpha) B_0),
        \qquad \operatorname{sgn}(0) = 1,

    with S the affinities by ``y`` and D the sums of its rows; then a support vector machine
    (parameter ``C``, the rarer bit weighs more) learns each column of B from the texts, and its
    predictions replace the column.  The last machines hash texts.  In the end a machine learns each
    column of the predictions from the images; these hash images.

    ``kernel`` is ``"linear"``, or ``"rbf"`` with ``n_anchors`` random training rows of each
    modality.  The original chooses α in 0.1 … 1 and the number of iterations on validation data;
    with α below ½ no vote changes a bit.

    Known from its abstract and the authors' program for one modality.

    Reference: [Moran-Lavrenko-2015b].
    """

    name = "rcmh"
    needs_y = True

    def __init__(
        self,
        n_bits: int = 32,
        *,
        alpha: float = 1.0,
        n_iter: int = 1,
        C: float = 1.0,
        kernel: str = "linear",
        n_anchors: int = 300,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.alpha = alpha
        self.n_iter = n_iter
        self.C = C
        self.kernel = kernel
        self.n_anchors = n_anchors
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        check_regularisation(self._title, self.alpha, self.n_iter, self.C)
        rng = self._generator()
        image, text = make_views(images, texts, self.kernel, self.n_anchors, rng, self._title)
        start = text.features @ rng.standard_normal((text.features.shape[1], self.n_bits)) > 0
        steps = regularised_classifiers(text.features, start, targets, self.alpha, self.C)
        for _ in track(range(self.n_iter), f"{self._title}: learning the bits"):
            W_texts, a_texts = next(steps)
        bits = text.features @ W_texts + a_texts > 0
        W_images, a_images = bit_classifiers(image.features, bits, self.C, balanced=True)
        self._keep(
            image_function_=image.function(W_images, a_images),
            text_function_=text.function(W_texts, a_texts),
        )
