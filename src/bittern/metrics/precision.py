"""Precision, recall, F, hit rate, reciprocal rank and average precision of each query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, row_blocks
from bittern.errors import InputError
from bittern.kernels import small
from bittern.parallel import run_blocks
from bittern.profile import TieProfile

EVERYTHING = np.iinfo(np.int64).max  # a cut-off that keeps all ranks
BLOCK = 1 << 20  # bytes of counts that one thread takes at a time
# Kernels whose small work needs no compiled code.
SMALL = {"sum_precisions": small.sum_precisions, "count_found": small.count_found}


@dataclass(frozen=True, slots=True, eq=False)
class RetrievedCounts:
    """The result of a cut-off or a radius for each query; all arrays are ``(n_queries,)``.

    A cut-off at k retrieves k items, even if the ranking is shorter: missing items are not
    relevant.
    """

    found: Float64Array  # relevant items retrieved; the expected number if a tie is cut
    retrieved: NDArray[np.int64]  # all items retrieved
    relevant: NDArray[np.int64]  # all relevant items, retrieved or not


def retrieved_at(profile: TieProfile, cutoff: int | None, radius: int | None) -> RetrievedCounts:
    """True positives, retrieved and relevant items of each query (eqs. 3.3–3.5 of [Moran-2016])."""
    if radius is not None:
        inside = _inside_radius(profile, radius)
        found = (profile.relevant * inside).sum(axis=1)
        retrieved = (profile.total * inside).sum(axis=1)
        return RetrievedCounts(found.astype(np.float64), retrieved, profile.n_relevant)
    cutoffs = _cutoffs(profile, cutoff)
    return RetrievedCounts(_found(profile, cutoffs), cutoffs, profile.n_relevant)


def precision(
    profile: TieProfile, cutoff: int | None, radius: int | None, empty_is_zero: bool = False
) -> Float64Array:
    r"""Relevant items retrieved, divided by items retrieved: :math:`TP / (TP + FP)`.

    At a cut-off k the divisor is k.  NaN if the radius contains no item (or 0 if
    ``empty_is_zero``), and NaN if nothing is relevant.

    Reference: eq. 3.6 of [Moran-2016].
    """
    at = retrieved_at(profile, cutoff, radius)
    value = ratio(at.found, at.retrieved)
    if empty_is_zero:
        value[at.retrieved == 0] = 0.0
    return np.where(at.relevant > 0, value, np.nan)


def recall(profile: TieProfile, cutoff: int | None, radius: int | None) -> Float64Array:
    r"""Relevant items retrieved, divided by all relevant items: :math:`TP / (TP + FN)`.

    NaN if nothing is relevant.  Reference: eq. 3.7 of [Moran-2016].
    """
    at = retrieved_at(profile, cutoff, radius)
    return ratio(at.found, at.relevant)


def fbeta(
    profile: TieProfile, cutoff: int | None, radius: int | None, beta: float = 1.0
) -> Float64Array:
    r"""Weighted harmonic mean of precision and recall.

    .. math:: F_\beta = \frac{(1 + \beta^2)\,TP}{(1 + \beta^2)\,TP + \beta^2 FN + FP}

    The numbers of retrieved and of relevant items are fixed, so F is linear in TP and its
    expectation over ties is exact.  NaN if nothing is relevant; 0 if nothing is retrieved.

    Reference: eq. 3.10 of [Moran-2016], after [vanRijsbergen-1979].
    """
    at = retrieved_at(profile, cutoff, radius)
    value = (1 + beta**2) * at.found / np.maximum(at.retrieved + beta**2 * at.relevant, 1e-300)
    return np.where(at.relevant > 0, value, np.nan)


def hit_rate(profile: TieProfile, cutoff: int | None, radius: int | None) -> Float64Array:
    r"""Probability that at least one relevant item is retrieved; some authors call it recall.

    If nothing relevant is nearer and the cut-off keeps :math:`m` ranks of a tie of :math:`n` items,
    :math:`r` of them relevant, it is :math:`1 - \binom{n-r}{m} / \binom{n}{m}`.

    NaN if nothing is relevant.
    """
    if radius is not None:
        value = (retrieved_at(profile, None, radius).found > 0).astype(np.float64)
    else:
        value = _each_query("hit_probability", profile, cutoff)
    return np.where(profile.n_relevant > 0, value, np.nan)


def r_precision(profile: TieProfile) -> Float64Array:
    """Precision at R, the number of relevant items of the query; NaN if R is 0."""
    relevant = profile.n_relevant
    return ratio(_found(profile, np.maximum(relevant, 1)), relevant)


def reciprocal_rank(profile: TieProfile, cutoff: int | None = None) -> Float64Array:
    r"""One divided by the rank of the first relevant item, in expectation over ties.

    If the first tie with relevant items has :math:`n` items, :math:`r` of them relevant, after
    :math:`N` nearer ones, the value is
    :math:`\sum_t \binom{n-t}{r-1} / \binom{n}{r} / (N + t)`.

    0 if no relevant item is retrieved; NaN if nothing is relevant.

    Reference: [McSherry-Najork-2008].
    """
    value = _each_query("reciprocal_ranks", profile, cutoff)
    return np.where(profile.n_relevant > 0, value, np.nan)


def average_precision(profile: TieProfile, cutoff: int | None = None) -> Float64Array:
    r"""Average precision of each query, in expectation over the orders of tied items.

    Let :math:`n_d` items, :math:`r_d` of them relevant, lie at distance :math:`d`; let :math:`N_d`
    and :math:`R_d` count the same strictly nearer, and :math:`R` count all relevant items,
    retrieved or not.  Let :math:`m_d = \min(n_d, k - N_d)` of the tie's ranks count, with :math:`k`
    the cut-off.  Then

    .. math::

        \mathrm{AP@k} = \frac1R \sum_{d:\, m_d > 0} \frac{r_d}{n_d} \sum_{t=1}^{m_d}
            \frac{R_d + 1 + (t-1)\,\rho_d}{N_d + t},
        \qquad \rho_d = \frac{r_d - 1}{n_d - 1}.

    The inner sum has the closed form :math:`(R_d + 1)\,h_d + \rho_d\,(m_d - (N_d + 1)\,h_d)` with
    :math:`h_d = H_{N_d + m_d} - H_{N_d}` a difference of harmonic numbers.

    NaN if nothing is relevant.

    References: eq. 3 of [He-Cakir-Bargal-Sclaroff-2018], after [McSherry-Najork-2008]; the closed
    form is ours (``docs/maths/average-precision.md``).
    """
    return ratio(_each_query("sum_precisions", profile, cutoff), profile.n_relevant)


def average_precision_of_retrieved(profile: TieProfile, cutoff: int | None = None) -> Float64Array:
    r"""Mean precision at the relevant items *retrieved*, in expectation over the orders of ties.

    Much of the hashing literature computes ``AP@k`` like this.  The sum of precisions is divided by
    the number of relevant items among the first k, not by all of them; so [+ − −] beats [+ − +].

    If the cut-off divides a tie of :math:`n` items, :math:`r` relevant, of which :math:`m` ranks
    count, that number is random.  Let :math:`x` be the relevant items of the tie before the cut,
    :math:`S` the expected sum of precisions in the ties before it, and :math:`C(x)` that on the
    tie's first :math:`m` ranks given :math:`x`.  Then the value is

    .. math::

        \sum_x \frac{\binom{r}{x}\binom{n-r}{m-x}}{\binom{n}{m}} \frac{S + C(x)}{R_d + x}.

    0 if no relevant item is retrieved; NaN if nothing is relevant.  The formula is ours
    (``docs/maths/cut-ties.md``).
    """
    values = _each_query("mean_precisions", profile, cutoff)
    return np.where(profile.n_relevant > 0, values, np.nan)


def extreme_average_precision_of_retrieved(
    profile: TieProfile, cutoff: int | None, best: bool
) -> Float64Array:
    """The largest or smallest mean precision at retrieved items over all orders of ties.

    Ranking relevant items first is not always best here: if the cut-off divides a tie, a late hit
    can lower the mean.  So the number of hits before the cut is chosen as well.
    """
    values = _each_query("extreme_mean_precisions", profile, cutoff, best)
    return np.where(profile.n_relevant > 0, values, np.nan)


def ratio(part: NDArray[np.number], whole: NDArray[np.number]) -> Float64Array:
    """``part / whole``, NaN where ``whole`` is zero."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)


def _found(profile: TieProfile, cutoffs: NDArray[np.int64]) -> Float64Array:
    return _each_query("count_found", profile, cutoffs)


def _each_query(
    name: str, profile: TieProfile, cutoff: int | NDArray[np.int64] | None, *more: object
) -> Float64Array:
    """What a kernel of ``kernels.ties`` computes for each query; ``cutoff`` may differ by query."""
    cutoffs = cutoff if isinstance(cutoff, np.ndarray) else _cutoffs(profile, cutoff)
    total, relevant, out = profile.total, profile.relevant, np.empty(profile.n_queries)
    if name in SMALL and small.is_small(total.size * small.TIE, small.TIES):
        return SMALL[name](total, relevant, cutoffs)
    from bittern.kernels import ties

    kernel = getattr(ties, name)

    def work(rows: slice) -> None:
        kernel(total[rows], relevant[rows], cutoffs[rows], *more, out[rows])

    run_blocks(work, row_blocks(len(out), 8 * total.shape[1], BLOCK))
    return out


def _cutoffs(profile: TieProfile, cutoff: int | None) -> NDArray[np.int64]:
    """The same cut-off for every query; all ranks for None."""
    return np.full(profile.n_queries, EVERYTHING if cutoff is None else cutoff, np.int64)


def _inside_radius(profile: TieProfile, radius: float) -> NDArray[np.bool_]:
    """Which columns are at most ``radius`` away; broadcasts to (n_queries, n_columns)."""
    if profile.is_compact:
        raise InputError(
            "metrics: a compact profile has lost its radii; make it with compact=False."
        )
    if profile.distances is None:
        return (np.arange(profile.counts.shape[1]) <= radius)[None]
    return profile.distances <= radius
