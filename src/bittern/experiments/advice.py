"""The question of the engineer: how few bits keep most of the float ranking's quality."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bittern.checks import check_count
from bittern.codes import MAX_BITS
from bittern.errors import InputError
from bittern.experiments.advising.judging import summed_up
from bittern.experiments.advising.record import Advice
from bittern.experiments.advising.rows import gather
from bittern.experiments.advising.trials import Plan, Report, try_all, warm_up
from bittern.experiments.advising.truth import METRICS
from bittern.hashing import HASHERS

__all__ = ["LENGTHS", "SUPERVISED", "UNSUPERVISED", "advise"]

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
# In order of promise, for where there is no time for all.
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
    progress: Report | None = None,
) -> Advice:
    """How few bits, by which method, keep ``target`` of the float ranking's quality.

    ``vectors`` are ``(n, dim)`` rows, which may be mapped from a file; at most 26,000 of them,
    drawn at random, are used.  ``labels`` are classes ``(n,)`` or multi-hot tags ``(n, n_tags)``;
    without them the truth is the ``k`` nearest neighbours by ``metric``, 'euclidean' or 'cosine',
    and it is also told how many of them are among the first ``candidates``.

    Quality is average precision over the whole ranking, in expectation over ties, of held-out
    queries against a held-out database; the share is its mean for the codes by that for the
    vectors.  Half of the queries choose, and the figures are those of the other half.  The work
    ends after about ``budget`` seconds or ``n_splits`` splits of the other rows into training rows
    and database, whichever is first; the first split, in which all methods are tried, may take
    half of the time, and longer codes are not tried where shorter ones surely keep the target.

    ``methods`` are names of ``HASHERS`` and ``n_bits`` lengths, in a list, or in a string with
    commas between.  ``progress`` is called with what is done, what there is to do, and a note.
    """
    began = perf_counter()
    check_count(random_state, "advise: random_state", least=0)
    _check_numbers(target, budget, labels is not None)
    plan = Plan(
        methods=_methods(methods, labels is not None),
        n_bits=_lengths(n_bits),
        target=float(target),
        metric=_metric(metric),
        k=check_count(k, "advise: k"),
        cutoff=check_count(candidates, "advise: candidates", least=k),
        n_splits=check_count(n_splits, "advise: n_splits"),
        budget=float(budget),
    )
    material = gather(vectors, labels, random_state)
    if labels is None and plan.k >= material.n_database:
        raise InputError(
            f"advise: k must be below the {material.n_database} held-out rows that are searched, "
            f"got {k}."
        )
    try:
        warm_up(material, plan)
        found = try_all(material, plan, perf_counter(), progress or _nothing)
        return summed_up(found, material, plan, began)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("advise: stopped; there is no advice, and no file.") from None


def _nothing(done: int, total: int, note: str) -> None:
    """No progress is shown."""


def _check_numbers(target: Any, budget: Any, has_labels: bool) -> None:
    most = 2 if has_labels else 1  # learned from labels, codes may be better than the vectors
    if not _is_number(target) or not 0 < target <= most:
        raise InputError(
            f"advise: target must be a share above 0 and at most {most}, like 0.95 for 95 %, "
            f"got {target!r}."
        )
    if not _is_number(budget) or not budget > 0:
        raise InputError(f"advise: budget must be seconds above 0, got {budget!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _metric(metric: str) -> str:
    if metric not in METRICS:
        raise InputError(f"advise: metric must be 'euclidean' or 'cosine', got {metric!r}.")
    return metric


def _methods(methods: str | Iterable[str] | None, has_labels: bool) -> tuple[str, ...]:
    """Known names; those that suit the truth if none were given."""
    if methods is None:
        names = SUPERVISED if has_labels else UNSUPERVISED
        return tuple(name for name in names if name != "talr" or find_spec("torch"))
    listed = methods.split(",") if isinstance(methods, str) else methods
    named = tuple(dict.fromkeys(str(name).strip() for name in listed))
    if not named:
        raise InputError("advise: needs at least one method.")
    for name in named:
        if HASHERS[name].needs_y and not has_labels:
            raise InputError(f"advise: {name} learns from labels, and there are none.")
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
