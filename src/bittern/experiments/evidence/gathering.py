"""What the cells of a run share: vectors of images, scores of features, the split's checks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bittern
from bittern.data import Dataset
from bittern.experiments.evidence.plan import TRAINING
from bittern.experiments.evidence.questions import Asked, asked_of, random_state_of
from bittern.experiments.evidence.shelf import Piece, Shelf
from bittern.experiments.evidence.sides import Side, average_precision, scores_of
from bittern.experiments.evidence.words import Words, words_of
from bittern.experiments.material import Material, Root, data_fingerprint, dataset_of
from bittern.features import FEATURES
from bittern.features.fitting import has_to_learn

if TYPE_CHECKING:
    from bittern.experiments.protocol import Protocol

__all__ = ["Gathering", "Settings"]

FOLDER = "evidence"
IMAGES = "image"  # the modality


@dataclass(frozen=True, slots=True)
class Settings:
    """The nearest examples that count, and how many negative ones are drawn."""

    k: int
    n_negatives: int


@dataclass(frozen=True, eq=False)
class Gathering:
    """The data of one run; what takes long is kept on the shelf, and made when first asked for."""

    dataset: Dataset
    images: str  # the modality
    asked: Asked
    shelf: Shelf
    random_state: int  # of the negative examples, and of what methods draw

    @staticmethod
    def of(protocol: Protocol, run: int, root: Root, folder: Path) -> Gathering:
        """What a run of the protocol works on."""
        dataset = dataset_of(protocol.dataset, root)
        return Gathering(
            dataset,
            protocol.dataset.modality or IMAGES,
            asked_of(protocol, dataset, run),
            Shelf(folder / FOLDER),
            random_state_of(protocol, run, "methods"),
        )

    @cached_property
    def words(self) -> Words:
        """The texts of all images."""
        return words_of(self.dataset)

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split in plain values, with the search for leaks."""
        split = self.asked.split
        piece = Piece(
            "splits",
            split.name,
            [self._data, split.fingerprint],
            lambda: np.array(
                json.dumps(Material(self.dataset, self.dataset, split, self.images).statement)
            ),
        )
        return json.loads(str(self.shelf.get(piece).load()))

    def side(self, partition: str, names: Sequence[str], settings: Settings) -> Side:
        """The scores of some features for the queries of a partition."""
        pieces = [self._scores(partition, name, settings) for name in names]
        asked, labels = getattr(self.asked, partition), self.dataset.labels
        assert labels is not None
        return Side(
            tuple(names),
            np.stack([stored.load() for stored in self.shelf.get_all(pieces)]),
            asked.categories,
            labels[asked.database],
            asked.sizes,
            self.asked.in_turn,
        )

    def best(self, names: Sequence[str], n: int, settings: Settings) -> tuple[str, ...]:
        """The n features of the largest mean AP on training queries, best first."""
        pieces = [self._precision(name, settings) for name in names]
        means = {
            name: float(np.nanmean(stored.load()))
            for name, stored in zip(names, self.shelf.get_all(pieces), strict=True)
        }
        return tuple(sorted(means, key=means.__getitem__, reverse=True)[:n])

    def _precision(self, name: str, settings: Settings) -> Piece:
        """Each training query's AP by one feature."""

        def make() -> NDArray[Any]:
            side = self.side(TRAINING, [name], settings)
            return average_precision(side, side.scores[0])

        depends_on = self._scores(TRAINING, name, settings).fingerprint
        return Piece("precision", name, depends_on, make)

    def _scores(self, partition: str, name: str, settings: Settings) -> Piece:
        vectors, asked = self._vectors(name), getattr(self.asked, partition)

        def make() -> NDArray[Any]:
            return scores_of(
                name,
                self.shelf.get(vectors).map(),
                asked,
                k=settings.k,
                n_negatives=settings.n_negatives,
                random_state=self.random_state,
            )

        depends_on = [
            vectors.fingerprint,
            asked.fingerprint,
            settings.k,
            settings.n_negatives,
            self.random_state,
        ]
        return Piece("scores", f"{name}-{partition}", depends_on, make)

    def _vectors(self, name: str) -> Piece:
        """A feature's rows of all images; one that learns does so on the training partition."""
        feature = FEATURES[name]()
        train = self.asked.split.train
        told = {key: str(value) for key, value in feature.get_params().items()}
        learned_from = self.asked.split.fingerprint if has_to_learn(feature) else ""

        def make() -> NDArray[Any]:
            if feature.takes == "texts":
                texts = self.words.texts
                return feature.fit([texts[i] for i in train]).transform(texts)
            rows = self.dataset[self.images]
            return feature.fit(self.dataset.take(train)[self.images]).transform(rows)

        return Piece("vectors", name, [self._data, self.images, told, learned_from], make)

    @cached_property
    def _data(self) -> list[str]:
        """What tells this dataset from another."""
        return [bittern.__version__, data_fingerprint(self.dataset, self.images)]
