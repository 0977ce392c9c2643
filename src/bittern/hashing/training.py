"""Training by gradients: batches in which every row is a query, schedules, checkpoints."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bittern.checks import PositionArray
from bittern.errors import FileError, InputError
from bittern.hashing.networks import HashNetwork
from bittern.hashing.targets import Targets
from bittern.io.files import atomic_write, reading
from bittern.progress import Bar

__all__ = ["Plan", "Trainer", "balanced_batches"]

Loss = Callable[[Tensor, Tensor, float], Tensor]
LEAST_OF_A_CLASS = 5  # rows in a batch, if there are more classes than it can hold
WARM_UP = 0.1  # of all steps


@dataclass(frozen=True)
class Plan:
    """How to train: everything that decides the result besides the data and the network."""

    n_epochs: int
    batch_size: int
    rate: float
    trunk_rate: float
    decay: float
    seed: int
    patience: int | None


@dataclass
class Progress:
    """What has been reached after some epochs."""

    epoch: int = 0
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best: int = 0  # the epoch whose network is kept, counted from 1

    def is_best(self) -> bool:
        """Whether the last epoch is the one to keep."""
        return self.best == self.epoch

    def is_hopeless(self, patience: int | None) -> bool:
        """Whether nothing has become better for too long."""
        return patience is not None and self.epoch - self.best >= patience


class Trainer:
    """Trains a network epoch by epoch, and goes on from a checkpoint if there is one.

    ``inputs(rows, rng)`` gives the network's inputs for training rows, ``loss(logits, gains, t)``
    the objective where t runs from 0 to 1 over the training, ``score(network)`` the value on
    validation data, larger for better.  Each epoch draws its random numbers afresh from the plan's
    seed and its own number, so that it does not matter where the training was interrupted.
    """

    def __init__(
        self,
        network: HashNetwork,
        inputs: Callable[[PositionArray, np.random.Generator], Tensor],
        targets: Targets,
        loss: Loss,
        plan: Plan,
        *,
        score: Callable[[HashNetwork], float] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        fingerprint: str = "",
        title: str = "training",
    ) -> None:
        self.network, self.plan, self.progress = network, plan, Progress()
        self.best: dict[str, Tensor] = _copied(network)
        self._inputs, self._targets, self._loss, self._score = inputs, targets, loss, score
        self._title, self._fingerprint = title, fingerprint
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        parts = network.parts(plan.rate, plan.trunk_rate)
        self._optimiser = torch.optim.AdamW(parts, weight_decay=plan.decay)
        self._rates = [group["lr"] for group in self._optimiser.param_groups]
        self._n_batches = max(1, targets.n // plan.batch_size)
        if self._checkpoint is not None and self._checkpoint.exists():
            self._resume(self._checkpoint)

    def epochs(self) -> Iterator[Progress]:
        """Train, and say after each epoch (and before the first, if resumed) what was reached."""
        with Bar(f"{self._title}: training") as bar, torch.random.fork_rng(devices=[]):
            if self.progress.epoch:
                yield self.progress
            while not self._is_over():
                self._epoch(bar)
                if self._checkpoint is not None:
                    self._save(self._checkpoint)
                yield self.progress

    def _is_over(self) -> bool:
        done = self.progress
        return done.epoch >= self.plan.n_epochs or done.is_hopeless(self.plan.patience)

    def _epoch(self, bar: Bar) -> None:
        progress, plan = self.progress, self.plan
        number = progress.epoch
        rng = np.random.default_rng([plan.seed, number])
        torch.manual_seed(int(rng.integers(2**62)))
        total = 0.0
        self.network.train()
        batches = balanced_batches(self._targets, plan.batch_size, self._n_batches, rng)
        for i, rows in enumerate(batches):
            step = number * self._n_batches + i
            total += self._step(rows, rng, step) / self._n_batches
            bar(
                step + 1,
                plan.n_epochs * self._n_batches,
                self._note(total * self._n_batches, i + 1),
            )
        progress.epoch += 1
        progress.losses.append(total)
        self.network.eval()
        if self._score is not None:
            progress.scores.append(self._score(self.network))
        if self._score is None or progress.scores[-1] > max(
            progress.scores[:-1], default=-math.inf
        ):
            progress.best = progress.epoch
            self.best = _copied(self.network)

    def _step(self, rows: PositionArray, rng: np.random.Generator, step: int) -> float:
        t = step / (self.plan.n_epochs * self._n_batches)
        for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = rate * _schedule(t)
        gains = torch.from_numpy(self._targets.gains(rows, rows))
        loss = self._loss(self.network.late(self._inputs(rows, rng)), gains, t)
        value = loss.item()
        if not math.isfinite(value):
            raise InputError(
                f"{self._title}: the loss became {value} in epoch {self.progress.epoch + 1}; "
                f"lower learning_rate (it is {self.plan.rate:g})."
            )
        self._optimiser.zero_grad()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return value

    def _note(self, total: float, n: int) -> str:
        scores = self.progress.scores
        tail = f", validation {scores[-1]:.3f}" if scores else ""
        return f"loss {total / n:.3f}{tail}"

    def _save(self, path: Path) -> None:
        held = io.BytesIO()
        torch.save(
            {
                "fingerprint": self._fingerprint,
                "progress": vars(self.progress),
                "network": self.network.state_dict(),
                "optimiser": self._optimiser.state_dict(),
                "best": None if self.progress.is_best() else self.best,
            },
            held,
        )
        with atomic_write(path) as file:
            file.write(held.getbuffer())

    def _resume(self, path: Path) -> None:
        with reading(path, "checkpoint"):
            state = torch.load(path, map_location="cpu", weights_only=True)
            if state["fingerprint"] != self._fingerprint:
                raise FileError(
                    f"{path}: is a checkpoint of another training (other data or parameters); "
                    f"delete it, or give another checkpoint."
                )
            self.network.load_state_dict(state["network"])
            self._optimiser.load_state_dict(state["optimiser"])
            self.progress = Progress(**state["progress"])
        self.best = state["best"] or _copied(self.network)


def balanced_batches(
    targets: Targets, size: int, n_batches: int, rng: np.random.Generator
) -> Iterator[PositionArray]:
    """Rows of each batch: as many of each class, or any rows if there are no classes.

    If there are more classes than fit with five rows each, every batch has some of them.  Rows of
    a class come in random order, none twice before all have come.
    """
    if targets.labels is None:
        order = rng.permutation(targets.n)
        yield from (order[i * size : (i + 1) * size] for i in range(n_batches))
        return
    classes = [np.flatnonzero(targets.labels == c) for c in np.unique(targets.labels)]
    n_chosen = max(1, min(len(classes), size // LEAST_OF_A_CLASS))
    queues = [_endless(rows, rng) for rows in classes]
    turn = _endless(np.arange(len(classes)), rng)
    share = np.diff(np.linspace(0, min(size, targets.n), n_chosen + 1).astype(int))
    for _ in range(n_batches):
        chosen = [next(turn) for _ in range(n_chosen)]
        rows = [next(queues[c]) for c, n in zip(chosen, share, strict=True) for _ in range(n)]
        yield np.unique(np.array(rows))


def _endless(rows: PositionArray, rng: np.random.Generator) -> Iterator[Any]:
    while True:
        yield from rng.permutation(rows)


def _schedule(t: float) -> float:
    """Share of the learning rate: up in a line, then down as a cosine."""
    if t < WARM_UP:
        return 0.04 + 0.96 * t / WARM_UP
    return 0.5 + 0.5 * math.cos(math.pi * (t - WARM_UP) / (1 - WARM_UP))


def _copied(network: HashNetwork) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
