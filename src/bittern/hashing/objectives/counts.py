r"""The soft tie profile: counts per distance and relevance level that have gradients.

A bit's sign becomes :math:`\tilde\phi = 2\sigma(\alpha f) - 1 = \tanh(\alpha f / 2)`, a distance
:math:`\tilde d = (b - \tilde\Phi^\top \tilde\Phi') / 2`, and an item at relaxed distance
:math:`\tilde d` counts in the two bins beside it, in inverse proportion to how far they are (eq. 14
of [He-Cakir-Bargal-Sclaroff-2018], with bins Δ apart).  So the counts are a scatter and their
gradient is a gather, over the pairs alone: no pair meets all bins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bittern.checks import check_count
from bittern.errors import InputError

__all__ = [
    "FORMS",
    "Objective",
    "check_form",
    "mean_of_defined",
    "quantisation",
    "relaxed_distances",
    "soft_counts",
    "with_self_apart",
]

Objective = Callable[..., Tensor]

#: Ways to replace a sum over the ranks of a tie.
FORMS = ("simplified", "integral", "midpoint")


def relaxed_distances(logits: Tensor, alpha: float) -> Tensor:
    """Hamming distances (M, M) of the rows with tanh(α f / 2) for the signs."""
    codes = torch.tanh(logits * (alpha / 2))
    n_bits = logits.shape[1]
    return ((n_bits - codes @ codes.T) / 2).clamp(0, n_bits)


def with_self_apart(levels: Tensor, n_levels: int) -> Tensor:
    """The levels with a row's own replaced by one more level, that is not counted."""
    return levels.clone().fill_diagonal_(n_levels)


def soft_counts(
    distances: Tensor, levels: Tensor, n_levels: int, n_bits: int, n_bins: int | None = None
) -> Tensor:
    """Soft counts ``(n_queries, n_levels, n_bins + 1)`` of items per relevance level and bin.

    Bins are Δ = ``n_bits / n_bins`` apart, from distance 0 to ``n_bits``; Δ is 1 if ``n_bins`` is
    not said.  Pairs of level ``n_levels`` are left out.
    """
    n_bins = n_bits if n_bins is None else check_count(n_bins, "objective: n_bins")
    counts: Tensor = _SoftCounts.apply(  # type: ignore[no-untyped-call]
        distances, levels, n_levels + 1, n_bins, n_bits / n_bins
    )
    return counts[:, :n_levels]


def mean_of_defined(values: Tensor) -> Tensor:
    """Mean over the queries that have a value; 0 if none has."""
    defined = ~values.isnan()
    return torch.where(defined, values, 0).sum() / defined.sum().clamp(min=1)


def quantisation(logits: Tensor) -> Tensor:
    """Mean squared difference of the logits from their signs."""
    signs = torch.where(logits > 0, 1.0, -1.0).to(logits)
    return (signs - logits).square().mean()


def check_form(form: str) -> None:
    """Refuse what is no way to replace a sum."""
    if form not in FORMS:
        known = ", ".join(map(repr, FORMS))
        raise InputError(f"objective: form must be one of {known}, got {form!r}.")


class _SoftCounts(torch.autograd.Function):
    """Linear interpolation of each pair into two bins of its level."""

    @staticmethod
    def forward(
        context: Any, distances: Tensor, levels: Tensor, n_levels: int, n_bins: int, width: float
    ) -> Tensor:
        """Scatter the pairs."""
        position = distances / width
        lower = position.detach().floor().clamp_(0, n_bins - 1)
        above = position - lower  # what the upper bin gets
        place = lower.long() + levels.long() * (n_bins + 1)
        counts = distances.new_zeros(len(distances), n_levels * (n_bins + 1))
        counts.scatter_add_(1, place, 1 - above)
        counts.scatter_add_(1, place + 1, above)
        context.save_for_backward(place)
        context.width = width
        return counts.view(len(distances), n_levels, n_bins + 1)

    @staticmethod
    def backward(context: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Gather, for each pair, the slope of the upper bin less that of the lower."""
        (place,) = context.saved_tensors
        (slope,) = slopes
        slope = slope.reshape(len(slope), -1)
        steps = torch.cat((slope[:, 1:] - slope[:, :-1], slope[:, :1]), dim=1) / context.width
        return steps.gather(1, place), None, None, None, None
