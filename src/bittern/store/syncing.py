"""Keep a collection in step with its images: compare with a folder, add files, remove files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bittern.checks import Float32Array
from bittern.codes import Codes
from bittern.data.caption_files import is_suffix
from bittern.data.exif import KEYS as EXIF_KEYS
from bittern.errors import InputError
from bittern.features import extract
from bittern.features.extracted import NoImageError
from bittern.store.base import Collection
from bittern.store.building import batches, feature_file_of, own_files_of, resume_message
from bittern.store.captions import check_takes_texts, update_texts, with_captions
from bittern.store.code_items import is_code_file
from bittern.store.comparing import Changes, Plan, known_items
from bittern.store.image_items import (
    ListedImages,
    Origin,
    check_takes_images,
    find_table,
    list_images,
)
from bittern.store.paths import located, name_inside
from bittern.store.recipe import IMAGE
from bittern.store.sources import Texts, find_texts, origin_of, read_source

FilePath = str | os.PathLike[str]


def sync(
    collection: Collection,
    folder: FilePath | None = None,
    *,
    metadata: FilePath | None = None,
    texts: Texts | None = None,
    with_exif: bool | None = None,
    skip_broken: bool | None = None,
    allow_empty: bool = False,
    dry_run: bool = False,
) -> Changes:
    """Make a collection hold the images of a folder: each once, none that is gone.

    New images are added and changed ones encoded again, by the collection's feature and hasher.
    Items whose files are gone are removed.  An image has changed if its size or its time of change
    differs, and then its content too.  If only its metadata changed (its row in the table
    ``metadata``, its folder, its caption), its code stays.  Items from elsewhere stay as they are.

    If the collection holds images and texts, ``texts`` are the captions, as
    :func:`~bittern.store.building.build_collection` takes them: the text of an image is added,
    encoded again or removed as its caption is.  If none were ever named, images keep their texts.
    Texts without an image stay as they are.

    ``folder`` and the options default to those of the last time, or of
    :func:`~bittern.store.building.build_collection`.  If the remembered folder is gone, a given
    ``folder`` is taken as its new place.  If there are no images, it fails before it removes
    everything, unless ``allow_empty``.  With ``dry_run``, nothing is changed.

    If it is interrupted, the collection is sound, and the same call does the rest.
    """
    check_takes_images(collection.place, collection.recipe)
    before = _remembered(collection)
    is_main = _is_main(collection, before, folder)
    check_takes_texts(collection, texts)
    origin = _origin(before, folder, is_main, metadata, with_exif, skip_broken, texts)
    moved_from = None if before is None or not is_main else before.root
    if not origin.root.is_dir() and not allow_empty:
        raise InputError(
            f"{origin.root}: no such folder; if it has moved, name its new place; "
            "--allow-empty removes all its items."
        )
    listed = with_captions(collection, _listed(collection, origin), moved_from)
    rereads = is_main and before is not None and _rereads_exif(before, listed.origin)
    plan = Plan.compare(collection, listed, moved_from, rereads=rereads)
    if plan.known and not listed.names and not allow_empty:
        raise InputError(
            f"{origin.root}: has no images, so that all {len(plan.known):,} items would be "
            "removed; --allow-empty removes them."
        )
    if dry_run:
        return plan.changes(listed.left_out)
    with resume_message(), feature_file_of(collection.place) as feature_file:
        ready = _read(collection, listed, plan, feature_file)
        _write(collection, listed, plan, ready)
        skipped = ready.skipped
        gone = plan.ids_of_gone(skipped)
        if gone:
            collection.delete(gone)
        if collection.recipe.is_crossmodal:
            update_texts(collection, listed.origin.root, moved_from)
        if is_main:
            collection.set_origin(listed.origin.to_json(collection.folder))
    return plan.changes(listed.left_out, skipped)


def add_files(
    collection: Collection,
    files: Sequence[FilePath],
    *,
    metadata: FilePath | None = None,
    with_exif: bool | None = None,
    skip_broken: bool | None = None,
) -> Changes:
    """Add image files and all images of folders, all or none; none is there twice.

    An image that is there already stays, or is encoded again if it changed.  Images inside the
    folder that the collection remembers get the metadata that :func:`sync` would give them.
    """
    check_takes_images(collection.place, collection.recipe)
    if collection.recipe.is_crossmodal:
        raise InputError(
            f"{collection.place}: holds images and texts; add a folder with its texts."
        )
    if not files:
        raise InputError("index add: needs at least one file.")
    before = _remembered(collection)
    main = None if before is None else before.root
    parts: list[tuple[ListedImages, Plan, _Ready]] = []
    with resume_message(), feature_file_of(collection.place) as feature_file:
        for root, names in _images_of(files, main):
            origin = _origin(before, root, root == main, metadata, with_exif, skip_broken)
            listed = list_images(origin, names)
            plan = replace(Plan.compare(collection, listed), gone={})
            parts.append((listed, plan, _read(collection, listed, plan, feature_file)))
        for listed, plan, ready in parts:
            _write(collection, listed, plan, ready, in_one=True)
    done = [plan.changes(listed.left_out, ready.skipped) for listed, plan, ready in parts]
    return Changes(*(sum(lists, ()) for lists in zip(*done, strict=True)))


def add_from(
    collection: Collection,
    source: FilePath,
    *,
    texts: Texts | None = None,
    key: str | None = None,
    layout: str | None = None,
    skip_broken: bool = False,
) -> int:
    """Add the images of a folder, or the vectors or codes of a file, all or none; returns how many.

    A collection of images alone gets no image twice; see :func:`add_files`.  A cross-modal
    collection also takes the ``texts`` of the images, as
    :func:`~bittern.store.building.build_collection` does.
    """
    recipe, place, given = collection.recipe, collection.place, Path(source)
    if recipe.hasher is None and not is_code_file(given, layout):
        raise InputError(f"{place}: has no hasher; add a file of codes.")
    if given.is_dir() and recipe.features is None:
        raise InputError(f"{place}: was made from vectors; give a file of vectors.")
    if given.is_dir() and not recipe.is_crossmodal and texts is None:
        return len(add_files(collection, [given], skip_broken=skip_broken).added)
    with feature_file_of(place) as feature_file:
        listed = None
        if given.is_dir():
            listed = list_images(origin_of(given, skip_broken=skip_broken, texts=texts))
        options: dict[str, Any] = {"listed": listed, "home": collection.folder, "layout": layout}
        items = read_source(given, recipe, feature_file, texts=texts, key=key, **options)
        if len(items):
            codes = [items.encode(recipe, rows) for rows in batches(len(items), "encoding")]
            collection.add(Codes.concatenate(codes), items.ids, metadata=items.metadata)
    return len(items)


def remove_files(collection: Collection, files: Sequence[FilePath]) -> int:
    """Remove the items of image files, which need not exist; all or none.  Returns how many.

    A path is relative to the current folder, or written as in the metadata.
    """
    ids: dict[str, list[int]] = {}
    for id_, known in known_items(collection):
        for path in {str(located(known["path"], collection.folder)), known["path"]}:
            ids.setdefault(path, []).append(id_)
    gone: list[int] = []
    for file in files:
        given = Path(file)
        real = str(Path(os.path.realpath(given.parent), given.name))
        found = ids.get(real) or ids.get(str(file))
        if found is None:
            raise InputError(f"{collection.place}: no item has the path {str(file)!r}.")
        gone += found
    return collection.delete(np.unique(gone)) if gone else 0


def _rereads_exif(before: Origin, now: Origin) -> bool:
    """Whether what is stored of EXIF blocks may be incomplete or replaced by a table."""
    replaced = [set(EXIF_KEYS).intersection(origin.columns) for origin in (before, now)]
    return before.with_exif != now.with_exif or replaced[0] != replaced[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """Images that could be read, their features, and the reasons for the others."""

    names: tuple[str, ...]
    vectors: Float32Array
    skipped: Mapping[str, str]


def _read(collection: Collection, listed: ListedImages, plan: Plan, feature_file: Path) -> _Ready:
    """Read the images that have to be encoded; the slow part."""
    wanted = sorted((*plan.added, *plan.encoded))
    nothing = np.empty((0, 0), np.float32)
    if not wanted:
        return _Ready((), nothing, {})
    feature: Any = collection.recipe.features
    errors: Literal["skip", "raise"] = "skip" if listed.origin.skip_broken else "raise"
    images = listed.paths(wanted)
    try:
        found = extract(images, [feature], feature_file, errors=errors, keep_parts=True)
    except NoImageError as error:
        return _Ready((), nothing, error.skipped)
    return _Ready(found.paths, found[feature.name], found.skipped)


def _write(
    collection: Collection,
    listed: ListedImages,
    plan: Plan,
    ready: _Ready,
    *,
    in_one: bool = False,
) -> None:
    """Add, encode again and describe again, in batches or all at once."""
    names, known = ready.names, plan.known
    new = iter(collection._next_ids(sum(name not in known for name in names)).tolist())
    ids = [known[name] if name in known else next(new) for name in names]
    whole = [slice(0, len(names))] if names else []
    for rows in whole if in_one else batches(len(names), "storing"):
        codes = collection.recipe.encode(ready.vectors[rows], "sync: images", modality=IMAGE)
        metadata = listed.read(names[rows], plan.prefix, plan.states)
        collection.upsert(codes, ids[rows], metadata=metadata)
    for rows in batches(len(plan.described), "metadata"):
        some = plan.described[rows]
        metadata = listed.read(some, plan.prefix, plan.states)
        collection.set_metadata([known[name] for name in some], metadata)


def _listed(collection: Collection, origin: Origin) -> ListedImages:
    if not origin.root.is_dir():  # allowed to be empty
        return ListedImages(origin, (), {}, {}, ())
    return list_images(origin, own_files=own_files_of(collection.place))


def _remembered(collection: Collection) -> Origin | None:
    given = collection.origin
    return None if given is None else Origin.from_json(given, collection.folder)


def _is_main(collection: Collection, before: Origin | None, folder: FilePath | None) -> bool:
    """Whether the folder is the one to remember: the same, the first, or in its place."""
    if before is None and folder is None:
        raise InputError(
            f"{collection.place}: remembers no folder; name it: "
            f"'bittern index sync {collection.place} FOLDER'."
        )
    if before is None or folder is None or not before.root.exists():
        return True
    return Path(os.path.realpath(folder)) == before.root


def _origin(
    before: Origin | None,
    folder: FilePath | None,
    is_main: bool,
    metadata: FilePath | None,
    with_exif: bool | None,
    skip_broken: bool | None,
    texts: Texts | None = None,
) -> Origin:
    """How to read the folder: as before, but for what is given."""
    root = Path() if folder is None else Path(os.path.realpath(folder))
    origin = before or Origin(root)
    if folder is not None and is_main:
        table = None if origin.table is None else _moved_table(origin.table, origin.root, root)
        said = origin.texts
        if said is not None and not is_suffix(said):
            said = str(_moved_table(Path(said), origin.root, root))
        origin = replace(origin, root=root, table=table, texts=said)
    elif folder is not None:
        origin = replace(origin, root=root, table=None, texts=None)
    if metadata is not None:
        origin = replace(origin, table=find_table(metadata, origin.root))
    if texts is not None:
        origin = replace(origin, texts=find_texts(texts, origin.root))
    if with_exif is not None:
        origin = replace(origin, with_exif=with_exif)
    if skip_broken is not None:
        origin = replace(origin, skip_broken=skip_broken)
    return replace(origin, columns=())


def _moved_table(table: Path, before: Path, root: Path) -> Path:
    """A table about the images after a move of the folder, with which it may have moved."""
    name = None if table.exists() else name_inside(table, before)
    return table if name is None else root / name


def _images_of(files: Sequence[FilePath], main: Path | None) -> list[tuple[Path, list[str]]]:
    """The images of files and folders: those in ``main``, and others below a common folder."""
    inside: list[str] = []
    others: list[Path] = []
    folders: list[Path] = []
    for given in map(Path, files):
        if given.is_dir():
            root = Path(os.path.realpath(given))
            found = [root / name for name in list_images(Origin(root, skip_broken=True)).names]
        elif given.is_file():
            root = Path(os.path.realpath(given.parent))
            found = [root / given.name]
        else:
            raise InputError(f"{given}: no such file or folder.")
        if not found:
            raise InputError(f"{given}: has no images.")
        if main is not None and root.is_relative_to(main):
            inside += [file.relative_to(main).as_posix() for file in found]
        else:
            others += found
            folders.append(root)
    groups = [] if main is None or not inside else [(main, inside)]
    if others:
        try:
            root = Path(os.path.commonpath(folders))
        except ValueError:
            raise InputError("index add: the images must be on one drive.") from None
        groups.append((root, [file.relative_to(root).as_posix() for file in others]))
    return groups
