"""Reranking: sort hits again by the real distances that codes only approximate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float64Array, check_array, check_same_length, check_type, check_vectors
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index.hits import NONE, Hits
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.quantise.correction import Corrections

LEAST = 1e-150  # length whose square is well above the least normal double
BLOCK = 1 << 22  # coordinates compared at a time


def rerank(
    hits: Hits,
    queries: ArrayLike,
    vectors: ArrayLike,
    *,
    distance: str = "l2",
    ids: ArrayLike | None = None,
) -> Hits:
    """The same hits, sorted by the distance of stored vectors; equal ones keep their order.

    ``queries`` are ``(n_queries, dim)`` and ``vectors`` ``(n, dim)``.  Row i of the vectors belongs
    to ``ids[i]``, by default to id i.  'Distances are 'l2', 'l1', 'cosine'
    (1 - cos) and 'inner-product' (the negative one).
    """
    q, v = check_vectors(queries, "rerank: queries"), check_vectors(vectors, "rerank: vectors")
    check_same_length(q.shape[1], v.shape[1], "rerank: columns of queries and of vectors")
    measure = DISTANCES[distance]
    rows = _rows_of(hits, ids, len(v))
    return _reordered(hits, len(q), lambda query, at: measure(q[query], v[rows[at]]), q.shape[1])


def rerank_asymmetric(
    hits: Hits,
    logits: ArrayLike,
    codes: Codes,
    *,
    ids: ArrayLike | None = None,
    corrections: Corrections | None = None,
) -> Hits:
    r"""The same hits, sorted by how far the real-valued query is from the binary code.

    ``logits`` are ``(n_queries, n_bits)``, the numbers :math:`z` whose signs are the query's bits,
    from the hasher: ``rerank_asymmetric(hits, hasher.logits(queries), codes)``.
    With :math:`b_j = \pm 1` the bits of the item,

    .. math:: d(z, b) = \sum_j |z_j| \, [\operatorname{sign}(z_j) \neq b_j],

    so a bit that was decided narrowly counts little.  It is half of :math:`\lVert z \rVert_1 -
    z^\top b`, and with all :math:`|z_j| = 1` the Hamming distance.

    With ``corrections``, from :meth:`bittern.quantise.Asymmetric.corrections`, each item also has a
    byte for the length n of its vector from the centre and one for the cosine f to its bits.  Then

    .. math:: d(z, b) = |z|^2 + n^2 f^2 + \beta n^2 (1 - f^2) - 2 s\, z^\top b,

    an estimate of the squared Euclidean distance of the projections, finds much more; β and the
    scale s are fitted (:mod:`bittern.quantise.correction`).

    Code i belongs to ``ids[i]``, by default to id i.

    Reference: [Gordo-Perronnin-Gong-Lazebnik-2014].
    """
    check_type(codes, Codes, "rerank_asymmetric: codes")
    z = check_vectors(logits, "rerank_asymmetric: logits").astype(np.float64)
    check_same_length(z.shape[1], codes.n_bits, "rerank_asymmetric: columns of logits and bits")
    rows, words, n_bits = _rows_of(hits, ids, len(codes)), codes.words, codes.n_bits
    if corrections is not None:
        check_same_length(len(corrections), len(codes), "rerank_asymmetric: corrections and codes")

    def measure(query: NDArray[np.int64], at: NDArray[np.int64]) -> Float64Array:
        bits = Codes(words[rows[at]], n_bits).to_bits()
        real = z[query]
        if corrections is not None:
            scales, lengths = corrections.of(rows[at], n_bits)
            products = np.where(bits, real, -real).sum(axis=1)
            return np.asarray(np.square(real).sum(axis=1) + lengths - 2 * scales * products)
        return np.where(bits != (real > 0), np.abs(real), 0.0).sum(axis=1)

    return _reordered(hits, len(z), measure, n_bits)


def _l2(a: NDArray[Any], b: NDArray[Any]) -> Float64Array:
    return _lengths(a.astype(np.float64) - b)


def _l1(a: NDArray[Any], b: NDArray[Any]) -> Float64Array:
    return np.abs(a.astype(np.float64) - b).sum(axis=1)


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> Float64Array:
    """One minus the cosine; a vector of zeros has cosine 0 with everything."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    lengths = _lengths(a) * _lengths(b)
    products = (a * b).sum(axis=1)
    return 1 - np.divide(products, lengths, out=np.zeros(len(a)), where=lengths > 0)


def _lengths(rows: Float64Array) -> Float64Array:
    """The Euclidean length of each row; an error if its square is beyond doubles."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.square(rows).sum(axis=1))
    if not np.isfinite(lengths).all() or rows[lengths < LEAST].any():
        raise InputError(
            "rerank: squares of queries and vectors overflow doubles, or vanish; scale both alike."
        )
    return lengths


def _inner_product(a: NDArray[Any], b: NDArray[Any]) -> Float64Array:
    """The negative product, so that the largest product is nearest."""
    return -(a.astype(np.float64) * b).sum(axis=1)


DISTANCES: Registry[Callable[[NDArray[Any], NDArray[Any]], Float64Array]] = Registry(
    "distance", {"l2": _l2, "l1": _l1, "cosine": _cosine, "inner-product": _inner_product}
)


def _rows_of(hits: Hits, ids: ArrayLike | None, n: int) -> NDArray[np.int64]:
    """The row of the id at each place of the hits, flat; -1 for an empty place."""
    check_type(hits, Hits, "rerank: hits")
    wanted = hits.ids.ravel()
    if ids is None:
        missing = (wanted >= n) | (wanted < NONE)
        rows = wanted
    else:
        known = check_array(ids, "rerank: ids")
        if known.ndim != 1 or known.dtype.kind not in "iu":
            raise InputError(f"rerank: ids must be 1-D whole numbers, got {known.dtype}.")
        check_same_length(len(known), n, "rerank: the numbers of ids and of rows")
        order = np.argsort(known, kind="stable")
        places = np.minimum(np.searchsorted(known, wanted, sorter=order), n - 1)
        rows = order[places]
        missing = (known[rows] != wanted) & (wanted != NONE)
        rows = np.where(wanted == NONE, NONE, rows)
    if missing.any():
        raise InputError(f"rerank: nothing is stored for the id {wanted[missing][0]}.")
    return rows


def _reordered(
    hits: Hits,
    n_queries: int,
    measure: Callable[[NDArray[np.int64], NDArray[np.int64]], Float64Array],
    width: int,
) -> Hits:
    """Hits sorted by new distances; ``measure`` gives those of some queries and places."""
    check_same_length(n_queries, len(hits), "rerank: the numbers of queries and of rows of hits")
    sizes = np.full(len(hits), hits.ids.shape[1]) if hits.offsets is None else hits.sizes
    query = np.repeat(np.arange(len(hits)), sizes)
    distances = np.full(hits.ids.size, np.inf)
    found = np.flatnonzero(hits.ids.ravel() != NONE)
    step = max(1, BLOCK // width)
    for first in range(0, len(found), step):
        at = found[first : first + step]
        distances[at] = measure(query[at], at)
    order = np.lexsort((distances, query))  # stable: equal ones keep their order
    shape = hits.ids.shape
    return Hits(
        hits.ids.ravel()[order].reshape(shape), distances[order].reshape(shape), hits.offsets
    )
