"""Hash functions trained on the tie-aware metric itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bittern.checks import check_choice, check_count, check_number
from bittern.errors import InputError
from bittern.hashing.gradient import GradientHasher

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TALR"]


class TALR(GradientHasher):
    r"""Tie-aware learning to rank: AP or NDCG in expectation over ties, relaxed, is maximised.

    In a batch of M rows, each is a query for the other M − 1.  Signs of logits f become
    :math:`\tanh(\alpha f / 2)`, counts per distance become soft counts, and the metric's formula
    over these counts, averaged over the batch, has gradients
    (:mod:`bittern.hashing.objectives`).

    ``objective`` is ``"ap"`` (two rows are relevant or not) or ``"ndcg"`` (gains count: a
    Relevance's, or the number of shared tags).  ``alpha`` is the steepness at the beginning and at
    the end of training, and grows in a line between.  ``n_bins`` soft counts make up the profile
    (``n_bits`` if not said), and ``form`` is how the sum over a tie's ranks is replaced:
    ``"simplified"`` by its middle, ``"integral"`` as in the paper's equations 7 and 8,
    ``"midpoint"`` by a nearer integral.  For the network and its training see
    :class:`~bittern.hashing.gradient.GradientHasher`.

    Differs from the original, which does stochastic gradient ascent with momentum on VGG-F.

    Reference: [He-Cakir-Bargal-Sclaroff-2018].
    """

    name = "talr"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        objective: str = "ap",
        network: Any = "linear",
        hidden: int = 512,
        n_anchors: int = 1000,
        start: str = "random",
        dropout: float = 0.5,
        image_size: int | None = None,
        frozen: int = 0,
        augment: int = 0,
        n_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        trunk_rate: float = 0.1,
        weight_decay: float = 1e-4,
        alpha: tuple[float, float] = (1.0, 4.0),
        n_bins: int | None = None,
        form: str = "simplified",
        validation: float = 0.0,
        patience: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
        self.objective = objective
        self.network = network
        self.hidden = hidden
        self.n_anchors = n_anchors
        self.start = start
        self.dropout = dropout
        self.image_size = image_size
        self.frozen = frozen
        self.augment = augment
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.trunk_rate = trunk_rate
        self.weight_decay = weight_decay
        self.alpha = alpha
        self.n_bins = n_bins
        self.form = form
        self.validation = validation
        self.patience = patience
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _loss(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import OBJECTIVES

        first, last = self.alpha
        alpha = first + (last - first) * t
        loss = OBJECTIVES[self.objective]
        return loss(logits, gains, alpha=alpha, n_bins=self.n_bins, form=self.form)

    def _check_objective(self) -> None:
        from bittern.hashing.objectives.counts import FORMS

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

    @property
    def _metric(self) -> str:  # type: ignore[override]
        return self.objective
