"""Open vocabulary: single words find images, also words that no training caption has."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray, check_count
from bittern.data import Dataset
from bittern.errors import InputError
from bittern.experiments.crossmodal import SETTINGS, UNSEEN, make_model
from bittern.experiments.paradigm import Clock, Paradigm, Task
from bittern.experiments.record import TaskResult, Value, describe_profile, mean_values, values_of
from bittern.experiments.retrieval import (
    check_lengths,
    check_parameters,
    choose_point,
    modules_of,
    training_curves,
)
from bittern.experiments.run_data import (
    FitSets,
    RunData,
    SplitSet,
    describe_split,
    prepare_run,
    trial_sets,
)
from bittern.experiments.search import TRAIN
from bittern.experiments.truth import Tags
from bittern.features import FEATURES
from bittern.hashing.crossmodal import CROSSMODAL, CrossModalHasher
from bittern.io.toml import read_table
from bittern.profile import TieProfile
from bittern.registry import Registry
from bittern.relevance import Relevance

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell, Trial
    from bittern.experiments.protocol import Method, Protocol

#: Parameters of a method that are not its constructor's.
TEXT, WORDS = "text", "words"
#: Features of texts that a method can use.
TEXT_FEATURES = Registry(
    "feature of texts", {name: kind for name, kind in FEATURES.items() if kind.takes == "texts"}
)
DEFAULT_TEXT = "bag-of-words"
KNOWN, HELD_OUT = (
    Task(kind, "image", UNSEEN, f"{SETTINGS[UNSEEN].partition(';')[0]}.", is_main=True)
    for kind in ("known word", "held-out word")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenVocabularySettings:
    """How many words are held out of training, and how frequent the query words are.

    ``least`` and ``most`` are shares of the images that are searched.
    """

    n_words: int = 20  # held out; as many others are queries too
    least: float = 0.01
    most: float = 0.1

    def __post_init__(self) -> None:
        check_count(self.n_words, "open_vocabulary.n_words")
        if not 0 < self.least <= self.most <= 1:
            raise InputError(
                "open_vocabulary: least and most must be shares of the images, 0 < least <= most "
                f"<= 1, got {self.least} and {self.most}."
            )


@dataclass(frozen=True, slots=True, eq=False)
class QueryWords:
    """Pairs of words of about the same frequency: one stays known, the other is held out."""

    known: PositionArray  # (n_words,), columns of the tags
    held_out: PositionArray

    @classmethod
    def draw(
        cls, settings: OpenVocabularySettings, train: Any, searched: Any, rng: np.random.Generator
    ) -> QueryWords:
        """Draw from the words of training rows that enough, but not too many, images have.

        ``train`` and ``searched`` are tags, ``(n, n_tags)`` each.
        """
        share, n = searched.mean(axis=0), settings.n_words
        in_range = (settings.least <= share) & (share <= settings.most)
        fitting = np.flatnonzero(in_range & train.any(axis=0))
        if len(fitting) < 2 * n:
            raise InputError(
                f"open_vocabulary: n_words = {n} needs {2 * n} words that are in training and on "
                f"{settings.least:g} to {settings.most:g} of the {len(searched):,} images, "
                f"found {len(fitting)}; lower n_words, or widen least and most."
            )
        drawn = rng.choice(fitting, 2 * n, replace=False)
        pairs = drawn[np.argsort(share[drawn], kind="stable")].reshape(n, 2)
        known, held_out = rng.permuted(pairs, axis=1).T
        return cls(known, held_out)

    def of(self, task: Task) -> PositionArray:
        """The queries of a task."""
        return self.known if task == KNOWN else self.held_out


@dataclass(frozen=True, eq=False)
class WordData(RunData):
    """Images of one run with words; the training rows have lost those that are held out."""

    words: QueryWords = field(kw_only=True)
    _texts: dict[Any, Any] = field(default_factory=dict, kw_only=True)

    @cached_property
    def train(self) -> SplitSet:
        """Training images with a word that is not held out."""
        return without_words(self._read("train"), self.words.held_out)

    @cached_property
    def database(self) -> SplitSet:
        """All images of the split that are not training rows."""
        return self._items(unseen_items(self), "database")

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split and the words in plain values."""
        found = describe_split(self.split, self.dataset, self.modality, self.prepared.notes)
        names = {
            task.query: ", ".join(self.names[i] for i in self.words.of(task))
            for task in (KNOWN, HELD_OUT)
        }
        left_out = len(self.split.train) - len(self.train)
        notes = [f"{kind}s: {listed}." for kind, listed in names.items()]
        if left_out:
            notes.append(f"{left_out:,} training images have only held-out words or none.")
        return found | {
            "sizes": {
                "train": len(self.train),
                "queries": len(self.words.known) + len(self.words.held_out),
                "database": len(self.database),
            },
            "overlaps": "the database is all items that are not training rows; a query is a word",
            "notes": [*found["notes"], *notes],
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The words."""
        return self.dataset.tag_names

    def rows_of(self, feature: str, captions: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
        """A feature, fitted on captions: their rows, and the row of each word alone."""
        key = (feature, *captions)
        if key not in self._texts:
            fitted = TEXT_FEATURES[feature]().fit(captions)
            distinct, place = np.unique(captions, return_inverse=True)
            rows = fitted.transform(distinct.tolist())[place]
            self._texts[key] = rows, fitted.transform(self.names)
        known: tuple[NDArray[Any], NDArray[Any]] = self._texts[key]
        return known


class OpenVocabulary(Paradigm):
    """Hash images and captions into one space, and search unseen images by single words."""

    table = "open_vocabulary"
    tables = (CROSSMODAL,)
    queries_are_items = False  # a query is a word

    def check(self, protocol: Protocol) -> None:
        """Every method must be a cross-modal hasher; images match by their tags."""
        _settings_of(protocol)
        if protocol.ground_truth != Tags(kind="tags"):
            raise InputError("truth: with an open vocabulary, give kind = 'tags', without grades.")
        if protocol.search is not None and protocol.search.database == TRAIN:
            raise InputError("search.database: words search held-out images, not 'train'.")
        for method in protocol.method:
            _check_method(method)
        check_lengths(protocol, protocol.method)

    def lengths(self, protocol: Protocol, method: Method) -> Sequence[int | None]:
        """The method's own lengths, or the protocol's."""
        return method.n_bits or protocol.n_bits

    def needs_modules(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """What the hasher and the feature of texts need."""
        own = [
            {key: value for key, value in point.items() if key not in (TEXT, WORDS)}
            for point in method.points
        ]
        texts = {point.get(TEXT, DEFAULT_TEXT) for point in method.points}
        features = [one for name in sorted(texts) for one in TEXT_FEATURES[name]().needs_modules]
        return (*modules_of(CROSSMODAL.find(method.name), own), *features)

    def tasks(self, protocol: Protocol) -> tuple[Task, ...]:
        """Known words and held-out words."""
        return KNOWN, HELD_OUT

    def prepare(self, protocol: Protocol, dataset: Dataset, run: int, folder: Path) -> WordData:
        """Split, and draw the words of the run."""
        data = prepare_run(protocol, dataset, run)
        protocol.ground_truth.check(data.train)
        searched = data._items(unseen_items(data), "database")
        rng = np.random.default_rng((protocol.random_state, run))
        words = QueryWords.draw(_settings_of(protocol), data.train.tags, searched.tags, rng)
        return WordData(dataset, data.prepared, data.split, data.modality, words=words)

    def measure(
        self, protocol: Protocol, cell: Cell, data: WordData, clock: Clock
    ) -> dict[str, Any]:
        """Choose on training rows, fit on training rows, and search the unseen images once."""

        def score(point: dict[str, Any], sets: FitSets) -> float:
            seed = cell.random_state(protocol)
            return _score(protocol, cell, data, point, sets, seed, protocol.main_metric)[1].mean

        choice = clock("tune", lambda: choose_point(protocol, cell, data, score))
        fitted = clock("fit", lambda: _fitted(protocol, cell, data, choice.parameters, data.train))
        profiles = clock("encode", lambda: fitted.profiles(data.database, data.words))
        results = clock(
            "evaluate",
            lambda: {
                task.name: TaskResult(profile=one, **describe_profile(one, protocol.metrics))
                for task, one in profiles.items()
            },
        )
        return {
            "parameters": choice.parameters,
            "tuning": choice.tried,
            "training_curves": training_curves(fitted.model),
            "tasks": results,
            "values": mean_values(list(results.values())),
            "n_relevant": results[HELD_OUT.name].n_relevant,
            "query_positions": tuple(range(len(data.words.known))),
        }

    def measure_trial(
        self, protocol: Protocol, trial: Trial, data: WordData, clock: Clock
    ) -> dict[str, Any]:
        """Hold out images and further words of the training rows, fit, and search the images."""
        metric, sets = protocol.search_metric, trial_sets(protocol, trial, data)
        seed = trial.held_out_seed(protocol)
        fitted, value = clock(
            "fit",
            lambda: _score(protocol, trial, data, trial.parameters, sets, seed, metric),
        )
        return {
            "parameters": trial.parameters,
            "values": {metric: Value(mean=value.mean, undefined=value.undefined)},
            "training_curves": training_curves(fitted.model),
            "split": sets.describe(data),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model, and the row of each word alone."""

    model: CrossModalHasher
    words: NDArray[Any]  # (n_tags, dim)

    def profiles(self, images: SplitSet, words: QueryWords) -> dict[Task, TieProfile]:
        """What each task finds among the images; an image is relevant if it has the word."""
        database = self.model.encode(images=images.vectors)
        found = {}
        for task in (KNOWN, HELD_OUT):
            queries = words.of(task)
            relevance = Relevance.from_tags(
                np.eye(images.tags.shape[1], dtype=np.bool_)[queries], images.tags
            )
            codes = self.model.encode(texts=self.words[queries])
            found[task] = TieProfile.from_codes(codes, database, relevance)
        return found


def unseen_items(data: RunData) -> PositionArray:
    """Positions of the items of queries and database that are not training rows."""
    both = np.union1d(data.split.queries, data.split.database)
    return np.setdiff1d(both, data.split.train)


def without_words(items: SplitSet, words: PositionArray) -> SplitSet:
    """The items without these words; an item that has no other word is left out."""
    tags = items.tags.astype(np.bool_)
    tags[:, words] = False
    return replace(items, tags=tags).take(np.flatnonzero(tags.any(axis=1)))


def _settings_of(protocol: Protocol) -> OpenVocabularySettings:
    return read_table(OpenVocabularySettings, protocol.settings, "open_vocabulary")


def _check_method(method: Method) -> None:
    """A cross-modal hasher, with a feature of texts, that may learn from single words."""
    kind = CROSSMODAL.find(method.name)
    check_parameters(method, [*inspect.signature(kind).parameters, TEXT, WORDS])
    if method.learns_from != "grades":
        raise InputError(f"method {method.label}: leave out learns_from; methods learn from words.")
    for point in method.points:
        TEXT_FEATURES[point.get(TEXT, DEFAULT_TEXT)]
        if not isinstance(point.get(WORDS, False), bool):
            raise InputError(
                f"method {method.label}: words must be true or false, got {point[WORDS]!r}."
            )


def _fitted(
    protocol: Protocol, cell: Cell, data: WordData, parameters: dict[str, Any], train: SplitSet
) -> Fitted:
    """A model that has learned from images with their captions, which are their words."""
    names, columns = np.array(data.names), np.flatnonzero(train.tags.any(axis=0))
    captions = [" ".join(names[row]) for row in train.tags]
    texts, words = data.rows_of(parameters.get(TEXT, DEFAULT_TEXT), captions)
    own = {key: value for key, value in parameters.items() if key not in (TEXT, WORDS)}
    model, y = make_model(protocol, cell, own), train.tags[:, columns]
    if not parameters.get(WORDS, False):
        model.fit(train.vectors, texts, y)
    elif WORDS in inspect.signature(model.fit).parameters:
        model.fit(train.vectors, texts, y, **{WORDS: words[columns]})
    else:
        image, word = np.nonzero(y)  # pairs of an image and one of its words
        rows = np.concatenate((np.arange(len(train)), image))
        both = np.concatenate((texts, words[columns[word]]))
        model.fit(train.vectors[rows], both, y[rows])
    return Fitted(model, words)


def _score(
    protocol: Protocol,
    cell: Cell,
    data: WordData,
    parameters: dict[str, Any],
    sets: FitSets,
    seed: int,
    metric: str,
) -> tuple[Fitted, Value]:
    """A fit that lacks further words, and the mean of a metric over both kinds of words."""
    rng = np.random.default_rng(seed)
    words = QueryWords.draw(_settings_of(protocol), sets.train.tags, sets.database.tags, rng)
    fitted = _fitted(protocol, cell, data, parameters, without_words(sets.train, words.held_out))
    profiles = fitted.profiles(sets.database, words).values()
    results = [TaskResult(values=values_of(one, [metric])) for one in profiles]
    return fitted, mean_values(results)[metric]
