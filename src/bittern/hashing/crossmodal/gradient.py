"""The base class of the gradient-trained cross-modal hashers: a network for each modality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_number
from bittern.errors import InputError
from bittern.hashing.base import Rows
from bittern.hashing.crossmodal.base import MODALITIES, CrossModalHasher, Modality
from bittern.hashing.deep.hasher import GradientHasher, GradientTraining
from bittern.hashing.deep.images import VECTOR_NETWORKS, check_images
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph, Port

if TYPE_CHECKING:
    from torch import Tensor

    from bittern.hashing.deep.layers import PairNetwork
    from bittern.hashing.deep.training import PairInputs

OF_NETWORKS = ("network", "hidden", "n_anchors", "dropout", "precision", "learning_rate")
OF_IMAGE_NETWORKS = ("image_size", "frozen", "augment", "cache", "mirror", "trunk_rate")


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Paired rows of two modalities."""

    images: Rows  # (n, p), or images (n, height, width[, channels])
    texts: Rows  # (n, q)

    def __getitem__(self, rows: Any) -> Pairs:
        return Pairs(self.images[rows], self.texts[rows])

    def of(self, modality: Modality) -> Rows:
        """The rows of one modality."""
        return self.images if modality == "images" else self.texts


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPairHasher(GradientTraining, CrossModalHasher):
    """Bits are the signs of the logits of two networks, of images and of texts, trained together.

    :class:`~bittern.hashing.deep.hasher.GradientHasher` explains the networks and the training,
    except that

    - ``network``, ``hidden``, ``n_anchors``, ``dropout``, ``noise``, ``learning_rate`` and
      ``precision`` may each be a pair, for images and texts: ``network=("small", "mlp")`` learns
      the images end to end, and the texts from vectors;
    - training adds Gaussian ``noise`` of that standard deviation to vectors after scaling;
    - in a batch, every image is a query for all texts, and every text for all images.  The text of
      an image counts as relevant to it even if it has no tags;
    - the metric of validation and of ``curves_`` is the mean of both directions.

    ``image_hasher_`` and ``text_hasher_`` are the hashers of either modality alone.
    """

    network: Any = "mlp"
    dropout: Any = 0.2
    learning_rate: Any = 0.003
    noise: Any = 0.0

    image_hasher_: GradientHasher = field(init=False)
    text_hasher_: GradientHasher = field(init=False)
    _parts: Any = field(default=None, init=False)  # both hashers during fit
    _words: Any = field(default=None, init=False)  # texts of the tags during fit

    _kind: ClassVar[type[GradientHasher]]  # of both hashers

    def fit(
        self,
        images: Any,
        texts: Any,
        y: Any = None,
        *,
        words: Any = None,
        held_out: tuple[Any, Any, Any] | None = None,
    ) -> Self:
        """Learn from pairs with their labels, tags or Relevance y.

        If y are tags, ``words`` ``(n_tags, q)`` may have a text for each tag alone.  These are then
        further queries, so that single words find images too.  ``held_out`` are images, texts and
        targets that nothing is learned from; ``curves_`` follows them.
        """
        if held_out is not None and (not isinstance(held_out, tuple) or len(held_out) != 3):
            raise InputError(
                f"{self._title}: held_out must be a tuple of images, texts and targets, "
                f"(images, texts, y)."
            )
        self._require_extras()
        self._check()
        self._held_out, self._words = held_out, words
        try:
            return super().fit(images, texts, y)
        finally:
            self._held_out = self._words = self._parts = None

    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        assert targets is not None
        self._parts = {modality: self._part(modality) for modality in MODALITIES}
        pairs = Pairs(images, texts)
        for modality, part in self._parts.items():
            part._checked(pairs.of(modality), reset=True)
        self._words = self._checked_words(targets, texts.shape[1])
        self._train(pairs, targets)

    def _logits(self, rows: Rows, modality: Modality) -> Rows:
        return self._hasher(modality)._logits(rows)

    def _onnx_logits(self, graph: OnnxGraph, rows: str, modality: Modality) -> str:
        return self._hasher(modality)._onnx_logits(graph, rows)

    def _onnx_bits(self, graph: OnnxGraph, rows: str, modality: Modality) -> str:
        return self._hasher(modality)._onnx_bits(graph, rows)

    def _onnx_rows(self, modality: Modality, dtype: str) -> Port:
        return self._hasher(modality)._onnx_rows(modality, dtype)

    def _relaxed(self, logits: Any, gains: Tensor, t: float) -> Tensor:
        images, texts = logits
        n = len(images)
        from_images = self._ranking(images, gains[:n], t, others=texts[:n])
        return (from_images + self._ranking(texts, gains, t, others=images)) / 2

    def _batch_targets(self, targets: Targets, seed: int) -> Callable[[PositionArray], Tensor]:
        """The gains ``(n_texts, n_images)`` of a batch; an item's own pair has at least 1."""
        import torch

        def gains(rows: PositionArray) -> Tensor:
            found = targets.gains(rows, rows)
            np.fill_diagonal(found, np.maximum(found.diagonal(), 1))
            if self._words is not None:
                assert targets.tags is not None
                found = np.concatenate((found, targets.tags[rows].T.astype(np.int64)))
            return torch.from_numpy(found)

        return gains

    def _learn_scale(self, X: Pairs, train: PositionArray, rng: np.random.Generator) -> None:
        for modality, part in self._parts.items():
            part._learn_scale(X.of(modality), train, rng)

    def _network_and_inputs(
        self, X: Pairs, train: PositionArray, seed: int
    ) -> tuple[PairNetwork, PairInputs]:
        from bittern.hashing.deep.layers import PairNetwork
        from bittern.hashing.deep.training import PairInputs

        made = [
            part._network_and_inputs(X.of(modality), train, seed + number)
            for number, (modality, part) in enumerate(self._parts.items())
        ]
        (image_network, images), (text_network, texts) = made
        words = None
        if self._words is not None:
            words = self._parts["texts"]._network_input(self._words)
        return PairNetwork(image_network, text_network), PairInputs(images, texts, words)

    def _network_input(self, X: Pairs) -> tuple[Tensor, ...]:
        return tuple(part._network_input(X.of(modality)) for modality, part in self._parts.items())

    def _checked_held_out(self) -> tuple[Pairs, Targets]:
        images, texts, y = self._held_out
        rows = Pairs(self._fitting(images, "images"), self._fitting(texts, "texts"))
        targets = Targets.of(y, len(rows.images), f"{self._title}: held_out")
        if len(rows.texts) != targets.n:
            raise InputError(f"{self._title}: held_out must have a text for each image.")
        return rows, targets

    def _checked_words(self, targets: Targets, dim: int) -> Any:
        """The text of each tag alone, or None."""
        if self._words is None:
            return None
        if targets.tags is None:
            raise InputError(f"{self._title}: words are for tags as y.")
        words = self._checked(self._words, "texts")
        if words.shape != (targets.tags.shape[1], dim):
            raise InputError(
                f"{self._title}: words must be a text for each of the {targets.tags.shape[1]:,} "
                f"tags, with {dim:,} columns, got shape {words.shape}."
            )
        return words

    def _learned(self, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        for modality, part in self._parts.items():
            prefix = f"{modality}."
            own = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            part._keep(state_=own)
        return {"image_hasher_": self._parts["images"], "text_hasher_": self._parts["texts"]}

    def _samples(self, X: Pairs, some: PositionArray) -> list[NDArray[Any]]:
        words = [] if self._words is None else [self._words]
        both = (X.images, X.texts)
        return [array for rows in both for array in (np.array(rows.shape), rows[some])] + words

    @property
    def _rates(self) -> tuple[tuple[float, float], ...]:
        return tuple(rates for part in self._parts.values() for rates in part._rates)

    def _checked(self, rows: Any, modality: Modality) -> Any:
        part = self._part(modality)
        if part._takes_vectors:
            return super()._checked(rows, modality)
        self._import_torch()
        return check_images(rows, part._title, any_shape=part._is_own_module)

    def _ready(self, part: Any, modality: Modality) -> Any:
        if self._hasher(modality)._takes_vectors:
            return super()._ready(part, modality)
        return self._fitting(part, modality)

    def _fitting(self, part: Any, modality: Modality) -> Any:
        hasher = self._hasher(modality)
        if hasher._takes_vectors:
            return super()._fitting(part, modality)
        return hasher._checked(part)

    def _blank(self, modality: Modality) -> NDArray[Any]:
        return self._hasher(modality)._blank()

    def _hasher(self, modality: Modality) -> GradientHasher:
        """The hasher of a modality, fitted or while it is being fitted."""
        if self._parts is not None:
            return self._parts[modality]
        hasher = self.image_hasher_ if modality == "images" else self.text_hasher_
        hasher._owner = f"{self._title}: {modality}"
        return hasher

    def _part(self, modality: Modality) -> GradientHasher:
        """A hasher of one modality with these parameters, before it is fitted."""
        names = OF_NETWORKS + (OF_IMAGE_NETWORKS if modality == "images" else ())
        options = {name: self._of(name, modality) for name in names}
        part = self._kind(self.n_bits, random_state=self.random_state, **options)
        part._owner = f"{self._title}: {modality}"
        part._noise = self._of("noise", modality)
        return part

    def _of(self, name: str, modality: Modality) -> Any:
        """A parameter for one modality, which may be given as a pair."""
        value = getattr(self, name)
        if not isinstance(value, tuple | list) or name in OF_IMAGE_NETWORKS:
            return value
        if len(value) != 2:
            raise InputError(
                f"{self._title}: {name} must be one value, or two for images and texts, "
                f"got {value!r}."
            )
        return value[MODALITIES.index(modality)]

    def _check(self) -> None:
        """Check all parameters."""
        self._check_training()
        for modality in MODALITIES:
            part = self._part(modality)
            part._check_layers()
            check_number(part._noise, f"{part._title}: noise", least=0)
        network = self._of("network", "texts")
        if isinstance(network, str) and network not in VECTOR_NETWORKS:
            raise InputError(
                f"{self._title}: texts: network={network!r} is for images; texts need "
                f"{', '.join(map(repr, VECTOR_NETWORKS))}, or a torch.nn.Module."
            )
