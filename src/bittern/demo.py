"""A first look: how much the order of tied items can move average precision."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from bittern.checks import check_count
from bittern.codes import Codes
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance
from bittern.threads import Progress

__all__ = ["LENGTHS", "DemoRow", "draw", "run_demo", "table_of"]

LENGTHS = (4, 8, 12, 16, 24, 32, 48, 64)
N_TRAIN, N_QUERIES, N_DATABASE = 500, 297, 1000


@dataclass(frozen=True, slots=True)
class DemoRow:
    """Mean average precision of one code length, under three ways to treat ties."""

    n_bits: int
    expected: float
    optimistic: float
    pessimistic: float


def run_demo(random_state: int = 0, progress: Progress | None = None) -> list[DemoRow]:
    """Random-hyperplane codes of scikit-learn's digits, class ground truth, AP per code length.

    The 1,797 images are divided into 500 that give the mean, 297 queries and 1,000 database items;
    no image is in two of them.
    """
    from sklearn.datasets import load_digits

    check_count(random_state, "demo: random_state", least=0)
    digits = load_digits()
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(digits.data))
    train, queries, database = np.split(order, [N_TRAIN, N_TRAIN + N_QUERIES])
    centred = digits.data - digits.data[train].mean(axis=0)
    planes = rng.standard_normal((centred.shape[1], max(LENGTHS)))
    codes = Codes.from_bits(centred @ planes > 0)
    relevance = Relevance.from_classes(digits.target[queries], digits.target[database])

    rows = []
    for done, n_bits in enumerate(LENGTHS, start=1):
        short = codes.truncate(n_bits)
        profile = TieProfile.from_codes(short[queries], short[database], relevance)
        scores = evaluate(profile, ["ap", "ap:optimistic", "ap:pessimistic"])
        rows.append(DemoRow(n_bits, *(score.mean for score in scores.values())))
        if progress is not None:
            progress(done, len(LENGTHS))
    return rows


def table_of(rows: list[DemoRow]) -> str:
    """The rows as text, with what they mean."""
    lines = [
        f"{N_QUERIES} handwritten digits are queries against {N_DATABASE:,} others, by codes of "
        "random hyperplanes.",
        "Mean average precision, and what the order of tied items could make of it:",
        "",
        f"{'bits':>4}  {'tie-aware':>9}  {'pessimistic':>11}  {'optimistic':>10}  {'spread':>6}",
    ]
    lines += [
        f"{r.n_bits:>4}  {r.expected:>9.4f}  {r.pessimistic:>11.4f}  {r.optimistic:>10.4f}  "
        f"{r.optimistic - r.pessimistic:>6.4f}"
        for r in rows
    ]
    return "\n".join(lines)


def draw(rows: list[DemoRow], path: str | os.PathLike[str]) -> None:
    """Draw the table."""
    from bittern.report.figures import draw_tie_spread

    draw_tie_spread(
        path,
        [r.n_bits for r in rows],
        [r.expected for r in rows],
        [r.pessimistic for r in rows],
        [r.optimistic for r in rows],
        title="Digits under random-hyperplane codes",
    )
