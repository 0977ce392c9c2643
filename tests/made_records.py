"""Records with made-up values, so that a test need not run an experiment."""

import numpy as np

from bittern.experiments import Protocol, Record, Records, Value
from bittern.experiments.cells import cells_of

CLEAN = {
    "name": "improved",
    "sizes": {"train": 30, "queries": 6, "database": 50},
    "leaks": 0,
    "leak_check": "improved: 0 of 86 items have a twin behind one of 10 walls",
}


def protocol_of(labels, *, runs=3, n_bits=(8, 16), metrics=("ap",), **more):
    """A protocol with a hasher for each label, and the exact ranking for ``float``."""
    return Protocol.of(
        {
            "title": "Made up",
            "dataset": {"name": "digits"},
            "split": {"name": "improved"},
            "n_bits": list(n_bits),
            "runs": runs,
            "metrics": list(metrics),
            "method": [
                {"name": "exact" if label == "float" else "lsh", "label": label} for label in labels
            ],
        }
        | more
    )


def value_of(per_query, *, spread=None):
    """A value with its mean over defined queries; the spread is that far to either side."""
    values = np.asarray(per_query, float)
    defined = values[~np.isnan(values)]
    mean = float(defined.mean()) if len(defined) else np.nan
    ends = None if spread is None else (mean - spread, mean + spread)
    undefined = len(values) - len(defined)
    return Value(mean=mean, undefined=undefined, spread=ends, per_query=tuple(values.tolist()))


def record_of(method, n_bits, run, values, **more):
    """A record of a run: metrics with their values."""
    n_queries = max((len(v.per_query) for v in values.values() if v.per_query), default=0)
    fields = {
        "query_positions": tuple(range(100 * run, 100 * run + n_queries)),
        "n_relevant": (5,) * n_queries,
        "seconds": {"fit": 1.0, "encode": 0.5, "evaluate": 0.25},
        "peak_memory": 1000 + run,
        "split": CLEAN,
    }
    return Record(
        method=method,
        n_bits=n_bits,
        run=run,
        fingerprint=f"{method} {n_bits} {run}",
        parameters={},
        values=values,
        **(fields | more),
    )


def records_of(values, *, spread=None, protocol=None, **more):
    """Records of ``ap``: a dictionary from (label, n_bits) to the queries' values of each run.

    A run whose values are None was not measured.  ``spread`` may be a dictionary by label.
    """
    labels = list(dict.fromkeys(label for label, _ in values))
    lengths = sorted({n for _, n in values if n is not None}) or [8]
    runs = max(len(of_runs) for of_runs in values.values())
    protocol = protocol or protocol_of(labels, runs=runs, n_bits=lengths)
    spreads = spread if isinstance(spread, dict) else dict.fromkeys(labels, spread)
    found = tuple(
        record_of(label, n, run, {"ap": value_of(of_runs[run], spread=spreads[label])}, **more)
        for run in range(runs)
        for (label, n), of_runs in values.items()
        if run < len(of_runs) and of_runs[run] is not None
    )
    done = {(record.method, record.n_bits, record.run) for record in found}
    missing = tuple(c for c in cells_of(protocol) if (c.method.label, c.n_bits, c.run) not in done)
    return Records(protocol, found, missing, {})


def drawn(n_runs, n_queries, centre, random_state):
    """Values of queries about a centre, within [0, 1]."""
    rng = np.random.default_rng(random_state)
    return [np.clip(rng.normal(centre, 0.1, n_queries), 0, 1) for _ in range(n_runs)]


def three_methods(n_runs=6, n_queries=40):
    """A ceiling and two methods at two lengths; b is better than a, c is hardly worse than b."""
    return {
        ("float", None): drawn(n_runs, n_queries, 0.8, 0),
        ("a", 8): drawn(n_runs, n_queries, 0.3, 1),
        ("a", 16): drawn(n_runs, n_queries, 0.5, 2),
        ("b", 8): drawn(n_runs, n_queries, 0.40, 3),
        ("b", 16): drawn(n_runs, n_queries, 0.6, 4),
        ("c", 8): drawn(n_runs, n_queries, 0.39, 5),
        ("c", 16): drawn(n_runs, n_queries, 0.59, 6),
    }
