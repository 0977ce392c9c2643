"""Time and memory of the relaxed objectives, against the formulation with a pulse for each bin.

    python benchmarks/objectives.py [--write docs/results/speed.md]

Forward and backward of relaxed AP on random logits, one thread, each in its own process.  The
dense formulation makes an M × M × b array of pulses (eq. 14 of the ties paper written out); ours
scatters each pair into two bins.  Values and gradients of both are compared first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from results import Section, Target

from bittern.hashing.objectives import ap_loss, ndcg_loss, relaxed_ap, relaxed_distances

SIZES = ((128, 32), (256, 64), (512, 64), (1024, 64))
BOUND = (512, 64)  # the size at which the ratios must be at least 8
LEAST = 8.0


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write the tables into this Markdown file")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child[0], *map(int, options.child[1:]))))
        return
    agree()
    sections = [against_dense(), levels()]
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write:
        Section.write(options.write, "objectives", "python benchmarks/objectives.py", sections)
    sys.exit(0 if all(section.holds for section in sections) else 1)


def batch(m: int, n_bits: int, n_levels: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and classes or symmetric gains."""
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.standard_normal((m, n_bits)).astype(np.float32))
    if n_levels == 2:
        labels = rng.integers(0, 10, m)
        gains = (labels[:, None] == labels).astype(np.int64)
    else:
        gains = rng.integers(0, n_levels, (m, m))
        gains = np.minimum(gains, gains.T)
    return logits.requires_grad_(), torch.from_numpy(gains)


def dense_ap_loss(logits: torch.Tensor, gains: torch.Tensor) -> torch.Tensor:
    """The same value, comparing every pair with every bin."""
    n_bits = logits.shape[1]
    distances = relaxed_distances(logits, 1.0)
    bins = torch.arange(n_bits + 1, dtype=logits.dtype)
    pulses = torch.relu(1 - (distances[:, :, None] - bins).abs())
    others = 1 - torch.eye(len(logits))
    total = (pulses * others[:, :, None]).sum(dim=1)
    relevant = (pulses * (others * (gains > 0))[:, :, None]).sum(dim=1)
    return 1 - relaxed_ap(relevant, total).mean()


def agree() -> None:
    """Fail unless both compute the same value."""
    logits, gains = batch(100, 16)
    found = []
    for loss in (ap_loss, dense_ap_loss):
        value = loss(logits, gains)
        found.append((value, *torch.autograd.grad(value, logits)))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


def against_dense() -> Section:
    """Ours and the dense formulation over sizes."""
    section = Section(
        "Relaxed AP, forward and backward, one thread: scatter against an array of pulses",
        (
            "M",
            "b",
            "ours, ms",
            "dense, ms",
            "times as fast",
            "ours, MB",
            "dense, MB",
            "less memory",
        ),
    )
    for m, n_bits in SIZES:
        ours, dense = (child(which, m, n_bits) for which in ("ours", "dense"))
        ratios = [dense[key] / max(ours[key], 1e-9) for key in ("seconds", "memory")]
        if (m, n_bits) == BOUND:
            ratios = [Target(ratio, at_least=LEAST) for ratio in ratios]
        section.row(
            m, n_bits, ours["seconds"] * 1e3, dense["seconds"] * 1e3, ratios[0],
            ours["memory"], dense["memory"], ratios[1],
        )  # fmt: skip
    section.note("Memory is the growth of the process's peak beyond the logits and gains.")
    return section


def levels() -> Section:
    """NDCG with more and more relevance levels."""
    section = Section(
        "Relaxed NDCG at M = 512, b = 64: cost against the number of relevance levels",
        ("levels", "ms", "times that of two"),
    )
    first = 0.0
    for n_levels in (2, 4, 8, 16):
        seconds = child("ndcg", 512, n_levels)["seconds"]
        first = first or seconds
        section.row(n_levels, seconds * 1e3, seconds / first)
    return section


def child(which: str, m: int, n: int) -> dict[str, float]:
    """Measure in a new process."""
    command = [sys.executable, __file__, "--child", which, str(m), str(n)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def measure(which: str, m: int, n: int) -> dict[str, float]:
    """Fastest of several rounds, and the growth of peak memory."""
    torch.set_num_threads(1)
    losses = {"ours": ap_loss, "dense": dense_ap_loss, "ndcg": ndcg_loss}
    logits, gains = batch(m, 64, n) if which == "ndcg" else batch(m, n)
    small, small_gains = batch(32, 8)
    torch.autograd.grad(losses[which](small, small_gains), small)  # loads the libraries
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak (Linux)
    before = kilobytes("VmRSS")
    seconds = []
    for _ in range(3 if which == "dense" else 20):
        began = time.perf_counter()
        torch.autograd.grad(losses[which](logits, gains), logits)
        seconds.append(time.perf_counter() - began)
    return {"seconds": min(seconds), "memory": (kilobytes("VmHWM") - before) / 1024}


def kilobytes(name: str) -> int:
    """A number from the process's own status."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0])


if __name__ == "__main__":
    main()
