"""The data of a run: vectors of images by feature, and scores of features for its queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bittern
from bittern.checks import Float32Array, Float64Array
from bittern.data import Dataset
from bittern.errors import InputError
from bittern.experiments.evidence.queries import (
    TRAINING,
    PartitionQueries,
    RunQueries,
    draw_queries,
    run_seed,
)
from bittern.experiments.evidence.sources import find_source
from bittern.experiments.run_data import data_fingerprint, describe_split
from bittern.features import FEATURES
from bittern.features.fitting import has_to_learn
from bittern.fusion import boosted_scores, draw_negatives, similarities
from bittern.fusion.boosting import N_ROUNDS
from bittern.io.cache import ArrayCache, CachedArray, fingerprint_of
from bittern.metrics import evaluate
from bittern.profile import TieProfile
from bittern.relevance import Relevance

if TYPE_CHECKING:
    from bittern.experiments.evidence.paradigm import EvidenceSettings
    from bittern.experiments.protocol import Protocol

FOLDER = "evidence"
IMAGES, TEXTS = "image", "text"  # modalities
POWERS = {"bag-of-words": 3.0}  # of the L1 distance, 2.2 of [Yavlinsky-2004]


class KnnSettings(NamedTuple):
    """How many of the nearest examples count, and how many negative ones are drawn."""

    k: int
    n_negatives: int


@dataclass(frozen=True, slots=True, eq=False)
class PartitionScores:
    """Scores of some features for every query and item of one partition."""

    names: tuple[str, ...]
    scores: Float32Array  # (features, queries, items)
    categories: NDArray[np.int64]  # (queries,)
    relevant: NDArray[np.bool_]  # (queries, items)
    sizes: NDArray[np.int64]  # (queries,) number of examples
    in_turn: bool  # learn from all queries but the one it is applied to

    @property
    def relevance(self) -> Relevance:
        """Which item is relevant to which query."""
        return Relevance.from_matrix(self.relevant)

    def some(self, chosen: NDArray[np.bool_]) -> PartitionScores:
        """Some of the queries."""
        return replace(
            self,
            scores=self.scores[:, chosen],
            categories=self.categories[chosen],
            relevant=self.relevant[chosen],
            sizes=self.sizes[chosen],
        )


@dataclass(frozen=True, eq=False)
class EvidenceData:
    """What the cells of a run share; arrays are computed when first used, and cached on disk."""

    dataset: Dataset
    modality: str  # of the images
    queries: RunQueries
    cache: ArrayCache
    random_state: int  # of negative examples, and of methods

    @staticmethod
    def of(
        protocol: Protocol, settings: EvidenceSettings, dataset: Dataset, run: int, folder: Path
    ) -> EvidenceData:
        """The data of one run; arrays are cached in the folder of the experiment."""
        return EvidenceData(
            dataset,
            protocol.dataset.modality or IMAGES,
            draw_queries(protocol, settings, dataset, run),
            ArrayCache(folder / FOLDER),
            run_seed(protocol, run, "methods"),
        )

    @cached_property
    def texts(self) -> ImageTexts:
        """The texts of all images."""
        return texts_of(self.dataset, self.queries.withheld)

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of the data."""
        return data_fingerprint(self.dataset, self.modality)

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split in plain values; the search for leaks is slow, so it is cached on disk."""
        split, dataset = self.queries.split, self.dataset
        description = CachedArray(
            "splits",
            split.name,
            [self._data, split.fingerprint],
            lambda: np.array(
                json.dumps(describe_split(split, dataset, self.modality, dataset.notes))
            ),
        )
        statement = json.loads(str(self.cache.get(description).load()))
        return statement | {"class_names": list(self.queries.names)}

    def scores(self, partition: str, names: Sequence[str], knn: KnnSettings) -> PartitionScores:
        """Scores of some features for the queries of a partition."""
        arrays = [self._scores(partition, name, knn) for name in names]
        queries = self.queries.of(partition)
        return PartitionScores(
            tuple(names),
            np.stack([stored.load() for stored in self.cache.get_all(arrays)]),
            queries.categories,
            queries.relevant,
            queries.sizes,
            self.queries.in_turn,
        )

    def best_features(self, names: Sequence[str], n: int, knn: KnnSettings) -> tuple[str, ...]:
        """The n features with the largest mean AP on training queries, best first."""
        arrays = [self._precision(name, knn) for name in names]
        means = {
            name: float(np.nanmean(stored.load()))
            for name, stored in zip(names, self.cache.get_all(arrays), strict=True)
        }
        return tuple(sorted(means, key=means.__getitem__, reverse=True)[:n])

    def _precision(self, name: str, knn: KnnSettings) -> CachedArray:
        """AP of each training query by one feature."""

        def make() -> NDArray[Any]:
            found = self.scores(TRAINING, [name], knn)
            return _average_precision(found)

        depends_on = self._scores(TRAINING, name, knn).fingerprint
        return CachedArray("precision", name, depends_on, make)

    def _scores(self, partition: str, name: str, knn: KnnSettings) -> CachedArray:
        """Scores of one feature for the queries of a partition."""
        vectors, queries = self._vectors(name), self.queries.of(partition)

        def make() -> NDArray[Any]:
            rows = self.cache.get(vectors).map()
            return score_items(name, rows, queries, knn, self.random_state)

        depends_on = [
            vectors.fingerprint,
            queries.fingerprint,
            f"{N_ROUNDS} rounds" if find_source(name).is_boosted else knn.k,
            knn.n_negatives,
            self.random_state,
        ]
        return CachedArray("scores", f"{name}-{partition}", depends_on, make)

    def _vectors(self, name: str) -> CachedArray:
        """A feature's vectors of all images; learned features learn from the training partition."""
        source = find_source(name)
        feature = FEATURES.find(source.feature)()
        train = self.queries.split.train
        parameters = {key: str(value) for key, value in feature.get_params().items()}
        learned_from = self.queries.split.fingerprint if has_to_learn(feature) else ""
        if source.takes_texts:
            learned_from += fingerprint_of(self.texts.texts)

        def make() -> NDArray[Any]:
            if feature.takes == "texts":
                texts = self.texts.texts
                return feature.fit([texts[i] for i in train]).transform(texts)
            rows = self.dataset[self.modality]
            return feature.fit(self.dataset.take(train)[self.modality]).transform(rows)

        return CachedArray(
            "vectors", source.feature, [self._data, self.modality, parameters, learned_from], make
        )

    @cached_property
    def _data(self) -> list[str]:
        """Identifies the dataset and the version of its features."""
        return [bittern.__version__, self.fingerprint]


def score_items(
    name: str,
    vectors: NDArray[np.floating],
    queries: PartitionQueries,
    knn: KnnSettings,
    random_state: int,
) -> Float32Array:
    """Scores ``(queries, items)`` of a source by retrieval from examples.

    The negative examples depend on the queries and ``random_state``, not on the feature.
    """
    there = np.union1d(queries.pool, queries.images[queries.images >= 0])
    positives = np.where(queries.images >= 0, np.searchsorted(there, queries.images), -1)
    negatives = draw_negatives(
        positives, np.searchsorted(there, queries.pool), knn.n_negatives, random_state=random_state
    )
    pool, database = np.asarray(vectors[there]), np.asarray(vectors[queries.database])
    if find_source(name).is_boosted:
        found = boosted_scores(positives, negatives, pool, database)
    else:
        power = POWERS.get(name, 1.0)
        found = similarities(positives, negatives, pool, database, k=knn.k, power=power)
    return found.astype(np.float32)


class ImageTexts(NamedTuple):
    """A text for each image, and the words that were withheld from all of them."""

    texts: list[str]
    withheld: tuple[str, ...]


def texts_of(dataset: Dataset, withheld: Sequence[str] = ()) -> ImageTexts:
    """What is said of each image: its transcript, or its tags without those that name a category.

    The words on an image must not give away its category.  Corel-5K's categories have only numbers,
    so the name of a category is taken to be the word whose share of its images exceeds its share of
    all other images by most.  If the topics are words, these are ``withheld`` instead.
    """
    if TEXTS in dataset.modalities:
        return ImageTexts(list(dataset[TEXTS][:]), ())
    if dataset.tags is None or (dataset.labels is None and not withheld):
        raise InputError(f"{dataset.name}: features of texts need texts, or tags and class labels.")
    given = dataset.tags.toarray() if hasattr(dataset.tags, "toarray") else dataset.tags
    tags, words = np.asarray(given, bool), np.array(dataset.tag_names, dtype=object)
    names = set(withheld or words[_naming_columns(tags, dataset.labels)])
    kept = [column for column, word in enumerate(words) if word not in names]
    texts = [" ".join(words[[column for column in kept if row[column]]]) for row in tags]
    return ImageTexts(texts, tuple(sorted(names)))


def _naming_columns(tags: NDArray[np.bool_], labels: Any) -> list[int]:
    """For each category, the column that sets it apart most."""
    return [
        int(np.argmax(tags[labels == c].mean(axis=0) - tags[labels != c].mean(axis=0)))
        for c in np.unique(labels[labels >= 0])
    ]


def _average_precision(found: PartitionScores) -> Float64Array:
    """Tie-aware AP of each query by the first feature."""
    profile = TieProfile.from_distances(-found.scores[0], found.relevance)
    values = evaluate(profile, ["ap"])["ap"].per_query
    assert values is not None
    return values
