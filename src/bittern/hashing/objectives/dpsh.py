"""The likelihood of pairs."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus

from bittern.hashing.objectives.counts import quantisation

__all__ = ["dpsh_loss"]


def dpsh_loss(logits: Tensor, gains: Tensor, *, eta: float = 1.0) -> Tensor:
    r"""Negative log-likelihood of the pairs' affinities, and a term that draws logits to ±1.

    With :math:`\theta_{ij} = u_i^\top u_j / 2` of the logits and :math:`s_{ij} = 1` for pairs with
    a gain above 0, the mean over pairs of
    :math:`\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}`, plus η times the mean over rows of
    :math:`\|\operatorname{sgn} u_i - u_i\|^2 / b`.  The original sums where we take means, and
    compares a batch with the last outputs of all training rows where we compare it with itself.

    Reference: [Li-Wang-Kang-2016].
    """
    theta = logits @ logits.T / 2
    loss = (softplus(theta) - (gains > 0) * theta).fill_diagonal_(0)
    n = len(logits)
    return loss.sum() / max(1, n * (n - 1)) + eta * quantisation(logits)
