"""An honest mAP for two .npy files of codes.

    python examples/evaluate_codes.py queries.npy database.npy query_labels.npy database_labels.npy

The codes are booleans, 0/1, or bytes as from np.packbits.  Without arguments, the script makes
a small example.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import bittern as bt
from bittern.inputs import read_codes, read_labels


def main(queries: Path, database: Path, query_labels: Path, database_labels: Path) -> None:
    """Read, count, score, and show how much ties matter."""
    relevance = bt.Relevance.from_classes(read_labels(query_labels), read_labels(database_labels))
    profile = bt.TieProfile.from_codes(read_codes(queries), read_codes(database), relevance)
    scores = bt.evaluate(profile, ["ap", "ap@100", "ndcg@100", "precision@r2", "auprc"])
    print(scores)

    ap = scores["ap"]
    worst, best = ap.spread
    print(f"\nmAP is {ap.mean:.4f}. Sorting by distance and keeping whatever order tied items have")
    print(f"would have given anything from {worst:.4f} to {best:.4f}.")


def example(folder: Path) -> list[Path]:
    """Twelve-bit codes of five noisy classes, saved as a user would have them."""
    rng = np.random.default_rng(0)
    centres = rng.random((5, 12)) < 0.5
    labels = rng.integers(0, 5, 2200)
    bits = centres[labels] ^ (rng.random((2200, 12)) < 0.2)
    arrays = {
        "queries": bits[:200],
        "database": bits[200:],
        "query_labels": labels[:200],
        "database_labels": labels[200:],
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


if __name__ == "__main__":
    if len(sys.argv) == 5:
        main(*map(Path, sys.argv[1:]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(*example(Path(made)))
