"""The base classes of the gradient-trained methods: parameters, training and encoding."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import (
    Float32Array,
    Float64Array,
    PositionArray,
    check_choice,
    check_count,
    check_number,
    check_share,
)
from bittern.errors import InputError
from bittern.extras import LITE0_WEIGHTS, import_extra
from bittern.hashing.base import CodeLearner, Hasher, Rows
from bittern.hashing.deep.images import VECTOR_NETWORKS, ImageInputs, check_images, image_logits
from bittern.hashing.deep.network_graph import NetworkGraph
from bittern.hashing.kernel_maps import choose_anchors, gaussian, mean_square, square_distances
from bittern.hashing.targets import Targets

if TYPE_CHECKING:
    from torch import Tensor

    from bittern.hashing.deep.layers import HashNetwork
    from bittern.hashing.deep.training import Inputs, TrainingSettings, Watched

PRECISIONS = ("single", "bfloat16")
OPTIMISERS = ("adamw", "sgd")
SCHEDULES = ("cosine", "constant")
WATCH = 2**41  # a stream of random numbers that neither epochs nor variants use
RATES = {"linear": 1e-2, "mlp": 1e-3, "kernel": 1e-2}
RATE = 1e-3  # learning rate of the hash layer on an image network
EPOCHS, STEPS = 50, 500  # defaults: train at least this long


@dataclass(kw_only=True, eq=False, repr=False)
class GradientTraining(CodeLearner):
    """The parameters and the course of a training by gradients, of one network or of a pair.

    This is a dataclass, so that every method inherits these parameters and adds its own;
    :class:`GradientHasher` explains them.
    """

    n_bits: int = field(default=32, kw_only=False)
    network: Any = "linear"
    hidden: Any = 512
    n_anchors: Any = 1000
    dropout: Any = 0.5
    image_size: int | None = None
    frozen: int = 0
    augment: int = 0
    cache: str | os.PathLike[str] | None = None
    precision: str = "single"
    mirror: bool = False
    n_epochs: int | None = None
    n_steps: int | None = None
    batch_size: int | None = None
    learning_rate: Any = None
    trunk_rate: float = 0.1
    weight_decay: float = 1e-4
    optimiser: str = "adamw"
    schedule: str = "cosine"
    averaging: float = 0.0
    balanced: bool = True
    validation: float = 0.0
    patience: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int | None = 0

    losses_: NDArray[np.float64] = field(init=False)  # (epochs,) of training
    scores_: NDArray[np.float64] = field(init=False)  # (epochs,) of validation, or empty
    curves_: dict[str, NDArray[np.float64]] = field(init=False)  # (epochs,) each
    best_epoch_: int = field(init=False)
    _held_out: Any = field(default=None, init=False)  # rows and targets to follow during fit

    needs_y = True
    watches_held_out = True
    _metric = "ap"  # of validation

    @abstractmethod
    def _loss(self, logits: Any, target: Tensor, t: float) -> Tensor:
        """The objective after the share t of the training."""

    @abstractmethod
    def _relaxed(self, logits: Any, gains: Tensor, t: float) -> Tensor:
        """The relaxed metric of rows after the share t of the training."""

    def _ranking(
        self, logits: Tensor, gains: Tensor, t: float, others: Tensor | None = None
    ) -> Tensor:
        """The relaxed metric of rows as queries for each other, or for ``others``."""
        from bittern.hashing.objectives import OBJECTIVES

        return 1 - OBJECTIVES[self._metric](logits, gains, others=others)

    @abstractmethod
    def _check_objective(self) -> None:
        """Check the parameters of the objective."""

    @abstractmethod
    def _learn_scale(self, X: Any, train: PositionArray, rng: np.random.Generator) -> None:
        """Learn what turns rows into inputs of the first layer."""

    @abstractmethod
    def _network_and_inputs(self, X: Any, train: PositionArray, seed: int) -> tuple[Any, Inputs]:
        """The network before training, and the training rows as its inputs."""

    @abstractmethod
    def _network_input(self, X: Any) -> Any:
        """Rows or images in the format of the network."""

    @abstractmethod
    def _checked_held_out(self) -> tuple[Any, Targets]:
        """The rows to follow, and their targets."""

    @abstractmethod
    def _learned(self, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The learned attributes, by name, for the state of the network."""

    @abstractmethod
    def _samples(self, X: Any, some: PositionArray) -> list[NDArray[Any]]:
        """Arrays that tell training rows from others: their shape, and some of them."""

    @property
    @abstractmethod
    def _rates(self) -> tuple[tuple[float, float], ...]:
        """The learning rates of the hash layer and of the trunk, for each network."""

    def _batch_targets(self, targets: Targets, seed: int) -> Callable[[PositionArray], Tensor]:
        """What the rows of a batch are trained towards: their gains for each other."""
        import torch

        return lambda rows: torch.from_numpy(targets.gains(rows, rows))

    def _train(self, X: Any, targets: Targets) -> None:
        """Train on the rows X, which can be sliced, and keep the best network after each epoch."""
        from bittern.hashing.deep.training import Checkpoint, Trainer, Validation, Watched

        rng = self._generator()
        seed = int(rng.integers(2**62))
        order = rng.permutation(targets.n)
        n_held_out = int(self.validation * targets.n)
        held_out, train = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
        self._learn_scale(X, train, rng)
        network, inputs = self._network_and_inputs(X, train, seed)
        seen = targets.take(train)
        choice = np.random.default_rng([seed, WATCH])
        watched = {"train": Watched.of_training(inputs, seen, self._metric, choice)}
        validation = checkpoint = None
        if n_held_out:
            rows, truth = self._network_input(X[held_out]), targets.take(held_out)
            watched["held_out"] = Watched.of_others(rows, truth, self._metric)
            validation = Validation(watched["held_out"], n_held_out, self._title)
        if self._held_out is not None:
            watched["held_out"] = self._watched_rows(choice)
        if self.checkpoint is not None:
            checkpoint = Checkpoint(Path(self.checkpoint), self._fingerprint(X, targets))
        trainer = Trainer(
            network,
            inputs,
            seen,
            self._batch_targets(seen, seed),
            self._loss,
            self._settings(seed, len(train)),
            validation,
            watched,
            self._relaxed,
        )
        for progress in trainer.epochs(checkpoint):
            state = {name: value.numpy().copy() for name, value in trainer.best.items()}
            self._keep(
                **self._learned(state),
                losses_=np.array(progress.losses),
                scores_=np.array(progress.scores),
                curves_={name: np.array(values) for name, values in progress.curves.items()},
                best_epoch_=progress.best,
            )

    def _watched_rows(self, rng: np.random.Generator) -> Watched:
        """Rows given to ``fit`` only to be followed."""
        from bittern.hashing.deep.training import WATCHED, Watched

        rows, targets = self._checked_held_out()
        some = np.sort(rng.permutation(targets.n)[:WATCHED])
        return Watched.of_others(self._network_input(rows[some]), targets.take(some), self._metric)

    def _settings(self, seed: int, n: int) -> TrainingSettings:
        """How to train on n rows, with defaults filled in."""
        from bittern.hashing.deep.training import TrainingSettings

        size = self.batch_size or min(500, max(100, n // 10))
        per_epoch = max(1, n // size)
        n_epochs = self.n_epochs or max(EPOCHS, math.ceil(STEPS / per_epoch))
        if self.n_steps is not None:
            n_epochs = max(1, round(self.n_steps / per_epoch))
        return TrainingSettings(
            n_epochs=int(n_epochs),
            batch_size=int(size),
            rates=self._rates,
            weight_decay=self.weight_decay,
            optimiser=self.optimiser,
            schedule=self.schedule,
            averaging=self.averaging,
            balanced=self.balanced,
            seed=seed,
            patience=self.patience,
            title=self._title,
        )

    def _check_training(self) -> None:
        """Check the parameters of the training and the objective, and that PyTorch is installed."""
        title = self._title
        self._import_torch()
        from bittern.hashing.deep.training import check_checkpoint

        for name, least in (("n_epochs", 1), ("n_steps", 1), ("batch_size", 2), ("patience", 1)):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), f"{title}: {name}", least)
        for name in ("validation", "averaging"):
            check_share(getattr(self, name), f"{title}: {name}")
        check_number(self.weight_decay, f"{title}: weight_decay", least=0)
        if self.n_epochs is not None and self.n_steps is not None:
            raise InputError(f"{title}: give n_epochs or n_steps, not both.")
        if self.patience is not None and not self.validation:
            raise InputError(
                f"{title}: patience needs a share of rows for validation, for example "
                f"validation=0.1."
            )
        if self.checkpoint is not None:
            check_checkpoint(self.checkpoint, self.random_state, title)
        check_choice(self.optimiser, f"{title}: optimiser", OPTIMISERS)
        check_choice(self.schedule, f"{title}: schedule", SCHEDULES)
        self._check_objective()

    def _fingerprint(self, X: Any, targets: Targets) -> str:
        """A hash of everything that affects the result: parameters, and samples of the data."""
        from bittern.hashing.deep.training import fingerprint

        parameters = {k: repr(v) for k, v in self.get_params(deep=False).items()}
        for name in ("checkpoint", "cache", "mirror"):  # they do not affect the training
            parameters.pop(name)
        some = np.linspace(0, targets.n - 1, min(targets.n, 4096)).astype(np.intp)
        return fingerprint(parameters, *self._samples(X, some), targets.gains(some[:256], some))

    @property
    def _resume_hint(self) -> str:
        if self.checkpoint is None:
            return ""
        return f" Call fit() again with checkpoint={os.fspath(self.checkpoint)!r} to resume."

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """PyTorch, and the weights of EfficientNet-Lite0 if it is the network."""
        networks = self.network if isinstance(self.network, tuple | list) else (self.network,)
        weights = (LITE0_WEIGHTS,) if "efficientnet-lite0" in networks else ()
        return ("torch", *weights)

    def _import_torch(self) -> Any:
        return import_extra("torch", self._title)


@dataclass(kw_only=True, eq=False, repr=False)
class GradientHasher(NetworkGraph, GradientTraining, Hasher):
    """Bits are the signs of a network's logits; training minimises an objective over batches.

    In a batch, every row is a query for all the others.  ``network`` is one of

    - ``"linear"``: one layer; ``"mlp"``: a layer of ``hidden`` rectified units and one more layer;
      ``"kernel"``: Gaussian kernels with ``n_anchors`` random training rows, then a layer.  Rows
      are centred and divided by a common standard deviation; training drops the share ``dropout``
      of the inputs at random.  The weights of a single layer ``start`` at ``"random"`` values or at
      those of :class:`~bittern.hashing.ITQ` (``"itq"``), which is better if rows are relevant
      because they are near;
    - the name of an image network (``bt.hashing.backbones.BACKBONES``), or any
      ``torch.nn.Module`` that returns a matrix of features, below a new hash layer.  X are then
      images, ``(n, height, width[, channels])`` with values 0 … 255, resized to ``image_size`` (a
      module of your own may take any X).  The first ``frozen`` stages of the package's networks do
      not learn and are computed once; the others learn at ``trunk_rate`` times the learning rate.
      With ``augment`` above 0, each step sees images shifted and mirrored at random; for frozen
      stages, that many variants of each image are stored besides the image itself.  ``cache`` is a
      folder that keeps the outputs of the frozen stages for the next fit on the same images.
      With ``mirror``, the logits of an image are the mean of its own and its mirror image's.

    ``precision="bfloat16"`` computes the package's image networks, and the layers on vectors in
    training, in that precision, which is twice as fast on processors that have it.

    Training uses the ``optimiser`` ``"adamw"``, or ``"sgd"`` with momentum 0.9, with
    ``weight_decay``.  The learning rate rises to ``learning_rate`` over the first tenth of the
    steps and falls to 0 as a cosine, or stays there (``schedule="constant"``); it defaults to 0.01
    for a single layer and to 0.001 otherwise.  ``n_epochs`` defaults to 50, or to more if those
    would be fewer than 500 steps; ``n_steps`` asks for the epochs nearest to that many steps
    instead, so that batches of different sizes compare.  ``batch_size`` defaults to a tenth of the
    rows, between 100 and 500; if there are classes and batches are ``balanced``, a batch has
    equally many rows of each class.  With ``averaging`` above 0, the network is the mean of the
    weights over that last share of the steps.

    The share ``validation`` of the rows is held out.  After each epoch, the metric is computed
    among these rows; the network of the best epoch is kept, and training stops after ``patience``
    epochs without a better one.

    ``curves_`` follows up to 500 training rows (``train_…``) and as many held-out rows
    (``held_out_…``) epoch by epoch, without dropout: ``…_exact`` is the metric of their codes among
    themselves, ``…_relaxed`` its relaxation.

    ``checkpoint`` is a path: the state is written there after each epoch, and ``fit`` with the same
    data and parameters resumes from it, with the same result as without an interruption.
    """

    start: str = "random"

    state_: dict[str, NDArray[Any]] = field(init=False)  # of the network, by PyTorch's names
    _restored: Any = field(default=None, init=False)  # the network with its state, once needed
    _noise: float = field(default=0.0, init=False)  # on the inputs in training
    _owner: str | None = field(default=None, init=False)  # whose part this is, in messages

    def fit(self, X: Any, y: Any = None, *, held_out: tuple[Any, Any] | None = None) -> Self:
        """Learn from rows X with their labels, tags or Relevance y.

        ``held_out`` are rows and targets that nothing is learned from; ``curves_`` follows them.
        """
        if held_out is not None and (not isinstance(held_out, tuple) or len(held_out) != 2):
            raise InputError(
                f"{self._title}: held_out must be a tuple of rows and targets, (X, y)."
            )
        self._held_out = held_out
        try:
            return super().fit(X, y)
        finally:
            self._held_out = None

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._train(X, targets)

    def _learned(self, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return {"state_": state}

    def _checked_held_out(self) -> tuple[Any, Targets]:
        X, y = self._held_out
        rows = self._checked(X)
        return rows, Targets.of(y, len(rows), f"{self._title}: held_out")

    def _samples(self, X: Any, some: PositionArray) -> list[NDArray[Any]]:
        return [np.array(X.shape), X[some]]

    @property
    def _rates(self) -> tuple[tuple[float, float], ...]:
        if self._takes_vectors:
            rate = self.learning_rate or RATES[self.network]
            return ((rate, rate),)
        rate = self.learning_rate or RATE
        return ((rate, rate * self.trunk_rate),)

    def _relaxed(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        return self._ranking(logits, gains, t)

    def _logits(self, X: Rows) -> Rows:
        """Layers on vectors in NumPy, so that saved models encode without PyTorch."""
        if not self._takes_vectors:
            return self._forward(X)
        rows, state = self._scaled(X), self.state_
        if self.network == "mlp":
            rows = np.maximum(rows @ state["trunk.1.weight"].T + state["trunk.1.bias"], 0)
        logits: Rows = rows @ state["hash.weight"].T + state["hash.bias"]
        return logits

    def _forward(self, X: Rows) -> Float32Array:
        """Logits by the whole network."""
        self._import_torch()
        from bittern.hashing.deep.layers import restore

        if self._restored is None:
            self._restored = restore(self._build(X[:1], pretrained=False), self.state_)
        return image_logits(self._restored, X, self.mirror, self.cache, self._title)

    def _network_and_inputs(
        self, X: Rows, train: PositionArray, seed: int
    ) -> tuple[HashNetwork, Inputs]:
        """The network before training, and the training rows as its inputs."""
        import torch

        from bittern.hashing.deep.layers import itq_weights, to_tensor
        from bittern.hashing.deep.training import VectorInputs

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = self._build(X[:1], pretrained=True)
        if not self._takes_vectors:
            inputs = ImageInputs(X, train, network, self.augment, seed, self.cache, self._title)
            return network, inputs
        rows = self._scaled(X[train]).astype(np.float32)
        if self.start == "itq":
            network.hash.weight.data = to_tensor(itq_weights(rows, self.n_bits, self.random_state))
        return network, VectorInputs(to_tensor(rows), self._noise)

    def _build(self, sample: Rows, *, pretrained: bool) -> HashNetwork:
        """The network for inputs like the sample, with random or published weights."""
        from bittern.hashing.deep.layers import (
            add_hash_layer,
            make_trunk,
            set_precision,
            vector_network,
        )

        if self._takes_vectors:
            hidden = (int(self.hidden),) if self.network == "mlp" else ()
            shape = len(self.mean_), hidden, self.n_bits
            return vector_network(*shape, self.dropout, self.precision)
        trunk = make_trunk(self.network, self.image_size, pretrained, self._title)
        set_precision(trunk, self.precision, self._title)
        inputs = self._network_input(sample)
        return add_hash_layer(trunk, inputs, self.n_bits, self.dropout, self.frozen, self._title)

    def _learn_scale(self, X: Rows, train: PositionArray, rng: np.random.Generator) -> None:
        """Learn a kernel map's anchors, and the centre and scale of the first layer's inputs."""
        if not self._takes_vectors:
            return
        rows = X[train]
        if self.network == "kernel":
            self.anchors_ = choose_anchors(rows, self.n_anchors, rng)
            self.width_ = mean_square(square_distances(rows, self.anchors_)) / 2
            rows = gaussian(rows, self.anchors_, self.width_)
        self.mean_ = rows.mean(axis=0, dtype=np.float64)
        spread = float(np.sqrt(rows.var(axis=0, dtype=np.float64).mean()))
        self.scale_ = 1 / spread if spread > 0 else 1.0

    def _scaled(self, X: Rows) -> Float64Array:
        """Inputs of the first layer: rows, or their kernels with the anchors."""
        rows = gaussian(X, self.anchors_, self.width_) if self.network == "kernel" else X
        scaled: Float64Array = (rows - self.mean_) * self.scale_
        return scaled

    def _network_input(self, X: Rows) -> Tensor:
        """Rows or images in the format of the network."""
        from bittern.hashing.deep.layers import to_tensor

        return to_tensor(self._scaled(X) if self._takes_vectors else X)

    def _checked(self, X: Any, reset: bool = False) -> Any:
        if reset:
            self._check_training()
            self._check_layers()
        if self._takes_vectors:
            return super()._checked(X, reset)
        self._import_torch()
        images = check_images(X, self._title, any_shape=self._is_own_module)
        shape = images.shape[1:]
        if reset:
            self.shape_in_, self.n_features_in_ = shape, int(np.prod(shape))
        elif tuple(self.shape_in_) != shape:
            raise InputError(
                f"{self._title}: was trained on inputs of shape {tuple(self.shape_in_)}, "
                f"got {shape}."
            )
        return images

    def _ready(self, X: Any) -> Any:
        return super()._ready(X) if self._takes_vectors else self._checked(X)

    def _blank(self) -> NDArray[Any]:
        if self._takes_vectors:
            return super()._blank()
        return np.zeros((1, *self.shape_in_), np.uint8)

    @property
    def _takes_vectors(self) -> bool:
        return isinstance(self.network, str) and self.network in VECTOR_NETWORKS

    @property
    def _is_own_module(self) -> bool:
        """Whether the network is the user's module, not one of the package's."""
        from bittern.networks import Backbone

        return not isinstance(self.network, str | Backbone)

    @property
    def _title(self) -> str:
        return self._owner or super()._title

    def _forget(self) -> None:
        super()._forget()
        self._restored = None

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "_restored": None}

    def _check_layers(self) -> None:
        """Check the parameters of the network."""
        from bittern.hashing.deep.layers import check_network

        title = self._title
        for name, least in (("hidden", 1), ("n_anchors", 1), ("frozen", 0), ("augment", 0)):
            check_count(getattr(self, name), f"{title}: {name}", least)
        if self.image_size is not None:
            check_count(self.image_size, f"{title}: image_size", 1)
        check_share(self.dropout, f"{title}: dropout")
        check_number(self.trunk_rate, f"{title}: trunk_rate", least=0)
        if self.learning_rate is not None:
            check_number(self.learning_rate, f"{title}: learning_rate", above=0)
        check_network(self.network, title)
        check_choice(self.start, f"{title}: start", ("random", "itq"))
        check_choice(self.precision, f"{title}: precision", PRECISIONS)
        if self.mirror and (self._takes_vectors or self._is_own_module):
            raise InputError(f"{title}: mirror is for the package's image networks.")
        if self.start != "random" and self.network not in ("linear", "kernel"):
            raise InputError(
                f"{title}: start={self.start!r} is for one layer, network='linear' or 'kernel'."
            )
