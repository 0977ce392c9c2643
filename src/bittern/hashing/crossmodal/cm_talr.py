"""Cross-modal tie-aware learning to rank: two networks trained on the tie-aware metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bittern.checks import check_number
from bittern.hashing.crossmodal.gradient import GradientPairHasher
from bittern.hashing.talr import TALR, TieAware

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True, eq=False, repr=False)
class CMTALR(TieAware, GradientPairHasher):
    r"""Cross-modal tie-aware learning to rank: maximise relaxed AP or NDCG in both directions.

    In a batch of M pairs, with logits :math:`u_i` of images and :math:`v_j` of texts, the relaxed
    distances are

    .. math:: d_{ij} = \tfrac12 \bigl(b - \tanh(\alpha u_i / 2)^\top \tanh(\alpha v_j / 2)\bigr).

    The relaxed metric of :class:`~bittern.hashing.TALR` over them, of each image as a query for the
    M texts and of each text as a query for the M images, has the means :math:`A_{IT}` and
    :math:`A_{TI}`, and training minimises :math:`1 - (A_{IT} + A_{TI}) / 2`.  ``within`` adds that
    many times the same loss of the images among themselves and of the texts among themselves.

    :class:`~bittern.hashing.TALR` explains ``objective``, ``alpha``, ``n_bins``, ``delta``,
    ``form`` and ``eta``; :class:`~bittern.hashing.crossmodal.gradient.GradientPairHasher` explains
    the networks and the training.

    The extension to two modalities is ours.  Reference: [He-Cakir-Bargal-Sclaroff-2018].
    """

    within: float = 0.0

    name = "cm-talr"
    _kind = TALR

    def _loss(self, logits: Any, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import quantisation

        images, texts = logits
        loss = 1 - self._relaxed(logits, gains, t)
        if self.within:
            n = len(images)
            each = [self._ranking(one[:n], gains[:n], t) for one in logits]
            loss = loss + self.within * (1 - sum(each) / 2)
        if self.eta:
            loss = loss + self.eta * (quantisation(images) + quantisation(texts)) / 2
        return loss

    def _check_objective(self) -> None:
        super()._check_objective()
        check_number(self.within, f"{self._title}: within", least=0)
