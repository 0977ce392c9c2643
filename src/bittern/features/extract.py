"""Extract features of all images of a folder in several processes; a stopped call can resume."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import FileError, InputError
from bittern.extras import require
from bittern.features.base import Feature, ImagePaths, ImageSource, find_images
from bittern.features.chunks import (
    Chunk,
    Part,
    Parts,
    Tally,
    Worker,
    describe_chunks,
    feature_key,
    parts_folder,
    stored_rows,
)
from bittern.features.extracted import RESERVED, Extracted, load_features, write_features
from bittern.features.fitting import Fitted, fit_features, has_to_learn
from bittern.moved import renamed
from bittern.parallel import available_threads
from bittern.progress import Bar


@renamed(pictures="images")
def extract(
    images: ImageSource,
    features: Sequence[str | Feature],
    path_out: str | os.PathLike[str],
    *,
    errors: Literal["raise", "skip"] = "raise",
    jobs: int | None = None,
    chunk_size: int = 64,
    fit_sample: int = 1000,
    random_state: int = 0,
    keep_parts: bool = False,
) -> Extracted:
    """Describe images by several features and write ``path_out``, an ``.npz`` file.

    ``images`` is a folder, whose sub-folders are classes, or a sequence of paths; ``features``
    are names or :class:`~bittern.features.base.Feature` objects.  An image that cannot be read is
    an error, or with ``errors="skip"`` is skipped and listed in the result with the reason.
    ``jobs`` is the number of processes, by default one for each core; with more than one, a script
    needs ``if __name__ == "__main__":``.

    Features that learn, such as ``visual-words``, are fitted first unless they are fitted already,
    on ``fit_sample`` images drawn with ``random_state``; the result lists these as ``fitted_on``.
    To keep test images out, pass a feature that was fitted on training images.

    Every ``chunk_size`` finished images are kept in the folder ``path_out`` + ``.parts``.  After
    Ctrl-C, an error or a crash the same call continues from there.  Other features and changed
    images are computed again.  The folder is removed when the file is complete; with ``keep_parts``
    it stays, and makes the same call quick, until :func:`forget_parts`.
    """
    out = _check_output(path_out)
    chosen = _check_features(features)
    if errors not in ("raise", "skip"):
        raise InputError(f"extract: errors must be 'raise' or 'skip', got {errors!r}.")
    check_count(chunk_size, "extract: chunk_size")
    check_count(fit_sample, "extract: fit_sample")
    n_jobs = available_threads() if jobs is None else check_count(jobs, "extract: jobs")
    require({feature.name: feature.needs_modules for feature in chosen})
    found = find_images(images)
    parts, skips = Parts.beside(out), errors == "skip"
    try:
        ready = fit_features(
            chosen, found, parts, sample=fit_sample, random_state=random_state, skips=skips
        )
        chunks = _chunks(found, ready, parts, chunk_size)
        _describe(chunks, Worker(ready.features, skips), n_jobs)
        _write(out, found, ready, chunks)
        if not keep_parts:
            parts.remove()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped; finished images are kept in {parts.folder}, and the same call or command "
            "continues from there."
        ) from None
    finally:
        parts.remove_if_empty()
    return load_features(out)


def fitted_on(
    images: ImageSource,
    feature: Feature,
    path_out: str | os.PathLike[str],
    *,
    errors: Literal["raise", "skip"] = "raise",
    fit_sample: int = 1000,
    random_state: int = 0,
) -> Feature:
    """The feature as :func:`extract` would fit it; its learned state is kept with the parts."""
    if not has_to_learn(feature):
        return feature
    parts = Parts.beside(_check_output(path_out))
    try:
        ready = fit_features(
            [feature],
            find_images(images),
            parts,
            sample=fit_sample,
            random_state=random_state,
            skips=errors == "skip",
        )
    finally:
        parts.remove_if_empty()
    return ready.features[0]


def forget_parts(path_out: str | os.PathLike[str]) -> None:
    """Remove the parts that ``keep_parts`` left beside an output."""
    out = Path(path_out)
    if parts_folder(out).is_dir():
        parts = Parts.beside(out)
        parts.remove()
        parts.remove_if_empty()


def _check_output(path: str | os.PathLike[str]) -> Path:
    """The output's path; fails early if it cannot be written."""
    out = Path(path)
    if out.suffix != ".npz":
        raise InputError(
            f"{out}: features must be written as .npz, got {out.suffix or 'no ending'!r}."
        )
    if out.exists() and not out.is_file():
        raise FileError(f"{out}: is not an ordinary file; choose another name.")
    if not out.parent.is_dir():
        raise FileError(f"{out}: cannot be written: there is no folder {out.parent}.")
    return out


def _check_features(features: Sequence[str | Feature]) -> list[Feature]:
    """The features, with distinct names, all of images."""
    from bittern.features import FEATURES

    if isinstance(features, str | Feature):
        raise InputError("extract: features must be a list; put a single one in a list.")
    chosen = [FEATURES.find(f)() if isinstance(f, str) else f for f in features]
    if not chosen:
        raise InputError("extract: needs at least one feature, got none.")
    names = [feature.name for feature in chosen]
    for feature in chosen:
        if feature.takes == "texts":
            raise InputError(f"extract: {feature.name} takes texts, not images.")
        if names.count(feature.name) > 1 or feature.name in RESERVED:
            raise InputError(f"extract: only one feature may be called {feature.name!r}.")
    return chosen


def _chunks(found: ImagePaths, ready: Fitted, parts: Parts, size: int) -> list[Chunk]:
    import bittern

    key = [bittern.__version__]
    for feature in ready.features:
        key += [feature.name, feature_key(feature)]
    return parts.chunks(found.root, found.paths, key, size)


def _describe(chunks: Sequence[Chunk], worker: Worker, n_jobs: int) -> None:
    """Describe the chunks that are not finished."""
    tallies = {chunk: _tally(chunk, worker) for chunk in chunks}
    total = sum(len(chunk.paths) for chunk in chunks)
    done = sum(map(sum, tallies.values()))
    skipped = sum(tally[1] for tally in tallies.values())

    with Bar("images") as bar:

        def report(tally: Tally) -> None:
            nonlocal done, skipped
            done, skipped = done + sum(tally), skipped + tally[1]
            bar(done, total, f"{skipped:,} skipped" if skipped else "")

        waiting = [chunk for chunk, tally in tallies.items() if not any(tally)]
        describe_chunks(waiting, worker, n_jobs, report)


def _tally(chunk: Chunk, worker: Worker) -> Tally:
    """Images in a finished part; zeros if it is missing, damaged, or must be computed again."""
    try:
        part = Part.load(chunk.target)
    except FileError:
        return 0, 0
    if part.skipped and not worker.skips:  # so that the first bad image raises its error
        return 0, 0
    return len(part.paths), len(part.skipped)


def _write(out: Path, found: ImagePaths, ready: Fitted, chunks: Sequence[Chunk]) -> None:
    paths: list[str] = []
    skipped: dict[str, str] = {}
    for chunk in chunks:
        part = Part.load(chunk.target)
        paths += part.paths
        skipped |= part.skipped
    if not paths:
        raise FileError(f"{found.root}: no image could be read; {next(iter(skipped.values()))}")
    others: dict[str, Any] = {
        "paths": paths,
        "skipped": list(skipped),
        "skipped_reasons": list(skipped.values()),
        "fitted_on": list(ready.sample),
    }
    if found.labels is not None:
        kept = np.isin(found.paths, paths)
        others |= {"labels": found.labels[kept], "class_names": list(found.class_names)}
    rows = {feature.name: _rows(feature.name, chunks) for feature in ready.features}
    write_features(out, others, rows, {f.name: _parameters(f) for f in ready.features})


def _rows(name: str, chunks: Sequence[Chunk]) -> Iterator[Float32Array]:
    width = None
    for chunk in chunks:
        rows = stored_rows(chunk.target, name)
        if rows is None:
            continue
        width = width or rows.shape[1]
        if rows.shape[1] != width:
            raise InputError(f"{name}: has rows of {width} and of {rows.shape[1]} numbers.")
        yield rows


def _parameters(feature: Feature) -> dict[str, str]:
    return {name: str(value) for name, value in feature.get_params().items()}
