"""The networks whose signs are the bits: layers on vectors, or a hash layer on an image network."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bittern.checks import Float32Array
from bittern.errors import InputError
from bittern.hashing.deep.images import VECTOR_NETWORKS
from bittern.hashing.itq import ITQ
from bittern.networks import (
    BACKBONES,
    Backbone,
    EfficientNetLite0,
    SmallNet,
)

HIDDEN_SHARE = 0.4  # of the input's dropout, for hidden layers


class HashNetwork(nn.Module):
    """A trunk, dropout, and a linear hash layer; the first stages of the trunk may be frozen.

    The output of :meth:`early` does not change in training, so it can be computed once.
    """

    def __init__(self, trunk: nn.Module, n_features: int, n_bits: int, dropout: float, frozen: int):
        super().__init__()
        self.trunk, self.frozen = trunk, frozen
        self.fast = False  # whether to multiply matrices in bfloat16 in training
        self.dropout = Dropout(dropout)
        self.hash = nn.Linear(n_features, n_bits)
        nn.init.normal_(self.hash.weight, std=n_features**-0.5)
        nn.init.zeros_(self.hash.bias)
        for stage in self._frozen_stages():
            stage.requires_grad_(False)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of rows."""
        return self.late(self.early(rows))

    def early(self, rows: Tensor) -> Tensor:
        """The output of the frozen stages."""
        return self.trunk.early(rows, self.frozen) if self.frozen else rows  # type: ignore[operator]

    def early_state(self) -> Iterator[tuple[str, Tensor]]:
        """The weights of the frozen stages, by name."""
        for number, stage in enumerate(self._frozen_stages()):
            yield from ((f"{number}.{name}", v) for name, v in stage.state_dict().items())

    def describe_early(self) -> str:
        """What else determines the output of the frozen stages: image size and precision."""
        size, precision = getattr(self.trunk, "size", None), getattr(self.trunk, "precision", None)
        return f"{type(self.trunk).__name__} {self.frozen} {size} {precision}"

    def late(self, x: Tensor) -> Tensor:
        """Logits from the output of the frozen stages."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.training and self.fast):
            features = self.trunk.late(x, self.frozen) if self.frozen else self.trunk(x)  # type: ignore[operator]
            logits: Tensor = self.hash(self.dropout(features))
        return logits.float() if self.fast else logits

    def parameter_groups(self, rates: tuple[float, float]) -> list[dict[str, Any]]:
        """Parameters with the rates of hash layer and trunk, in an optimiser's format."""
        rate, trunk_rate = rates
        trunk = [p for p in self.trunk.parameters() if p.requires_grad]
        groups: list[dict[str, Any]] = [{"params": list(self.hash.parameters()), "lr": rate}]
        return groups + ([{"params": trunk, "lr": trunk_rate}] if trunk else [])

    def train(self, mode: bool = True) -> HashNetwork:
        """Switch the mode of all stages but the frozen ones, which stay in evaluation mode."""
        super().train(mode)
        for stage in self._frozen_stages():
            stage.train(False)
        return self

    def _frozen_stages(self) -> Iterator[nn.Module]:
        if self.frozen:
            assert isinstance(self.trunk, Backbone)
            yield from self.trunk.stages[: self.frozen]


class Dropout(nn.Module):
    """Zeroes the share ``p`` of the inputs at random in training, and scales the others.

    Compares random bytes with a threshold, so ``p`` is rounded to a multiple of 1/256 below 1;
    torch's own draws a number for each input, which takes as long as a matrix product.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = min(round(256 * p), 255) / 256

    def forward(self, x: Tensor) -> Tensor:
        """The inputs, with another random choice for each call."""
        if not self.training or not self.p:
            return x
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= round(256 * self.p)
        return x * (kept.to(x.dtype) / (1 - self.p))


class PairNetwork(nn.Module):
    """Two networks, of images and of texts, that are trained together."""

    def __init__(self, images: HashNetwork, texts: HashNetwork) -> None:
        super().__init__()
        self.images, self.texts = images, texts

    def forward(self, rows: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Logits of images and of texts."""
        return self.images(rows[0]), self.texts(rows[1])

    def late(self, x: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Logits from the outputs of the frozen stages."""
        return self.images.late(x[0]), self.texts.late(x[1])

    def parameter_groups(
        self, images: tuple[float, float], texts: tuple[float, float]
    ) -> list[dict[str, Any]]:
        """Parameters with the rates of both networks, in an optimiser's format."""
        return self.images.parameter_groups(images) + self.texts.parameter_groups(texts)


def vector_network(
    n_features: int, hidden: tuple[int, ...], n_bits: int, dropout: float, precision: str = "single"
) -> HashNetwork:
    """Linear layers with ReLU between them and dropout before each, less before hidden layers.

    ``hidden`` are the numbers of units; none makes a single layer.  With ``precision`` "bfloat16",
    training multiplies matrices in it.
    """
    parts: list[nn.Module] = []
    n_in = n_features
    for n_out in hidden:
        linear = nn.Linear(n_in, n_out)
        nn.init.normal_(linear.weight, std=(2 / n_in) ** 0.5)
        nn.init.zeros_(linear.bias)
        parts += [Dropout(dropout if n_in == n_features else HIDDEN_SHARE * dropout)]
        parts += [linear, nn.ReLU()]
        n_in = n_out
    last = HIDDEN_SHARE * dropout if hidden else dropout
    network = HashNetwork(nn.Sequential(*parts), n_in, n_bits, last, 0)
    network.fast = precision == "bfloat16"
    return network


def itq_weights(rows: Float32Array, n_bits: int, random_state: int | None) -> Float32Array:
    """The weights ``(n_bits, dim)`` of ITQ, scaled like random ones to logits of variance 1."""
    projection = ITQ(n_bits, random_state=random_state).fit(rows).projection_
    spread = (rows @ projection).std(axis=0)
    return (projection / np.where(spread > 0, spread, 1)).T.astype(np.float32)


def check_network(network: Any, title: str) -> None:
    """Refuse anything but the name of a network, or a module."""
    names = [*VECTOR_NETWORKS, *BACKBONES]
    if not isinstance(network, nn.Module) and network not in names:
        raise InputError(
            f"{title}: network must be one of {', '.join(map(repr, names))}, "
            f"or a torch.nn.Module, got {network!r}."
        )


def make_trunk(network: Any, size: int | None, pretrained: bool, title: str) -> nn.Module:
    """An image network by its name, or a copy of the user's module.

    ``pretrained`` loads published weights where the package has them.
    """
    if not isinstance(network, str):
        return copy.deepcopy(network)
    if network == EfficientNetLite0.name:
        return EfficientNetLite0(pretrained=pretrained, size=size or 128).fold()
    if network == SmallNet.name:
        return SmallNet(size=size)
    raise InputError(
        f"{title}: network={network!r} would start with random weights; pass the published ones, "
        f"network=bt.hashing.backbones.{BACKBONES[network].__name__}(weights=PATH)."
    )


def set_precision(trunk: nn.Module, precision: str, title: str) -> None:
    """Make the stages of the package's networks compute in ``"single"`` or ``"bfloat16"``."""
    if precision == "single":
        return
    if not isinstance(trunk, Backbone):
        raise InputError(f"{title}: precision={precision!r} needs one of the package's networks.")
    trunk.precision = getattr(torch, precision)


def add_hash_layer(
    trunk: nn.Module, sample: Tensor, n_bits: int, dropout: float, frozen: int, title: str
) -> HashNetwork:
    """The trunk below a new hash layer, its first stages frozen; ``sample`` is one input."""
    if isinstance(trunk, Backbone):
        if frozen > len(trunk.stages):
            raise InputError(f"{title}: frozen must be at most {len(trunk.stages)}, got {frozen}.")
        return HashNetwork(trunk, trunk.n_features, n_bits, dropout, frozen)
    if frozen:
        raise InputError(
            f"{title}: frozen works with the package's own image networks; freeze the parameters "
            f"of another module with requires_grad_(False)."
        )
    with torch.no_grad():
        features = trunk.eval()(sample)
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != len(sample):
        raise InputError(f"{title}: network must turn a batch of inputs into a matrix of features.")
    return HashNetwork(trunk, features.shape[1], n_bits, dropout, 0)


def restore(network: HashNetwork, state: dict[str, NDArray[Any]]) -> nn.Module:
    """The network with its learned state, in evaluation mode."""
    network.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in state.items()})
    return network.eval()


def to_tensor(rows: NDArray[Any]) -> Tensor:
    """Rows, or images with their channels first, in a network's input format."""
    if rows.ndim == 3:
        rows = rows[..., None]
    if rows.ndim == 4:
        rows = rows.transpose(0, 3, 1, 2)
    kept = rows if rows.dtype == np.uint8 and rows.ndim == 4 else rows.astype(np.float32)
    return torch.from_numpy(np.require(kept, requirements=["C", "W"]))
