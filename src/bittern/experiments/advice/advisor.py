"""Advise: how few bits keep most of the float ranking's quality."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

from numpy.typing import ArrayLike

from bittern.checks import check_choice, check_count, is_number
from bittern.codes import MAX_BITS
from bittern.errors import InputError, MissingExtraError
from bittern.experiments.advice.data import METRICS, draw_sample
from bittern.experiments.advice.judging import judge
from bittern.experiments.advice.record import Advice, Skipped
from bittern.experiments.advice.trials import AdviceSettings, Progress, try_all, warm_up
from bittern.extras import require
from bittern.hashing import HASHERS

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
# Most promising first, in case there is not enough time for all.
UNSUPERVISED = ("lsh", "itq", "isohash", "dbq", "pcah", "sh")
SUPERVISED = ("lsh", "itq-cca", "sdh", "itq", "isohash", "dbq", "pcah", "sh", "ksh", "talr")


def advise(
    vectors: Any,
    labels: ArrayLike | None = None,
    *,
    target: float = 0.95,
    methods: str | Iterable[str] | None = None,
    n_bits: str | Iterable[int] | None = None,
    metric: str = "euclidean",
    budget: float = 120.0,
    k: int = 10,
    candidates: int = 100,
    n_splits: int = 5,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Advice:
    """Find the fewest bits, and the method, that keep ``target`` of the float ranking's quality.

    ``vectors`` are ``(n, dim)`` rows, which may be mapped from a file; at most 26,000 random ones
    are used.  ``labels`` are classes ``(n,)`` or multi-hot tags ``(n, n_tags)``.  Without labels,
    the ``k`` nearest neighbours by ``metric``, 'euclidean' or 'cosine', are relevant; the advice
    also says how many of them are among the first ``candidates``.

    Quality is average precision over the whole ranking, in expectation over ties, of held-out
    queries against a held-out database.  The share is its mean for the codes divided by its mean
    for the vectors.  Half of the queries choose; all figures are from the other half.

    The work ends after about ``budget`` seconds, or after ``n_splits`` splits of the other rows
    into training rows and database.  The first split, in which all methods are tried, may take half
    of the time; what it had no time for is tried at the end if time is left.  Longer codes are not
    tried if shorter ones surely keep the target.

    ``methods`` (names in ``HASHERS``) and ``n_bits`` are lists, or strings separated by commas.
    ``progress`` is called with (done, total, what is being done).
    """
    began = perf_counter()
    check_count(random_state, "advise: random_state", least=0)
    _check_numbers(target, budget, labels is not None)
    settings = AdviceSettings(
        methods=_methods(methods, labels is not None),
        n_bits=_lengths(n_bits),
        target=float(target),
        metric=check_choice(metric, "advise: metric", METRICS),
        k=check_count(k, "advise: k"),
        cutoff=check_count(candidates, "advise: candidates", least=k),
        n_splits=check_count(n_splits, "advise: n_splits"),
        budget=float(budget),
    )
    sample = draw_sample(vectors, labels, random_state)
    if labels is None and settings.k >= sample.n_database:
        raise InputError(
            f"advise: k must be below the {sample.n_database} held-out rows that are searched, "
            f"got {k}."
        )
    try:
        warm_up(sample, settings)
        found = try_all(sample, settings, perf_counter(), progress or _show_nothing)
        found.skipped += _lacking(settings, methods, labels is not None)
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


def _methods(methods: str | Iterable[str] | None, has_labels: bool) -> tuple[str, ...]:
    """The given names, checked; by default those that suit the truth."""
    if methods is None:
        return tuple(name for name in _suited(has_labels) if not _refusal(name))
    named = _named(methods)
    require(modules_of(named))
    for name in named:
        if HASHERS[name].needs_y and not has_labels:
            raise InputError(f"advise: {name} learns from labels, but none were given.")
    return named


def _suited(has_labels: bool) -> tuple[str, ...]:
    return SUPERVISED if has_labels else UNSUPERVISED


def _refusal(name: str) -> str:
    """Which optional library a method lacks; empty if none."""
    try:
        require({name: HASHERS[name]().needs_modules})
    except MissingExtraError as error:
        return str(error).partition(": ")[2].rstrip(".")
    return ""


def _lacking(
    settings: AdviceSettings, methods: str | Iterable[str] | None, has_labels: bool
) -> list[Skipped]:
    """The default methods that were left out for lack of a library."""
    if methods is not None:
        return []
    reasons = {name: _refusal(name) for name in _suited(has_labels)}
    return [Skipped(name, settings.n_bits, reason) for name, reason in reasons.items() if reason]


def modules_of(methods: str | Iterable[str] | None) -> dict[str, tuple[str, ...]]:
    """The optional modules that each of the named methods needs."""
    named = () if methods is None else _named(methods)
    return {name: HASHERS[name]().needs_modules for name in named}


def _named(methods: str | Iterable[str]) -> tuple[str, ...]:
    listed = methods.split(",") if isinstance(methods, str) else methods
    named = tuple(dict.fromkeys(str(name).strip() for name in listed))
    if not named:
        raise InputError("advise: needs at least one method.")
    return named


def _lengths(n_bits: str | Iterable[int] | None) -> tuple[int, ...]:
    given: Iterable[Any] = LENGTHS if n_bits is None else n_bits
    if isinstance(given, str):
        given = [int(n) if n.strip().isdecimal() else n.strip() for n in given.split(",")]
    try:
        listed = list(given)
    except TypeError:
        raise InputError(f"advise: n_bits must be a list of lengths, got {n_bits!r}.") from None
    if not listed:
        raise InputError("advise: needs at least one length.")
    return tuple(sorted({check_count(n, "advise: n_bits", 1, MAX_BITS) for n in listed}))
