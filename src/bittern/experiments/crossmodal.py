"""Search across modalities: texts among images and images among texts, by codes of one space."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bittern.codes import Codes
from bittern.data import Dataset, Split
from bittern.errors import InputError
from bittern.experiments.paradigm import Clock, Paradigm, Task, check_different
from bittern.experiments.record import TaskResult, Value, describe_profile, mean_values, values_of
from bittern.experiments.retrieval import (
    EXAMPLES_OF_RUN,
    check_lengths,
    check_parameters,
    choose_point,
    modules_of,
    search_codes,
    some_examples,
    target_of,
    training_curves,
)
from bittern.experiments.run_data import (
    FitSets,
    RunData,
    SplitSet,
    describe_split,
    split_of,
    trial_sets,
)
from bittern.experiments.truth import Classes, Tags
from bittern.hashing.crossmodal import CROSSMODAL, CrossModalHasher
from bittern.io.toml import read_table
from bittern.profile import TieProfile
from bittern.registry import Registry
from bittern.relevance import Relevance

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell, Trial
    from bittern.experiments.protocol import Method, Protocol

IMAGE, TEXT = "image", "text"
UNSEEN, SEEN, LEAK = "unseen", "seen", "leak"
#: What searches what.
DIRECTIONS: Registry[tuple[str, str]] = Registry(
    "direction",
    {
        "image-to-text": (IMAGE, TEXT),
        "text-to-image": (TEXT, IMAGE),
        "image-to-image": (IMAGE, IMAGE),
        "text-to-text": (TEXT, TEXT),
    },
)
#: What is searched, in words.
SETTINGS: Registry[str] = Registry(
    "setting",
    {
        UNSEEN: "the database has items that training has not seen; if the split has no such "
        "database, each query searches the other queries.",
        SEEN: "the database is the training rows, hashed by the learned functions, as published; "
        "training has seen their labels.",
        LEAK: "a warning, not a result: the database is the training rows with the codes that the "
        "optimisation gave them from their labels, which no function computes for new items.",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossModalSettings:
    """The two modalities of a dataset, with their preprocessing, and what searches what.

    The first table and the gallery are about the first of ``settings``.  Means, and the scores of
    grids, are over the directions across modalities.
    """

    image: str = IMAGE  # modality
    text: str = TEXT
    image_steps: tuple[str, ...] = ()  # learned on training rows
    text_steps: tuple[str, ...] = ()
    directions: tuple[str, ...] = ("image-to-text", "text-to-image")
    settings: tuple[str, ...] = (UNSEEN, SEEN, LEAK)

    def __post_init__(self) -> None:
        if self.image == self.text:
            raise InputError(f"crossmodal: image and text are both the modality {self.image!r}.")
        known: dict[str, Registry[Any]] = {"directions": DIRECTIONS, "settings": SETTINGS}
        for name, registry in known.items():
            given = getattr(self, name)
            check_different(given, f"crossmodal.{name}")
            if not given:
                raise InputError(f"crossmodal.{name} must name at least one.")
            for one in given:
                registry[one]
        if self.settings[0] == LEAK:
            raise InputError("crossmodal.settings: the first one must be 'unseen' or 'seen'.")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every direction in every setting; those across modalities in the first one are main."""
        return tuple(
            Task(
                *DIRECTIONS[direction],
                setting,
                SETTINGS[setting],
                is_main=setting == self.settings[0] and direction in self.main_directions,
                competes=setting != LEAK,
            )
            for setting in self.settings
            for direction in self.directions
        )

    @property
    def main_directions(self) -> tuple[str, ...]:
        """The directions across modalities; all of them if there is no such direction."""
        across = tuple(one for one in self.directions if len(set(DIRECTIONS[one])) > 1)
        return across or self.directions


@dataclass(frozen=True, eq=False)
class PairedData(RunData):
    """Images and texts of one run; every item of every set has both."""

    @cached_property
    def unseen(self) -> SplitSet:
        """Items of the database that are not training rows; the queries if there are none."""
        rows = np.flatnonzero(~np.isin(self.split.database, self.split.train))
        return self.database.take(rows) if len(rows) else self.queries

    @cached_property
    def statement(self) -> dict[str, Any]:
        """The split in plain values; only images are compared, because texts may repeat."""
        image = self.modality
        images = replace(self.dataset, modalities={image: self.dataset[image]}, present={})
        found = describe_split(self.split, images, image, self.prepared.notes)
        sizes = {k: n for k, n in found["sizes"].items() if k != "database"}
        others = self.unseen is self.queries
        return found | {
            "sizes": sizes | {"unseen_database": len(self.unseen) - others},
            "overlaps": f"the seen database is the training rows; the unseen database is "
            f"{'the other queries' if others else 'disjoint from all other sets'}",
            "data": self.fingerprint,
        }


class CrossModal(Paradigm):
    """Hash images and texts into one space, and rank one by codes of the other."""

    table = "crossmodal"
    tables = (CROSSMODAL,)

    def check(self, protocol: Protocol) -> None:
        """Every method must be a cross-modal hasher; items match by class or by tags."""
        _settings_of(protocol)
        if not isinstance(protocol.ground_truth, Classes | Tags):
            raise InputError(
                "truth: across modalities, items match by 'classes' or 'tags', "
                f"got {protocol.truth['kind']!r}."
            )
        if protocol.dataset.modality is not None or protocol.dataset.steps is not None:
            raise InputError(
                "dataset: with two modalities, leave out modality and steps; "
                "[crossmodal] has image, text, image_steps and text_steps."
            )
        for method in protocol.method:
            check_parameters(
                method, list(inspect.signature(CROSSMODAL.find(method.name)).parameters)
            )
        check_lengths(protocol, protocol.method)

    def lengths(self, protocol: Protocol, method: Method) -> Sequence[int | None]:
        """The method's own lengths, or the protocol's."""
        return method.n_bits or protocol.n_bits

    def needs_modules(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """What the hasher needs."""
        return modules_of(CROSSMODAL.find(method.name), method.points)

    def tasks(self, protocol: Protocol) -> tuple[Task, ...]:
        """Every direction in every setting."""
        return _settings_of(protocol).tasks

    def prepare(self, protocol: Protocol, dataset: Dataset, run: int, folder: Path) -> PairedData:
        """Split the items that have both modalities, and preprocess each modality."""
        settings = _settings_of(protocol)
        split, lacking = _complete(split_of(protocol, dataset, run), dataset, settings)
        prepared = dataset
        for name, steps in (
            (settings.image, settings.image_steps),
            (settings.text, settings.text_steps),
        ):
            dataset[name]  # fails for an unknown modality
            prepared = prepared.prepared(split.train, steps, name)
        if lacking:
            prepared = prepared.with_note(f"{lacking:,} items lack a modality and are left out.")
        data = PairedData(dataset, prepared, split, settings.image, settings.text)
        protocol.ground_truth.check(data.train)
        if any(method.learns_from == "classes" for method in protocol.method):
            Classes(kind="classes").check(data.train)
        return data

    def measure(
        self, protocol: Protocol, cell: Cell, data: PairedData, clock: Clock
    ) -> dict[str, Any]:
        """Choose on training rows, fit on training rows, and open the test sets once."""

        def score(point: dict[str, Any], sets: FitSets) -> float:
            model = _fitted(protocol, cell, point, sets.train)
            return _score(protocol, model, sets, protocol.main_metric).mean

        choice = clock("tune", lambda: choose_point(protocol, cell, data, score))
        model = clock("fit", lambda: _fitted(protocol, cell, choice.parameters, data.train))
        codes = clock("encode", lambda: _encoded(protocol, model, data))
        results = clock("evaluate", lambda: _searched(protocol, cell, data, codes))
        means = [one for task, one in results.items() if task.is_main]
        labels = data.queries.labels
        return {
            "parameters": choice.parameters,
            "tuning": choice.tried,
            "training_curves": training_curves(model),
            "tasks": {task.name: one for task, one in results.items()},
            "values": mean_values(means),
            "n_relevant": means[0].n_relevant,
            "query_positions": tuple(data.queries.positions.tolist()),
            "query_labels": None if labels is None else tuple(labels.tolist()),
        }

    def measure_trial(
        self, protocol: Protocol, trial: Trial, data: PairedData, clock: Clock
    ) -> dict[str, Any]:
        """Fit on a part of the training rows, and search the others in both directions."""
        metric, sets = protocol.search_metric, trial_sets(protocol, trial, data)
        model = clock(
            "fit",
            lambda: _fitted(protocol, trial, trial.parameters, sets.train, sets.queries),
        )
        value = clock("evaluate", lambda: _score(protocol, model, sets, metric))
        return {
            "parameters": trial.parameters,
            "values": {metric: Value(mean=value.mean, undefined=value.undefined)},
            "training_curves": training_curves(model),
            "split": sets.describe(data),
        }


def _settings_of(protocol: Protocol) -> CrossModalSettings:
    return read_table(CrossModalSettings, protocol.settings, "crossmodal")


def _complete(split: Split, dataset: Dataset, settings: CrossModalSettings) -> tuple[Split, int]:
    """The split without items that lack a modality, and how many they are."""
    has_both = dataset.has(settings.image) & dataset.has(settings.text)
    used = np.unique(np.concatenate(list(split.sets.values())))
    lacking = int((~has_both[used]).sum())
    if not lacking:
        return split, 0
    kept: dict[str, Any] = {name: at[has_both[at]] for name, at in split.sets.items()}
    return replace(split, **kept), lacking


def _fitted(
    protocol: Protocol,
    cell: Cell,
    parameters: dict[str, Any],
    train: SplitSet,
    held_out: SplitSet | None = None,
) -> CrossModalHasher:
    """A model that has learned from these pairs; some also record curves on held-out pairs."""
    model = make_model(protocol, cell, parameters)
    if not any(make_model(protocol, cell, point)._takes_y for point in cell.method.points):
        return model.fit(train.vectors, train.texts)
    target, watched = target_of(protocol, cell, train), {}
    if held_out is not None and getattr(model, "watches_held_out", False):
        other = target_of(protocol, cell, held_out, train)
        watched["held_out"] = (held_out.vectors, held_out.texts, other)
    return model.fit(train.vectors, train.texts, target, **watched)


def make_model(protocol: Protocol, cell: Cell, parameters: dict[str, Any]) -> CrossModalHasher:
    """The method of a cell with these parameters, not fitted yet."""
    options = {"random_state": cell.random_state(protocol)} | parameters
    return CROSSMODAL.find(cell.method.name)(cell.n_bits, **options)


# The codes of a set, by modality.
SideCodes = Mapping[str, Codes]


def _both(model: CrossModalHasher, items: SplitSet) -> SideCodes:
    return {IMAGE: model.encode(images=items.vectors), TEXT: model.encode(texts=items.texts)}


def _encoded(protocol: Protocol, model: CrossModalHasher, data: PairedData) -> dict[str, SideCodes]:
    """The codes of the queries, and of the database of each setting that the model has."""
    codes = {"queries": _both(model, data.queries)}
    for setting in _settings_of(protocol).settings:
        if setting == UNSEEN and data.unseen is data.queries:
            codes[setting] = codes["queries"]
        elif setting != LEAK:
            codes[setting] = _both(model, data.unseen if setting == UNSEEN else data.train)
        elif (bits := getattr(model, "training_bits_", None)) is not None:
            of_texts = getattr(model, "training_text_bits_", bits)  # if each modality has its own
            codes[setting] = {IMAGE: Codes.from_bits(bits), TEXT: Codes.from_bits(of_texts)}
    return codes


def _searched(
    protocol: Protocol, cell: Cell, data: PairedData, codes: Mapping[str, SideCodes]
) -> dict[Task, TaskResult]:
    """The results of every task whose database has codes; examples only of the main ones."""
    results = {}
    for task in _settings_of(protocol).tasks:
        if task.setting not in codes:
            continue
        database = data.unseen if task.setting == UNSEEN else data.train
        truth = _truth(protocol, data.queries, database, data.train)
        queries, items = codes["queries"][task.query], codes[task.setting][task.found]
        profile = TieProfile.from_codes(queries, items, truth)
        result = TaskResult(profile=profile, **describe_profile(profile, protocol.metrics))
        if cell.run == EXAMPLES_OF_RUN and task.is_main:
            search = search_codes(queries, items)
            places = data.queries.positions, database.positions
            result = replace(result, examples=some_examples(*places, truth, search))
        results[task] = result
    return results


def _truth(protocol: Protocol, queries: SplitSet, database: SplitSet, train: SplitSet) -> Relevance:
    """Relevance; if the queries search each other, each is left out of its own results."""
    truth = protocol.ground_truth.between(queries, database, train)
    return truth.excluding(np.arange(len(queries))) if queries is database else truth


def _score(protocol: Protocol, model: CrossModalHasher, sets: FitSets, metric: str) -> Value:
    """A metric on held-out rows, the mean over the directions across modalities."""
    truth = _truth(protocol, sets.queries, sets.database, sets.train)
    queries = _both(model, sets.queries)
    database = queries if sets.database is sets.queries else _both(model, sets.database)
    directions = [DIRECTIONS[name] for name in _settings_of(protocol).main_directions]
    profiles = [
        TieProfile.from_codes(queries[one], database[other], truth) for one, other in directions
    ]
    results = [TaskResult(values=values_of(profile, [metric])) for profile in profiles]
    return mean_values(results)[metric]
