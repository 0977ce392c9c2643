"""Advise: how few bytes keep most of the float ranking's quality."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from numpy.typing import ArrayLike

from bittern.checks import check_choice, check_count, is_number, whole_number
from bittern.codes import MAX_BITS
from bittern.errors import InputError
from bittern.experiments.advice.contenders import (
    Contender,
    contenders,
    modules_of,
    named,
    refusal,
    suited,
)
from bittern.experiments.advice.data import METRICS, Sample, draw_sample
from bittern.experiments.advice.judging import judge
from bittern.experiments.advice.record import Advice, Skipped
from bittern.experiments.advice.splits import STORES
from bittern.experiments.advice.trials import AdviceSettings, Progress, try_all, warm_up
from bittern.extras import require

FACTORS = (1, 2, 4, 8, 16)
MOST_BYTES = MAX_BITS // 8


def advise(
    vectors: Any,
    labels: ArrayLike | None = None,
    *,
    target: float = 0.95,
    items: int | None = None,
    methods: str | Iterable[str] | None = None,
    n_bytes: str | Iterable[int] | None = None,
    n_bits: str | Iterable[int] | None = None,
    metric: str = "euclidean",
    queries: Any = None,
    relevance: Any = None,
    budget: float = 120.0,
    k: int = 10,
    rescore: int = 4,
    rescore_from: str = "float32",
    candidates: int | None = None,
    n_splits: int = 5,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Advice:
    """Find the fewest bytes, and the method, that keep ``target`` of the float ranking's quality.

    ``vectors`` are ``(n, dim)`` rows, which may be mapped from a file.  Quality is the number of
    relevant items among the first ``k`` results, in expectation over ties, of held-out queries
    against held-out rows; the share is that of the codes divided by that of the vectors.  With
    rescoring of factor f, the f × k candidates that codes find are sorted by full vectors, kept as
    ``rescore_from`` says, 'float32' or 'int8'; the answer uses f up to ``rescore``, and the table
    has 1, 2, 4, 8 and 16.

    Relevant are the ``k`` nearest by ``metric``, 'euclidean' or 'cosine'; or with ``labels``,
    classes ``(n,)`` or multi-hot tags ``(n, n_tags)``, items that share one; or with your own
    ``queries`` ``(m, dim)``, what ``relevance`` says, gains ``(m, n)``, dense or sparse.

    The answer is about a database of ``items`` items, as many as there are rows by default.  Shares
    are measured in databases of several sizes, and extrapolated
    (:mod:`~bittern.experiments.advice.extrapolation`).

    Half of the queries choose; all figures are from the other half.  No model sees a query or an
    item that is searched.  The work ends after about ``budget`` seconds: everything is measured
    once, then in a larger database, then in up to ``n_splits`` splits of the rows.

    ``methods`` and sizes in ``n_bytes`` (or, of hash functions, ``n_bits``) are lists, or strings
    separated by commas.  ``candidates`` adds a factor of rescoring that finds so many.
    ``progress`` is called with (done, total, what is being done).  After Ctrl-C, the advice is the
    one of what was measured until then.
    """
    began = perf_counter()
    check_count(random_state, "advise: random_state", least=0)
    _check_numbers(target, budget, labels is not None)
    check_choice(metric, "advise: metric", METRICS)
    check_choice(rescore_from, "advise: rescore_from", STORES)
    k = check_count(k, "advise: k")
    _check_truth(labels, queries, relevance)
    names = _methods(methods, labels is not None)
    lengths = _lengths(n_bytes, n_bits)
    factors = _factors(k, rescore, candidates)
    n_splits = check_count(n_splits, "advise: n_splits")
    if items is not None:
        check_count(items, "advise: items", least=k + 1)
    sample = draw_sample(
        vectors, labels, random_state, metric=metric, queries=queries, gains=relevance
    )
    _check_k(sample, k)
    settings = AdviceSettings(
        contenders=tuple(_wanted(names, lengths, sample)),
        factors=factors,
        target=float(target),
        k=k,
        items=items or len(sample.given),
        most=max(factor for factor in factors if factor <= rescore),
        store=rescore_from,
        n_splits=n_splits,
        budget=float(budget),
    )
    try:
        warm_up(sample, k)
        found = try_all(sample, settings, began, progress or _show_nothing)
        found.skipped += _lacking(methods, labels is not None)
        return judge(found, sample, settings, began)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("advise: stopped; nothing was written.") from None


def _show_nothing(done: int, total: int, note: str) -> None:
    """Ignore the progress."""


def _check_numbers(target: Any, budget: Any, has_labels: bool) -> None:
    most = 2 if has_labels else 1  # codes that learn from labels may beat the vectors
    if not is_number(target) or not 0 < target <= most:
        raise InputError(
            f"advise: target must be a share above 0 and at most {most}, such as 0.95 for 95 %, "
            f"got {target!r}."
        )
    if not is_number(budget) or not budget > 0:
        raise InputError(f"advise: budget must be a number of seconds above 0, got {budget!r}.")


def _check_truth(labels: Any, queries: Any, relevance: Any) -> None:
    if relevance is not None and queries is None:
        raise InputError("advise: relevance needs the queries that it is about.")
    if labels is not None and queries is not None:
        raise InputError(
            "advise: labels and queries must not both be given; labels are of the vectors alone."
        )


def _check_k(sample: Sample, k: int) -> None:
    if sample.truth == "neighbours" and k >= sample.n_database:
        raise InputError(
            f"advise: k must be below the {sample.n_database} held-out rows that are searched, "
            f"got {k}."
        )


def _factors(k: int, rescore: Any, candidates: Any) -> tuple[int, ...]:
    """The factors of rescoring that are measured, ascending."""
    check_count(rescore, "advise: rescore", most=1000)
    more = {int(rescore)}
    if candidates is not None:
        more.add(-(-check_count(candidates, "advise: candidates", least=k) // k))
    return tuple(sorted({*FACTORS, *more}))


def _methods(methods: str | Iterable[str] | None, has_labels: bool) -> tuple[str, ...]:
    """The given names, checked; by default those that suit the truth."""
    if methods is None:
        return tuple(name for name in suited(has_labels) if not refusal(name))
    names = named(methods)
    require(modules_of(names))
    for name in names:
        if Contender(name).learns_from_labels and not has_labels:
            raise InputError(f"advise: {name} learns from labels, but none were given.")
    return names


def _lacking(methods: str | Iterable[str] | None, has_labels: bool) -> list[Skipped]:
    """The default methods that were left out for lack of a library."""
    if methods is not None:
        return []
    reasons = {name: refusal(name) for name in suited(has_labels)}
    return [Skipped(name, None, reason) for name, reason in reasons.items() if reason]


def _wanted(
    names: tuple[str, ...], lengths: tuple[int, ...] | None, sample: Sample
) -> list[Contender]:
    found = contenders(names, lengths, sample.dim)
    if not found:
        raise InputError(
            f"advise: no size suits {', '.join(names)} for {sample.dim} dimensions; give others."
        )
    return found


def _lengths(n_bytes: Any, n_bits: Any) -> tuple[int, ...] | None:
    """Sizes in bits, if the user gave any."""
    if n_bytes is not None and n_bits is not None:
        raise InputError("advise: give n_bytes or n_bits, not both.")
    if n_bits is not None:
        return _listed(n_bits, "n_bits", "lengths", MAX_BITS)
    if n_bytes is not None:
        return tuple(8 * size for size in _listed(n_bytes, "n_bytes", "sizes", MOST_BYTES))
    return None


def _listed(given: Any, name: str, what: str, most: int) -> tuple[int, ...]:
    numbers: Iterable[Any] = given
    if isinstance(given, str):
        texts = [text.strip() for text in given.split(",")]
        wholes = map(whole_number, texts)
        numbers = [t if n is None else n for t, n in zip(texts, wholes, strict=True)]
    try:
        listed = list(numbers)
    except TypeError:
        raise InputError(f"advise: {name} must be a list of {what}, got {given!r}.") from None
    if not listed:
        raise InputError(f"advise: needs at least one {what.removesuffix('s')}.")
    return tuple(sorted({check_count(n, f"advise: {name}", 1, most) for n in listed}))
