"""Layers of PyTorch as nodes of an ONNX graph, and the resizing of images before them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.io.onnx_graph import OnnxGraph
from bittern.networks.convolution import NormalisedConvolution

SUPPORT = 2  # pixels on either side that a cubic kernel covers
SHARPNESS = -0.5  # the kernel's slope at 1, as in Pillow
MOST_BITS = 22  # of the fraction of a weight


def onnx_layers(graph: OnnxGraph, module: nn.Module, x: str) -> str:
    """The output of a module in evaluation mode, whose normalisations are folded in."""
    own: Any = getattr(module, "onnx_output", None)
    if own is not None:
        return str(own(graph, x))
    if isinstance(module, nn.Sequential | nn.ModuleList):
        for part in module:
            x = onnx_layers(graph, part, x)
        return x
    if isinstance(module, NormalisedConvolution):
        y = _convolved(graph, module.conv, x)
        if module.ceiling is None:
            return y
        return graph.add("Clip", y, np.float32(0), np.float32(module.ceiling))
    return _plain_layer(graph, module, x)


def _plain_layer(graph: OnnxGraph, module: nn.Module, x: str) -> str:
    """The output of one of PyTorch's own layers."""
    if isinstance(module, nn.Conv2d):
        return _convolved(graph, module, x)
    if isinstance(module, nn.Linear):
        return graph.add("Gemm", x, _array(module.weight), _array(module.bias), transB=1)
    if isinstance(module, nn.ReLU):
        return graph.add("Relu", x)
    if isinstance(module, nn.Flatten):
        return graph.add("Flatten", x)
    if isinstance(module, nn.LocalResponseNorm):
        alpha, beta, bias = (float(one) for one in (module.alpha, module.beta, module.k))
        return graph.add("LRN", x, size=module.size, alpha=alpha, beta=beta, bias=bias)
    if isinstance(module, nn.MaxPool2d):
        return graph.add(
            "MaxPool",
            x,
            kernel_shape=_pair(module.kernel_size),
            strides=_pair(module.stride),
            ceil_mode=int(module.ceil_mode),
        )
    kind = type(module).__name__
    raise InputError(f"{kind}: a layer of this kind cannot be written as ONNX.")


def _convolved(graph: OnnxGraph, conv: nn.Conv2d, x: str) -> str:
    weights = [_array(one) for one in (conv.weight, conv.bias) if one is not None]
    pads = _pair(conv.padding)
    return graph.add(
        "Conv", x, *weights, strides=_pair(conv.stride), pads=[*pads, *pads], group=conv.groups
    )


def _array(tensor: Any) -> Any:
    return tensor.detach().numpy()


def _pair(value: Any) -> list[int]:
    return list(value) if isinstance(value, tuple) else [int(value)] * 2


def onnx_resized(graph: OnnxGraph, images: str, sides: tuple[int, int], size: int) -> str:
    """Whole numbers ``(n, c, h, w)`` of these sides, resized as PyTorch does with uint8.

    Widths come first, then heights; weights are whole numbers over a power of two, and both results
    are rounded to 0 … 255.  In double precision all of this is exact.
    """
    x = graph.cast(images, np.float64)
    height, width = sides
    if width != size:
        weights, bits = resizing_weights(width, size)
        x = _rounded(graph, graph.add("MatMul", x, weights.T), bits)
    if height != size:
        weights, bits = resizing_weights(height, size)
        x = _rounded(graph, graph.add("MatMul", weights, x), bits)
    return x


def _rounded(graph: OnnxGraph, sums: str, bits: int) -> str:
    """The nearest whole numbers 0 … 255 of sums over a power of two."""
    x = graph.add("Mul", graph.add("Add", sums, np.float64(2 ** (bits - 1))), np.float64(0.5**bits))
    return graph.add("Clip", graph.add("Floor", x), np.float64(0), np.float64(255))


def resizing_weights(n_in: int, n_out: int) -> tuple[Float64Array, int]:
    """Whole weights ``(n_out, n_in)`` of a bicubic resizing, and by which power of 2 they divide.

    The cubic kernel is widened where the image shrinks, so that every pixel counts.  The power is
    the largest for which every weight has 16 bits.
    """
    scale = n_in / n_out
    wide = max(scale, 1.0)
    weights = np.zeros((n_out, n_in))
    for i in range(n_out):
        centre, support = scale * (i + 0.5), SUPPORT * wide
        first = max(int(centre - support + 0.5), 0)
        last = min(int(centre + support + 0.5), n_in)
        values = _cubic((np.arange(first, last, dtype=np.float64) - centre + 0.5) / wide)
        weights[i, first:last] = values / values.sum()
    most = weights.max()
    bits = 0
    while bits < MOST_BITS and int(0.5 + most * 2 ** (bits + 1)) < 2**15:
        bits += 1
    scaled = weights * 2.0**bits
    return np.trunc(scaled + np.copysign(0.5, scaled)), bits


def _cubic(x: Float64Array) -> Float64Array:
    """Keys' cubic kernel."""
    a, x = SHARPNESS, np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, inner, np.where(x < 2, outer, 0.0))
