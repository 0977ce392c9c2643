"""What a trainer asks of a hasher: its network, inputs for rows, and a score on held-out rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bittern.checks import PositionArray
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.hashing.base import Rows
from bittern.hashing.images import AT_ONCE, shifted_and_mirrored, tensor
from bittern.hashing.networks import HashNetwork
from bittern.hashing.targets import Targets
from bittern.metrics import evaluate
from bittern.progress import Bar

if TYPE_CHECKING:
    from bittern.hashing.gradient import GradientHasher

__all__ = ["Learner"]

VARIANTS = 2**40  # a stream of random numbers that is no epoch's


class Learner:
    """The network, its inputs, and its score on rows that it does not learn from."""

    def __init__(
        self,
        hasher: GradientHasher,
        X: Rows,
        targets: Targets,
        train: PositionArray,
        held_out: PositionArray,
        seed: int,
    ) -> None:
        self._hasher, self._X, self._train = hasher, X, train
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = hasher._build(X[:1], fresh=True)
        weights = hasher._first_weights(X, train)
        if weights is not None:
            self.network.hash.weight.data = tensor(weights)
        self._held_out, self._truth = held_out, targets.take(held_out) if len(held_out) else None
        self._seed = seed

    def inputs(self, rows: PositionArray, rng: np.random.Generator) -> Tensor:
        """What :meth:`HashNetwork.late` takes, for training rows."""
        hasher = self._hasher
        if self._stored is not None:
            variant = rng.integers(len(self._stored), size=len(rows))
            return self._stored[variant, rows].float()
        some = self._X[self._train[rows]]
        if hasher._is_on_vectors:
            return tensor(hasher._scaled(some))
        return tensor(shifted_and_mirrored(some, rng) if hasher.augment else some)

    def score(self, network: HashNetwork) -> float:
        """The metric of the held-out rows among themselves."""
        with torch.inference_mode():
            parts = []
            for i in range(0, len(self._held_out), AT_ONCE):
                rows = self._X[self._held_out[i : i + AT_ONCE]]
                on_vectors = self._hasher._is_on_vectors
                parts.append(
                    network(tensor(self._hasher._scaled(rows) if on_vectors else rows)) > 0
                )
            codes = Codes.from_bits(torch.cat(parts).numpy())
        assert self._truth is not None
        truth = self._truth.as_relevance().excluding(np.arange(len(codes)))
        metric = self._hasher._metric
        score = evaluate(codes, codes, truth, [metric])[metric].mean
        if np.isnan(score):
            raise InputError(
                f"{self._hasher._title}: nothing is relevant among the {len(codes):,} rows held "
                f"out for validation; hold out more of them, or none (validation=0)."
            )
        return float(score)

    @cached_property
    def _stored(self) -> Tensor | None:
        """What comes before the part that learns, ``(n_variants, n, …)``, if it costs much."""
        hasher = self._hasher
        if hasher.network == "kernel":
            return tensor(hasher._scaled(self._X[self._train]))[None]
        if not self.network.frozen:
            return None
        rng, variants = np.random.default_rng([self._seed, VARIANTS]), []
        n_variants = 1 + hasher.augment
        mode = self.network.training
        self.network.eval()
        with torch.inference_mode(), Bar(f"{hasher._title}: the frozen stages") as bar:
            for v in range(n_variants):
                parts = []
                for i in range(0, len(self._train), AT_ONCE):
                    some = self._X[self._train[i : i + AT_ONCE]]
                    some = shifted_and_mirrored(some, rng) if v else some
                    parts.append(self.network.early(tensor(some)).half())
                    bar(v * len(self._train) + i, n_variants * len(self._train))
                variants.append(torch.cat(parts))
        self.network.train(mode)
        return torch.stack(variants).clone()
