"""Small rankings with ties, as profiles and as Hypothesis draws them, and TREC files of them."""

import numpy as np
from hypothesis import strategies as st

import bittern as bt


def profile_of(*cases):
    """The profile of a search: one query for each pair of ties and missing gains.

    A tie is a list of gains; its place in the list is its distance.
    """
    hits = [[gain for tie in ties for gain in tie] for ties, _ in cases]
    width = max(1, *map(len, hits))
    n_database = width + max(len(missing) for _, missing in cases)
    gains = np.zeros((len(cases), n_database), int)
    ids = np.full((len(cases), width), -1)
    distances = np.zeros((len(cases), width), int)
    for q, (ties, missing) in enumerate(cases):
        n = len(hits[q])
        gains[q, :n] = hits[q]
        gains[q, width : width + len(missing)] = missing
        ids[q, :n] = np.arange(n)
        distances[q, :n] = np.repeat(np.arange(len(ties)), [len(tie) for tie in ties])
    return bt.TieProfile.from_hits(ids, distances, bt.Relevance.from_matrix(gains))


def one_value(name, ties, missing=()):
    """The metric of one query."""
    (value,) = bt.evaluate(profile_of((ties, missing)), [name])[name].per_query
    return value


def large_profile(ties, missing=0):
    """One query with ties given as (items, relevant items), of any size."""
    counts = np.array([[(n - r, r) for n, r in ties]], np.uint64)
    unretrieved = np.array([[0, missing]])
    return bt.TieProfile(counts=counts, gains=np.array([0, 1]), unretrieved=unretrieved)


def rankings_with_ties(max_gain=1, max_size=6, missing=True):
    """Pairs of ties and missing gains, with something relevant; some ties are empty."""
    item = st.tuples(st.integers(0, 3), st.integers(0, max_gain))
    items = st.lists(item, max_size=max_size)
    absent = st.lists(st.integers(1, max_gain), max_size=2) if missing else st.just([])
    cases = st.tuples(items.map(_grouped), absent)
    return cases.filter(lambda case: any(map(any, case[0])) or case[1])


def _grouped(items):
    return [[gain for distance, gain in items if distance == d] for d in range(4)]


def write_trec(folder, run, qrels):
    """Files of ``{query: {document: score}}`` and ``{query: {document: gain}}``."""
    lines = [f"{q} Q0 {d} 0 {s!r} tag" for q, row in run.items() for d, s in row.items()]
    (folder / "run").write_text("\n".join(lines) + "\n")
    lines = [f"{q} 0 {d} {g}" for q, row in qrels.items() for d, g in row.items()]
    (folder / "qrels").write_text("\n".join(lines) + "\n")
    return folder / "run", folder / "qrels"


def random_trec(random_state, ties):
    """Ten queries over forty documents; a run retrieves thirty, qrels judge others as well."""
    rng = np.random.default_rng(random_state)
    run, qrels = {}, {}
    for q in range(10):
        retrieved, judged = (rng.permutation(40)[:n] for n in (30, 20))
        scores = rng.integers(0, 6, 30) / 2 if ties else rng.permutation(30) / 4
        run[f"q{q}"] = {f"d{d}": float(s) for d, s in zip(retrieved, scores, strict=True)}
        gains = np.append(rng.integers(0, 4, 19), 2)  # something relevant
        qrels[f"q{q}"] = {f"d{d}": int(g) for d, g in zip(judged, gains, strict=True)}
    return run, qrels
