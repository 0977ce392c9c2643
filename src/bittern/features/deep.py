"""Deep features: the output of a trained network, computed by ONNX Runtime."""

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
from bittern.extras import require
from bittern.features.base import ImageArray, ImageFeature, iter_images
from bittern.networks import lite0_onnx
from bittern.networks.onnx import OnnxModel, lite0_file, lite0_path
from bittern.parallel import available_threads
from bittern.progress import track

DEFAULT_SIDE = 128
T = TypeVar("T")


class Deep(ImageFeature):
    r"""The output of a neural network for each image, by default 1280 values.

    ``model`` is the path of an ONNX file with one input, ``(n, 3, h, w)`` or ``(n, h, w, 3)``, of
    float32 or uint8.  ONNX Runtime runs it on ``batch_size`` images at a time.  The rows are its
    ``output`` (the first by default), which must be ``(n, d)``, or have further sides of 1.

    The default model is EfficientNet-Lite0, learned on ImageNet; its 1280 values are the means of
    the last convolution's output over all positions.  Its file is written once and kept in
    the user's cache, or in the folder that the environment variable ``BITTERN_CACHE`` names; this
    needs no PyTorch.

    Pillow resizes images, bicubically, to ``size`` × ``size`` pixels.  The default is the size that
    the model fixes, and 128 for EfficientNet-Lite0.  With ``crop=None`` the whole image is
    stretched; with a fraction, that much of its centre is cropped to the model's proportions.
    (ImageNet results often use ``size=224, crop=0.875``.)

    A float32 model gets :math:`(x - \mathrm{mean}) / \mathrm{scale}` with :math:`x` in 0 … 255;
    mean and scale are one number each, or three for red, green and blue.  A uint8 model, such as
    EfficientNet-Lite0, gets :math:`x`.

    The row of an image does not depend on the others, up to rounding.  ONNX Runtime uses
    ``n_threads``, by default all cores; with more than one, the next images are prepared while it
    runs.

    References: [Tan-Le-2019] for the EfficientNet family, [Sandler-2018] for its blocks.
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
        """One row for each image."""
        self._check()
        require({self._title: self.needs_modules})
        model = self._loaded()
        images = track(iter_images(X, self._title), f"{self._title}: images", len(X))
        batches = _batches(images, model.batch or self.batch_size)
        inputs: Iterator[NDArray[Any]] = (self._input(model, batch) for batch in batches)
        if available_threads(self.n_threads) > 1:
            inputs = _prefetched(inputs)
        return np.concatenate([model(batch) for batch in inputs])

    def _describe(self, image: ImageArray) -> Float32Array:
        model = self._loaded()
        return model(self._input(model, [image]))[0]

    def _input(self, model: OnnxModel, images: list[ImageArray]) -> NDArray[Any]:
        """The model's input for these images."""
        sides = self._sides(model)
        pixels = np.stack([_resized(image, sides, self.crop) for image in images])
        return self._normalised(pixels, model)

    def _normalised(self, pixels: NDArray[np.uint8], model: OnnxModel) -> NDArray[Any]:
        mean, scale = self._numbers(self.mean, "mean"), self._numbers(self.scale, "scale")
        if model.dtype == np.float32:
            return (pixels - mean) / scale
        if np.any(mean != 0) or np.any(scale != 1):
            raise InputError(f"{self._title}: a model that takes uint8 has no mean and scale.")
        return pixels

    def _sides(self, model: OnnxModel) -> tuple[int, int]:
        """Height and width of the model's input."""
        asked = None if self.size is None else (self.size, self.size)
        if model.sides is not None:
            if asked not in (None, model.sides):
                raise InputError(
                    f"{self._title}: the model takes images of height and width {model.sides} "
                    f"only, got size {self.size}."
                )
            return model.sides
        if asked is None and self.model is not None:
            raise InputError(f"{self._title}: the model takes images of any size; set size.")
        return asked or (DEFAULT_SIDE, DEFAULT_SIDE)

    def _numbers(self, given: ArrayLike, name: str) -> NDArray[np.float32]:
        """One number, or one for each of the three channels."""
        values = check_array(given, f"{self._title}: {name}")
        is_good = values.shape in ((), (3,)) and values.dtype.kind in "fiu"
        if not is_good or not np.isfinite(values).all():
            raise InputError(f"{self._title}: {name} must be a number or three, got {given!r}.")
        return values.astype(np.float32)

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """ONNX Runtime, and what writes the default model if its file is not there yet."""
        if self.model is not None or lite0_path().exists():
            return ("onnxruntime",)
        return ("onnxruntime", *lite0_onnx.MODULES)

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
        """The model, in a session that is kept until a parameter changes."""
        threads = available_threads(self.n_threads)
        # A forked process lacks the session's threads and needs a new session.
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
        """Pickle without the session, which is opened again when needed."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_session"}


def _batches(images: Iterable[ImageArray], n: int) -> Iterator[list[ImageArray]]:
    remaining = iter(images)
    while batch := list(islice(remaining, n)):
        yield batch


def _prefetched(steps: Iterator[T]) -> Iterator[T]:
    """The steps; another thread prepares the next one while the current one is in use."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, steps, None)
        while (step := coming.result()) is not None:
            coming = pool.submit(next, steps, None)
            yield step


def _resized(image: ImageArray, sides: tuple[int, int], crop: float | None) -> ImageArray:
    """The image, or the given fraction of its centre, resized to (height, width)."""
    from PIL import Image

    canvas = Image.fromarray(image)
    height, width = sides
    box = None
    if crop is not None:
        # Image pixels per pixel of the result.
        pixels = crop * min(canvas.width / width, canvas.height / height)
        left = max(0.0, (canvas.width - pixels * width) / 2)
        top = max(0.0, (canvas.height - pixels * height) / 2)
        box = (left, top, canvas.width - left, canvas.height - top)
    return np.asarray(canvas.resize((width, height), Image.Resampling.BICUBIC, box))
