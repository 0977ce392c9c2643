"""Tie-aware learning to rank: hash functions trained on the tie-aware metric itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bittern.checks import check_choice, check_count, check_number
from bittern.errors import InputError
from bittern.hashing.deep.hasher import GradientHasher, GradientTraining

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True, eq=False, repr=False)
class TieAware(GradientTraining):
    """The tie-aware objectives and their parameters, which :class:`TALR` explains."""

    objective: str = "ap"
    alpha: tuple[float, float] = (1.0, 4.0)
    n_bins: int | None = None
    delta: int = 1
    eta: float = 0.0
    form: str = "simplified"

    def _ranking(
        self, logits: Tensor, gains: Tensor, t: float, others: Tensor | None = None
    ) -> Tensor:
        from bittern.hashing.objectives import OBJECTIVES

        first, last = self.alpha
        options = dict(n_bins=self.n_bins, delta=self.delta, form=self.form, others=others)
        loss = OBJECTIVES[self.objective]
        return 1 - loss(logits, gains, alpha=first + (last - first) * t, **options)

    def _check_objective(self) -> None:
        from bittern.hashing.objectives import FORMS

        check_choice(self.objective, f"{self._title}: objective", ("ap", "ndcg"))
        check_choice(self.form, f"{self._title}: form", FORMS)
        if not isinstance(self.alpha, tuple | list) or len(self.alpha) != 2:
            raise InputError(
                f"{self._title}: alpha must be two numbers, first and last, got {self.alpha!r}."
            )
        for value in self.alpha:
            check_number(value, f"{self._title}: alpha", above=0)
        if self.n_bins is not None:
            check_count(self.n_bins, f"{self._title}: n_bins")
        check_count(self.delta, f"{self._title}: delta")
        check_number(self.eta, f"{self._title}: eta", least=0)

    @property
    def _metric(self) -> str:  # type: ignore[override]
        return self.objective


@dataclass(kw_only=True, eq=False, repr=False)
class TALR(TieAware, GradientHasher):
    r"""Tie-aware learning to rank: maximise a relaxation of expected AP or NDCG over ties.

    In a batch of M rows, each is a query for the other M − 1.  The signs of the logits f become
    :math:`\tanh(\alpha f / 2)`, the counts per distance become soft counts, and the metric's
    formula over these counts, averaged over the batch, has gradients
    (:mod:`bittern.hashing.objectives`).

    ``objective`` is ``"ap"`` (two rows are relevant or not) or ``"ndcg"`` (gains matter: those of a
    Relevance, or the number of shared tags).  ``alpha`` is the steepness at the beginning and at
    the end of training, and grows linearly in between.  ``n_bins`` is the number of soft counts
    beyond distance 0, by default ``n_bits``; an item counts in the bins less than ``delta``
    spacings away.  ``form`` replaces the sum over the ranks of a tie: ``"simplified"`` by its
    middle term, ``"integral"`` as in the paper's equations 7 and 8, ``"midpoint"`` by a closer
    integral.  ``eta`` times the mean squared difference of the logits from their signs is added, as
    in DPSH and DTSH; the paper has no such term.
    :class:`~bittern.hashing.deep.hasher.GradientHasher` explains the other parameters, of the
    network and its training.

    The paper trains VGG-F by stochastic gradient ascent; its released code has a momentum of 0.9
    and a constant rate (``optimiser="sgd"``, ``schedule="constant"``).

    Reference: [He-Cakir-Bargal-Sclaroff-2018].
    """

    name = "talr"

    def _loss(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import quantisation

        loss = 1 - self._relaxed(logits, gains, t)
        return loss + self.eta * quantisation(logits) if self.eta else loss
