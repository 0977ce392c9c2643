"""Images as a network's inputs: check them, shift and mirror them, store their frozen stages."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, PositionArray, check_array
from bittern.data.steps import is_lazy
from bittern.errors import InputError
from bittern.io.cache import ArrayCache, CachedArray
from bittern.progress import Bar

if TYPE_CHECKING:
    from torch import Tensor

    from bittern.hashing.deep.layers import HashNetwork

VECTOR_NETWORKS = ("linear", "mlp", "kernel")  # the others take images
AT_ONCE = 8  # images that a network without gradients takes at a time, to fit in the caches
VARIANTS = 2**40  # a stream of random numbers that no epoch uses


class ImageInputs:
    """The training images as a network's inputs, with random variations if ``augment`` is above 0.

    If the network has frozen stages, their outputs are computed once, for each image and
    ``augment`` variants of it, and stored in the folder ``cache`` if there is one.
    """

    def __init__(
        self,
        images: NDArray[Any],
        train: PositionArray,  # positions of the training images
        network: HashNetwork,
        augment: int,
        seed: int,
        cache: str | os.PathLike[str] | None,
        title: str,
    ) -> None:
        self._images, self._train, self._network = images, train, network
        self._augment, self._seed, self._title = augment, seed, title
        self._cache = cache

    def draw(self, rows: PositionArray, rng: np.random.Generator) -> Tensor:
        """Inputs of the learned part of the network, for some training images."""
        from bittern.hashing.deep.layers import to_tensor

        if self._network.frozen:
            variant = rng.integers(len(self._frozen_outputs), size=len(rows))
            return self._frozen_outputs[variant, rows].float()
        images = self._images[self._train[rows]]
        return to_tensor(shifted_and_mirrored(images, rng) if self._augment else images)

    def plain(self, rows: PositionArray) -> Tensor:
        """The same without variations; frozen stages are computed again unless they are stored."""
        from bittern.hashing.deep.layers import to_tensor

        is_stored = self._cache is not None or "_frozen_outputs" in vars(self)
        if self._network.frozen and is_stored:
            return self._frozen_outputs[0, rows].float()
        return self._network.early(to_tensor(self._images[self._train[rows]]))

    @cached_property
    def _frozen_outputs(self) -> Tensor:
        """Outputs ``(n_variants, n, …)`` of the frozen stages, computed or from the cache."""
        import torch

        if self._cache is None:
            return torch.from_numpy(self._computed_outputs())
        wanted = CachedArray("frozen", "outputs", self._depends_on(), self._computed_outputs)
        return torch.from_numpy(ArrayCache(Path(self._cache)).get(wanted).load())

    def _depends_on(self) -> list[Any]:
        """What the outputs of the frozen stages depend on, in plain values."""
        digest = hashlib.sha256(np.ascontiguousarray(self._images[self._train]).tobytes())
        for name, value in self._network.early_state():
            digest.update(name.encode() + value.numpy().tobytes())
        seed = self._seed if self._augment else 0
        return [self._network.describe_early(), self._augment, seed, digest.hexdigest()]

    def _computed_outputs(self) -> NDArray[np.float16]:
        """Outputs ``(n_variants, n, …)`` of the frozen stages."""
        import torch

        from bittern.hashing.deep.layers import to_tensor

        n, n_variants = len(self._train), 1 + self._augment
        rng, variants = np.random.default_rng([self._seed, VARIANTS]), []
        mode = self._network.training
        self._network.eval()
        with torch.inference_mode(), Bar(f"{self._title}: computing the frozen stages") as bar:
            for v in range(n_variants):
                parts = []
                for i in range(0, n, AT_ONCE):
                    images = self._images[self._train[i : i + AT_ONCE]]
                    images = shifted_and_mirrored(images, rng) if v else images
                    parts.append(self._network.early(to_tensor(images)).half())
                    bar(v * n + i, n_variants * n)
                variants.append(torch.cat(parts))
        self._network.train(mode)
        return torch.stack(variants).numpy()


def image_logits(
    network: Any,
    images: NDArray[Any],
    mirror: bool,
    cache: str | os.PathLike[str] | None,
    title: str,
) -> Float32Array:
    """Logits by a network in evaluation mode; with ``mirror``, their mean over mirror images."""
    import torch

    def outputs(some: NDArray[Any]) -> Float32Array:
        inputs = ImageInputs(some, np.arange(len(some)), network, 0, 0, cache, title)
        starts = range(0, len(some), AT_ONCE)
        parts = [inputs.plain(np.arange(i, min(i + AT_ONCE, len(some)))) for i in starts]
        return np.concatenate([network.late(part).numpy() for part in parts])

    with torch.inference_mode():
        found = outputs(images)
        if mirror:
            found = (found + outputs(images[:, :, ::-1])) / np.float32(2)
        return found


def shifted_and_mirrored(images: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Each image shifted by up to an eighth of its sides, reflected at the edges, and mirrored."""
    n, height, width = images.shape[:3]
    places = []
    for side in (height, width):
        most = side // 8
        place = np.arange(side) + rng.integers(-most, most + 1, size=(n, 1))
        place = np.abs(place)
        places.append(np.where(place >= side, 2 * side - 2 - place, place))
    rows, columns = places
    mirrored = rng.random((n, 1)) < 0.5
    columns = np.where(mirrored, columns[:, ::-1], columns)
    return images[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]


def check_images(X: Any, title: str, *, any_shape: bool) -> NDArray[Any]:
    """``X`` as images with values 0 … 255; or, with ``any_shape``, as any array of numbers."""
    array = check_array(X[:] if is_lazy(X) else X, f"{title}: X")
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool) or array.ndim < 2:
        raise InputError(f"{title}: needs an array of numbers for each row, got {array.dtype}.")
    if len(array) == 0:
        raise InputError(f"{title}: needs at least one row, got none.")
    is_image = array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3))
    if not any_shape and not is_image:
        raise InputError(
            f"{title}: this network needs images (n, height, width[, channels]) of the same size, "
            f"with 1 or 3 channels, got shape {array.shape}."
        )
    if array.dtype != np.uint8:
        if not np.isfinite(array).all():
            raise InputError(f"{title}: X contains NaN or infinity.")
        low, high = array.min(), array.max()
        if not any_shape and (low < 0 or high > 255 or high <= 1 < array.size):
            raise InputError(f"{title}: images must have values 0 … 255, got {low:g} … {high:g}.")
    return array
