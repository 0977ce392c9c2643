"""Near-duplicates: groups of images that look alike, which to keep, and leaks between places."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from bittern.checks import check_choice, check_count
from bittern.codes import Codes
from bittern.data.exif import read_facts
from bittern.data.images import read_image
from bittern.errors import BitternError, InputError
from bittern.features import PerceptualHash
from bittern.features.pdq import PDQ
from bittern.index.near_codes import LINKS, Link, NearCodes
from bittern.index.pairs import Rows, pairs_within
from bittern.progress import track
from bittern.scale.duplicates import near_groups
from bittern.scale.shards import Shards
from bittern.store.coded_images import CodedImages, Place, read_coded
from bittern.store.known_pairs import read_known, write_known

Keep = Literal["largest", "sharpest", "oldest", "first"]
KEEPS = get_args(Keep)
SHARPNESS_SIDE = 256  # pixels of the copy whose sharpness is measured


@dataclass(frozen=True, slots=True)
class DuplicateItem:
    """An item of a group; what is not known of it is None.

    ``distance`` is that to the item to keep, ``taken`` the camera's date or else the file's,
    ``sharpness`` as :func:`sharpness_of` measures it, and ``quality`` PDQ's.
    """

    name: str
    file: Path | None
    distance: int
    width: int | None = None
    height: int | None = None
    n_bytes: int | None = None
    taken: str | None = None
    sharpness: float | None = None
    quality: int | None = None


Group = tuple[DuplicateItem, ...]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of near-duplicates, each with the item to keep first."""

    groups: tuple[Group, ...]
    n_items: int
    hash_name: str
    radius: int
    skipped: tuple[str, ...] = ()  # why images were skipped

    @property
    def n_superfluous(self) -> int:
        """Number of items that could go."""
        return sum(len(group) - 1 for group in self.groups)


@dataclass(frozen=True, slots=True)
class Leak:
    """An item of one place that is near one of another."""

    name: str
    other: str
    distance: int
    file: Path | None = None
    other_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Leaks:
    """Near-duplicates across two places, in order of distance."""

    pairs: tuple[Leak, ...]
    n_items: int
    n_others: int
    hash_name: str
    radius: int
    skipped: tuple[str, ...] = ()

    @property
    def n_leaked(self) -> int:
        """Number of items of the second place that are in the first."""
        return len({pair.other for pair in self.pairs})


def duplicates(
    place: Place,
    *,
    radius: int | None = None,
    hasher: str | None = None,
    link: Link = "complete",
    keep: Keep | None = None,
    least_quality: int = 0,
    known: Place | None = None,
    skip_broken: bool = False,
    n_threads: int | None = None,
) -> Duplicates:
    """Groups of near-duplicates among the images of a folder or the items of a collection.

    The images of a folder are hashed by ``hasher``, a perceptual hash (``"phash"`` if not given).
    Two items are near if their codes differ by at most ``radius`` bits; the default is that of the
    perceptual hash.  ``link`` is as in :func:`bittern.index.groups_within`.

    Each group begins with the item to ``keep``: the ``"largest"`` (by pixels, then bytes), the
    ``"sharpest"``, the ``"oldest"``, or the ``"first"`` in the order of names; the default is the
    largest if there are images.  ``least_quality`` leaves out images of a lower PDQ quality.

    ``known`` is a file of what was found before, made if it is not there.  With it, only new and
    changed images are read, and only codes that are not in it are compared.
    """
    if keep is not None and keep not in KEEPS:
        raise InputError(f"duplicates: keep must be one of {', '.join(KEEPS)}, got {keep!r}.")
    check_choice(link, "duplicates: link", LINKS)
    before = None if known is None or not Path(known).exists() else read_known(known)
    images = {} if before is None else before.images
    items = read_coded(place, hasher=hasher, known=images, skip_broken=skip_broken)
    _check_keep(items, keep)
    radius = _radius(items, radius)
    if before is not None:
        before.check(items, radius)
    if before is None:
        near = NearCodes.of(items.codes, radius, n_threads=n_threads)
    else:
        near = before.near.extended(items.codes, n_threads=n_threads)
    if known is not None:
        write_known(known, items, near)
    groups = near.groups(items.codes, link, radius=radius)
    if least_quality:
        items, groups = _of_quality(items, groups, near, link, radius, least_quality)
    listed = tuple(rank_group(items, rows, keep) for rows in track(groups, "groups"))
    return Duplicates(listed, len(items), items.hash_name, radius, items.skipped)


def leaks(
    place: Place,
    against: Place,
    *,
    radius: int | None = None,
    hasher: str | None = None,
    skip_broken: bool = False,
    n_threads: int | None = None,
) -> Leaks:
    """Items of one place that are near-duplicates of items of another, such as train and test.

    Each place is a folder or a collection; a folder is hashed as the items of the other place are.
    """
    if os.path.realpath(place) == os.path.realpath(against):
        raise InputError(
            f"duplicates: --against must be another place than {place}; leave it out to find "
            "near-duplicates inside it."
        )
    is_folder = isinstance(place, str | os.PathLike) and Path(place).is_dir()
    options: dict[str, Any] = {"skip_broken": skip_broken}
    if is_folder and not Path(against).is_dir():
        others = read_coded(against, hasher=hasher)
        items = read_coded(place, like=others, **options)
    else:
        items = read_coded(place, hasher=hasher, **options)
        others = read_coded(against, like=items, **options)
    radius = _radius(items, radius)
    found = pairs_within(items.codes, radius, against=others.codes, n_threads=n_threads)
    order = np.lexsort((found.second, found.first, found.distances))
    pairs = tuple(
        Leak(items.names[i], others.names[j], d, items.files[i], others.files[j])
        for i, j, d in found[order].to_list()
    )
    skipped = (*items.skipped, *others.skipped)
    return Leaks(pairs, len(items), len(others), items.hash_name, radius, skipped)


def shard_duplicates(
    shards: Place | Shards,
    *,
    radius: int,
    link: Link = "complete",
    executor: Executor | None = None,
) -> Duplicates:
    """Groups of near codes of a sharded database, by id; each begins with its lowest id."""
    opened = Shards.open(shards)
    radius = check_count(radius, "duplicates: radius", least=0, most=opened.n_bits)
    groups = near_groups(opened, radius, link=link, executor=executor)
    listed = tuple(
        tuple(
            DuplicateItem(str(group.ids[i]), None, int(group.distances[i]))
            for i in np.lexsort((group.ids, group.distances, group.ids != group.ids[0])).tolist()
        )
        for group in groups
    )
    hash_name = str(opened.made_by.get("hasher", "codes"))
    return Duplicates(listed, opened.n_items, hash_name, radius)


def rank_group(items: CodedImages, rows: Rows, keep: Keep | None = None) -> Group:
    """The items of a group, the one to keep first, then by distance from it.

    The default of ``keep`` is that of :func:`duplicates`.
    """
    ranking = _RANKINGS[keep or ("largest" if any(items.files) else "first")]
    return _ranked(items, rows, ranking, keep == "sharpest")


def sharpness_of(file: Path) -> float:
    """How sharp an image is: the variance of the Laplacian of a grey copy of 256 × 256 pixels.

    All images are compared at one size, so that a small copy that was enlarged is less sharp.
    """
    from PIL import Image

    grey = Image.fromarray(read_image(file)).convert("L")
    side = (SHARPNESS_SIDE, SHARPNESS_SIDE)
    z = np.asarray(grey.resize(side, Image.Resampling.BILINEAR), np.float64)
    centre = z[1:-1, 1:-1]
    return float((z[:-2, 1:-1] + z[2:, 1:-1] + z[1:-1, :-2] + z[1:-1, 2:] - 4 * centre).var())


def _check_keep(items: CodedImages, keep: Keep | None) -> None:
    if keep not in (None, "first") and not any(items.files):
        raise InputError(f"{items.place}: its items are not images; give --keep first.")


def _radius(items: CodedImages, radius: int | None) -> int:
    if radius is not None:
        return check_count(radius, "duplicates: radius", least=0, most=items.codes.n_bits)
    feature = items.recipe.features
    if isinstance(feature, PerceptualHash):
        return feature.radius
    raise InputError(f"{items.place}: its codes are of {items.hash_name}; give --radius.")


def _of_quality(
    items: CodedImages, groups: list[Rows], near: NearCodes, link: Link, radius: int, least: int
) -> tuple[CodedImages, list[Rows]]:
    """The items and their groups without grouped images of a low quality."""
    if items.hash_name != "pdq":
        raise InputError(
            f"{items.place}: its codes are of {items.hash_name}; --least-quality goes with pdq."
        )
    low = {row for rows in groups for row in rows.tolist() if (_quality(items.files[row])) < least}
    kept = items.take([row for row in range(len(items)) if row not in low])
    return kept, near.groups(kept.codes, link, radius=radius) if len(kept) else []


def _quality(file: Path | None) -> int:
    try:
        return 0 if file is None else int(PDQ().quality([file])[0])
    except BitternError:
        return 0


def _ranked(
    items: CodedImages,
    rows: Rows,
    ranking: Callable[[DuplicateItem], tuple[Any, ...]],
    with_sharpness: bool,
) -> Group:
    facts = [_facts(items, row, with_sharpness) for row in rows.tolist()]
    best = min(range(len(rows)), key=lambda i: (*ranking(facts[i]), i))
    away = _distances(items.codes[rows], best)
    order = sorted(range(len(rows)), key=lambda i: (i != best, away[i], i))
    return tuple(DuplicateItem(**{**_fields(facts[i]), "distance": away[i]}) for i in order)


def _fields(item: DuplicateItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in DuplicateItem.__slots__}


def _distances(codes: Codes, row: int) -> list[int]:
    different = codes.words ^ codes.words[row]
    return np.bitwise_count(different).sum(axis=1, dtype=np.int64).tolist()


def _facts(items: CodedImages, row: int, with_sharpness: bool) -> DuplicateItem:
    """What the file of an item says."""
    name, file = items.names[row], items.files[row]
    if file is None or not file.exists():
        return DuplicateItem(name, file, 0)
    found, stat = read_facts(file), file.stat()
    written = datetime.fromtimestamp(stat.st_mtime).isoformat(" ", "seconds")
    try:
        sharpness = sharpness_of(file) if with_sharpness else None
    except BitternError:
        sharpness = None
    return DuplicateItem(
        name,
        file,
        0,
        found.get("width"),
        found.get("height"),
        stat.st_size,
        found.get("taken") or written,
        sharpness,
        _quality(file) if items.hash_name == "pdq" else None,
    )


def _by_size(item: DuplicateItem) -> tuple[Any, ...]:
    return -(item.width or 0) * (item.height or 0), -(item.n_bytes or 0), item.taken or "~"


def _by_sharpness(item: DuplicateItem) -> tuple[Any, ...]:
    return -1.0 if item.sharpness is None else -item.sharpness - 1, *_by_size(item)


def _by_age(item: DuplicateItem) -> tuple[Any, ...]:
    return item.taken or "~", *_by_size(item)


_RANKINGS: dict[str, Callable[[DuplicateItem], tuple[Any, ...]]] = {
    "largest": _by_size,
    "sharpest": _by_sharpness,
    "oldest": _by_age,
    "first": lambda item: (),
}
