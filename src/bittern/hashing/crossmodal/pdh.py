"""Predictable dual-view hashing: each modality learns the bits of the other, in turn."""

from __future__ import annotations

import numpy as np

from bittern.checks import check_count, check_number
from bittern.hashing.base import Bits, Rows
from bittern.hashing.classifiers import bit_classifiers, signs
from bittern.hashing.crossmodal.projections import ProjectionHasher, View, canonical_pairs
from bittern.hashing.itq import nearest_orthogonal
from bittern.hashing.targets import Targets
from bittern.progress import track


class PDH(ProjectionHasher):
    r"""Predictable dual-view hashing: bits that each modality can predict from the other.

    The bits of both modalities start as the signs of canonical variables.  ``n_iter`` times,

    1. a linear support vector machine (parameter ``C``) learns each bit of the texts from the
       images; its predictions are the new bits of the images, which are then made less correlated:
       the bits, as ±1, become the signs of the nearest matrix with orthonormal columns;
    2. the same from the texts, with the bits of the images.

    The last machines are the hash functions.

    Canonical directions are those of :class:`~bittern.hashing.crossmodal.CVH`, with
    ``regularisation``.  If there are fewer than bits, the canonical variables are first multiplied
    by a random matrix with orthonormal rows.  The machines have the squared hinge loss, on features
    scaled to a mean square length of 1.  On held-out training rows of Wiki one iteration was the
    best: with few columns, many bits repeat each other, and making them uncorrelated turns them
    into noise.  Written from memory of the paper, which was not at hand.

    Reference: [Rastegari-Choi-Fakhraei-Daume-Davis-2013].
    """

    name = "pdh"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_iter: int = 1,
        C: float = 10.0,
        regularisation: float = 1.0,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.n_iter = n_iter
        self.C = C
        self.regularisation = regularisation
        self.random_state = random_state

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        check_count(self.n_iter, f"{self._title}: n_iter")
        check_number(self.C, f"{self._title}: C", above=0)
        check_number(self.regularisation, f"{self._title}: regularisation", above=0)
        rng = self._generator()
        image, text = View.linear(images), View.linear(texts)
        bits = self._start(image, text, rng)  # of the texts
        for _ in track(range(self.n_iter), f"{self._title}: learning the bits"):
            W, a = bit_classifiers(image.features, bits, self.C, balanced=False)
            bits = decorrelated(image.features @ W + a > 0)
            V, b = bit_classifiers(text.features, bits, self.C, balanced=False)
            bits = decorrelated(text.features @ V + b > 0)
            self._keep(image_function_=image.function(W, a), text_function_=text.function(V, b))

    def _start(self, images: View, texts: View, rng: np.random.Generator) -> Bits:
        """Signs of the canonical variables of the texts."""
        _, W, correlations = canonical_pairs(images, texts, self.regularisation, self.n_bits)
        variables = texts.features @ (W * correlations)
        if (r := variables.shape[1]) < self.n_bits:
            rotation = np.linalg.qr(rng.standard_normal((self.n_bits, self.n_bits)))[0]
            variables = variables @ rotation[:r]
        return variables > 0


def decorrelated(bits: Bits) -> Bits:
    """The signs of the nearest matrix with orthonormal columns, or rows if there are fewer."""
    return nearest_orthogonal(signs(bits)) > 0
