"""Deep pairwise-supervised hashing: hash functions trained on the likelihood of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bittern.checks import check_choice, check_number
from bittern.hashing.deep.hasher import GradientHasher

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True, eq=False, repr=False)
class DPSH(GradientHasher):
    r"""Deep pairwise-supervised hashing: inner products of logits predict which pairs are relevant.

    Minimises the negative log-likelihood of the pairs of a batch, plus ``eta`` times the squared
    difference of the logits from their signs.  ``pairs`` says how similar and other pairs are
    weighed, ``"balanced"`` or ``"all"`` alike (:func:`bittern.hashing.objectives.dpsh_loss`, which
    also states our deviations).  :class:`~bittern.hashing.deep.hasher.GradientHasher` explains the
    other parameters, of the network and its training.

    Reference: [Li-Wang-Kang-2016].
    """

    eta: float = 1.0
    pairs: str = "balanced"

    name = "dpsh"

    def _loss(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import dpsh_loss

        return dpsh_loss(logits, gains, eta=self.eta, pairs=self.pairs)

    def _check_objective(self) -> None:
        check_number(self.eta, f"{self._title}: eta", least=0)
        check_choice(self.pairs, f"{self._title}: pairs", ("balanced", "all"))
