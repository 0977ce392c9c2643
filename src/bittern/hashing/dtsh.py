"""Deep triplet-supervised hashing: hash functions trained on the likelihood of triplets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bittern.checks import check_number
from bittern.hashing.deep.hasher import GradientHasher

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True, eq=False, repr=False)
class DTSH(GradientHasher):
    r"""Deep triplet-supervised hashing: more relevant rows have larger inner products.

    Minimises the negative log-likelihood of the triplets of a batch with a ``margin`` (by default
    half of ``n_bits``), plus ``eta`` times the squared difference of the logits from their signs
    (:func:`bittern.hashing.objectives.dtsh_loss`, which also states our deviations).
    :class:`~bittern.hashing.deep.hasher.GradientHasher` explains the other parameters, of the
    network and its training.

    Reference: [Wang-Shi-Kitani-2016].
    """

    eta: float = 1.0
    margin: float | None = None

    name = "dtsh"

    def _loss(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import dtsh_loss

        return dtsh_loss(logits, gains, eta=self.eta, margin=self.margin)

    def _check_objective(self) -> None:
        check_number(self.eta, f"{self._title}: eta", least=0)
        if self.margin is not None:
            check_number(self.margin, f"{self._title}: margin", least=0)
