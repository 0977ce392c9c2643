"""Fisher's randomisation test for pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bittern.checks import Float64Array, check_count
from bittern.errors import InputError
from bittern.metrics.significance.effects import standardised
from bittern.metrics.significance.outcome import ALTERNATIVES, Significance, conclude
from bittern.metrics.significance.pairs import Pairs, Values, pair

__all__ = ["randomisation_test"]

FEW = 32  # pairs up to which all flips are counted unless told otherwise
MOST = 44  # pairs for which counting all flips takes seconds and some hundred megabytes
OCTET = 8  # pairs that are flipped together, by one random byte


def randomisation_test(
    a: Values,
    b: Values,
    alternative: str = "two-sided",
    *,
    n_draws: int = 100_000,
    random_state: int = 0,
    exact: bool | None = None,
) -> Significance:
    r"""Randomisation test: whether chance in naming a and b makes such a mean difference.

    If the two do not differ, swapping them within any pair changes nothing; so each of the
    :math:`2^n` ways to flip signs gives a mean difference as likely as the one seen,

    .. math:: p = 2^{-n} \, \#\{ s \in \{-1, 1\}^n : \sum_i s_i d_i \ge \sum_i d_i \}

    (two-sided: sizes of the sums are compared).  Sums that rounding alone tells apart are equal,
    and p is never 0, as the flip that changes nothing counts.

    ``exact`` counts all flips (at most 44 pairs that differ); else ``n_draws`` flips are drawn and
    p = (count + 1) / (draws + 1), with the 95 % interval of the exact p in ``p_interval``.  Left
    to itself it is exact for up to 32 pairs that differ.

    The statistic is the mean difference and the effect size Cohen's :math:`d_z`.  References:
    [Smucker-Allan-Carterette-2007], who recommend it for retrieval; [Phipson-Smyth-2010] for
    counts plus one; [Clopper-Pearson-1934] for the interval.
    """
    ALTERNATIVES[alternative]  # refused before anything is counted
    check_count(n_draws, "randomisation_test: n_draws", most=10**8)
    check_count(random_state, "randomisation_test: random_state", least=0)
    pairs = pair(a, b, "randomisation_test")
    differing = pairs.n - pairs.zeros
    if exact is None:
        exact = differing <= FEW
    elif exact and differing > MOST:
        raise InputError(
            f"randomisation_test: exact is for at most {MOST} pairs that differ, "
            f"got {differing}; exact=False draws flips at random."
        )
    count = None if exact else _count_drawn(pairs, alternative, n_draws, random_state)
    return conclude(
        pairs,
        name="randomisation test",
        method="exact" if count is None else f"{n_draws:,} draws",
        statistic=pairs.mean,
        p_value=_exact_p(pairs, alternative) if count is None else (count + 1) / (n_draws + 1),
        alternative=alternative,
        effect="Cohen's d",
        effect_size=standardised(pairs.difference),
        p_interval=None if count is None else _share_interval(count, n_draws),
    )


def _exact_p(pairs: Pairs, alternative: str) -> float:
    difference = pairs.difference[pairs.difference != 0]  # flipping a zero changes nothing
    at_most, at_least = (_share_reached(d, pairs.slack) for d in (-difference, difference))
    return ALTERNATIVES[alternative](at_most, at_least)


def _share_reached(difference: Float64Array, slack: float) -> float:
    """Share of all flips whose sum is at least the one seen.

    A flip of all pairs is a flip of each half, so the sums of one half are looked up in the sorted
    sums of the other: :math:`2^{n/2}` look-ups, not :math:`2^n` sums ([Horowitz-Sahni-1974]).
    """
    half = len(difference) // 2
    left, right = (np.sort(_flip_sums(d)) for d in (difference[:half], difference[half:]))
    needed = difference.sum() - slack - left
    not_reached = int(np.searchsorted(right, needed).sum())
    return 1 - not_reached / (len(left) * len(right))


def _flip_sums(difference: Float64Array) -> Float64Array:
    """Sums under each of the ``2**n`` ways to flip signs."""
    sums = np.zeros(1)
    for d in difference:
        sums = np.concatenate([sums - d, sums + d])
    return sums


def _count_drawn(pairs: Pairs, alternative: str, n_draws: int, random_state: int) -> int:
    """How many of the drawn flips reach as far out as what was seen."""
    outward = OUTWARD[alternative]
    seen = outward(pairs.difference.sum())
    sums = _drawn_sums(pairs.difference, n_draws, np.random.default_rng(random_state))
    return int((outward(sums) >= seen - pairs.slack).sum())


# How far out a sum is, in the direction of the alternative.
OUTWARD: dict[str, Callable[[Float64Array], Float64Array]] = {
    "two-sided": np.abs,
    "greater": np.positive,
    "less": np.negative,
}


def _drawn_sums(difference: Float64Array, n_draws: int, rng: np.random.Generator) -> Float64Array:
    """Sums under flips drawn at random: a byte chooses among the sums of eight pairs."""
    padded = np.zeros(-(-len(difference) // OCTET) * OCTET)
    padded[: len(difference)] = difference
    sums = np.zeros(n_draws)
    for eight in padded.reshape(-1, OCTET):
        sums += _flip_sums(eight)[rng.integers(0, 1 << OCTET, n_draws, np.uint8)]
    return sums


def _share_interval(count: int, draws: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a share."""
    from scipy.special import betaincinv

    low = betaincinv(count, draws - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, draws - count, 0.975) if count < draws else 1.0
    return float(low), float(high)
