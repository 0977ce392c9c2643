"""A small convolutional network for small images, quick to train on a CPU."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from bittern.checks import check_count
from bittern.io.onnx_graph import OnnxGraph
from bittern.networks.base import Backbone
from bittern.networks.convolution import NormalisedConvolution


class SmallNet(Backbone):
    """Six convolutions for images of about 32 × 32 pixels, trained from scratch.

    There are three stages of two 3×3 convolutions, each with batch normalisation and a rectifier,
    and of 2×2 max pooling.  With ``width`` w the convolutions have w, w; 2w, 2w; 4w and 8w
    channels, and the 8w features are the means over all positions.
    """

    name = "small"
    least = 8

    def __init__(self, size: int | None = None, width: int = 32) -> None:
        super().__init__(size)
        w = check_count(width, "SmallNet: width")
        self.n_features = 8 * w
        self.stages = nn.ModuleList(
            (_stage(3, w, w), _stage(w, 2 * w, 2 * w), _stage(2 * w, 4 * w, 8 * w))
        )

    def normalise(self, images: Tensor) -> Tensor:
        """(x − 128) / 64, which gives about unit variance."""
        return (images - 128.0) / 64.0

    def onnx_normalise(self, graph: OnnxGraph, images: str) -> str:
        """The same in an ONNX graph."""
        return graph.add("Div", graph.add("Sub", images, np.float32(128)), np.float32(64))


def _stage(n_in: int, n_middle: int, n_out: int) -> nn.Module:
    return nn.Sequential(
        NormalisedConvolution(n_in, n_middle, 3),
        NormalisedConvolution(n_middle, n_out, 3),
        nn.MaxPool2d(2),
    )
