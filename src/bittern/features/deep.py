"""Deep features: what a trained network makes of a image, through ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.checks import Float32Array, check_array, check_count, check_number
from bittern.errors import InputError
from bittern.features.base import ImageFeature
from bittern.features.images import ImageArray, iter_images
from bittern.features.lite0 import lite0_file
from bittern.features.onnxmodel import OnnxModel
from bittern.parallel import available_threads
from bittern.progress import track

__all__ = ["Deep"]

DEFAULT_SIDE = 128
T = TypeVar("T")


class Deep(ImageFeature):
    r"""A network's output for each image, run by ONNX Runtime on ``batch_size`` at once.

    ``model`` is the path of an ONNX file with one input, ``(n, 3, h, w)`` or ``(n, h, w, 3)``, of
    float32 or uint8.  The rows are its ``output``, by default its first: ``(n, d)``, or with
    further sides of 1.  By default it is EfficientNet-Lite0, learned on ImageNet: the 1280 means
    over all places of what its last convolution gives.  That file is made once and kept in the
    user's cache (or in the folder that the environment variable ``BITTERN_CACHE`` names).

    A image is resized by Pillow, bicubically, to ``size`` pixels a side: by default what the
    model has fixed, and 128 for EfficientNet-Lite0.  With ``crop`` None it is stretched whole; with
    a fraction, that much of it is taken from the centre, in the model's proportions.  (Networks
    are often tried out on ImageNet with ``size=224, crop=0.875``.)

    A model of float32 is given :math:`(x - \mathrm{mean}) / \mathrm{scale}` with :math:`x` in
    0 … 255, where both are numbers, or three for red, green and blue; one of uint8 is given
    :math:`x`, and EfficientNet-Lite0 is of that kind.

    A image's row does not depend on the others but for rounding.  ONNX Runtime has ``n_threads``,
    by default all cores; with more than one, the next images are prepared while it runs.

    References: [Tan-Le-2019] for the default's family, [Sandler-2018] for its blocks.
    """

    name = "deep"

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        size: int | None = None,
        crop: float | None = None,
        mean: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        output: str | None = None,
        batch_size: int = 8,
        n_threads: int | None = None,
    ) -> None:
        self.model = model
        self.size = size
        self.crop = crop
        self.mean = mean
        self.scale = scale
        self.output = output
        self.batch_size = batch_size
        self.n_threads = n_threads

    def transform(self, X: Any) -> Float32Array:
        """A row for each image."""
        self._check()
        model = self._loaded()
        images = track(iter_images(X, self._title), f"{self._title}: images", len(X))
        batches = _batches(images, model.batch or self.batch_size)
        inputs: Iterator[NDArray[Any]] = (self._input(model, batch) for batch in batches)
        if available_threads(self.n_threads) > 1:
            inputs = _ahead(inputs)
        return np.concatenate([model(some) for some in inputs])

    def _describe(self, image: ImageArray) -> Float32Array:
        model = self._loaded()
        return model(self._input(model, [image]))[0]

    def _input(self, model: OnnxModel, images: list[ImageArray]) -> NDArray[Any]:
        """What the model is given for these images."""
        sides = self._sides(model)
        pixels = np.stack([_resized(image, sides, self.crop) for image in images])
        return self._normalised(pixels, model)

    def _normalised(self, pixels: NDArray[np.uint8], model: OnnxModel) -> NDArray[Any]:
        mean, scale = self._numbers(self.mean, "mean"), self._numbers(self.scale, "scale")
        if model.dtype == np.float32:
            return (pixels - mean) / scale
        if np.any(mean != 0) or np.any(scale != 1):
            raise InputError(f"{self._title}: mean and scale are not for a model that takes uint8.")
        return pixels

    def _sides(self, model: OnnxModel) -> tuple[int, int]:
        """Height and width that the model is given."""
        asked = None if self.size is None else (self.size, self.size)
        if model.sides is not None:
            if asked not in (None, model.sides):
                raise InputError(
                    f"{self._title}: the model takes images of height and width {model.sides} "
                    f"only, got size {self.size}."
                )
            return model.sides
        if asked is None and self.model is not None:
            raise InputError(f"{self._title}: the model takes images of any size; give size.")
        return asked or (DEFAULT_SIDE, DEFAULT_SIDE)

    def _numbers(self, given: ArrayLike, name: str) -> NDArray[np.float32]:
        """A number, or one for each of the three colours."""
        values = check_array(given, f"{self._title}: {name}")
        is_good = values.shape in ((), (3,)) and values.dtype.kind in "fiu"
        if not is_good or not np.isfinite(values).all():
            raise InputError(f"{self._title}: {name} must be a number or three, got {given!r}.")
        return values.astype(np.float32)

    def _check(self) -> None:
        check_count(self.batch_size, f"{self._title}: batch_size")
        if self.size is not None:
            check_count(self.size, f"{self._title}: size")
        if self.crop is not None and check_number(self.crop, f"{self._title}: crop", above=0) > 1:
            raise InputError(f"{self._title}: crop must be at most 1, got {self.crop!r}.")
        self._numbers(self.mean, "mean")
        if np.any(self._numbers(self.scale, "scale") == 0):
            raise InputError(f"{self._title}: scale must not be 0, got {self.scale!r}.")

    def _loaded(self) -> OnnxModel:
        """The model, in a session that is kept for as long as nothing changes."""
        threads = available_threads(self.n_threads)
        # A forked process has none of the session's threads, and must have a session of its own.
        key = (self.model, self.output, threads, os.getpid())
        kept = vars(self).get("_session")
        if kept is None or kept[0] != key:
            path = (
                lite0_file(f"{self._title}'s default model") if self.model is None else self.model
            )
            kept = self._session = key, OnnxModel(path, self.output, threads, self._title)
        loaded: OnnxModel = kept[1]
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        """All but the session, which is opened again when it is needed."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_session"}


def _batches(images: Iterable[ImageArray], n: int) -> Iterator[list[ImageArray]]:
    remaining = iter(images)
    while batch := list(islice(remaining, n)):
        yield batch


def _ahead(steps: Iterator[T]) -> Iterator[T]:
    """The steps, each made by another thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, steps, None)
        while (step := coming.result()) is not None:
            coming = pool.submit(next, steps, None)
            yield step


def _resized(image: ImageArray, sides: tuple[int, int], crop: float | None) -> ImageArray:
    """The image, or so much of its centre, with other sides (height, width)."""
    from PIL import Image

    canvas = Image.fromarray(image)
    height, width = sides
    box = None
    if crop is not None:
        pixels = crop * min(
            canvas.width / width, canvas.height / height
        )  # of ours for one of theirs
        left = max(0.0, (canvas.width - pixels * width) / 2)
        top = max(0.0, (canvas.height - pixels * height) / 2)
        box = (left, top, canvas.width - left, canvas.height - top)
    return np.asarray(canvas.resize((width, height), Image.Resampling.BICUBIC, box))
