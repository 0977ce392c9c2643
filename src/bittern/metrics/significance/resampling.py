"""Randomisation test of a mean difference, and its bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float64Array, check_count, check_list, check_number
from bittern.errors import InputError
from bittern.metrics.pooled import Pooled, resampled
from bittern.metrics.significance.paired_tests import ALTERNATIVES, Significance, conclude
from bittern.metrics.significance.pairs import Pairs, Values, pair, standardised
from bittern.parallel import run_blocks
from bittern.registry import Registry

FEW = 32  # pairs up to which all flips are counted by default
MOST = 44  # pairs: counting all their flips takes seconds and some hundred megabytes
MOST_DRAWS = 10**8
TOGETHER = 8  # pairs that are flipped together, by one random byte
AT_ONCE = 1 << 22  # random bytes in memory at a time, unless one row needs more


def randomisation_test(
    a: Values,
    b: Values,
    alternative: str = "two-sided",
    *,
    n_draws: int = 100_000,
    random_state: int = 0,
    exact: bool | None = None,
) -> Significance:
    r"""Randomisation test: how often random swaps of a and b give a mean difference this large.

    If the two systems do not differ, swapping them within any pair changes nothing.  So each of the
    :math:`2^n` ways to flip signs gives a mean difference as likely as the one seen:

    .. math:: p = 2^{-n} \, \#\{ s \in \{-1, 1\}^n : \sum_i s_i d_i \ge \sum_i d_i \}

    (two-sided: the sizes of the sums are compared).  Sums that differ only by rounding are equal.
    p is never 0, because the flip that changes nothing counts.

    ``exact=True`` counts all flips (at most 44 pairs that differ).  ``exact=False`` draws
    ``n_draws`` flips, and p = (count + 1) / (draws + 1), with the 95 % interval of the exact p in
    ``p_interval``.  By default p is exact for up to 32 pairs that differ.

    The statistic is the mean difference and the effect size Cohen's :math:`d_z`.  References:
    [Smucker-Allan-Carterette-2007], who recommend it for retrieval; [Phipson-Smyth-2010] for
    adding one to the counts; [Clopper-Pearson-1934] for the interval.
    """
    pairs = pair(a, b, "randomisation_test")
    if exact and pairs.n - pairs.zeros > MOST:
        raise InputError(
            f"randomisation_test: exact is for at most {MOST} pairs that differ, "
            f"got {pairs.n - pairs.zeros}; exact=False draws flips at random."
        )
    return _tested([pairs], alternative, n_draws, random_state, exact)[0]


def randomisation_tests(
    sides: Sequence[tuple[Values, Values]],
    alternative: str = "two-sided",
    *,
    n_draws: int = 100_000,
    random_state: int = 0,
) -> list[Significance]:
    """The :func:`randomisation_test` of each pair of systems; they share their random draws.

    The outcomes are those of separate tests, in a fraction of the time.
    """
    all_pairs = [pair(a, b, "randomisation_tests") for a, b in _sides(sides)]
    return _tested(all_pairs, alternative, n_draws, random_state)


def _sides(sides: Any) -> list[tuple[Any, Any]]:
    """Pairs of systems."""
    listed = check_list(sides, "randomisation_tests: sides")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in listed):
        raise InputError("randomisation_tests: sides must be a list of pairs (a, b).")
    return listed


def _tested(
    all_pairs: Sequence[Pairs],
    alternative: str,
    n_draws: int,
    random_state: int,
    exact: bool | None = None,
) -> list[Significance]:
    ALTERNATIVES[alternative]  # fails for an unknown name before counting
    n_draws = check_count(n_draws, "randomisation_test: n_draws", most=MOST_DRAWS)
    random_state = check_count(random_state, "randomisation_test: random_state", least=0)
    is_exact = [p.n - p.zeros <= FEW if exact is None else exact for p in all_pairs]
    drawn = [p for p, counted in zip(all_pairs, is_exact, strict=True) if not counted]
    counts = iter(_count_drawn(drawn, alternative, n_draws, random_state))
    return [
        _outcome(p, alternative, n_draws, None if counted else next(counts))
        for p, counted in zip(all_pairs, is_exact, strict=True)
    ]


def _outcome(pairs: Pairs, alternative: str, n_draws: int, count: int | None) -> Significance:
    """The outcome of a test; exact if there is no count of drawn flips."""
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
    """Share of all flips whose sum is at least the observed one.

    A flip of all pairs is a flip of each half.  So the sums of one half are looked up in the sorted
    sums of the other: :math:`2^{n/2}` look-ups instead of :math:`2^n` sums ([Horowitz-Sahni-1974]).
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


def _count_drawn(
    all_pairs: Sequence[Pairs], alternative: str, n_draws: int, random_state: int
) -> list[int]:
    """How many random flips are at least as extreme as the observed sum, for each of them."""
    outward, rng = OUTWARD[alternative], np.random.default_rng(random_state)
    sums = drawn_sums([pairs.difference for pairs in all_pairs], n_draws, rng)
    return [
        int((outward(drawn) >= outward(pairs.difference.sum()) - pairs.slack).sum())
        for pairs, drawn in zip(all_pairs, sums, strict=True)
    ]


# How extreme a sum is, in the direction of the alternative.
OUTWARD: dict[str, Callable[[Float64Array], Float64Array]] = {
    "two-sided": np.abs,
    "greater": np.positive,
    "less": np.negative,
}


def drawn_sums(
    differences: Sequence[Float64Array], n_draws: int, rng: np.random.Generator
) -> list[Float64Array]:
    """Sums of each set of differences under the same random flips; a byte flips eight pairs."""
    eights = [_in_eights(difference) for difference in differences]
    sums = [np.zeros(n_draws) for _ in eights]
    n_rows, step = max(map(len, eights), default=0), max(1, AT_ONCE // n_draws)
    for start in range(0, n_rows, step):
        rows = range(start, min(n_rows, start + step))
        flips = np.stack([rng.integers(0, 1 << TOGETHER, n_draws, np.uint8) for _ in rows])
        _add_flipped([one[rows.start : rows.stop] for one in eights], flips, sums)
    return sums


def _in_eights(difference: Float64Array) -> Float64Array:
    """The differences in rows of eight, the last one filled up with zeros."""
    padded = np.zeros(-(-len(difference) // TOGETHER) * TOGETHER)
    padded[: len(difference)] = difference
    return padded.reshape(-1, TOGETHER)


def _add_flipped(
    parts: Sequence[Float64Array], flips: NDArray[np.uint8], sums: Sequence[Float64Array]
) -> None:
    """Add the flipped differences of each part to its sums, in threads."""
    from bittern.kernels.flips import add_flipped

    def work(i: int) -> None:
        add_flipped(parts[i], flips[: len(parts[i])], sums[i])

    run_blocks(work, range(len(parts)))


def _share_interval(count: int, draws: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a share."""
    from scipy.special import betaincinv

    low = betaincinv(count, draws - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, draws - count, 0.975) if count < draws else 1.0
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class DifferenceInterval:
    """Interval of the mean of first minus second over ``n`` pairs."""

    low: float
    high: float
    difference: float
    confidence: float
    method: str
    n: int
    left_out: int


def bootstrap_interval(
    a: Values,
    b: Values,
    method: str = "bca",
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: int = 0,
) -> DifferenceInterval:
    r"""Bootstrap interval of the mean difference: pairs are resampled with replacement.

    ``percentile`` cuts :math:`(1 - c)/2` from each end of the resampled means, where c is the
    ``confidence``.  ``bca`` moves both cuts to correct for bias and skewness:

    .. math::

        \alpha' = \Phi\Big(z_0 + \frac{z_0 + z_\alpha}{1 - \hat a (z_0 + z_\alpha)}\Big), \qquad
        \hat a = \frac{\sum_i (d_i - \bar d)^3}{6 \, (\sum_i (d_i - \bar d)^2)^{3/2}},

    with :math:`z_\alpha` a quantile of the normal distribution and :math:`z_0` the quantile of the
    share of resampled means below the mean (half of those equal to it).  If all differences are
    equal, both ends are that value.

    References: [Efron-Tibshirani-1993], [Efron-1987].
    """
    cuts_of = CUTS[method]
    n_resamples = check_count(n_resamples, "bootstrap_interval: n_resamples", 100, MOST_DRAWS)
    random_state = check_count(random_state, "bootstrap_interval: random_state", least=0)
    if not 0.5 <= check_number(confidence, "bootstrap_interval: confidence") <= 0.999:
        raise InputError(
            f"bootstrap_interval: confidence must be between 0.5 and 0.999, got {confidence!r}."
        )
    pairs = pair(a, b, "bootstrap_interval")
    low, high = _interval(pairs, cuts_of, confidence, n_resamples, random_state)
    return DifferenceInterval(low, high, pairs.mean, confidence, method, pairs.n, pairs.left_out)


Cuts = Callable[[Float64Array, Float64Array, Float64Array], Float64Array]


def _interval(
    pairs: Pairs, cuts_of: Cuts, confidence: float, n_resamples: int, random_state: int
) -> tuple[float, float]:
    difference = pairs.difference
    if (difference == difference[0]).all():
        return pairs.mean, pairs.mean
    mean = Pooled(difference[:, None], lambda sums: sums[:, 0] / len(difference))
    means = resampled(mean, random_state, n_resamples)
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = np.quantile(means, cuts_of(tails, means, difference))
    return float(low), float(high)


def _percentile_cuts(
    tails: Float64Array, means: Float64Array, difference: Float64Array
) -> Float64Array:
    return tails


def _bca_cuts(tails: Float64Array, means: Float64Array, difference: Float64Array) -> Float64Array:
    from scipy.special import ndtr, ndtri

    mean = difference.mean()
    below = ((means < mean).mean() + (means <= mean).mean()) / 2
    least = 0.5 / len(means)  # count at least half a resample, so that z0 is finite
    z0 = ndtri(np.clip(below, least, 1 - least))
    spread = (difference - mean) / np.abs(difference - mean).max()
    skew = (spread**3).sum() / (6 * np.square(spread).sum() ** 1.5)
    z = z0 + ndtri(tails)
    return ndtr(z0 + z / (1 - skew * z))


CUTS: Registry[Cuts] = Registry(
    "bootstrap interval", {"bca": _bca_cuts, "percentile": _percentile_cuts}
)
