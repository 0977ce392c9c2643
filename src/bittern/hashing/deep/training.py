"""Training by gradients: batches in which every row is a query, learning rates, checkpoints."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bittern.checks import PositionArray
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.hashing.deep.images import AT_ONCE
from bittern.hashing.deep.layers import HashNetwork, PairNetwork
from bittern.hashing.targets import Targets
from bittern.io.files import atomic_write, reading
from bittern.metrics import evaluate
from bittern.progress import Bar
from bittern.relevance import Relevance

Network = HashNetwork | PairNetwork
Logits = Any  # a tensor, or for two modalities a pair of them
Loss = Callable[[Logits, Tensor, float], Tensor]  # of logits, target, and share of training
LEAST_PER_CLASS = 5  # rows in a batch, if there are more classes than it can hold
WARM_UP = 0.1  # of all steps
MOMENTUM = 0.9  # of stochastic gradient descent
WATCHED = 500  # rows whose metric is recorded after each epoch


@dataclass(frozen=True)
class TrainingSettings:
    """How to train: everything that affects the result besides the data and the network."""

    n_epochs: int
    batch_size: int
    rates: tuple[tuple[float, float], ...]  # of the hash layer and the trunk, for each network
    weight_decay: float
    optimiser: str
    schedule: str
    averaging: float
    balanced: bool
    seed: int
    patience: int | None
    title: str = "training"  # in messages


@dataclass
class TrainingProgress:
    """The state of training so far; checkpoints hold these fields."""

    epoch: int = 0
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    curves: dict[str, list[float]] = field(default_factory=dict)
    best: int = 0  # the epoch whose network is kept, counted from 1

    def is_best(self) -> bool:
        """Whether the last epoch is the best so far."""
        return self.best == self.epoch

    def has_stalled(self, patience: int | None) -> bool:
        """Whether the last ``patience`` epochs brought no improvement."""
        return patience is not None and self.epoch - self.best >= patience


@dataclass(frozen=True)
class Checkpoint:
    """A file with the state after the last epoch, and the fingerprint of its training."""

    path: Path
    fingerprint: str


def check_checkpoint(path: str | os.PathLike[str], random_state: int | None, title: str) -> None:
    """Fail early, not after the first epoch."""
    if random_state is None:
        raise InputError(
            f"{title}: a checkpoint needs a random_state, to resume the same training."
        )
    if not Path(path).parent.is_dir():
        raise InputError(
            f"{title}: checkpoint {os.fspath(path)!r} is in a folder that does not exist."
        )


def fingerprint(parameters: Mapping[str, str], *arrays: NDArray[Any]) -> str:
    """A hash of parameters and arrays."""
    digest = hashlib.blake2b(json.dumps(parameters, sort_keys=True).encode(), digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class Inputs(Protocol):
    """The training rows as a network's inputs."""

    def draw(self, rows: PositionArray, rng: np.random.Generator) -> Any:
        """Inputs of the learned part of the network, for some training rows."""

    def plain(self, rows: PositionArray) -> Any:
        """The same without random variations."""


class VectorInputs:
    """Rows of numbers, ready for the first layer; Gaussian ``noise`` varies them in training."""

    def __init__(self, rows: Tensor, noise: float = 0.0) -> None:
        self._rows, self._noise = rows, noise  # (n, dim), and its standard deviation

    def draw(self, rows: PositionArray, rng: np.random.Generator) -> Tensor:
        """Some of the rows, with noise."""
        chosen = self._rows[rows]
        if not self._noise:
            return chosen
        noise = rng.standard_normal(chosen.shape, dtype=np.float32)
        return chosen + self._noise * torch.from_numpy(noise)

    def plain(self, rows: PositionArray) -> Tensor:
        """Some of the rows."""
        return self._rows[rows]


class PairInputs:
    """Paired images and texts as the inputs of two networks; ``words`` are further texts."""

    def __init__(self, images: Inputs, texts: Inputs, words: Tensor | None = None) -> None:
        self._images, self._texts, self._words = images, texts, words

    def draw(self, rows: PositionArray, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Inputs of some pairs, and of all the words."""
        texts = self._texts.draw(rows, rng)
        if self._words is not None:
            texts = torch.cat((texts, self._words))
        return self._images.draw(rows, rng), texts

    def plain(self, rows: PositionArray) -> tuple[Tensor, Tensor]:
        """Inputs of some pairs."""
        return self._images.plain(rows), self._texts.plain(rows)


class Watched:
    """Rows whose metric among themselves is followed: the exact one, and its relaxation.

    Of two modalities, the metric is the mean of both directions, and an item's own pair counts.
    """

    def __init__(self, logits: Callable[[Network], Logits], targets: Targets, metric: str):
        self._logits, self._metric, self._targets = logits, metric, targets
        self._truth = targets.as_relevance()
        self._truth_of_others = self._truth.excluding(np.arange(targets.n))

    @staticmethod
    def of_training(
        inputs: Inputs, targets: Targets, metric: str, rng: np.random.Generator
    ) -> Watched:
        """Some of the training rows."""
        rows = np.sort(rng.permutation(targets.n)[:WATCHED])

        def logits(network: Network) -> Logits:
            blocks = np.array_split(rows, max(1, len(rows) // AT_ONCE))
            return _joined([network.late(inputs.plain(some)) for some in blocks])

        return Watched(logits, targets.take(rows), metric)

    @staticmethod
    def of_others(inputs: Any, targets: Targets, metric: str) -> Watched:
        """Rows that training does not see, as inputs of the whole network."""

        def logits(network: Network) -> Logits:
            starts = range(0, targets.n, AT_ONCE)
            return _joined([network(_some(inputs, slice(i, i + AT_ONCE))) for i in starts])

        return Watched(logits, targets, metric)

    def values(self, network: Network, relaxed: Loss, t: float) -> tuple[float, float]:
        """The relaxed and the exact metric of a network in evaluation mode."""
        rows = np.arange(self._targets.n)
        with torch.inference_mode():
            logits = self._logits(network)
            gains = torch.from_numpy(self._targets.gains(rows, rows))
            soft = relaxed(logits, gains, t).item()
        return soft, self._exact(logits)

    def exact(self, network: Network) -> float:
        """The exact metric; NaN if nothing is relevant to any row."""
        with torch.inference_mode():
            return self._exact(self._logits(network))

    def _exact(self, logits: Logits) -> float:
        if isinstance(logits, Tensor):
            codes = Codes.from_bits((logits > 0).numpy())
            return self._mean(codes, codes, self._truth_of_others)
        images, texts = (Codes.from_bits((one > 0).numpy()) for one in logits)
        both = self._mean(images, texts, self._truth), self._mean(texts, images, self._truth)
        return sum(both) / 2

    def _mean(self, queries: Codes, database: Codes, truth: Relevance) -> float:
        return float(evaluate(queries, database, truth, [self._metric])[self._metric].mean)


class Validation:
    """The exact metric of held-out rows among themselves, which chooses the epoch to keep."""

    def __init__(self, watched: Watched, n: int, title: str) -> None:
        self._watched, self._n, self._title = watched, n, title

    def score(self, network: Network) -> float:
        """The mean of the metric for the codes of a network in evaluation mode."""
        score = self._watched.exact(network)
        if np.isnan(score):
            raise InputError(
                f"{self._title}: nothing is relevant among the {self._n:,} rows held out for "
                f"validation; hold out more rows, or none (validation=0)."
            )
        return score


class Trainer:
    """Trains a network epoch by epoch.

    ``loss(logits, target, t)`` is the objective of a batch, where ``target`` is what
    ``batch_targets`` gives for its rows, and t runs from 0 to 1 over the training.  Each
    epoch seeds its random numbers from the settings' seed and its own number, so a training that
    resumes from a checkpoint ends with the same result as one without an interruption.
    """

    def __init__(
        self,
        network: Network,
        inputs: Inputs,
        targets: Targets,
        batch_targets: Callable[[PositionArray], Tensor],
        loss: Loss,
        settings: TrainingSettings,
        validation: Validation | None = None,
        watched: Mapping[str, Watched] | None = None,
        relaxed: Loss | None = None,
    ) -> None:
        self.network, self.settings, self.progress = network, settings, TrainingProgress()
        self.best: dict[str, Tensor] = _copied_state(network)
        self._inputs, self._targets, self._loss = inputs, targets, loss
        self._batch_targets = batch_targets
        self._validation, self._watched, self._relaxed = validation, watched or {}, relaxed
        self._optimiser = _optimiser(network, settings)
        self._mean = WeightMean(settings.averaging)
        self._rates = [group["lr"] for group in self._optimiser.param_groups]
        self._n_batches = max(1, targets.n // settings.batch_size)

    def epochs(self, checkpoint: Checkpoint | None = None) -> Iterator[TrainingProgress]:
        """Train, and yield the progress after each epoch, and once after resuming."""
        title = f"{self.settings.title}: training"
        with Bar(title) as bar, torch.random.fork_rng(devices=[]):
            if checkpoint is not None and checkpoint.path.exists():
                self._resume(checkpoint)
                yield self.progress
            while not self._is_over():
                self._epoch(bar)
                if checkpoint is not None:
                    self._save(checkpoint)
                yield self.progress

    def _is_over(self) -> bool:
        settings, progress = self.settings, self.progress
        return progress.epoch >= settings.n_epochs or progress.has_stalled(settings.patience)

    def _epoch(self, bar: Bar) -> None:
        progress, settings, n_batches = self.progress, self.settings, self._n_batches
        rng = np.random.default_rng([settings.seed, progress.epoch])
        torch.manual_seed(int(rng.integers(2**62)))
        total = 0.0
        self.network.train()
        labels = self._targets.labels if settings.balanced else None
        batches = draw_batches(labels, self._targets.n, settings.batch_size, n_batches, rng)
        for i, rows in enumerate(batches):
            step = progress.epoch * n_batches + i
            total += self._step(rows, rng, step) / n_batches
            note = self._note(total * n_batches / (i + 1))
            bar(step + 1, settings.n_epochs * n_batches, note)
        progress.epoch += 1
        progress.losses.append(total)
        self.network.eval()
        with self._mean.used_by(self.network):
            self._follow()

    def _follow(self) -> None:
        """Record how good the network is now, and keep it if it is the best so far."""
        progress = self.progress
        t = progress.epoch / self.settings.n_epochs
        for name, watched in self._watched.items():
            assert self._relaxed is not None
            values = watched.values(self.network, self._relaxed, t)
            for kind, value in zip(("relaxed", "exact"), values, strict=True):
                progress.curves.setdefault(f"{name}_{kind}", []).append(value)
        if self._validation is not None:
            progress.scores.append(self._validation.score(self.network))
        if not progress.scores or progress.scores[-1] > max(
            progress.scores[:-1], default=-math.inf
        ):
            progress.best = progress.epoch
            self.best = _copied_state(self.network)

    def _step(self, rows: PositionArray, rng: np.random.Generator, step: int) -> float:
        """One gradient step on a batch; returns the loss before it."""
        t = step / (self.settings.n_epochs * self._n_batches)
        for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = rate * (_share_of_rate(t) if self.settings.schedule == "cosine" else 1)
        logits = self.network.late(self._inputs.draw(rows, rng))
        loss = self._loss(logits, self._batch_targets(rows), t)
        value = loss.item()
        if not math.isfinite(value):
            raise InputError(
                f"{self.settings.title}: the loss became {value} in epoch "
                f"{self.progress.epoch + 1}; lower learning_rate "
                f"(it is {' and '.join(f'{rate:g}' for rate, _ in self.settings.rates)})."
            )
        self._optimiser.zero_grad()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self._mean.add(self.network, t)
        return value

    def _note(self, loss: float) -> str:
        scores = self.progress.scores
        return f"loss {loss:.3f}" + (f", validation {scores[-1]:.3f}" if scores else "")

    def _save(self, checkpoint: Checkpoint) -> None:
        buffer = io.BytesIO()
        torch.save(
            {
                "fingerprint": checkpoint.fingerprint,
                "progress": vars(self.progress),
                "network": self.network.state_dict(),
                "optimiser": self._optimiser.state_dict(),
                "mean": self._mean.state,
                "best": None if self.progress.is_best() else self.best,
            },
            buffer,
        )
        with atomic_write(checkpoint.path) as file:
            file.write(buffer.getbuffer())

    def _resume(self, checkpoint: Checkpoint) -> None:
        path = checkpoint.path
        with reading(path, "checkpoint"):
            state = torch.load(path, map_location="cpu", weights_only=True)
            if state["fingerprint"] != checkpoint.fingerprint:
                raise FileError(
                    f"{path}: is a checkpoint of another training (other data or parameters); "
                    f"delete it, or pass another checkpoint."
                )
            self.network.load_state_dict(state["network"])
            self._optimiser.load_state_dict(state["optimiser"])
            self._mean.state = state["mean"]
            self.progress = TrainingProgress(**state["progress"])
        self.best = state["best"] or _copied_state(self.network)


class WeightMean:
    """The mean of a network's weights over the steps after the share ``1 - share`` of training."""

    def __init__(self, share: float) -> None:
        self._share = share
        self.state: dict[str, Any] = {"n": 0, "mean": {}}

    def add(self, network: Network, t: float) -> None:
        """Count the weights after the step at t."""
        if t < 1 - self._share or not self._share:
            return
        mean, n = self.state["mean"], self.state["n"] + 1
        for name, value in network.state_dict().items():
            if name not in mean:
                mean[name] = value.detach().clone()
            elif value.is_floating_point():
                mean[name].add_((value - mean[name]) / n)
        self.state["n"] = n

    @contextmanager
    def used_by(self, network: Network) -> Iterator[None]:
        """Give the network the mean for the block; nothing happens before there is one."""
        if not self.state["n"]:
            yield
            return
        own = _copied_state(network)
        network.load_state_dict(self.state["mean"])
        try:
            yield
        finally:
            network.load_state_dict(own)


def draw_batches(
    labels: NDArray[np.intp] | None, n: int, size: int, n_batches: int, rng: np.random.Generator
) -> Iterator[PositionArray]:
    """The rows of each batch: equally many of each class, or any of the n rows without labels.

    If the batch cannot hold five rows of every class, it has rows of some classes only.  The rows
    of a class come in random order, and none is repeated before all have come.
    """
    if labels is None:
        order = rng.permutation(n)
        yield from (order[i * size : (i + 1) * size] for i in range(n_batches))
        return
    classes = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    n_chosen = max(1, min(len(classes), size // LEAST_PER_CLASS))
    queues = [_shuffled_forever(rows, rng) for rows in classes]
    next_class = _shuffled_forever(np.arange(len(classes)), rng)
    share = np.diff(np.linspace(0, min(size, n), n_chosen + 1).astype(int))
    for _ in range(n_batches):
        chosen = [next(next_class) for _ in range(n_chosen)]
        rows = [
            next(queues[c]) for c, n_rows in zip(chosen, share, strict=True) for _ in range(n_rows)
        ]
        yield np.unique(np.array(rows))


def _shuffled_forever(rows: PositionArray, rng: np.random.Generator) -> Iterator[Any]:
    while True:
        yield from rng.permutation(rows)


def _optimiser(network: Network, settings: TrainingSettings) -> torch.optim.Optimizer:
    groups = network.parameter_groups(*settings.rates)
    if settings.optimiser == "sgd":
        return torch.optim.SGD(groups, momentum=MOMENTUM, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(groups, weight_decay=settings.weight_decay)


def _share_of_rate(t: float) -> float:
    """Share of the learning rate at t: rises linearly, then falls as a cosine."""
    if t < WARM_UP:
        return 0.04 + 0.96 * t / WARM_UP
    return 0.5 + 0.5 * math.cos(math.pi * (t - WARM_UP) / (1 - WARM_UP))


def _some(inputs: Any, rows: slice) -> Any:
    """Some rows of the inputs of one network, or of both."""
    return inputs[rows] if isinstance(inputs, Tensor) else tuple(one[rows] for one in inputs)


def _joined(parts: list[Logits]) -> Logits:
    """The logits of blocks of rows, of one network or of both, as one block."""
    if isinstance(parts[0], Tensor):
        return torch.cat(parts)
    return tuple(map(torch.cat, zip(*parts, strict=True)))


def _copied_state(network: Network) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
