"""The search view: bands of tied items, the histogram of distances, and other rankings beside."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import BitternError, InputError
from bittern.index.hits import Hits
from bittern.index.rerank import rerank, rerank_asymmetric
from bittern.web.asked import Search
from bittern.web.explorer.asking import (
    Asked,
    Question,
    Uploads,
    condition_of,
    question_of,
    vector_of,
)
from bittern.web.explorer.contents import Contents, Ids
from bittern.web.images import Limits
from bittern.web.searching import most_similar

PER_BAND = 12  # tiles of a band before it is unfolded
AT_ONCE = 120  # tiles that unfolding adds
MOST_TILES = 480  # of all bands together
ENOUGH = 24  # items that the first radius should bring
MOST_RERANKED = 1000
SHOWN_RERANKED = 60
MOST_SIMILAR = 400
ROUNDED = 9  # significant digits in which likenesses must agree to be a tie
VECTORS, REAL = "vectors", "real"


def search(
    contents: Contents,
    query: Asked,
    uploads: Uploads,
    radius: int | None = None,
    rank: str | None = None,
) -> dict[str, Any]:
    """Everything within a radius, a band for each distance, and the counts of all distances.

    Within a band no order is claimed: its items are listed as they were added.  ``rank`` ranks the
    same items a second time: by their ``"vectors"``, or by the ``"real"`` numbers behind the
    query's bits.
    """
    if query.like:
        return _by_examples(contents, query)
    question = question_of(contents, query, uploads)
    ids, distances = everything(contents, question, condition_of(contents, query))
    counts = np.bincount(distances, minlength=contents.source.n_bits + 1)
    chosen = first_radius(counts) if radius is None else min(radius, len(counts) - 1)
    return {
        "query": question.about,
        "kind": "distance",
        "histogram": counts.tolist(),
        "radius": chosen,
        "n_items": len(ids),
        "n_within": int(counts[: chosen + 1].sum()),
        "bands": bands(contents, ids, distances, chosen),
        "ranked": None if not rank else _ranked(contents, question, ids, distances, chosen, rank),
    }


def band(
    contents: Contents, query: Asked, uploads: Uploads, distance: int, skip: int
) -> dict[str, Any]:
    """More items of one band, after the first ``skip`` ones."""
    question = question_of(contents, query, uploads)
    ids, distances = everything(contents, question, condition_of(contents, query))
    first, last = np.searchsorted(distances, [distance, distance + 1])
    chosen = ids[first:last][skip : skip + AT_ONCE]
    return {"distance": distance, "count": int(last - first), "items": contents.tiles(chosen)}


def everything(
    contents: Contents, question: Question, where: str | None
) -> tuple[Ids, NDArray[np.int32]]:
    """All items that meet the condition, nearest first, without the query itself."""
    key = ("within", question.about["code"], question.item, where)

    def compute() -> tuple[Ids, NDArray[Any]]:
        found = contents.source.within(question.code, contents.source.n_bits, where)[0]
        others = found.ids != (-1 if question.item is None else question.item)
        return found.ids[others], found.values[others]

    return contents.once(key, compute)


def first_radius(counts: NDArray[np.int64], enough: int = ENOUGH) -> int:
    """The smallest radius with enough items, or all."""
    reached = np.cumsum(counts)
    return int(np.searchsorted(reached, min(enough, int(reached[-1]))))


def bands(
    contents: Contents,
    ids: Ids,
    distances: NDArray[Any],
    radius: int,
    marks: NDArray[np.bool_] | None = None,
) -> list[dict[str, Any]]:
    """A band for each distance up to the radius that has items, with its first items.

    ``marks`` says of each item whether it stands out.
    """
    edges = np.searchsorted(distances, np.arange(radius + 2))
    used = np.flatnonzero(np.diff(edges))
    first, sizes = edges[used], np.diff(edges)[used]
    begun = np.cumsum(np.minimum(sizes, PER_BAND)) - np.minimum(sizes, PER_BAND)
    n_shown = np.minimum(sizes, np.clip(MOST_TILES - begun, 0, PER_BAND))
    chosen = np.concatenate(
        [np.arange(f, f + n) for f, n in zip(first, n_shown, strict=True)] or [first]
    )
    more = {} if marks is None else {"marked": marks[chosen].tolist()}
    tiles = contents.tiles(ids[chosen], **more)
    ends = np.cumsum(n_shown)
    return [
        {"distance": int(d), "count": int(size), "items": tiles[end - n : end]}
        for d, size, n, end in zip(used, sizes, n_shown, ends, strict=True)
    ]


def rankings(contents: Contents) -> list[str]:
    """The second rankings that are possible."""
    hasher: Any = contents.source.recipe.hasher
    stored = contents.source.vectors_of(contents.ids[:1])
    found = [] if stored is None else [VECTORS]
    has_logits = hasattr(hasher, "logits") and not contents.source.is_crossmodal
    return [*found, REAL] if has_logits else found


def _ranked(
    contents: Contents,
    question: Question,
    ids: Ids,
    distances: NDArray[Any],
    radius: int,
    rank: str,
) -> dict[str, Any]:
    """The items within the radius, the nearest thousand of them, ranked a second time."""
    n = min(int(np.searchsorted(distances, radius + 1)), MOST_RERANKED)
    try:
        order, values = _second_order(contents, question, ids[:n], distances[:n], rank)
    except InputError as error:
        return {"kind": rank, "error": str(error), "items": []}
    chosen = order[:SHOWN_RERANKED]
    shown = contents.tiles(
        ids[chosen],
        value=[float(v) for v in values[:SHOWN_RERANKED]],
        distance=distances[chosen].tolist(),
    )
    return {"kind": rank, "n_ranked": n, "items": shown}


def _second_order(
    contents: Contents, question: Question, ids: Ids, distances: NDArray[Any], rank: str
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    if rank not in (VECTORS, REAL):
        raise InputError(f"explore: rank must be {VECTORS} or {REAL}, got {rank!r}.")
    if rank not in rankings(contents):
        raise InputError("This collection cannot be ranked like that; --vectors may help.")
    vector = vector_of(contents, question)
    if vector is None:
        raise InputError("This query has no vector: search by an item or by an image.")
    places = np.arange(len(ids), dtype=np.int64)
    hits = Hits(places[None], distances[None].astype(np.int32))
    if rank == VECTORS:
        stored = contents.source.vectors_of(ids)
        if stored is None:
            raise InputError("No vectors are stored; start 'bittern explore' with --vectors.")
        again = rerank(hits, vector, stored[0])
    else:
        hasher: Any = contents.source.recipe.hasher
        try:
            logits = hasher.logits(vector)
        except (BitternError, AttributeError) as error:
            raise InputError(f"The bits of this hasher are not signs: {error}") from None
        again = rerank_asymmetric(hits, logits, contents.codes[contents.rows_of(ids)])
    order, values = again[0]
    return order, values


def _by_examples(contents: Contents, query: Asked) -> dict[str, Any]:
    """Items by their likeness to the examples; equally like ones are a band."""
    wanted = Search.model_validate(
        {
            "like": list(query.like),
            "unlike": list(query.unlike) or None,
            "k": min(MOST_SIMILAR, max(1, len(contents.ids))),
        }
    )
    found = most_similar(contents.source, wanted, condition_of(contents, query), Limits())
    examples = np.array([*query.like, *query.unlike], np.int64)
    others = ~np.isin(found.ids, examples)
    ids, values = found.ids[others], found.values[others]
    rounded = np.array([float(f"{value:.{ROUNDED}g}") for value in values])
    edges = [0, *(np.flatnonzero(np.diff(rounded)) + 1).tolist(), len(rounded)]
    shown = contents.tiles(ids)
    listed = [
        {"distance": rounded[first], "count": last - first, "items": shown[first:last]}
        for first, last in pairwise(edges)
        if first < last
    ]
    about = {
        "kind": "examples",
        "like": contents.tiles(query.like),
        "unlike": contents.tiles(query.unlike),
    }
    return {"query": about, "kind": "likeness", "n_items": len(ids), "bands": listed}
