"""Collections filled from a folder of images or a file of vectors, in batches that can resume."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bittern import store
from bittern.errors import InputError
from bittern.extras import require
from bittern.features.extraction import forget_parts
from bittern.features.fitting import has_to_learn
from bittern.hashing import load
from bittern.hashing.crossmodal.base import CrossModalHasher
from bittern.hashing.files import draw_rows, make_hasher
from bittern.io.addresses import is_address, without_password
from bittern.io.arrays import modules_to_read
from bittern.progress import Bar
from bittern.store.base import Collection
from bittern.store.code_items import CodeItems, is_code_file
from bittern.store.image_items import BROKEN, LeftOut, list_images
from bittern.store.paths import real_folder
from bittern.store.recipe import Recipe
from bittern.store.served import server_of
from bittern.store.shard_items import ShardItems, is_sharded
from bittern.store.sources import Source, Texts, origin_of, read_source

BATCH = 10_000  # items written at once


class BuildSummary(NamedTuple):
    """Numbers of items stored, images skipped, items that the hasher was fitted on, and bits.

    ``left_out`` names the images that were skipped, other files, and rows of a table of metadata
    without an image, each with the reason.
    """

    n_items: int
    n_skipped: int
    n_fitted: int
    n_bits: int
    left_out: tuple[LeftOut, ...] = ()


def build_collection(
    place: str | os.PathLike[str],
    source: str | os.PathLike[str],
    recipe: Recipe,
    *,
    metadata: str | os.PathLike[str] | None = None,
    with_exif: bool = True,
    texts: Texts | None = None,
    key: str | None = None,
    layout: str | None = None,
    fit_sample: int = 20_000,
    random_state: int = 0,
    skip_broken: bool = False,
) -> BuildSummary:
    """Make a collection of all images in a folder, of shards, or of a file's vectors or codes.

    ``recipe`` has the hasher and, for images, the feature; they are not changed.  A fitted hasher
    encodes as it is; otherwise a copy is fitted on ``fit_sample`` items drawn at random.
    ``skip_broken`` skips images that cannot be read; otherwise the first one is an error.

    The metadata of an image are its ``path`` (relative to the collection, if both are on one
    drive), its ``folder``, its ``label`` (the first sub-folder), what its EXIF block says (see
    :mod:`bittern.data.exif`) unless ``with_exif`` is false, and the row of the table ``metadata``
    (see :mod:`bittern.data.metadata_files`).

    A file of vectors or codes may have more for each row: ``ids`` (whole numbers; other ids become
    the metadata ``name``), ``labels``, ``paths`` and other columns, which become metadata.  ``key``
    names the array of vectors.  ``layout`` says that a file holds codes of another program, and how
    (see :mod:`bittern.io.code_layouts`).  Codes need no hasher; with the fitted one that made
    them, vectors can be searched for.  A folder of shards (:mod:`bittern.scale`) has codes with
    their ids and labels, and is read shard by shard.

    With a cross-modal hasher, ``texts`` names a file of captions such as ``"captions.csv"``, or is
    the suffix of a text file beside each image (see :mod:`bittern.data.caption_files`), and
    ``recipe.texts`` is their feature.  Images and texts are then separate items, and either can be
    searched for by the other; ``modality`` in their metadata says which they are.

    After an interruption, the same call continues where it stopped and ends with the same
    collection: features are saved beside the collection as they are computed, and the collection
    is a draft, which records its source and settings, until it is complete.
    """
    place, folder_or_file = os.fspath(place), Path(source)
    is_folder = _is_image_folder(folder_or_file)
    _check_recipe(recipe, folder_or_file, texts, layout)
    _require_extras(place, folder_or_file, recipe)
    settings = {  # named like the options of the command line
        "from": str(folder_or_file.resolve()),
        "features": recipe.names()["features"] if is_folder else None,
        "hasher": recipe.names()["hasher"],
        "bits": None if recipe.hasher is None else recipe.hasher.n_bits,
        "fit-sample": None if recipe.is_fitted else fit_sample,
        "random-state": None if recipe.is_fitted else random_state,
    }
    given = (("metadata", metadata), ("key", key), ("code-layout", layout))
    settings |= {option: os.fspath(value) for option, value in given if value is not None}
    if texts is not None:
        settings |= {"texts": os.fspath(texts), "text-features": recipe.names().get("texts")}
    _check_resumable(place, settings)
    listed = None
    if is_folder:
        options: dict[str, Any] = {"with_exif": with_exif, "skip_broken": skip_broken}
        origin = origin_of(folder_or_file, metadata=metadata, texts=texts, **options)
        listed = list_images(origin, own_files=own_files_of(place))
    elif metadata is not None:
        raise InputError(f"{source}: is not a folder; a table of metadata is about images.")
    home = folder_of(place)
    with resume_message(), feature_file_of(place) as feature_file:
        items = read_source(
            folder_or_file,
            recipe,
            feature_file,
            listed=listed,
            home=home,
            texts=texts,
            key=key,
            layout=layout,
        )
        rows = np.arange(0)
        if not recipe.is_fitted:
            rows = draw_rows(items.learnable, fit_sample, random_state)
        draft = json.dumps({**settings, "made from": items.digest(), **_model_digest(recipe)})
        with _open_draft(place, draft, items, lambda: items.fitted(recipe, rows)) as collection:
            _fill(collection, items)
            if listed is not None:
                collection.set_origin(listed.origin.to_json(home))
            collection.finish()
        left_out = items.left_out
        n_skipped = sum(one.kind == BROKEN for one in left_out)
        return BuildSummary(len(items), n_skipped, len(rows), collection.n_bits, left_out)


def _require_extras(place: str, source: Path, recipe: Recipe) -> None:
    """Raise an error that names all optional libraries which are missing, before any work."""
    features = [one for one in (recipe.features, recipe.texts) if one is not None]
    learning = [] if recipe.hasher is None or recipe.is_fitted else [recipe.hasher]
    needs = {one.name: one.needs_modules for one in (*features, *learning)}
    kept_by = server_of(place).library if is_address(place) else "duckdb"
    require({without_password(place): (kept_by,)} | needs | modules_to_read(source))


def make_recipe(
    hasher: str,
    n_bits: int | None,
    *,
    features: str | None = None,
    texts: str | None = None,
    random_state: int = 0,
) -> Recipe:
    """An unfitted recipe of a hasher and features by their names.

    With ``texts``, a feature of texts, the hasher must be a cross-modal one.  A perceptual hash is
    a feature and its signs, and has nothing to fit.
    """
    from bittern.features import PERCEPTUAL
    from bittern.hashing import HASHERS
    from bittern.hashing.crossmodal import CROSSMODAL

    if hasher in PERCEPTUAL:
        return _perceptual_recipe(hasher, n_bits, features, texts)
    if texts is None and hasher in CROSSMODAL:
        raise InputError(f"index: {hasher} learns from images and texts; give the texts (--texts).")
    if texts is not None and hasher in HASHERS:
        names = ", ".join(CROSSMODAL)
        raise InputError(f"index: {hasher} takes images alone; with texts, choose one of {names}.")
    model = make_hasher(hasher, 64 if n_bits is None else n_bits, random_state=random_state)
    return Recipe(model, _feature(features), _feature(texts))


def _perceptual_recipe(
    name: str, n_bits: int | None, features: str | None, texts: str | None
) -> Recipe:
    from bittern.hashing.feature_signs import FeatureSigns

    hash_ = _feature(name)
    if n_bits not in (None, hash_.n_bits):
        raise InputError(f"index: {name} has {hash_.n_bits} bits; leave out --bits {n_bits}.")
    if texts is not None or features not in (None, name):
        raise InputError(f"index: {name} takes images as they are; leave out --features, --texts.")
    return Recipe(FeatureSigns.of_length(hash_.n_bits), hash_)


def choose_recipe(
    source: Path,
    hasher: str | None,
    n_bits: int | None,
    *,
    features: str | None = None,
    texts: str | None = None,
    layout: str | None = None,
    random_state: int = 0,
) -> Recipe:
    """The recipe for a source: a fitted hasher from a file, one by name, or none for codes.

    A hasher that ends in ``.npz`` is a file.  ``features`` are for a folder of images, by default
    ``"deep"`` unless the hasher is a perceptual hash, and ``layout`` is for a file of codes of
    another program.
    """
    from bittern.features import PERCEPTUAL

    if hasher in PERCEPTUAL:
        if not _is_image_folder(source):
            raise InputError(f"{source}: is not a folder; {hasher} takes images.")
        return make_recipe(hasher, n_bits, features=features, texts=texts)
    used = (features or "deep") if _is_image_folder(source) else None
    if hasher is not None and hasher.endswith(".npz"):
        return load_recipe(hasher, n_bits=n_bits, features=used, texts=texts)
    if _has_codes(source, layout):
        for option, value in (("--hasher", hasher), ("--bits", n_bits)):
            if value is not None:
                raise InputError(
                    f"{source}: holds codes; leave out {option} {value}, or give the model that "
                    "made them (--hasher FILE.npz)."
                )
        return Recipe()
    name = hasher or ("itq" if texts is None else "cca-itq")
    return make_recipe(name, n_bits, features=used, texts=texts, random_state=random_state)


def load_recipe(
    model: str | os.PathLike[str],
    *,
    n_bits: int | None = None,
    features: str | None = None,
    texts: str | None = None,
) -> Recipe:
    """A recipe of a fitted hasher in a file, and features by their names.

    The features must be the ones that made the vectors it was fitted on, so they may not be
    features that learn from the images or texts at hand.  ``n_bits``, if given, must be the
    model's.
    """
    hasher = load(model)
    if n_bits not in (None, hasher.n_bits):
        raise InputError(
            f"{model}: makes codes of {hasher.n_bits} bits; leave out --bits {n_bits}."
        )
    for name, option in ((features, "--features"), (texts, "--text-features")):
        if name is not None and has_to_learn(_feature(name)):
            raise InputError(
                f"{option} {name} would learn anew from this source, and its vectors would not be "
                f"those that {model} was fitted on; choose a feature that learns nothing, or a "
                "hasher by name."
            )
    is_crossmodal = isinstance(hasher, CrossModalHasher)
    if texts is not None and not is_crossmodal:
        raise InputError(f"{model}: is a {hasher.name}, which takes no texts; leave out --texts.")
    return Recipe(hasher, _feature(features), _feature(texts))


def _feature(name: str | None) -> Any:
    from bittern.features import FEATURES

    return None if name is None else FEATURES[name]()


def _check_recipe(recipe: Recipe, source: Path, texts: Texts | None, layout: str | None) -> None:
    """Raise InputError if the recipe lacks a part that this source needs."""
    if recipe.hasher is None:
        if _has_codes(source, layout):
            return
        raise InputError("build_collection: the recipe needs a hasher.")
    if recipe.is_crossmodal and not recipe.is_fitted and (texts is None or recipe.texts is None):
        raise InputError(
            f"index: {recipe.hasher.name} learns from images and texts; name a file of captions, "
            "and give the recipe a feature of texts."
        )


def _is_image_folder(source: Path) -> bool:
    return source.is_dir() and not is_sharded(source)


def _has_codes(source: Path, layout: str | None) -> bool:
    """Whether a source has codes already: a file of them, or shards."""
    return is_sharded(source) or (source.is_file() and is_code_file(source, layout))


def _model_digest(recipe: Recipe) -> dict[str, str]:
    """A hash of a fitted hasher, so that a draft goes on with the same one."""
    if not recipe.is_fitted:
        return {}
    content = Recipe(recipe.hasher).to_blobs()["hasher"]
    return {"model": hashlib.blake2b(content, digest_size=16).hexdigest()}


def _check_resumable(place: str, settings: dict[str, Any]) -> None:
    """Fail if there is a finished collection, or a draft with other settings."""
    if not store.exists(place):
        return
    shown = without_password(place)
    with store.open(place, read_only=True, drafts=True) as there:
        if there.draft is None:
            raise InputError(f"{shown}: exists already; add to it with 'bittern index add'.")
        begun = json.loads(there.draft)
    differing = [key for key, value in settings.items() if value != begun.get(key)]
    if differing:
        said = " ".join(f"--{key} {begun[key]}" for key in differing if begun.get(key) is not None)
        raise InputError(
            f"{shown}: is an unfinished draft with {said or 'other settings'}; repeat that command "
            "to finish it, or delete the draft to start again."
        )


@contextmanager
def resume_message() -> Iterator[None]:
    """On Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(
            str(stopped)
            or "stopped; finished work is kept. Run the same command again to continue."
        ) from None


def folder_of(place: str) -> Path | None:
    """The folder that paths in a collection's metadata are relative to; None on a server."""
    if not is_address(place):
        return real_folder(place)
    file = server_of(place).parse(place).file
    return None if file is None else real_folder(file)


def own_files_of(place: str) -> list[Path]:
    """The files of a collection, which may be among the images."""
    folder, features = folder_of(place), _feature_path(place).absolute()
    file = server_of(place).parse(place).file if is_address(place) else place
    if folder is None or file is None:
        return [features]
    name = Path(file).name
    return [features, *(folder / f"{name}{suffix}" for suffix in ("", ".wal", ".lock"))]


def _feature_path(place: str) -> Path:
    if not is_address(place):
        return Path(f"{place}.features.npz")
    address = server_of(place).parse(place)
    folder = Path() if address.file is None else Path(address.file).parent
    return folder / f"{address.name}.features.npz"


@contextmanager
def feature_file_of(place: str) -> Iterator[Path]:
    """The file for features of images, beside the collection; deleted if the block succeeds."""
    file = _feature_path(place)
    yield file
    forget_parts(file)
    file.unlink(missing_ok=True)


@contextmanager
def _open_draft(
    place: str, draft: str, items: Source, fit: Callable[[], Recipe]
) -> Iterator[Collection]:
    """The existing draft, or a new one with a fitted recipe."""
    if store.exists(place):
        with store.open(place, drafts=True) as collection:
            if collection.draft != draft:
                source = json.loads(draft)["from"]
                model = " or the model" if "model" in json.loads(draft) else ""
                raise InputError(
                    f"{without_password(place)}: is an unfinished draft, and {source} has changed "
                    f"since{model}; delete the draft to start again."
                )
            yield collection
    else:
        n_bits = items.n_bits if isinstance(items, CodeItems | ShardItems) else None
        with store.create(place, n_bits, draft=draft, **fit().parts()) as collection:
            yield collection


def _fill(collection: Collection, items: Source) -> None:
    """Store the items that are not stored yet.

    A server may have stored part of an interrupted batch, so that batch is upserted whole.
    """
    known, recipe = items.metadata, collection.recipe
    for rows in batches(len(items), "storing", len(collection) // BATCH * BATCH):
        metadata = {name: column[rows] for name, column in known.items()}
        ids = np.arange(rows.start, rows.stop) if items.ids is None else items.ids[rows]
        collection.upsert(items.encode(recipe, rows), ids, metadata=metadata)


def batches(n: int, what: str, done: int = 0) -> Iterator[slice]:
    """The rows from ``done`` to ``n``; a bar shows how many have been dealt with."""
    with Bar(what) as bar:
        for start in range(done, n, BATCH):
            yield slice(start, min(n, start + BATCH))
            bar(min(n, start + BATCH), n)
