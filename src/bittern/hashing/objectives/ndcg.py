"""Normalised discounted cumulative gain, relaxed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bittern.hashing.objectives.counts import (
    check_form,
    mean_of_defined,
    relaxed_distances,
    soft_counts,
    with_self_apart,
)

__all__ = ["ndcg_loss", "relaxed_dcg", "relaxed_ndcg"]

TINY = 1e-6  # items that count as none


def ndcg_loss(
    logits: Tensor,
    gains: Tensor,
    *,
    alpha: float = 1.0,
    n_bins: int | None = None,
    form: str = "simplified",
) -> Tensor:
    """One less the mean relaxed NDCG of the rows, each a query for the others.

    A row to which nothing is relevant has no NDCG and is left out of the mean; see
    :func:`relaxed_dcg` for ``form``.
    """
    present = torch.bincount(gains.flatten()) > 0
    present[0] = True
    values = present.nonzero().flatten()
    levels = (present.cumsum(dim=0) - 1)[gains]
    levels = with_self_apart(levels, len(values))
    distances = relaxed_distances(logits, alpha)
    counts = soft_counts(distances, levels, len(values), logits.shape[1], n_bins)
    return 1 - mean_of_defined(relaxed_ndcg(counts, values, form))


def relaxed_ndcg(counts: Tensor, values: Tensor, form: str = "simplified") -> Tensor:
    """Relaxed NDCG ``(n_queries,)``: the relaxed DCG divided by that of the best order.

    ``counts`` are ``(n_queries, n_levels, n_bins)``, ``values`` the gains of the levels, rising
    from 0.  NaN where nothing is relevant.
    """
    worth = torch.exp2(values.double()) - 1
    worth = (worth / worth.max().clamp(min=1)).to(counts.dtype)
    best = _best_dcg(counts.detach().sum(dim=2), worth)
    dcg = relaxed_dcg(counts, worth, form)
    defined = best > 0
    return torch.where(defined, dcg / torch.where(defined, best, 1), torch.nan)


def relaxed_dcg(counts: Tensor, worth: Tensor, form: str = "simplified") -> Tensor:
    r"""Relaxed DCG ``(n_queries,)`` where an item of level v is worth ``worth[v]`` = G(v).

    Let :math:`c_{d,v}` items of level v count in bin d, :math:`c_d` of any level, and :math:`C_d`
    up to and with bin d.  Each bin adds :math:`\sum_v G(v)\, c_{d,v} / c_d` times

    - ``"integral"``, eq. 8 of [He-Cakir-Bargal-Sclaroff-2018]:
      :math:`\ln 2\, [\mathrm{Li}(C_d + 1) - \mathrm{Li}(C_{d-1} + 2)]`, which is smaller than the
      sum of discounts :math:`1/\log_2(t + 1)` over the ranks t of the tie by between its last and
      its first; at least 0, for bins that hold less than one item;
    - ``"midpoint"``: :math:`\ln 2\, [\mathrm{Li}(C_d + 3/2) - \mathrm{Li}(C_{d-1} + 3/2)]`, whose
      limits are half a rank outside.  Ours;
    - ``"simplified"``: :math:`c_d / \log_2(\bar t + 1)` with
      :math:`\bar t = (C_{d-1} + C_d + 1) / 2`, the middle of the tie.
    """
    check_form(form)
    total = counts.sum(dim=1)
    up_to = total.cumsum(dim=1)
    before = up_to - total
    gained = torch.einsum("qvd,v->qd", counts, worth)
    if form == "simplified":
        return (gained / torch.log2((before + up_to + 3) / 2)).sum(dim=1)
    if form == "integral":
        low = before + 2
        discounts = _li(torch.maximum(up_to + 1, low)) - _li(low)
    else:
        discounts = _li(up_to + 1.5) - _li(before + 1.5)
    return (gained / total.clamp(min=TINY) * discounts).sum(dim=1) * np.log(2)


def _best_dcg(n: Tensor, worth: Tensor) -> Tensor:
    """The DCG of the best order of ``n`` (n_queries, n_levels) items of each level."""
    n = n.round().double().flip(1)
    last = n.cumsum(dim=1).long()
    ranks = torch.arange(1, int(last.max()) + 1, dtype=torch.float64, device=n.device)
    discounts = torch.cat((ranks.new_zeros(1), (1 / torch.log2(ranks + 1)).cumsum(dim=0)))
    sums = discounts[last] - discounts[last - n.long()]
    return (sums * worth.double().flip(0)).sum(dim=1).to(worth.dtype)


class _LogarithmicIntegral(torch.autograd.Function):
    """Li(x), whose derivative is 1 / ln x."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        """The exponential integral of the logarithm, by SciPy."""
        from scipy.special import expi

        context.save_for_backward(x)
        values = expi(np.log(x.detach().cpu().double().numpy()))
        return torch.from_numpy(values).to(x)

    @staticmethod
    def backward(context: Any, *slopes: Tensor) -> Tensor:
        """The chain rule."""
        (x,) = context.saved_tensors
        return slopes[0] / x.log()


def _li(x: Tensor) -> Tensor:
    return _LogarithmicIntegral.apply(x)  # type: ignore[no-untyped-call]
