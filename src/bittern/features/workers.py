"""Chunks of images described over processes, each image decoded once for all features."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bittern.checks import Float32Array, check_count
from bittern.errors import BitternError, InputError
from bittern.features.base import Feature
from bittern.features.images import to_image
from bittern.features.parts import Chunk, Part
from bittern.spawning import end_with_parent, interrupts_held

__all__ = ["Tally", "Worker", "allow_pixels", "describe_chunks"]

# What libraries that are loaded later look at.
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)
Tally = tuple[int, int]  # images described, images skipped


@dataclass(frozen=True, slots=True)
class Worker:
    """Describes chunks by the same features, and stores their parts."""

    features: tuple[Feature, ...]
    skips: bool  # images that cannot be described; else the first stops it all

    def __call__(self, chunk: Chunk) -> Tally:
        """Describe a chunk and store its part; how many images were described and skipped."""
        paths: list[str] = []
        rows: list[list[Float32Array]] = []
        skipped: dict[str, str] = {}
        for path in chunk.paths:
            try:
                rows.append(self._describe(os.fspath(chunk.root / path)))
                paths.append(path)
            except InputError as error:
                if not self.skips:
                    raise
                skipped[path] = str(error)
        columns = zip(*rows, strict=True)
        stacked = {f.name: np.stack(c) for f, c in zip(self.features, columns, strict=False)}
        Part(tuple(paths), stacked, skipped).save(chunk.target)
        return len(paths), len(skipped)

    def _describe(self, path: str) -> list[Float32Array]:
        """A row of each feature."""
        image = to_image(path, path)
        try:
            return [feature.transform([image])[0] for feature in self.features]
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def describe_chunks(
    chunks: Sequence[Chunk], worker: Worker, n_jobs: int, report: Callable[[Tally], None]
) -> None:
    """Describe every chunk; ``report`` is told of each when it is on disk.

    One job works in this process.  More are processes of their own, with one thread each; after an
    error or Ctrl-C they finish the chunks that they have begun.
    """
    n_jobs = min(n_jobs, len(chunks))
    if n_jobs <= 1:
        for chunk in chunks:
            report(worker(chunk))
        return
    pool = _Pool.start(worker, n_jobs)
    try:
        with interrupts_held():  # processes inherit this, so that Ctrl-C reaches only us
            futures = [pool.submit(_Pool.work, chunk) for chunk in chunks]
        for future in as_completed(futures):
            report(future.result())
    except BrokenProcessPool as error:
        raise BitternError(
            "extract: a process ended without a word; use fewer jobs if memory ran out, and in a "
            "script call extract() below `if __name__ == '__main__':`."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def allow_pixels(most: int | None) -> None:
    """Let Pillow in this process read images of up to so many pixels; None changes nothing."""
    from PIL import Image

    if most is not None:
        Image.MAX_IMAGE_PIXELS = check_count(most, "most_pixels")


class _Pool:
    """What a process of the pool knows."""

    worker: ClassVar[Worker]

    @classmethod
    def start(cls, worker: Worker, n_jobs: int) -> ProcessPoolExecutor:
        """Processes that begin from nothing: threads and locks of this one do not follow."""
        from multiprocessing import get_context

        from PIL import Image

        given = worker, Image.MAX_IMAGE_PIXELS
        return ProcessPoolExecutor(n_jobs, get_context("spawn"), cls.begin, given)

    @classmethod
    def begin(cls, worker: Worker, most_pixels: int | None) -> None:
        """Called once in each process."""
        from PIL import Image

        cls.worker = worker
        Image.MAX_IMAGE_PIXELS = most_pixels
        _use_one_thread()
        for feature in worker.features:
            if feature.get_params().get("n_threads", 0) is None:
                feature.set_params(n_threads=1)
        end_with_parent()

    @classmethod
    def work(cls, chunk: Chunk) -> Tally:
        """Called for each chunk."""
        return cls.worker(chunk)


def _use_one_thread() -> None:
    """Keep BLAS, OpenMP and OpenCV of this process, loaded or not yet, to one thread."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    threadpool_limits(1)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(1)
