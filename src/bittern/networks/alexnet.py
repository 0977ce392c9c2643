"""AlexNet and VGG-F: five convolutions and two fully connected layers, from MatConvNet's files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bittern.checks import Float32Array
from bittern.io.files import reading
from bittern.io.onnx_graph import OnnxGraph
from bittern.networks.base import Backbone
from bittern.networks.matconvnet import MatConvNetLayer, MatConvNetModel, read_matconvnet

# fmt: off
KINDS = (
    "conv", "relu", "lrn", "pool",
    "conv", "relu", "lrn", "pool",
    "conv", "relu",
    "conv", "relu",
    "conv", "relu", "pool",
    "conv", "relu",
    "conv", "relu",
)
# fmt: on
N_CONVOLUTIONS, NORMALISED, POOLED = 5, (0, 1), (0, 1, 4)
FINAL_SIDE = 6  # of the last feature map, all of which the first fully connected layer sees
IMAGENET_MEAN = (123.68, 116.779, 103.939)  # red, green, blue


class LayerShape(NamedTuple):
    """The shape of one layer with weights; a fully connected layer covers the whole map."""

    n_out: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1


class ResponseNorm(NamedTuple):
    r"""Local response normalisation over n neighbouring channels, with MatConvNet's parameters.

    .. math:: y_i = x_i \Big/ \Big(\kappa + \alpha \sum_{|j - i| \le (n - 1) / 2} x_j^2
        \Big)^\beta
    """

    n: int
    kappa: float
    alpha: float
    beta: float


class _Chain(Backbone):
    """Seven stages; each is a layer with weights and the layers that follow it.

    A rectifier follows every layer.  The first two stages are then normalised, and the first, the
    second and the fifth end with 3×3 max pooling at stride 2.  There is no dropout, as the
    published files have none.
    """

    title: ClassVar[str]
    side: ClassVar[int]
    shapes: ClassVar[tuple[LayerShape, ...]]
    response_norm: ClassVar[ResponseNorm]

    average: Tensor

    def __init__(self, weights: str | os.PathLike[str] | None = None) -> None:
        super().__init__(self.side)
        mean = np.array(IMAGENET_MEAN, np.float32).reshape(1, 1, 3)
        architecture = _Architecture(self.shapes, (self.response_norm, self.response_norm), mean)
        layers: list[MatConvNetLayer] = []
        if weights is not None:
            model = read_matconvnet(weights)
            with reading(weights, f"{self.title} network"):
                layers = _used_layers(model)
                architecture = _as_in_file(architecture, layers, model.average, self.side)
        self.n_features = architecture.shapes[-1].n_out
        self.stages = nn.ModuleList(_stages(architecture))
        average = torch.from_numpy(architecture.average).permute(2, 0, 1)[None]
        self.register_buffer("average", average)
        if layers:
            self._fill(layers)

    def normalise(self, images: Tensor) -> Tensor:
        """Subtract the average training image."""
        return images - self.average

    def head(self, x: Tensor) -> Tensor:
        """Return the last stage's output, which is the features."""
        return x

    def onnx_normalise(self, graph: OnnxGraph, images: str) -> str:
        """The same as :meth:`normalise` in an ONNX graph."""
        return graph.add("Sub", images, self.average.numpy())

    def onnx_head(self, graph: OnnxGraph, x: str) -> str:
        """The last stage's output."""
        return x

    @torch.no_grad()
    def _fill(self, layers: Sequence[MatConvNetLayer]) -> None:
        modules = (m for m in self.modules() if isinstance(m, nn.Conv2d | nn.Linear))
        for module, layer in zip(modules, _with_weights(layers), strict=True):
            filters = np.ascontiguousarray(layer.filters.transpose(3, 2, 0, 1))
            module.weight.copy_(torch.from_numpy(filters).view_as(module.weight))
            assert module.bias is not None
            module.bias.copy_(torch.from_numpy(layer.biases))


class AlexNet(_Chain):
    """4096 features by AlexNet, as in MatConvNet's imagenet-caffe-alex.mat.

    Images are 227 pixels a side, minus the average image.  Of the five convolutions the second,
    fourth and fifth have two groups; two fully connected layers follow.  The features are the
    seventh layer's, after the rectifier.

    ``weights`` is the path of that file; layers are as wide as in the file.  Without it the
    weights are random.

    Reference: [Krizhevsky-Sutskever-Hinton-2012].
    """

    name = "alexnet"
    title = "AlexNet"
    side = 227
    shapes = (
        LayerShape(96, 11, stride=4),
        LayerShape(256, 5, padding=2, groups=2),
        LayerShape(384, 3, padding=1),
        LayerShape(384, 3, padding=1, groups=2),
        LayerShape(256, 3, padding=1, groups=2),
        LayerShape(4096, FINAL_SIDE),
        LayerShape(4096, 1),
    )
    response_norm = ResponseNorm(5, 1.0, 2e-5, 0.75)


class VGGF(_Chain):
    """4096 features by VGG-F (CNN-F), as in MatConvNet's imagenet-vgg-f.mat.

    Images are 224 pixels a side, minus the average image.  There are five convolutions without
    groups and two fully connected layers.  The features are the seventh layer's, after the
    rectifier.

    ``weights`` is the path of that file; layers are as wide as in the file.  Without it the
    weights are random.

    Reference: [Chatfield-Simonyan-Vedaldi-Zisserman-2014].
    """

    name = "vgg-f"
    title = "VGG-F"
    side = 224
    shapes = (
        LayerShape(64, 11, stride=4),
        LayerShape(256, 5, padding=2),
        LayerShape(256, 3, padding=1),
        LayerShape(256, 3, padding=1),
        LayerShape(256, 3, padding=1),
        LayerShape(4096, FINAL_SIDE),
        LayerShape(4096, 1),
    )
    response_norm = ResponseNorm(5, 2.0, 1e-4, 0.75)


class _Architecture(NamedTuple):
    shapes: tuple[LayerShape, ...]
    response_norms: tuple[ResponseNorm, ...]
    average: Float32Array  # (side, side, 3), or (1, 1, 3)


def _stages(architecture: _Architecture) -> Iterator[nn.Module]:
    n_in = 3
    norms = iter(architecture.response_norms)
    for number, shape in enumerate(architecture.shapes):
        parts: list[nn.Module] = []
        if number < N_CONVOLUTIONS:
            n_out, kernel, stride, padding, groups = shape
            parts.append(nn.Conv2d(n_in, n_out, kernel, stride, padding, groups=groups))
        else:
            parts += nn.Flatten(), nn.Linear(n_in * shape.kernel**2, shape.n_out)
        parts.append(nn.ReLU(inplace=True))
        if number in NORMALISED:
            n, kappa, alpha, beta = next(norms)
            parts.append(nn.LocalResponseNorm(n, alpha * n, beta, kappa))  # torch divides by n
        if number in POOLED:
            parts.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        yield nn.Sequential(*parts)
        n_in = shape.n_out


def _used_layers(model: MatConvNetModel) -> list[MatConvNetLayer]:
    """The layers up to the features; fails if they do not have the expected kinds."""
    layers = list(model.layers[: len(KINDS)])
    for number, kind in enumerate(KINDS):
        found = layers[number].kind if number < len(layers) else "missing"
        if found != kind:
            raise ValueError(f"layer {number + 1} should be {kind} but is {found}")
    return layers


def _as_in_file(
    usual: _Architecture,
    layers: Sequence[MatConvNetLayer],
    average: Float32Array | None,
    side: int,
) -> _Architecture:
    """The architecture with the widths, the normalisations and the average image of a file."""
    shapes: list[LayerShape] = []
    for layer, shape in zip(_with_weights(layers), usual.shapes, strict=True):
        n_in = shapes[-1].n_out if shapes else 3
        shapes.append(_shape_in_file(layer, shape, n_in))
    stated = (layer.numbers.get("param") for layer in layers if layer.kind == "lrn")
    norms = (
        norm if numbers is None else _response_norm(numbers)
        for norm, numbers in zip(usual.response_norms, stated, strict=True)
    )
    if average is None:
        average = usual.average
    if average.shape[:2] not in ((1, 1), (side, side)):
        raise ValueError(f"the average image has shape {average.shape}")
    return _Architecture(tuple(shapes), tuple(norms), average)


def _with_weights(layers: Sequence[MatConvNetLayer]) -> list[MatConvNetLayer]:
    return [layer for layer in layers if layer.kind == "conv"]


def _shape_in_file(layer: MatConvNetLayer, shape: LayerShape, n_in: int) -> LayerShape:
    """The shape with the file's width; fails if anything else differs."""
    *found, n_out = layer.filters.shape
    expected = [shape.kernel, shape.kernel, n_in // shape.groups]
    if found != expected or n_in % shape.groups:
        raise ValueError(f"{layer.name} has filters of {found}, not {expected}")
    if layer.biases.shape != (n_out,) or n_out % shape.groups:
        raise ValueError(f"{layer.name} has {n_out} filters and {layer.biases.size} biases")
    for key, value in (("stride", shape.stride), ("pad", shape.padding)):
        stated = layer.numbers.get(key, ())
        if set(stated) - {value}:
            raise ValueError(f"{layer.name} has {key} {list(stated)}, not {value}")
    return shape._replace(n_out=n_out)


def _response_norm(numbers: tuple[float, ...]) -> ResponseNorm:
    if len(numbers) != 4 or numbers[0] % 2 != 1:
        raise ValueError(f"a normalisation has the numbers {list(numbers)}")
    return ResponseNorm(int(numbers[0]), *numbers[1:])
