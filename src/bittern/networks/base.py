"""The interface of every image network."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bittern.checks import check_count, check_type
from bittern.errors import InputError
from bittern.io.onnx_graph import OnnxGraph
from bittern.networks.convolution import NormalisedConvolution


class Backbone(nn.Module, ABC):
    """Turns images into feature rows, in stages; the first stages can be frozen.

    A batch of images is ``(n, 3, h, w)``, or ``(n, 1, h, w)`` if grey, with values 0…255 and
    channels in the order red, green, blue.  The features are ``(n, n_features)``,

        head(stages(prepare(images))).

    For every ``k``, ``late(early(images, k), k)`` equals ``forward(images)``.  So the output of
    the first ``k`` stages can be computed once, and the rest trained on it.

    Initial weights are drawn from torch's generator; seed it to get the same ones again.
    """

    name: ClassVar[str]
    least: ClassVar[int] = 1  # pixels per side

    n_features: int
    stages: nn.ModuleList

    def __init__(self, size: int | None) -> None:
        super().__init__()
        if size is not None:
            size = check_count(size, f"{self._title}: size", self.least)
        self.size = size
        self.precision: torch.dtype | None = None  # of the stages; None is that of the weights

    def forward(self, images: Tensor) -> Tensor:
        """The features of a batch of images."""
        return self.late(self.early(images, 0), 0)

    def early(self, images: Tensor, k: int) -> Tensor:
        """The output of the first ``k`` stages."""
        last = self._checked(k)
        return self._through(self.prepare(images), 0, last)

    def late(self, x: Tensor, k: int) -> Tensor:
        """The features, from the output of the first ``k`` stages in any precision."""
        first = self._checked(k)
        return self.head(self._through(x, first, len(self.stages))).to(self._dtype)

    def prepare(self, images: Tensor) -> Tensor:
        """The images in three channels, resized and normalised."""
        check_type(images, Tensor, f"{self._title}: images")
        shape = tuple(images.shape)
        if images.ndim != 4 or shape[1] not in (1, 3):
            raise InputError(
                f"{self._title}: images must be (n, 3, h, w) or (n, 1, h, w), got shape {shape}."
            )
        if self.size is None and min(shape[2:]) < self.least:
            raise InputError(
                f"{self._title}: images must have sides of at least {self.least} pixels, "
                f"got shape {shape}."
            )
        x = resized(images, self.size).to(self._dtype)
        return self.normalise(x.expand(-1, 3, -1, -1))

    @abstractmethod
    def normalise(self, images: Tensor) -> Tensor:
        """Turn values 0…255 into the input of the first stage."""

    def head(self, x: Tensor) -> Tensor:
        """The mean over all positions."""
        return x.mean(dim=(2, 3))

    def onnx_features(self, graph: OnnxGraph, images: str, sides: tuple[int, int]) -> str:
        """The features of a batch of uint8 images of these sides, in an ONNX graph.

        The network must be folded (:meth:`fold`).
        """
        from bittern.networks.onnx_layers import onnx_layers, onnx_resized

        if self.size is not None and sides != (self.size, self.size):
            images = onnx_resized(graph, images, sides, self.size)
        x = graph.add("Expand", graph.cast(images, np.float32), np.array([1, 3, 1, 1]))
        return self.onnx_head(graph, onnx_layers(graph, self.stages, self.onnx_normalise(graph, x)))

    def onnx_normalise(self, graph: OnnxGraph, images: str) -> str:
        """What :meth:`normalise` does, in an ONNX graph."""
        raise InputError(f"{self._title}: has no ONNX graph, because it has no onnx_normalise().")

    def onnx_head(self, graph: OnnxGraph, x: str) -> str:
        """What :meth:`head` does, in an ONNX graph."""
        return graph.add("Flatten", graph.add("GlobalAveragePool", x))

    def fold(self) -> Self:
        """A copy with the batch normalisations folded into the convolutions.

        It computes the same as this network in evaluation mode, but faster.  Training it keeps the
        running statistics fixed.
        """
        folded = copy.deepcopy(self)
        for module in folded.modules():
            if isinstance(module, NormalisedConvolution):
                module.fold_()
        return folded

    @property
    def _title(self) -> str:
        return type(self).__name__

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _checked(self, k: int) -> int:
        return check_count(k, f"{self._title}: k", 0, len(self.stages))

    def _through(self, x: Tensor, first: int, last: int) -> Tensor:
        x = x.to(self.precision or self._dtype)
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)  # the faster layout on a CPU
        for stage in self.stages[first:last]:
            x = stage(x)
        return x


def resized(images: Tensor, size: int | None) -> Tensor:
    """The images with sides of ``size``; None leaves them unchanged.

    Bicubic with antialiasing, rounded to whole numbers, like Pillow's (up to rounding).  So no
    gradients pass.
    """
    if size is None or images.shape[2:] == (size, size):
        return images
    if images.dtype != torch.uint8:
        images = images.detach().round().clamp(0, 255).to(torch.uint8)
    return F.interpolate(images, (size, size), mode="bicubic", antialias=True)
