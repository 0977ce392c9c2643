"""ONNX graphs under construction, by ``onnx`` alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

OPSET, IR_VERSION = 13, 8  # versions that ONNX Runtime has supported since 2021
ML, ML_OPSET = "ai.onnx.ml", 3  # the operators of decision trees, with doubles
NUMBERS = {
    np.dtype(np.bool_): 9,
    np.dtype(np.uint8): 2,
    np.dtype(np.int32): 6,
    np.dtype(np.float32): 1,
    np.dtype(np.float64): 11,
}  # ONNX's numbers of the types
Value = str | NDArray[Any] | np.generic  # a value of the graph by its name, or a constant


class Port(NamedTuple):
    """An input or output: its name, type and shape, in which words stand for any number."""

    name: str
    dtype: Any
    shape: tuple[int | str, ...]


class OnnxGraph:
    """A graph under construction; its methods return the names of values."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, kind: str, *inputs: Value, domain: str = "", **attributes: Any) -> str:
        """The first output of a new node of this kind, whose further outputs have ``.1`` after it.

        ``outputs`` is the number of outputs, 1 by default.
        """
        from onnx.helper import make_node

        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        first = f"value{len(self._nodes)}"
        more = [f"{first}.{k}" for k in range(1, attributes.pop("outputs", 1))]
        node = make_node(kind, names, [first, *more], domain=domain, **attributes)
        self._nodes.append(node)
        return first

    def cast(self, value: str, dtype: Any) -> str:
        """The value as another type."""
        return self.add("Cast", value, to=NUMBERS[np.dtype(dtype)])

    def reversed(self, value: str, axis: int) -> str:
        """The value in reverse order along an axis."""
        ends = np.array([-1]), np.array([np.iinfo(np.int64).min]), np.array([axis]), np.array([-1])
        return self.add("Slice", value, *ends)

    def constant(self, values: NDArray[Any] | np.generic) -> str:
        """A constant, of the type that the array has."""
        from onnx.numpy_helper import from_array

        name = f"constant{len(self._constants)}"
        # ascontiguousarray would turn a number into an array of one
        self._constants.append(from_array(np.asarray(values, order="C"), name))
        return name

    def content(
        self,
        title: str,
        inputs: list[Port],
        outputs: Mapping[str, Port],
        metadata: Mapping[str, str] | None = None,
    ) -> bytes:
        """The content of a file with this graph; ``outputs`` are ports by the names of values."""
        from onnx.helper import (
            make_graph,
            make_model,
            make_node,
            make_opsetid,
            set_model_props,
        )

        named = [make_node("Identity", [value], [port.name]) for value, port in outputs.items()]
        opsets = [make_opsetid("", OPSET)]
        if any(node.domain == ML for node in self._nodes):
            opsets.append(make_opsetid(ML, ML_OPSET))
        graph = make_graph(
            self._nodes + named,
            title,
            [_port(one) for one in inputs],
            [_port(one) for one in outputs.values()],
            self._constants,
        )
        model = make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        set_model_props(model, dict(metadata or {}))
        content: bytes = model.SerializeToString(deterministic=True)
        return content


def _port(port: Port) -> Any:
    from onnx.helper import make_tensor_value_info

    return make_tensor_value_info(port.name, NUMBERS[np.dtype(port.dtype)], port.shape)
