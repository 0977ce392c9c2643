"""A first look: four hash functions on handwritten digits, from a protocol to a page."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from bittern.analysis import summarise
from bittern.experiments import Protocol, Records, Watcher, run
from bittern.experiments.shipped import shipped
from bittern.report import to_text, write_page

__all__ = ["FOLDER", "closing", "draw", "introduction", "protocol_of", "run_demo"]

FOLDER = Path("results") / "demo"
PAGE = "report.html"
NEEDS_TORCH = "talr"
DRAWN = "LSH"  # whose ties are many


def protocol_of(runs: int = 10, random_state: int = 0) -> Protocol:
    """The demo's protocol; without PyTorch, without what needs it."""
    protocol = Protocol.load(shipped()["demo"])
    methods = tuple(m for m in protocol.method if m.name != NEEDS_TORCH or _has_torch())
    return replace(protocol, runs=runs, random_state=random_state, method=methods)


def introduction(protocol: Protocol) -> str:
    """What is about to happen."""
    listed = ", ".join(protocol.labels[1:])
    runs = f"{protocol.runs} runs" if protocol.runs > 1 else "one run"
    lines = [
        "1,797 handwritten digits, each 8 × 8 grey levels. How well are digits of the same class",
        f"found by codes of {', '.join(map(str, protocol.n_bits[:-1]))} and {protocol.n_bits[-1]} "
        f"bits from {listed},",
        f"in {runs} of a split where neither queries nor database are seen in training?",
    ]
    if not _has_torch():
        lines.append("(TALR is left out, because it needs PyTorch: pip install 'bittern[deep]'.)")
    return "\n".join(lines)


def run_demo(
    protocol: Protocol,
    folder: Path = FOLDER,
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> Records:
    """Measure what the folder lacks, and write the page."""
    records = run(protocol, folder, jobs=jobs, watcher=watcher)
    if len(records):
        write_page(records, folder / PAGE)
    return records


def closing(records: Records, folder: Path) -> str:
    """The table, where the page is, and what to try next."""
    return "\n".join(
        [
            to_text(records).rstrip(),
            "",
            f"The page, with images: {(folder / PAGE).resolve()}",
            "",
            "Three things to try next:",
            f"  bittern verify {folder}      measure one of its cells again, to the last bit",
            "  bittern reproduce                the papers' tables and figures, ready to run",
            "  bittern advise --vectors X.npy   how few bits will do for vectors of your own",
        ]
    )


def draw(records: Records, path: str | os.PathLike[str]) -> None:
    """Draw what the order of tied items could make of LSH's average precision."""
    from bittern.report.figures import draw_tie_spread

    found = [s for s in summarise(records, "ap") if s.method == DRAWN]
    spreads = [s.spread or (s.mean, s.mean) for s in found]
    draw_tie_spread(
        path,
        [s.n_bits or 0 for s in found],
        [s.mean for s in found],
        [worst for worst, _ in spreads],
        [best for _, best in spreads],
        title="Digits under random-hyperplane codes",
    )


def _has_torch() -> bool:
    return find_spec("torch") is not None
