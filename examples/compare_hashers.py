"""How few bits can I get away with?  Several hashers and code lengths on one dataset.

    python examples/compare_hashers.py [NAME …]

Names are keys of ``bt.hashing.HASHERS``; the default is a few quick ones.
"""

import sys

import bittern as bt

BITS = (8, 16, 32, 64)


def main(names: list[str]) -> None:
    """Print average precision by method and code length, beside the exact ranking's."""
    dataset = bt.load("digits")
    split = bt.make_split("improved", dataset, random_state=0, run=0)
    train, queries, database = (
        dataset.take(rows) for rows in (split.train, split.queries, split.database)
    )
    X, Q, D = (part.vectors[:] for part in (train, queries, database))
    truth = bt.Relevance.from_classes(queries.labels, database.labels)

    print("method".ljust(12), *(f"{n:>4} bits" for n in BITS))
    for name in names:
        scores = []
        for n_bits in BITS:
            hasher = bt.hashing.HASHERS[name](n_bits=n_bits, random_state=0).fit(X, train.labels)
            scores.append(bt.evaluate(hasher.encode(Q), hasher.encode(D), truth, ["ap"])["ap"].mean)
        print(name.ljust(12), *(f"{score:9.3f}" for score in scores))

    distances = ((Q[:, None] - D[None]) ** 2).sum(axis=-1)
    exact = bt.evaluate(bt.TieProfile.from_distances(distances, truth), ["ap"])["ap"].mean
    print(f"the vectors themselves, {X.shape[1] * 64} bits each: {exact:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["lsh", "itq", "sdh"])
