"""Five convolutions and two full layers: what VGG-F and AlexNet have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bittern.checks import Float32Array
from bittern.io.files import reading
from bittern.networks.base import Backbone
from bittern.networks.matconvnet import Layer, Network, read_network

__all__ = ["PLACES", "Chain", "Response", "Row"]

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
PLACES = 6  # a side, where the full layers begin
COLOUR = (123.68, 116.779, 103.939)  # ImageNet's average


class Row(NamedTuple):
    """One layer with weights; a full layer is a convolution of all places."""

    n_out: int
    kernel: int
    stride: int = 1
    around: int = 0  # zeros
    groups: int = 1


class Response(NamedTuple):
    r"""Local response normalisation over n neighbouring channels, as MatConvNet counts.

    .. math:: y_i = x_i \Big/ \Big(\kappa + \alpha \sum_{|j - i| \le (n - 1) / 2} x_j^2
        \Big)^\beta
    """

    n: int
    kappa: float
    alpha: float
    beta: float


class _Plan(NamedTuple):
    rows: tuple[Row, ...]
    responses: tuple[Response, ...]
    average: Float32Array  # (side, side, 3), or (1, 1, 3)


class Chain(Backbone):
    """Seven stages, each a layer with weights and what follows it.

    Rectifiers follow all; then the first two are normalised, and after the first, the second and
    the fifth the largest of every 3×3 places, two apart, is taken.  There is no dropout, as there
    is none in the published files.
    """

    title: ClassVar[str]
    side: ClassVar[int]
    rows: ClassVar[tuple[Row, ...]]
    response: ClassVar[Response]

    average: Tensor

    def __init__(self, weights: str | os.PathLike[str] | None = None) -> None:
        super().__init__(self.side)
        colour = np.array(COLOUR, np.float32).reshape(1, 1, 3)
        plan = _Plan(self.rows, (self.response, self.response), colour)
        layers: list[Layer] = []
        if weights is not None:
            network = read_network(weights)
            with reading(weights, f"{self.title} network"):
                layers = _in_order(network)
                plan = _fitted(plan, layers, network.average, self.side)
        self.n_features = plan.rows[-1].n_out
        self.stages = nn.ModuleList(_stages(plan))
        self.register_buffer("average", torch.from_numpy(plan.average).permute(2, 0, 1)[None])
        if layers:
            self._fill(layers)

    def normalise(self, images: Tensor) -> Tensor:
        """Less the average image."""
        return images - self.average

    def head(self, x: Tensor) -> Tensor:
        """The features are there already."""
        return x

    @torch.no_grad()
    def _fill(self, layers: Sequence[Layer]) -> None:
        modules = (m for m in self.modules() if isinstance(m, nn.Conv2d | nn.Linear))
        for module, layer in zip(modules, _weighted(layers), strict=True):
            filters = np.ascontiguousarray(layer.filters.transpose(3, 2, 0, 1))
            module.weight.copy_(torch.from_numpy(filters).view_as(module.weight))
            assert module.bias is not None
            module.bias.copy_(torch.from_numpy(layer.biases))


def _stages(plan: _Plan) -> Iterator[nn.Module]:
    n_in = 3
    responses = iter(plan.responses)
    for number, row in enumerate(plan.rows):
        parts: list[nn.Module] = []
        if number < N_CONVOLUTIONS:
            n_out, kernel, stride, around, groups = row
            parts.append(nn.Conv2d(n_in, n_out, kernel, stride, around, groups=groups))
        else:
            parts += nn.Flatten(), nn.Linear(n_in * row.kernel**2, row.n_out)
        parts.append(nn.ReLU(inplace=True))
        if number in NORMALISED:
            n, kappa, alpha, beta = next(responses)
            parts.append(nn.LocalResponseNorm(n, alpha * n, beta, kappa))  # torch divides by n
        if number in POOLED:
            parts.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        yield nn.Sequential(*parts)
        n_in = row.n_out


def _in_order(network: Network) -> list[Layer]:
    """The layers that are used, if they are the ones that should be there."""
    layers = list(network.layers[: len(KINDS)])
    for number, kind in enumerate(KINDS):
        found = layers[number].kind if number < len(layers) else "missing"
        if found != kind:
            raise ValueError(f"layer {number + 1} should be {kind} and is {found}")
    return layers


def _fitted(
    usual: _Plan, layers: Sequence[Layer], average: Float32Array | None, side: int
) -> _Plan:
    """The plan with the widths, the normalisations and the average image of a file."""
    rows: list[Row] = []
    for layer, row in zip(_weighted(layers), usual.rows, strict=True):
        n_in = rows[-1].n_out if rows else 3
        rows.append(_row(layer, row, n_in))
    stated = (layer.numbers.get("param") for layer in layers if layer.kind == "lrn")
    responses = (
        response if numbers is None else _response(numbers)
        for response, numbers in zip(usual.responses, stated, strict=True)
    )
    if average is None:
        average = usual.average
    if average.shape[:2] not in ((1, 1), (side, side)):
        raise ValueError(f"the average image has the shape {average.shape}")
    return _Plan(tuple(rows), tuple(responses), average)


def _weighted(layers: Sequence[Layer]) -> list[Layer]:
    return [layer for layer in layers if layer.kind == "conv"]


def _row(layer: Layer, row: Row, n_in: int) -> Row:
    """The row as wide as the file has it, if all else is as it should be."""
    *shape, n_out = layer.filters.shape
    expected = [row.kernel, row.kernel, n_in // row.groups]
    if shape != expected or n_in % row.groups:
        raise ValueError(f"{layer.name} has filters of {shape}, not {expected}")
    if layer.biases.shape != (n_out,) or n_out % row.groups:
        raise ValueError(f"{layer.name} has {n_out} filters and {layer.biases.size} biases")
    for key, value in (("stride", row.stride), ("pad", row.around)):
        stated = layer.numbers.get(key, ())
        if set(stated) - {value}:
            raise ValueError(f"{layer.name} has {key} {list(stated)}, not {value}")
    return row._replace(n_out=n_out)


def _response(numbers: tuple[float, ...]) -> Response:
    if len(numbers) != 4 or numbers[0] % 2 != 1:
        raise ValueError(f"a normalisation has the numbers {list(numbers)}")
    return Response(int(numbers[0]), *numbers[1:])
