"""Hash functions trained on the likelihood of triplets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bittern.checks import check_number
from bittern.hashing.gradient import GradientHasher

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DTSH"]


class DTSH(GradientHasher):
    r"""Deep triplet-supervised hashing: the more relevant of two rows has the larger product.

    Minimises the negative log-likelihood of the triplets of a batch with a ``margin`` (half of
    ``n_bits`` if not said), and ``eta`` times the squared difference of logits from their signs
    (:func:`bittern.hashing.objectives.dtsh_loss`, where our deviations are stated).  For the
    network and its training see :class:`~bittern.hashing.gradient.GradientHasher`.

    Reference: [Wang-Shi-Kitani-2016].
    """

    name = "dtsh"
    _most_rows = 200  # triplets grow with the cube

    def __init__(
        self,
        n_bits: int = 32,
        *,
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
        eta: float = 1.0,
        margin: float | None = None,
        validation: float = 0.0,
        patience: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | None = 0,
    ):
        self.n_bits = n_bits
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
        self.eta = eta
        self.margin = margin
        self.validation = validation
        self.patience = patience
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _loss(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        from bittern.hashing.objectives import dtsh_loss

        return dtsh_loss(logits, gains, eta=self.eta, margin=self.margin)

    def _check_objective(self) -> None:
        check_number(self.eta, f"{self._title}: eta", least=0)
        if self.margin is not None:
            check_number(self.margin, f"{self._title}: margin", least=0)
