"""The likelihood of triplets."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from bittern.hashing.objectives.counts import quantisation

__all__ = ["dtsh_loss"]


def dtsh_loss(
    logits: Tensor, gains: Tensor, *, eta: float = 1.0, margin: float | None = None
) -> Tensor:
    r"""Negative log-likelihood of the order in triplets, and a term that draws logits to ±1.

    With :math:`\theta_{ij} = u_i^\top u_j / 2` of the logits, the mean of
    :math:`\ln(1 + e^{-x})`, :math:`x = \theta_{qp} - \theta_{qn} - m`, over all triplets of the
    batch in which p is more relevant to q than n is, plus η times the mean over rows of
    :math:`\|\operatorname{sgn} u_i - u_i\|^2 / b`.  The margin m is half the number of bits if it
    is not said.  The original sums where we take means.

    Reference: [Wang-Shi-Kitani-2016].
    """
    theta = logits @ logits.T / 2
    margin = logits.shape[1] / 2 if margin is None else margin
    levels = gains.clone().fill_diagonal_(-1)
    query, nearer = (levels > 0).nonzero(as_tuple=True)
    shortfall = margin - theta[query, nearer, None] + theta[query]
    counted = (levels[query] < gains[query, nearer, None]) & (levels[query] >= 0)
    n_triplets = counted.sum().clamp(min=1)
    loss = torch.where(counted, softplus(shortfall), 0).sum() / n_triplets
    return loss + eta * quantisation(logits)
