r"""Objectives of the gradient-trained methods: functions of logits and gains, in PyTorch.

An objective takes ``logits`` (M, b), whose signs are the bits, and ``gains`` (M, M), whole numbers
for how relevant each row of the batch is to each other row; the diagonal is ignored.  It returns
one number, smaller for better codes.  With ``others`` (N, b), the ranking objectives take the rows
as queries for these, which may be of another modality; ``gains`` are then (M, N), and all count.

The ranking objectives are the tie-aware metrics over a *soft tie profile*, counts per distance and
relevance level that have gradients.  The sign of a logit f becomes
:math:`\tilde\phi = 2\sigma(\alpha f) - 1 = \tanh(\alpha f / 2)`, a distance becomes
:math:`\tilde d = (b - \tilde\Phi^\top \tilde\Phi') / 2`, and an item at :math:`\tilde d` counts in
the two nearest bins, weighted by linear interpolation (eq. 14 of [He-Cakir-Bargal-Sclaroff-2018],
with bins Δ apart).  So the counts are a scatter over the pairs, and their gradient is a gather.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from bittern.checks import check_choice, check_count
from bittern.registry import Registry

Objective = Callable[..., Tensor]

#: Ways to replace a sum over the ranks of a tie.
FORMS = ("simplified", "integral", "midpoint")
TINY = 1e-6  # items; smaller counts are 0


def ap_loss(
    logits: Tensor,
    gains: Tensor,
    *,
    others: Tensor | None = None,
    alpha: float = 1.0,
    n_bins: int | None = None,
    delta: int = 1,
    form: str = "simplified",
) -> Tensor:
    """One minus the mean relaxed AP of the rows, each a query for the others, or for ``others``.

    Rows to which nothing is relevant are left out of the mean; :func:`soft_counts` explains
    ``n_bins`` and ``delta``, :func:`relaxed_ap` ``form``.
    """
    levels = (gains > 0).long()
    levels = _without_self(levels, 2) if others is None else levels
    distances = relaxed_distances(logits, alpha, others)
    counts = soft_counts(distances, levels, 2, logits.shape[1], n_bins, delta)
    return 1 - _mean_of_defined(relaxed_ap(counts[:, 1], counts.sum(dim=1), form))


def relaxed_ap(relevant: Tensor, total: Tensor, form: str = "simplified") -> Tensor:
    r"""Relaxed AP ``(n_queries,)`` from soft counts ``(n_queries, n_bins)``, NaN where undefined.

    Let bin d hold :math:`c_d` items, :math:`c_d^+` of them relevant, and let :math:`C_d` and
    :math:`C_d^+` count those up to and including bin d.  Each bin adds, divided by the number of
    relevant items:

    - ``"integral"``, eq. 7 of [He-Cakir-Bargal-Sclaroff-2018], with
      :math:`\rho = (c_d^+ - 1) / (c_d - 1)`,

      .. math:: c_d^+ \rho + \frac{c_d^+}{c_d} \left[ C_{d-1}^+ + 1 - \rho\,(C_{d-1} + 1) \right]
          \ln \frac{C_d}{C_{d-1} + 1}.

      The logarithm stands for :math:`\sum 1/t` over the ranks t of the tie, which is larger by
      between :math:`1/C_d` and :math:`1/(C_{d-1} + 1)`; for a tie of one item the logarithm is 0.
      ρ is the probability that another item of the tie is relevant; it is 0 where the bin holds
      less than one relevant item, and at most 1.  The logarithm is at least 0.
    - ``"midpoint"``: the same with :math:`\ln \frac{C_d + 1/2}{C_{d-1} + 1/2}`, whose limits are
      half a rank outside; its error is :math:`O(1/t^2)`, even for ties of one item.  This form is
      ours.
    - ``"simplified"``: the precision at the middle of the tie,

      .. math:: c_d^+ \frac{C_{d-1}^+ + C_d^+ + 1}{C_{d-1} + C_d + 1}.
    """
    check_choice(form, "objective: form", FORMS)
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


def ndcg_loss(
    logits: Tensor,
    gains: Tensor,
    *,
    others: Tensor | None = None,
    alpha: float = 1.0,
    n_bins: int | None = None,
    delta: int = 1,
    form: str = "simplified",
) -> Tensor:
    """One minus the mean relaxed NDCG of the rows, each a query for the others, or for ``others``.

    Rows to which nothing is relevant are left out of the mean; :func:`soft_counts` explains
    ``n_bins`` and ``delta``, :func:`relaxed_dcg` ``form``.
    """
    present = torch.bincount(gains.flatten()) > 0
    present[0] = True
    values = present.nonzero().flatten()
    levels = (present.cumsum(dim=0) - 1)[gains]
    levels = _without_self(levels, len(values)) if others is None else levels
    distances = relaxed_distances(logits, alpha, others)
    counts = soft_counts(distances, levels, len(values), logits.shape[1], n_bins, delta)
    return 1 - _mean_of_defined(relaxed_ndcg(counts, values, form))


def relaxed_ndcg(counts: Tensor, values: Tensor, form: str = "simplified") -> Tensor:
    """Relaxed NDCG ``(n_queries,)``: the relaxed DCG divided by the DCG of the best order.

    ``counts`` are ``(n_queries, n_levels, n_bins)``; ``values`` are the relevance of the levels,
    ascending from 0.  NaN where nothing is relevant.
    """
    gain = torch.exp2(values.double()) - 1
    gain = (gain / gain.max().clamp(min=1)).to(counts.dtype)
    best = _best_dcg(counts.detach().sum(dim=2), gain)
    dcg = relaxed_dcg(counts, gain, form)
    defined = best > 0
    return torch.where(defined, dcg / torch.where(defined, best, 1), torch.nan)


def relaxed_dcg(counts: Tensor, gain: Tensor, form: str = "simplified") -> Tensor:
    r"""Relaxed DCG ``(n_queries,)`` where an item of level v has the gain ``gain[v]`` = G(v).

    Let bin d hold :math:`c_{d,v}` items of level v and :math:`c_d` items in all, and let
    :math:`C_d` count those up to and including bin d.  Each bin adds
    :math:`\sum_v G(v)\, c_{d,v} / c_d` times

    - ``"integral"``, eq. 8 of [He-Cakir-Bargal-Sclaroff-2018]:
      :math:`\ln 2\, [\mathrm{Li}(C_d + 1) - \mathrm{Li}(C_{d-1} + 2)]`, which is below the sum of
      the discounts :math:`1/\log_2(t + 1)` over the ranks t of the tie, by between its last and
      its first term; at least 0, for bins that hold less than one item;
    - ``"midpoint"``: :math:`\ln 2\, [\mathrm{Li}(C_d + 3/2) - \mathrm{Li}(C_{d-1} + 3/2)]`, whose
      limits are half a rank outside.  This form is ours;
    - ``"simplified"``: :math:`c_d / \log_2(\bar t + 1)` with
      :math:`\bar t = (C_{d-1} + C_d + 1) / 2`, the middle of the tie.
    """
    check_choice(form, "objective: form", FORMS)
    total = counts.sum(dim=1)
    up_to = total.cumsum(dim=1)
    before = up_to - total
    gained = torch.einsum("qvd,v->qd", counts, gain)
    if form == "simplified":
        return (gained / torch.log2((before + up_to + 3) / 2)).sum(dim=1)
    if form == "integral":
        low = before + 2
        discounts = _li(torch.maximum(up_to + 1, low)) - _li(low)
    else:
        discounts = _li(up_to + 1.5) - _li(before + 1.5)
    return (gained / total.clamp(min=TINY) * discounts).sum(dim=1) * np.log(2)


def dpsh_loss(
    logits: Tensor, gains: Tensor, *, eta: float = 1.0, pairs: str = "balanced"
) -> Tensor:
    r"""Negative log-likelihood of the pairs' affinities, plus a pull of the logits to ±1.

    With :math:`\theta_{ij} = u_i^\top u_j / 2` of the logits and :math:`s_{ij} = 1` for pairs with
    a gain above 0, the mean over pairs of
    :math:`\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}`, plus η times the mean over rows of
    :math:`\|\operatorname{sgn} u_i - u_i\|^2 / b`.  With ``pairs="balanced"`` the similar pairs of
    a batch weigh as much in all as the others; with ``"all"`` every pair weighs the same, so that
    with many classes nearly all of the weight is on pairs that are not similar, and the codes
    collapse.  The original sums where we take means, and compares a batch with the last outputs of
    all training rows where we compare it with itself.

    References: [Li-Wang-Kang-2016]; the balance is that of [Cao-2017].
    """
    others = ~torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    likelihood = _pair_loss(logits @ logits.T / 2, (gains > 0) & others, others, pairs)
    return likelihood + eta * quantisation(logits)


def dcmh_loss(
    images: Tensor,
    texts: Tensor,
    gains: Tensor,
    *,
    gamma: float = 1.0,
    eta: float = 1.0,
    pairs: str = "balanced",
) -> Tensor:
    r"""Negative log-likelihood of the affinities of images and texts, and two terms on the codes.

    With :math:`\theta_{ij} = g_i^\top f_j / 2` of the logits g of texts and f of images, the mean
    over all pairs of :math:`\ln(1 + e^{\theta_{ij}}) - s_{ij} \theta_{ij}`, where
    :math:`s_{ij} = 1` if ``gains`` ``(n_texts, n_images)`` are above 0 (``pairs`` weighs them as in
    :func:`dpsh_loss`); plus γ times the mean squared difference of the logits of both from the
    common signs :math:`\operatorname{sgn}(f_i + g_i)`; plus η times the squared mean of each bit's
    logits, averaged over the bits and added over both.  The last two terms leave out texts beyond
    the number of images, which have no image of their own.

    The original sums where we take means, which gives the term of γ more weight here, and compares
    a batch with the last outputs of all training rows where we compare it with itself.

    Reference: [Jiang-Li-2017].
    """
    counted = torch.ones_like(gains, dtype=torch.bool)
    likelihood = _pair_loss(texts @ images.T / 2, gains > 0, counted, pairs)
    own = texts[: len(images)]
    signs = torch.where(images + own > 0, 1.0, -1.0).to(images)
    apart = (signs - images).square().mean() + (signs - own).square().mean()
    balance = images.mean(dim=0).square().mean() + own.mean(dim=0).square().mean()
    return likelihood + gamma * apart + eta * balance


def _pair_loss(theta: Tensor, similar: Tensor, counted: Tensor, pairs: str) -> Tensor:
    """The mean negative log-likelihood of the counted pairs, or of each kind of them."""
    loss = softplus(theta) - similar * theta
    kinds = (counted,) if pairs == "all" else (similar, counted & ~similar)
    means = [loss[kind].mean() for kind in kinds if kind.any()]
    return torch.stack(means).mean() if means else 0 * theta.sum()


def dtsh_loss(
    logits: Tensor, gains: Tensor, *, eta: float = 1.0, margin: float | None = None
) -> Tensor:
    r"""Negative log-likelihood of the order in triplets, plus a pull of the logits to ±1.

    With :math:`\theta_{ij} = u_i^\top u_j / 2` of the logits, the mean of
    :math:`\ln(1 + e^{-x})`, :math:`x = \theta_{qp} - \theta_{qn} - m`, over all triplets of the
    batch in which p is more relevant to q than n is, plus η times the mean over rows of
    :math:`\|\operatorname{sgn} u_i - u_i\|^2 / b`.  The margin m defaults to half the number of
    bits.  The original sums where we take means.

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


#: Every objective by its name.
OBJECTIVES: Registry[Objective] = Registry(
    "objective", {"ap": ap_loss, "ndcg": ndcg_loss, "dpsh": dpsh_loss, "dtsh": dtsh_loss}
)


def relaxed_distances(logits: Tensor, alpha: float, others: Tensor | None = None) -> Tensor:
    """Hamming distances (M, M) of the rows, with tanh(α f / 2) in place of the signs.

    With ``others`` (N, b), the distances (M, N) to these.
    """
    codes = torch.tanh(logits * (alpha / 2))
    to = codes if others is None else torch.tanh(others * (alpha / 2))
    n_bits = logits.shape[1]
    return ((n_bits - codes @ to.T) / 2).clamp(0, n_bits)


def soft_counts(
    distances: Tensor,
    levels: Tensor,
    n_levels: int,
    n_bits: int,
    n_bins: int | None = None,
    delta: int = 1,
) -> Tensor:
    """Soft counts ``(n_queries, n_levels, n_bins + 1)`` of items per relevance level and bin.

    Bins are ``n_bits / n_bins`` apart, from distance 0 to ``n_bits``; ``n_bins`` defaults to
    ``n_bits``.  An item counts in all bins that are less than Δ = ``delta`` spacings away, in
    proportion to 1 − distance / Δ (eq. 14), and 1 in all.  Pairs of level ``n_levels`` are left
    out.
    """
    n_bins = n_bits if n_bins is None else check_count(n_bins, "objective: n_bins")
    counts: Tensor = _SoftCounts.apply(  # type: ignore[no-untyped-call]
        distances, levels, n_levels + 1, n_bins, n_bits / n_bins
    )
    counts = counts[:, :n_levels]
    return counts if delta == 1 else counts @ _wider(n_bins + 1, delta).to(counts)


def _wider(n: int, delta: int) -> Tensor:
    """The matrix (n, n) that turns counts interpolated between neighbours into wider ones.

    A triangle of half-width Δ is linear between bins, so it is the sum of triangles of half-width
    1, weighted by its values at the bins.  Near the ends, where bins are missing, weights are
    scaled to add up to 1.
    """
    place = torch.arange(n)
    weights = (1 - (place[:, None] - place).abs() / delta).clamp(min=0)
    return weights / weights.sum(dim=1, keepdim=True)


class _SoftCounts(torch.autograd.Function):
    """Linear interpolation of each pair into two bins of its level."""

    @staticmethod
    def forward(
        context: Any, distances: Tensor, levels: Tensor, n_levels: int, n_bins: int, width: float
    ) -> Tensor:
        """Scatter the pairs."""
        position = distances / width
        lower = position.detach().floor().clamp_(0, n_bins - 1)
        above = position - lower  # the share of the upper bin
        place = lower.long() + levels.long() * (n_bins + 1)
        counts = distances.new_zeros(len(distances), n_levels * (n_bins + 1))
        counts.scatter_add_(1, place, 1 - above)
        counts.scatter_add_(1, place + 1, above)
        context.save_for_backward(place)
        context.width = width
        return counts.view(len(distances), n_levels, n_bins + 1)

    @staticmethod
    def backward(context: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Gather, for each pair, the slope of the upper bin minus that of the lower."""
        (place,) = context.saved_tensors
        (slope,) = slopes
        slope = slope.reshape(len(slope), -1)
        steps = torch.cat((slope[:, 1:] - slope[:, :-1], slope[:, :1]), dim=1) / context.width
        return steps.gather(1, place), None, None, None, None


def _without_self(levels: Tensor, n_levels: int) -> Tensor:
    """Give each row's pair with itself the extra level ``n_levels``, which is not counted."""
    return levels.clone().fill_diagonal_(n_levels)


def _mean_of_defined(values: Tensor) -> Tensor:
    """Mean over the queries whose value is defined; 0 if there are none."""
    defined = ~values.isnan()
    return torch.where(defined, values, 0).sum() / defined.sum().clamp(min=1)


def _best_dcg(n: Tensor, gain: Tensor) -> Tensor:
    """The DCG of the best order of ``n`` (n_queries, n_levels) items of each level."""
    n = n.round().double().flip(1)
    last = n.cumsum(dim=1).long()
    ranks = torch.arange(1, int(last.max()) + 1, dtype=torch.float64, device=n.device)
    discounts = torch.cat((ranks.new_zeros(1), (1 / torch.log2(ranks + 1)).cumsum(dim=0)))
    sums = discounts[last] - discounts[last - n.long()]
    return (sums * gain.double().flip(0)).sum(dim=1).to(gain.dtype)


def _li(x: Tensor) -> Tensor:
    """The logarithmic integral Li(x)."""
    return _LogarithmicIntegral.apply(x)  # type: ignore[no-untyped-call]


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


def quantisation(logits: Tensor) -> Tensor:
    """Mean squared difference of the logits from their signs."""
    signs = torch.where(logits > 0, 1.0, -1.0).to(logits)
    return (signs - logits).square().mean()
