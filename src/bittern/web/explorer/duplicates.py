"""The duplicates view: groups within a radius, and what was decided about their items."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bittern.errors import InputError
from bittern.index.near_codes import Link, NearCodes
from bittern.index.pairs import DistinctCodes, Rows
from bittern.store.decisions import Decisions
from bittern.store.queries import image_file
from bittern.web.explorer.contents import Contents

SAMPLE = 64  # items that foretell how many pairs a radius has
MOST_PAIRS = 2_000_000
MOST_REACH = 64
PER_PAGE = 20  # groups
MOST_TILES = 60  # items of a group
FACTS = ("width", "height", "n_bytes", "taken")


def groups(
    contents: Contents, radius: int | None, link: Link, skip: int = 0, n: int = PER_PAGE
) -> dict[str, Any]:
    """Groups of near-duplicates, the item to keep first in each, and the pairs at each distance."""
    near = nearby(contents)
    chosen = min(usual_radius(contents), near.radius) if radius is None else radius
    if not 0 <= chosen <= near.radius:
        raise InputError(f"duplicates: the radius must be 0 to {near.radius}, got {chosen}.")
    found = contents.once(("groups", chosen, link), lambda: _groups(contents, near, chosen, link))
    decided = decisions_of(contents).read()
    return {
        "radius": chosen,
        "reach": near.radius,
        "usual": usual_radius(contents),
        "pairs": contents.once("pairs", lambda: _pairs(contents, near)),
        "n_items": len(contents.comparable),
        "n_groups": len(found),
        "n_superfluous": sum(len(rows) - 1 for rows in found),
        "n_decided": len(decided),
        "groups": [
            _group(contents, rows, decided, number)
            for number, rows in enumerate(found[skip : skip + n], start=skip + 1)
        ],
    }


def nearby(contents: Contents) -> NearCodes:
    """All pairs within the largest radius that the slider offers, found once."""
    codes = contents.codes[contents.comparable]
    return contents.once("nearby", lambda: NearCodes.of(codes, reach_of(contents)))


def usual_radius(contents: Contents) -> int:
    """The radius to begin with: that of the perceptual hash, or a sixteenth of the bits."""
    from bittern.features import PerceptualHash  # which takes long

    feature = contents.source.recipe.features
    if isinstance(feature, PerceptualHash):
        return feature.radius
    return contents.source.n_bits // 16


def reach_of(contents: Contents) -> int:
    """The largest radius of the slider: one that does not bring too many pairs.

    How many there are is foretold from a sample of items.
    """
    n, wanted = len(contents.comparable), min(MOST_REACH, 2 * usual_radius(contents) + 2)
    if n == 0:
        return 0
    sample = np.random.default_rng(0).permutation(contents.comparable)[:SAMPLE]
    found = contents.source.within(contents.codes[np.sort(sample)], wanted)
    apart = np.concatenate([one.values for one in found])
    pairs = np.cumsum(np.bincount(apart, minlength=wanted + 1)) / len(sample) * n / 2
    allowed = np.flatnonzero(pairs <= max(MOST_PAIRS, n))
    return min(int(allowed[-1]) if len(allowed) else 0, contents.source.n_bits)


def decisions_of(contents: Contents) -> Decisions:
    """The decisions beside the collection."""
    return Decisions(contents.collection)


def _groups(contents: Contents, near: NearCodes, radius: int, link: Link) -> list[Rows]:
    """Positions of the items of each group, the largest groups first."""
    codes = contents.codes[contents.comparable]
    found = near.groups(codes, link, radius=radius) if len(codes) else []
    order = sorted(range(len(found)), key=lambda i: (-len(found[i]), i))
    return [contents.comparable[found[i]] for i in order]


def _pairs(contents: Contents, near: NearCodes) -> list[int]:
    """Pairs of items at each distance up to the largest radius."""
    distinct = DistinctCodes.of(contents.codes[contents.comparable].words)
    sizes = np.zeros(max(len(near), 1), np.int64)
    numbers = near.numbers(contents.codes[contents.comparable])
    np.add.at(sizes, numbers, 1)
    first, second, apart = near.pairs.T
    counts = np.bincount(apart, sizes[first] * sizes[second], minlength=near.radius + 1)
    counts[0] += int((distinct.sizes * (distinct.sizes - 1) // 2).sum())
    return counts.astype(np.int64).tolist()


def _group(contents: Contents, rows: Rows, decided: dict[int, Any], number: int) -> dict[str, Any]:
    """A group with the facts that say which item to keep."""
    from bittern.store.coded_images import CodedImages
    from bittern.store.duplicates import rank_group

    shown = rows[:MOST_TILES]
    ids = contents.ids[shown]
    known = contents.collection.get(ids).metadata
    items = CodedImages(
        contents.source.place,
        tuple(map(str, ids.tolist())),
        tuple(_own_file(contents, about) for about in known),
        contents.codes[shown],
        contents.source.recipe,
    )
    ranked = rank_group(items, np.arange(len(shown)))
    order = [int(one.name) for one in ranked]
    tiles = contents.tiles(
        order,
        distance=[one.distance for one in ranked],
        facts=[{name: getattr(one, name) for name in FACTS} for one in ranked],
        decision=[decided.get(id_) for id_ in order],
    )
    return {"number": number, "count": len(rows), "items": tiles}


def _own_file(contents: Contents, about: dict[str, Any]) -> Path | None:
    """The image of an item, if it is in the collection's own folders."""
    file = image_file(about, contents.collection.folder)
    if file is None:
        return None
    real = Path(os.path.realpath(file))
    return real if any(real.is_relative_to(root) for root in contents.source.roots) else None
