"""The functions whose signs are the bits: layers on vectors, image networks on images."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bittern.errors import InputError
from bittern.networks import (
    BACKBONES,
    Backbone,
    EfficientNetLite0,
    SmallNet,
)

__all__ = ["HashNetwork", "build", "layers", "restore"]

HIDDEN_SHARE = 0.4  # of the input's dropout, for hidden layers


class HashNetwork(nn.Module):
    """A trunk, dropout, and a linear hash layer; the first stages of the trunk may be frozen.

    What goes through :meth:`early` does not change in training, so it need not be done again.
    """

    def __init__(self, trunk: nn.Module, n_features: int, n_bits: int, dropout: float, frozen: int):
        super().__init__()
        self.trunk, self.frozen = trunk, frozen
        self.dropout = nn.Dropout(dropout)
        self.hash = nn.Linear(n_features, n_bits)
        nn.init.normal_(self.hash.weight, std=n_features**-0.5)
        nn.init.zeros_(self.hash.bias)
        if frozen:
            for parameter in self._frozen_parameters():
                parameter.requires_grad_(False)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of rows."""
        return self.late(self.early(rows))

    def early(self, rows: Tensor) -> Tensor:
        """What comes out of the frozen stages."""
        return self.trunk.early(rows, self.frozen) if self.frozen else rows  # type: ignore[operator]

    def late(self, x: Tensor) -> Tensor:
        """Logits from what came out of the frozen stages."""
        features = self.trunk.late(x, self.frozen) if self.frozen else self.trunk(x)  # type: ignore[operator]
        logits: Tensor = self.hash(self.dropout(features))
        return logits

    def parts(self, rate: float, trunk_rate: float) -> list[dict[str, Any]]:
        """Parameters with their learning rates."""
        trunk = [p for p in self.trunk.parameters() if p.requires_grad]
        groups: list[dict[str, Any]] = [{"params": list(self.hash.parameters()), "lr": rate}]
        return groups + ([{"params": trunk, "lr": trunk_rate}] if trunk else [])

    def train(self, mode: bool = True) -> HashNetwork:
        """Frozen stages stay as they are."""
        super().train(mode)
        if self.frozen:
            for stage in self._frozen_stages():
                stage.train(False)
        return self

    def _frozen_stages(self) -> Iterator[nn.Module]:
        assert isinstance(self.trunk, Backbone)
        yield from self.trunk.stages[: self.frozen]

    def _frozen_parameters(self) -> Iterator[nn.Parameter]:
        for stage in self._frozen_stages():
            yield from stage.parameters()


def layers(n_features: int, hidden: tuple[int, ...], n_bits: int, dropout: float) -> HashNetwork:
    """Linear layers with ReLU between, and dropout before each: less of it for hidden ones."""
    parts: list[nn.Module] = []
    n_in = n_features
    for n_out in hidden:
        linear = nn.Linear(n_in, n_out)
        nn.init.normal_(linear.weight, std=(2 / n_in) ** 0.5)
        nn.init.zeros_(linear.bias)
        parts += [nn.Dropout(dropout if n_in == n_features else HIDDEN_SHARE * dropout)]
        parts += [linear, nn.ReLU()]
        n_in = n_out
    last = HIDDEN_SHARE * dropout if hidden else dropout
    return HashNetwork(nn.Sequential(*parts), n_in, n_bits, last, 0)


def build(
    network: Any,
    sample: Tensor,
    n_bits: int,
    *,
    size: int | None,
    dropout: float,
    frozen: int,
    fresh: bool,
    title: str,
) -> HashNetwork:
    """A hash layer on a backbone, given by its name, or on any module; ``sample`` is one input.

    A fresh one begins with published weights where there are some.
    """
    trunk = _trunk(network, size, fresh, title)
    if frozen and not isinstance(trunk, Backbone):
        raise InputError(
            f"{title}: frozen stages are known of the package's own backbones; freeze another "
            f"module's parameters with requires_grad_(False)."
        )
    if isinstance(trunk, Backbone):
        if frozen > len(trunk.stages):
            raise InputError(f"{title}: frozen must be at most {len(trunk.stages)}, got {frozen}.")
        return HashNetwork(trunk, trunk.n_features, n_bits, dropout, frozen)
    with torch.no_grad():
        features = trunk.eval()(sample)
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != len(sample):
        raise InputError(f"{title}: network must turn a batch of inputs into a matrix of features.")
    return HashNetwork(trunk, features.shape[1], n_bits, dropout, 0)


def _trunk(network: Any, size: int | None, fresh: bool, title: str) -> nn.Module:
    if not isinstance(network, str):
        return copy.deepcopy(network)
    if network == EfficientNetLite0.name:
        return EfficientNetLite0(pretrained=fresh, size=size or 128).fold()
    if network == SmallNet.name:
        return SmallNet(size=size)
    raise InputError(
        f"{title}: network={network!r} would begin with random weights; give the published ones, "
        f"network=bt.hashing.backbones.{BACKBONES[network].__name__}(weights=PATH)."
    )


def restore(network: nn.Module, state: dict[str, NDArray[Any]]) -> nn.Module:
    """The network with what was learned, to be used."""
    network.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in state.items()})
    return network.eval()
