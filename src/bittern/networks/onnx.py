"""A network as an ONNX file, run by ONNX Runtime; EfficientNet-Lite0 is written to one once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array
from bittern.errors import InputError
from bittern.extras import import_extra
from bittern.io.cache import cache_root
from bittern.io.files import atomic_write, existing_file, make_folder, reading, reason_of
from bittern.networks.lite0_onnx import LAYOUT, MODULES, WEIGHTS, make_graph

TYPES = {"tensor(float)": np.dtype(np.float32), "tensor(uint8)": np.dtype(np.uint8)}
FATAL = 4  # ONNX Runtime's log level: it raises errors, so it need not print them


class OnnxModel:
    """A model from images ``(n, h, w, 3)`` to rows, in a session of ONNX Runtime.

    It has one input of float32 or uint8, with the three channels second or last.

    ``dtype`` is the input's type.  ``batch`` is the number of images, and ``sides`` their height
    and width, if the model fixes these; otherwise None.
    """

    def __init__(
        self, path: str | os.PathLike[str], output: str | None, n_threads: int, title: str
    ) -> None:
        self._title = title
        self._session = _session(path, n_threads, title)
        with reading(path, "ONNX model"):  # its names may be no text
            self._output = _chosen_output(self._session, output, title)
            self._input, shape = _only_input(self._session, title)
        self.dtype = TYPES[self._input.type]
        self._channels_first = shape[1] == 3
        self.batch = shape[0] if isinstance(shape[0], int) else None
        self.sides = _sides(shape[2:] if self._channels_first else shape[1:3], title)

    def __call__(self, images: NDArray[Any]) -> Float32Array:
        """A row for each of at most ``batch`` images ``(n, h, w, 3)`` of the input's type."""
        n = len(images)
        if self.batch is not None and n < self.batch:  # the model takes exactly ``batch`` images
            images = np.concatenate([images, np.repeat(images[-1:], self.batch - n, axis=0)])
        if self._channels_first:
            images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        try:
            (values,) = self._session.run([self._output], {self._input.name: images})
        except Exception as error:  # ONNX Runtime does not export its exception types
            raise InputError(
                f"{self._title}: the model failed on images of shape {images.shape} "
                f"({reason_of(error)})."
            ) from error
        return self._rows(values, len(images))[:n]

    def _rows(self, values: Any, n: int) -> Float32Array:
        """Rows, from values with one entry per image and at most one other axis longer than 1."""
        shape: tuple[int, ...] = getattr(values, "shape", ())
        is_rows = len(shape) > 1 and shape[0] == n and sum(side != 1 for side in shape[1:]) <= 1
        if not is_rows or values.dtype.kind != "f":
            kind = f"{values.dtype} of shape {shape}" if shape else type(values).__name__
            raise InputError(
                f"{self._title}: the output {self._output!r} must be a row of real numbers for "
                f"each of {n} images, got {kind}; choose another output."
            )
        return values.reshape(n, -1).astype(np.float32, copy=False)


def lite0_file(title: str = "EfficientNet-Lite0") -> Path:
    """The path of EfficientNet-Lite0 as an ONNX file in the cache; it is written if missing.

    The model turns uint8 images ``(n, h, w, 3)`` of any size into features ``(n, 1280)``.  The
    file's name holds the version of the graph and a fingerprint of the weights.  Writing it needs
    onnx and the package of the weights; using it needs neither.
    """
    path = lite0_path()
    if not path.exists():
        content = make_graph(title)
        make_folder(path.parent)
        with atomic_write(path) as file:
            file.write(content)
    return path


def lite0_path() -> Path:
    """Where the file is, or will be."""
    return cache_root() / f"efficientnet-lite0-{LAYOUT}-{WEIGHTS}.onnx"


def lite0_modules() -> tuple[str, ...]:
    """The optional modules that running it needs here, also those that write its file."""
    return ("onnxruntime",) if lite0_path().exists() else ("onnxruntime", *MODULES)


def _session(path: str | os.PathLike[str], n_threads: int, title: str) -> Any:
    onnxruntime = import_extra("onnxruntime", title)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.log_severity_level = FATAL
    # Waiting threads sleep: spinning would take the cores from threads that work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with reading(existing_file(path), "ONNX model"):
        return onnxruntime.InferenceSession(
            os.fspath(path), options, providers=["CPUExecutionProvider"]
        )


def _chosen_output(session: Any, output: str | None, title: str) -> str:
    names = [one.name for one in session.get_outputs()]
    if output is not None and output not in names:
        raise InputError(
            f"{title}: output must be one of the model's, {', '.join(names)}, got {output!r}."
        )
    return str(output or names[0])


def _only_input(session: Any, title: str) -> tuple[Any, tuple[Any, ...]]:
    """The input and its shape; only fixed sides are ints."""
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(one.name for one in inputs)
        raise InputError(f"{title}: the model must have one input, got {len(inputs)} ({names}).")
    shape = tuple(inputs[0].shape)
    if inputs[0].type not in TYPES or len(shape) != 4 or 3 not in (shape[1], shape[3]):
        raise InputError(
            f"{title}: the model's input must be float32 or uint8 of shape (n, 3, h, w) or "
            f"(n, h, w, 3), got {inputs[0].type} of shape {shape}."
        )
    return inputs[0], shape


def _sides(sides: tuple[Any, ...], title: str) -> tuple[int, int] | None:
    fixed = [isinstance(side, int) for side in sides]
    if any(is_fixed and side < 1 for is_fixed, side in zip(fixed, sides, strict=True)):
        raise InputError(f"{title}: the model must take images of some size, got {sides}.")
    if any(fixed) != all(fixed):
        raise InputError(
            f"{title}: the model must fix both height and width or neither, got {sides}."
        )
    return (sides[0], sides[1]) if all(fixed) else None
