"""Deep cross-modal hashing: two networks trained on the likelihood of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bittern.checks import check_choice, check_number
from bittern.hashing.crossmodal.gradient import GradientPairHasher
from bittern.hashing.dpsh import DPSH

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True, eq=False, repr=False)
class DCMH(GradientPairHasher):
    r"""Deep cross-modal hashing: products of logits predict which images and texts are relevant.

    Minimises the negative log-likelihood of the pairs of images and texts in a batch, plus
    ``gamma`` times the squared difference of the logits from common signs, plus ``eta`` times the
    square of each bit's mean.  ``pairs`` says how similar and other pairs are weighed,
    ``"balanced"`` or ``"all"`` alike (:func:`bittern.hashing.objectives.dcmh_loss`, which also
    states our deviations).  The original trains a convolutional network on images and two layers on
    words, and alternates between them; here both learn in the same step.
    :class:`~bittern.hashing.crossmodal.gradient.GradientPairHasher` explains the networks and the
    training.

    Reference: [Jiang-Li-2017].
    """

    gamma: float = 1.0
    eta: float = 1.0
    pairs: str = "balanced"

    name = "dcmh"
    _kind = DPSH

    def _loss(self, logits: Any, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import dcmh_loss

        images, texts = logits
        return dcmh_loss(images, texts, gains, gamma=self.gamma, eta=self.eta, pairs=self.pairs)

    def _check_objective(self) -> None:
        for name in ("gamma", "eta"):
            check_number(getattr(self, name), f"{self._title}: {name}", least=0)
        check_choice(self.pairs, f"{self._title}: pairs", ("balanced", "all"))
