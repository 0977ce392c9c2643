"""Textbook metrics of one ranking, and every ranking that ties allow: slow, obvious, independent.

A ranking is a list of gains, the nearest item first; 0 means not relevant.  ``missing`` are the
gains of relevant items that the ranking lacks.  Ties are lists of gains, the nearest tie first.
"""

from itertools import chain, permutations, product
from math import log2


def rankings(ties):
    """Every ranking that the ties allow, each as likely as any other.

    Orders that differ only in which of two items of one gain comes first are the same ranking,
    and each ranking stands for the same number of orders.
    """
    orders = [sorted(set(permutations(tie))) for tie in ties]
    return [list(chain.from_iterable(parts)) for parts in product(*orders)]


def expected(metric, ties, *rest):
    values = [metric(ranking, *rest) for ranking in rankings(ties)]
    return sum(values) / len(values)


def best(metric, ties, *rest):
    return max(metric(ranking, *rest) for ranking in rankings(ties))


def worst(metric, ties, *rest):
    return min(metric(ranking, *rest) for ranking in rankings(ties))


def precisions_at_hits(ranking):
    """Precision at the rank of each relevant item."""
    ranks = [rank for rank, gain in enumerate(ranking, start=1) if gain > 0]
    return [hits / rank for hits, rank in enumerate(ranks, start=1)]


def n_relevant(ranking, missing=()):
    return sum(gain > 0 for gain in ranking) + len(missing)


def average_precision(ranking, missing=(), cutoff=None):
    """Precisions at the relevant items of the first ranks, divided by *all* relevant items."""
    return sum(precisions_at_hits(ranking[:cutoff])) / n_relevant(ranking, missing)


def average_precision_of_retrieved(ranking, missing=(), cutoff=None):
    """Their mean; 0 if there are none."""
    found = precisions_at_hits(ranking[:cutoff])
    return sum(found) / len(found) if found else 0.0


def exponential(gain):
    return 2**gain - 1


def linear(gain):
    return gain


def dcg(ranking, missing=(), cutoff=None, gain=exponential):
    return sum(gain(v) / log2(t + 1) for t, v in enumerate(ranking[:cutoff], start=1))


def ndcg(ranking, missing=(), cutoff=None, gain=exponential):
    ideal = sorted([*ranking, *missing], reverse=True)
    return dcg(ranking, (), cutoff, gain) / dcg(ideal, (), cutoff, gain)


def reciprocal_rank(ranking, missing=(), cutoff=None):
    ranks = [rank for rank, gain in enumerate(ranking[:cutoff], start=1) if gain > 0]
    return 1 / ranks[0] if ranks else 0.0


def precision(ranking, missing, cutoff):
    """A ranking shorter than the cut-off is filled up with what is not relevant."""
    return n_relevant(ranking[:cutoff]) / cutoff


def recall(ranking, missing, cutoff):
    return n_relevant(ranking[:cutoff]) / n_relevant(ranking, missing)


def fbeta(ranking, missing, cutoff, beta=1.0):
    """Weighted harmonic mean of precision and recall."""
    p, r = precision(ranking, missing, cutoff), recall(ranking, missing, cutoff)
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p + r > 0 else 0.0


def hit_rate(ranking, missing, cutoff):
    return float(any(gain > 0 for gain in ranking[:cutoff]))


def r_precision(ranking, missing=()):
    return precision(ranking, missing, n_relevant(ranking, missing))


def rank_metrics(k):
    """Every rank metric by its name, over the whole ranking or its first ``k`` ranks."""
    return {
        "ap": average_precision,
        f"ap@{k}": lambda ranking, missing: average_precision(ranking, missing, k),
        "ap:retrieved": average_precision_of_retrieved,
        f"ap@{k}:retrieved": lambda r, m: average_precision_of_retrieved(r, m, k),
        "dcg": dcg,
        f"dcg@{k}": lambda ranking, missing: dcg(ranking, missing, k),
        "dcg:linear": lambda ranking, missing: dcg(ranking, missing, None, linear),
        "ndcg": ndcg,
        f"ndcg@{k}": lambda ranking, missing: ndcg(ranking, missing, k),
        "ndcg:linear": lambda ranking, missing: ndcg(ranking, missing, None, linear),
        f"ndcg@{k}:linear": lambda ranking, missing: ndcg(ranking, missing, k, linear),
        "rr": reciprocal_rank,
        f"rr@{k}": lambda ranking, missing: reciprocal_rank(ranking, missing, k),
        "r-precision": r_precision,
        f"precision@{k}": lambda ranking, missing: precision(ranking, missing, k),
        f"recall@{k}": lambda ranking, missing: recall(ranking, missing, k),
        f"f1@{k}": lambda ranking, missing: fbeta(ranking, missing, k),
        f"f0.5@{k}": lambda ranking, missing: fbeta(ranking, missing, k, 0.5),
        f"f2@{k}": lambda ranking, missing: fbeta(ranking, missing, k, 2),
        f"hit-rate@{k}": lambda ranking, missing: hit_rate(ranking, missing, k),
    }
