"""Average precision, relaxed."""

from __future__ import annotations

import torch
from torch import Tensor

from bittern.hashing.objectives.counts import (
    check_form,
    mean_of_defined,
    relaxed_distances,
    soft_counts,
    with_self_apart,
)

__all__ = ["ap_loss", "relaxed_ap"]

TINY = 1e-6  # items that count as none


def ap_loss(
    logits: Tensor,
    gains: Tensor,
    *,
    alpha: float = 1.0,
    n_bins: int | None = None,
    form: str = "simplified",
) -> Tensor:
    """One less the mean relaxed AP of the rows, each a query for the others.

    A row to which nothing is relevant has no AP and is left out of the mean; see
    :func:`relaxed_ap` for ``form``.
    """
    levels = with_self_apart((gains > 0).long(), 2)
    counts = soft_counts(relaxed_distances(logits, alpha), levels, 2, logits.shape[1], n_bins)
    return 1 - mean_of_defined(relaxed_ap(counts[:, 1], counts.sum(dim=1), form))


def relaxed_ap(relevant: Tensor, total: Tensor, form: str = "simplified") -> Tensor:
    r"""Relaxed AP ``(n_queries,)`` from soft counts ``(n_queries, n_bins)``, NaN where undefined.

    Let :math:`c_d` items, :math:`c_d^+` of them relevant, count in bin d, and :math:`C_d`,
    :math:`C_d^+` up to and with bin d.  Each bin adds, divided by the number of relevant items:

    - ``"integral"``, eq. 7 of [He-Cakir-Bargal-Sclaroff-2018], with
      :math:`\rho = (c_d^+ - 1) / (c_d - 1)`,

      .. math:: c_d^+ \rho + \frac{c_d^+}{c_d} \left[ C_{d-1}^+ + 1 - \rho\,(C_{d-1} + 1) \right]
          \ln \frac{C_d}{C_{d-1} + 1}.

      The logarithm stands for :math:`\sum 1/t` over the ranks t of the tie, which is larger by
      between :math:`1/C_d` and :math:`1/(C_{d-1} + 1)`: a tie of one item has none of it.  ρ, the
      chance that another item of the tie is relevant, is kept within 0 … 1, and the logarithm at
      least 0, for bins that hold less than one item.
    - ``"midpoint"``: the same with :math:`\ln \frac{C_d + 1/2}{C_{d-1} + 1/2}`, whose limits are
      half a rank outside; the sum is met to :math:`O(1/t^2)`, also by ties of one.  Ours.
    - ``"simplified"``: the precision at the middle of the tie,

      .. math:: c_d^+ \frac{C_{d-1}^+ + C_d^+ + 1}{C_{d-1} + C_d + 1}.
    """
    check_form(form)
    up_to, found = total.cumsum(dim=1), relevant.cumsum(dim=1)
    before, found_before = up_to - total, found - relevant
    if form == "simplified":
        terms = relevant * (found_before + found + 1) / (before + up_to + 1)
    else:
        rho = ((relevant - 1).clamp(min=0) / (total - 1).clamp(min=TINY)).clamp(max=1)
        if form == "integral":
            ranks = (up_to.clamp(min=TINY) / (before + 1)).clamp(min=1).log()
        else:
            ranks = ((up_to + 0.5) / (before + 0.5)).log()
        share = relevant / total.clamp(min=TINY)
        terms = relevant * rho + share * (found_before + 1 - rho * (before + 1)) * ranks
    n_relevant = found[:, -1]
    defined = n_relevant > TINY
    ap = terms.sum(dim=1) / torch.where(defined, n_relevant, 1)
    return torch.where(defined, ap, torch.nan)
