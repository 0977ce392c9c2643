"""Shorten the embeddings of sentence-transformers to codes, and search by meaning.

    python examples/sentence_transformers_codes.py [MODEL [SENTENCES.txt]]

Needs sentence-transformers (``pip install sentence-transformers``), which fetches the model when it
is first used, and the extra ``features`` to write the ONNX graph.  The file has one sentence on
each line; without it, made-up sentences about a few subjects are used.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np

import bittern as bt

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
N_BITS = 128
WHO = ("The cook", "My neighbour", "A student", "The old captain", "Our teacher", "Her sister")
WHAT = (
    "bakes bread every morning",
    "prepares a soup of beans",
    "repairs the engine of a boat",
    "sails across the bay at night",
    "reads a book about stars",
    "solves equations on paper",
)
WHEN = ("in winter", "when it rains", "before breakfast", "with great care", "for the first time")


def main() -> None:
    """Embed sentences, shorten the vectors, and compare what a search finds."""
    if find_spec("sentence_transformers") is None:
        print(
            "This example needs sentence-transformers, which is not installed: pip install "
            "sentence-transformers, and run it again. Embeddings that you have already need "
            "nothing else: 'bittern advise --vectors EMBEDDINGS.npy' says how few bytes of them "
            "are enough, and 'bittern fit --vectors EMBEDDINGS.npy -o itq.npz' fits codes."
        )
        return
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(sys.argv[1] if len(sys.argv) > 1 else MODEL)
    sentences = read_sentences()
    vectors = np.asarray(model.encode(sentences, normalize_embeddings=True), np.float32)
    report(sentences, vectors)


def read_sentences() -> list[str]:
    """Those of the file, or made-up ones."""
    if len(sys.argv) > 2:
        lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
        return [line.strip() for line in lines if line.strip()]
    return [f"{who} {what} {when}." for who, what, when in product(WHO, WHAT, WHEN)]


def report(sentences: list[str], vectors: np.ndarray) -> None:
    """Fit on half of the rows, search the other half, and write the graph."""
    order = np.random.default_rng(0).permutation(len(vectors))
    train, rest = vectors[order[::2]], order[1::2]
    queries, items = rest[: len(rest) // 5], rest[len(rest) // 5 :]
    truth = bt.Relevance.from_neighbours(vectors[queries], vectors[items], 10)

    ubinary = bt.Codes.from_bits(vectors > 0)  # what precision="ubinary" packs
    itq = bt.hashing.ITQ(n_bits=N_BITS).fit(train)
    codes = itq.encode(vectors)
    for title, found in ((f"ubinary, {ubinary.n_bits} bits", ubinary), (f"itq, {N_BITS}", codes)):
        scores = bt.evaluate(found[queries], found[items], truth, ["recall@10"])
        print(f"{title}: recall of the ten nearest in the first ten {scores['recall@10'].mean:.3f}")

    hits = bt.FlatIndex(codes[items]).search(codes[queries[:1]], k=3)
    print(sentences[queries[0]])
    for place, distance in zip(hits.ids[0], hits.distances[0], strict=True):
        print(f"  {distance:3}  {sentences[items[place]]}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "itq.onnx")
        itq.to_onnx(path)
        print(f"As an ONNX graph: {path.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
