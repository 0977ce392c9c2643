"""Hashers that are trained by gradients, on vectors or on images."""

from __future__ import annotations

import hashlib
import json
import math
import os
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, PositionArray, check_choice, check_count, check_number
from bittern.errors import InputError, MissingExtraError
from bittern.hashing.anchors import choose_anchors, gaussian, mean_square, square_distances
from bittern.hashing.base import Bits, Hasher, Rows
from bittern.hashing.images import AT_ONCE, check_images, tensor
from bittern.hashing.itq import ITQ
from bittern.hashing.targets import Targets

if TYPE_CHECKING:
    from torch import Tensor

    from bittern.hashing.networks import HashNetwork
    from bittern.hashing.training import Plan

__all__ = ["GradientHasher"]

ON_VECTORS = ("linear", "mlp", "kernel")
RATES = {"linear": 1e-2, "mlp": 1e-3, "kernel": 1e-2}
RATE = 1e-3  # of a hash layer on other networks
EPOCHS, STEPS = 50, 500  # of training at least, if the user does not say


class GradientHasher(Hasher):
    """Bits are signs of a network's logits; the network minimises an objective over batches.

    In a batch, every row is a query for all the others.  ``network`` is one of

    - ``"linear"``: one layer; ``"mlp"``: ``hidden`` rectified units, then a layer; ``"kernel"``:
      Gaussian kernels with ``n_anchors`` random training rows, then a layer.  Rows are centred and
      divided by one number, and ``dropout`` of the inputs are left out at random in training.
      One layer's weights ``start`` at ``"random"``, or as :class:`~bittern.hashing.ITQ` has them
      (``"itq"``), which is the better start where rows are relevant because they are near;
    - the name of an image network (``bt.hashing.backbones.BACKBONES``), or any
      ``torch.nn.Module`` that gives a matrix of features, below a new hash layer.  X are then
      images, ``(n, height, width[, channels])`` with values 0 … 255 (a module that is not ours
      may have X as it likes).  The first ``frozen`` stages of our networks are left as they are,
      and computed once; the rest learns at ``trunk_rate`` times the learning rate.  With
      ``augment`` that many variants of each image, shifted and mirrored at random, are learned
      from; 0 is the image alone.

    Training has ``n_epochs`` (if not said 50, or more where that would be less than 500 steps) of
    batches of ``batch_size`` rows (a tenth of all, between 100 and 500, or 200 for triplets, if not
    said), as many of each class where there are classes.  It is by
    Adam with decoupled weight decay, at a learning rate that rises over a tenth of the steps to
    ``learning_rate`` (0.01 for one layer, else 0.001, if not said) and falls to 0 as a cosine.  A
    share ``validation`` of the rows is not trained on: their metric among themselves after each
    epoch tells which epoch's network is kept, and training stops if ``patience`` epochs brought
    nothing better.

    With ``checkpoint``, a path, the state is written after each epoch, and ``fit`` with the same
    data and parameters goes on from there, to the same result as without an interruption.
    """

    needs_y = True
    _metric = "ap"  # of validation
    _most_rows = 500  # in a batch, if the user does not say

    n_bits: int
    network: Any
    hidden: int
    n_anchors: int
    start: str
    dropout: float
    image_size: int | None
    frozen: int
    augment: int
    n_epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    trunk_rate: float
    weight_decay: float
    validation: float
    patience: int | None
    checkpoint: str | os.PathLike[str] | None

    state_: dict[str, NDArray[Any]]
    losses_: NDArray[np.float64]  # (epochs,) of training
    scores_: NDArray[np.float64]  # (epochs,) of validation, or none
    best_epoch_: int
    _ready: Any = None  # the network with its state, once it was needed

    @abstractmethod
    def _loss(self, logits: Tensor, gains: Tensor, t: float) -> Tensor:
        """The objective, when the share t of the training is over."""

    def _check_objective(self) -> None:
        """Refuse bad parameters of the objective."""

    def _fit(self, X: Rows, targets: Targets | None) -> None:
        assert targets is not None
        from bittern.hashing.learner import Learner
        from bittern.hashing.training import Trainer

        rng = self._generator()
        seed = int(rng.integers(2**62))
        order = rng.permutation(targets.n)
        n_held_out = int(self.validation * targets.n)
        held_out, train = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
        self._learn_scale(X, train, rng)
        learner = Learner(self, X, targets, train, held_out, seed)
        trainer = Trainer(
            learner.network,
            learner.inputs,
            targets.take(train),
            self._loss,
            self._plan(seed, len(train)),
            score=learner.score if n_held_out else None,
            checkpoint=self.checkpoint,
            fingerprint=self._fingerprint(X, targets) if self.checkpoint else "",
            title=self._title,
        )
        for progress in trainer.epochs():
            self._keep(
                state_={name: value.numpy().copy() for name, value in trainer.best.items()},
                losses_=np.array(progress.losses),
                scores_=np.array(progress.scores),
                best_epoch_=progress.best,
            )

    def logits(self, X: Any) -> Float32Array:
        """The numbers of which the bits are the signs, ``(n, n_bits)``."""
        self._check_fitted()
        return self._logits(self._checked(X))

    def _bits(self, X: Rows) -> Bits:
        return self._logits(X) > 0

    def _logits(self, X: Rows) -> Float32Array:
        if not self._is_on_vectors:
            return self._forward(X)
        rows, state = self._scaled(X), self.state_
        if self.network == "mlp":
            rows = np.maximum(rows @ state["trunk.1.weight"].T + state["trunk.1.bias"], 0)
        logits: Float32Array = rows @ state["hash.weight"].T + state["hash.bias"]
        return logits

    def _forward(self, X: Rows) -> Float32Array:
        """Through the whole network, a few images at a time."""
        require_torch(self._title)
        import torch

        from bittern.hashing.networks import restore

        if self._ready is None:
            self._ready = restore(self._build(X[:1], fresh=False), self.state_)
        with torch.inference_mode():
            parts = [
                self._ready(tensor(X[i : i + AT_ONCE])).numpy() for i in range(0, len(X), AT_ONCE)
            ]
        return np.concatenate(parts)

    def _build(self, sample: Rows, *, fresh: bool) -> HashNetwork:
        """The network before training; or, if not fresh, before its state is put into it."""
        from bittern.hashing.networks import build, layers

        if self._is_on_vectors:
            hidden = (int(self.hidden),) if self.network == "mlp" else ()
            return layers(self._scaled(sample).shape[1], hidden, self.n_bits, self.dropout)
        return build(
            self.network,
            tensor(sample),
            self.n_bits,
            size=self.image_size,
            dropout=self.dropout,
            frozen=self.frozen,
            fresh=fresh,
            title=self._title,
        )

    def _first_weights(self, X: Rows, train: PositionArray) -> Float32Array | None:
        """The hash layer's weights ``(n_bits, dim)`` to begin with, if they are not random.

        Each logit has variance one over the training rows, as random ones about have.
        """
        if self.start == "random":
            return None
        rows = self._scaled(X[train])
        projection = ITQ(self.n_bits, random_state=self.random_state).fit(rows).projection_
        spread = (rows @ projection).std(axis=0)
        return (projection / np.where(spread > 0, spread, 1)).T.astype(np.float32)

    def _learn_scale(self, X: Rows, train: PositionArray, rng: np.random.Generator) -> None:
        """Anchors of a kernel map, and what centres and scales the inputs of the first layer."""
        if not self._is_on_vectors:
            return
        rows = X[train]
        if self.network == "kernel":
            self.anchors_ = choose_anchors(rows, self.n_anchors, rng)
            self.width_ = mean_square(square_distances(rows, self.anchors_)) / 2
            rows = gaussian(rows, self.anchors_, self.width_)
        self.mean_ = rows.mean(axis=0, dtype=np.float64)
        spread = float(np.sqrt(rows.var(axis=0, dtype=np.float64).mean()))
        self.scale_ = 1 / spread if spread > 0 else 1.0

    def _scaled(self, X: Rows) -> Float32Array:
        """Rows as the first layer has them."""
        rows = gaussian(X, self.anchors_, self.width_) if self.network == "kernel" else X
        scaled: Float32Array = ((rows - self.mean_) * self.scale_).astype(np.float32)
        return scaled

    def _checked(self, X: Any, reset: bool = False) -> Any:
        if reset:
            self._check()
        if self._is_on_vectors:
            return super()._checked(X, reset)
        require_torch(self._title)
        images = check_images(X, self._title, strictly=self._is_backbone)
        shape = images.shape[1:]
        if reset:
            self.shape_in_, self.n_features_in_ = shape, int(np.prod(shape))
        elif tuple(self.shape_in_) != shape:
            raise InputError(
                f"{self._title}: was trained on inputs of shape {tuple(self.shape_in_)}, "
                f"got {shape}."
            )
        return images

    def _blank(self) -> NDArray[Any]:
        if self._is_on_vectors:
            return super()._blank()
        return np.zeros((1, *self.shape_in_), np.uint8)

    @property
    def _is_on_vectors(self) -> bool:
        return isinstance(self.network, str) and self.network in ON_VECTORS

    @property
    def _is_backbone(self) -> bool:
        from bittern.networks import Backbone

        return isinstance(self.network, str | Backbone)

    @property
    def _how_to_go_on(self) -> str:
        if self.checkpoint is None:
            return ""
        return f" Call fit() again with checkpoint={os.fspath(self.checkpoint)!r} to go on."

    def _forget(self) -> None:
        super()._forget()
        self._ready = None

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "_ready": None}

    def _plan(self, seed: int, n: int) -> Plan:
        from bittern.hashing.training import Plan

        size = self.batch_size or min(self._most_rows, max(100, n // 10))
        rate = self.learning_rate or RATES.get(self.network if self._is_on_vectors else "", RATE)
        on_images = not self._is_on_vectors
        n_epochs = self.n_epochs or max(EPOCHS, math.ceil(STEPS / max(1, n // size)))
        return Plan(
            n_epochs=int(n_epochs),
            batch_size=int(size),
            rate=rate,
            trunk_rate=rate * self.trunk_rate if on_images else rate,
            decay=self.weight_decay,
            seed=seed,
            patience=self.patience,
        )

    def _check(self) -> None:
        """Refuse bad parameters, and a missing PyTorch."""
        title = self._title
        require_torch(title)
        for name, least in (("hidden", 1), ("n_anchors", 1), ("frozen", 0), ("augment", 0)):
            check_count(getattr(self, name), f"{title}: {name}", least)
        optional = ("n_epochs", 1), ("batch_size", 2), ("patience", 1), ("image_size", 1)
        for name, least in optional:
            if getattr(self, name) is not None:
                check_count(getattr(self, name), f"{title}: {name}", least)
        for name in ("dropout", "validation"):
            if not 0 <= check_number(getattr(self, name), f"{title}: {name}", least=0) < 1:
                raise InputError(f"{title}: {name} must be less than 1, got {getattr(self, name)}.")
        for name in ("trunk_rate", "weight_decay"):
            check_number(getattr(self, name), f"{title}: {name}", least=0)
        if self.learning_rate is not None:
            check_number(self.learning_rate, f"{title}: learning_rate", above=0)
        if self.patience is not None and not self.validation:
            raise InputError(f"{title}: patience needs a share of rows for validation, say 0.1.")
        if self.checkpoint is not None:
            self._check_checkpoint(self.checkpoint)
        check_network(self.network, title)
        check_choice(self.start, f"{title}: start", ("random", "itq"))
        if self.start != "random" and self.network not in ("linear", "kernel"):
            raise InputError(
                f"{title}: start={self.start!r} is for one layer, network='linear' or 'kernel'."
            )
        self._check_objective()

    def _check_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Refuse what would fail only after the first epoch."""
        if self.random_state is None:
            raise InputError(
                f"{self._title}: a checkpoint needs a random_state, to go on in the same way."
            )
        if not Path(path).parent.is_dir():
            raise InputError(
                f"{self._title}: checkpoint {os.fspath(path)!r} is in a folder that does not exist."
            )

    def _fingerprint(self, X: Rows, targets: Targets) -> str:
        """What decides the result: parameters, and samples of the data."""
        parameters = {k: repr(v) for k, v in self.get_params(deep=False).items()}
        parameters.pop("checkpoint")
        held = hashlib.blake2b(json.dumps(parameters, sort_keys=True).encode(), digest_size=16)
        some = np.linspace(0, len(X) - 1, min(len(X), 4096)).astype(np.intp)
        for array in (np.array(X.shape), X[some], targets.gains(some[:256], some)):
            held.update(np.ascontiguousarray(array).tobytes())
        return held.hexdigest()


def check_network(network: Any, title: str) -> None:
    """Refuse what is no network."""
    from torch.nn import Module

    from bittern.networks import BACKBONES

    if isinstance(network, Module) or network in ON_VECTORS:
        return
    names = [*ON_VECTORS, *BACKBONES]
    if network not in names:
        raise InputError(
            f"{title}: network must be one of {', '.join(map(repr, names))}, "
            f"or a torch.nn.Module, got {network!r}."
        )


def require_torch(title: str) -> None:
    """Refuse kindly if PyTorch is not there."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtraError(f"{title}: needs PyTorch; pip install 'bittern[deep]'.")
