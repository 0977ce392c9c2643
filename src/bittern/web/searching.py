"""From a request to what was found: encode the query, search, rank again if asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_choice
from bittern.codes import Codes
from bittern.index.hits import Hits
from bittern.store.recipe import IMAGE, TEXT
from bittern.web.asked import MOST_K, MOST_QUERIES, Search, codes_from, image_bytes
from bittern.web.found import Found, Ids
from bittern.web.images import Limits, check_uploads
from bittern.web.refusal import Refusal
from bittern.web.source import Source

DEFAULT_K = 10
MOST_HITS = MOST_K * MOST_QUERIES  # of one answer
NO_VECTORS = "This server has no vectors to rerank by; start it with --vectors."


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What to compare with: codes, and the vectors that they were made from where there are any."""

    codes: Codes
    vectors: NDArray[Any] | None = None


def find(source: Source, query: Query, asked: Search, where: str | None) -> list[Found]:
    """The items of each query that meet the condition."""
    if asked.rerank is not None:
        return _reranked(source, query, asked, where)
    if asked.radius is not None:
        return _within(source, query.codes, asked.radius, where)
    return source.search(query.codes, asked.k or DEFAULT_K, where)


def _within(source: Source, codes: Codes, radius: int, where: str | None) -> list[Found]:
    """All items within the radius of each query, unless they are too many for one answer."""
    radius = min(radius, source.n_bits)
    if len(codes) * source.count() <= MOST_HITS:
        return source.within(codes, radius, where)
    found: list[Found] = []
    for q in range(len(codes)):
        found += source.within(codes[q : q + 1], radius, where)
        if sum(map(len, found)) > MOST_HITS:
            raise Refusal(
                422,
                f"An answer may have {MOST_HITS:,} hits, and this one would have more; give a "
                "smaller radius, or k, or fewer queries.",
            )
    return found


def encode(source: Source, asked: Search, uploads: Sequence[bytes], limits: Limits) -> Query:
    """The codes of what is searched for, other than examples."""
    if asked.codes is not None:
        return Query(codes_from(asked.codes, source.n_bits))
    if asked.id is not None:
        ids = np.array([asked.id], np.int64)
        stored = source.vectors_of(ids)
        has_vector = stored is not None and bool(stored[1][0])
        return Query(source.get(ids).codes, stored[0] if stored and has_vector else None)
    if asked.vectors is not None:
        return vectors_query(source, asked.vectors)
    if asked.text is not None:
        return Query(text_code(source, asked.text))
    images = list(uploads) if uploads else [image_bytes(asked.image or "")]
    return image_query(source, images, limits)


def vectors_query(source: Source, given: Sequence[Sequence[float]]) -> Query:
    """Vectors of a request, and their codes."""
    if len({len(row) for row in given}) != 1:
        raise Refusal(422, "All vectors of a request must have the same number of values.")
    with np.errstate(over="ignore"):
        vectors = np.array(given, np.float32)
    if not np.isfinite(vectors).all():
        raise Refusal(422, "Vectors must have finite values.")
    modality = IMAGE if source.recipe.is_crossmodal else None
    return Query(source.recipe.encode(vectors, "vectors", modality=modality), vectors)


def image_query(source: Source, images: Sequence[bytes], limits: Limits) -> Query:
    """Images of a request as the features see them, and their codes."""
    check_uploads(images, limits)
    recipe = source.recipe
    if recipe.features is None or recipe.features.takes != "images":
        raise Refusal(
            422, "This collection was not made from images, and cannot be searched by one."
        )
    vectors = recipe.features.transform(list(images))
    modality = IMAGE if recipe.is_crossmodal else None
    return Query(recipe.encode(vectors, "images", modality=modality), vectors)


def text_code(source: Source, text: str) -> Codes:
    """The code of a text."""
    from bittern.store.queries import check_words

    recipe = source.recipe
    takes_texts = recipe.features is not None and recipe.features.takes == "texts"
    if recipe.texts is None and not takes_texts:
        raise Refusal(
            422, "This collection was made without texts, and cannot be searched by a text."
        )
    if not text.strip():
        raise Refusal(422, "The text must have at least one word.")
    check_words(text, recipe.texts or recipe.features)
    return recipe.encode([text], "text", modality=TEXT)


def only(source: Source, to: str | None, where: str | None) -> str | None:
    """The condition, and that items are of the modality ``to``, by default images."""
    where = checked_condition(where)
    if not source.is_crossmodal:
        if to is not None:
            raise Refusal(422, "This collection does not hold both images and texts; leave 'to'.")
        return where
    kind = check_choice(to or IMAGE, "to", (IMAGE, TEXT))
    return f"modality = '{kind}'" + ("" if where is None else f" AND ({where}\n)")


def checked_condition(where: str | None) -> str | None:
    """The condition, which may be missing but not empty."""
    if where is not None and not where.strip():
        raise Refusal(422, "'where' must be a condition such as label = 'cat'.")
    return where


def most_similar(source: Source, asked: Search, where: str | None, limits: Limits) -> Found:
    """Items near an example, ranked by similarity to all of them (2.2 of the evidence paper)."""
    from bittern.fusion.examples import similarity
    from bittern.store.queries import CANDIDATES

    k = asked.k or DEFAULT_K
    wanted = _examples(source, asked.like or [], limits)
    hits = source.search(wanted, max(CANDIDATES, k), where)
    ids = np.unique(np.concatenate([found.ids for found in hits]))
    bits = source.get(ids).codes.to_bits().astype(np.float32)
    positives = wanted.to_bits().astype(np.float32)
    # Without negatives, use the complements of the examples, the codes farthest from them.
    negatives = 1 - positives
    if asked.unlike:
        negatives = _examples(source, asked.unlike, limits).to_bits().astype(np.float32)
    values = similarity(positives, negatives, bits, epsilon=1.0)
    order = np.lexsort((ids, -values))
    is_cut = len(order) > k and bool(values[order[k]] == values[order[k - 1]])
    return Found(ids[order[:k]], values[order[:k]], "similarity", is_cut=is_cut)


def _examples(source: Source, given: Sequence[int | str], limits: Limits) -> Codes:
    ids = np.array([one for one in given if isinstance(one, int)], np.int64)
    images = [image_bytes(one) for one in given if isinstance(one, str)]
    parts = [source.get(ids).codes] if len(ids) else []
    if images:
        parts.append(image_query(source, images, limits).codes)
    return Codes.concatenate(parts)


def _reranked(source: Source, query: Query, asked: Search, where: str | None) -> list[Found]:
    """The nearest items by code, ranked by the distance of their vectors from the query's.

    Items without a stored vector are left out, and counted.
    """
    if query.vectors is None:
        has_vectors = source.vectors_of(np.empty(0, np.int64)) is not None
        needs = "rerank needs a query with a vector: vectors, an image, or an id."
        raise Refusal(422, needs if has_vectors else NO_VECTORS)
    k = asked.k or DEFAULT_K
    if asked.radius is not None:
        found = _within(source, query.codes, asked.radius, where)
    else:
        found = source.search(query.codes, max(k, asked.rerank or 0), where)
    return [
        _by_vectors(source, one, query.vectors[q : q + 1], None if asked.radius is not None else k)
        for q, one in enumerate(found)
    ]


def _by_vectors(source: Source, found: Found, vector: NDArray[Any], k: int | None) -> Found:
    from bittern.index.rerank import rerank

    stored = source.vectors_of(found.ids)
    if stored is None:
        raise Refusal(422, NO_VECTORS)
    vectors, there = stored
    kept: Ids = found.ids[there]
    if vectors.shape[1] != vector.shape[1]:
        raise Refusal(
            422,
            f"The stored vectors have {vectors.shape[1]} values, the query's {vector.shape[1]}.",
        )
    order = np.arange(len(kept), dtype=np.int64)
    hits = Hits(order[None], np.zeros((1, len(kept)), np.int32))
    rows, distances = rerank(hits, vector, vectors[there])[0] if len(kept) else (order, order)
    n_left_out = int(np.count_nonzero(~there))
    return replace(
        found,
        ids=kept[rows][:k],
        values=distances[:k],
        kind="vector distance",
        ties=(),
        n_left_out=n_left_out,
    )
