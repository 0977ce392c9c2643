"""The ONNX graph of a network whose signs are the bits: layers on vectors, or an image network."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.errors import InputError
from bittern.hashing.kernel_maps import onnx_gaussian
from bittern.io.onnx_graph import OnnxGraph, Port

if TYPE_CHECKING:
    from bittern.hashing.base import Hasher as Base
else:
    Base = object


class NetworkGraph(Base):
    """What a gradient-trained hasher draws into an ONNX graph.

    Layers on vectors compute in double precision, as ``encode`` does.  An image network computes in
    single precision, as PyTorch does, with sums in another order; so a bit may differ if its logit
    is 0 up to rounding.
    """

    network: Any
    precision: str
    mirror: bool
    state_: dict[str, Any]
    shape_in_: tuple[int, ...]
    anchors_: Any
    width_: float
    mean_: Any
    scale_: float

    @property
    @abstractmethod
    def _takes_vectors(self) -> bool: ...

    @property
    @abstractmethod
    def _is_own_module(self) -> bool: ...

    def _onnx_rows(self, name: str, dtype: str) -> Port:
        if self._takes_vectors:
            return super()._onnx_rows(name, dtype)
        return Port("images", np.uint8, ("n", *map(int, self.shape_in_)))

    def _onnx_bits(self, graph: OnnxGraph, rows: str) -> str:
        if self._takes_vectors:
            return super()._onnx_bits(graph, rows)
        return graph.add("Greater", self._onnx_logits(graph, rows), np.float32(0))

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        if not self._takes_vectors:
            return self._onnx_image_logits(graph, rows)
        if self.network == "kernel":
            rows = onnx_gaussian(graph, rows, self.anchors_, self.width_)
        # As an array: ONNX Runtime moves a single number into the product, in single precision.
        scale = np.full(len(self.mean_), self.scale_)
        rows = graph.add("Mul", graph.add("Sub", rows, self.mean_), scale)
        if self.network == "mlp":
            rows = graph.add("Relu", self._onnx_layer(graph, rows, "trunk.1"))
        return self._onnx_layer(graph, rows, "hash")

    def _onnx_layer(self, graph: OnnxGraph, rows: str, name: str) -> str:
        weights, biases = (self.state_[f"{name}.{one}"] for one in ("weight", "bias"))
        product = graph.add("MatMul", rows, weights.T.astype(rows_type(self)))
        return graph.add("Add", product, biases.astype(rows_type(self)))

    def _onnx_image_logits(self, graph: OnnxGraph, images: str) -> str:
        """Logits of uint8 images; with ``mirror``, the mean of both versions of an image."""
        self._check_exportable()
        if len(self.shape_in_) == 2:
            images = graph.add("Unsqueeze", images, np.array([3]))
        x = graph.add("Transpose", images, perm=[0, 3, 1, 2])
        logits = self._onnx_network(graph, x)
        if self.mirror:
            both = graph.add("Add", logits, self._onnx_network(graph, graph.reversed(x, 3)))
            logits = graph.add("Div", both, np.float32(2))
        return logits

    def _onnx_network(self, graph: OnnxGraph, images: str) -> str:
        from bittern.hashing.deep.layers import restore

        network: Any = restore(self._build(self._blank(), pretrained=False), self.state_)
        features = network.trunk.fold().onnx_features(graph, images, tuple(self.shape_in_[:2]))
        return self._onnx_layer(graph, features, "hash")

    def _check_exportable(self) -> None:
        self._import_torch()
        reason = None
        if self._is_own_module:
            reason = "its network is a module of your own; torch.onnx can export that"
        elif self.precision != "single":
            reason = f"its image network computes in {self.precision}, which ONNX Runtime does not"
        if reason:
            raise InputError(f"{self._title}: has no ONNX graph, because {reason}.")


def rows_type(hasher: NetworkGraph) -> Any:
    """The precision of the layers."""
    return np.float64 if hasher._takes_vectors else np.float32
