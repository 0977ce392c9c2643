"""Topics of a run: published ones, categories or words, with their examples and relevant items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import PositionArray
from bittern.data import Dataset
from bittern.data.balance import Shuffler
from bittern.errors import InputError
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.experiments.evidence.paradigm import EvidenceSettings

EXAMPLES = "examples"  # the publisher's set of example images


@dataclass(frozen=True, slots=True, eq=False)
class Topics:
    """Topics, the positions of their example images, and which items are relevant to each."""

    numbers: NDArray[np.int64]  # (n_topics,) into names
    names: tuple[str, ...]
    images: PositionArray  # (n_topics, most examples), padded with -1
    relevant: NDArray[np.bool_]  # (n_topics, n_items)
    kept_out: PositionArray  # items that belong to no partition: the examples

    @property
    def titles(self) -> tuple[str, ...]:
        """The name of each topic."""
        return tuple(self.names[number] for number in self.numbers)


def find_topics(
    settings: EvidenceSettings, dataset: Dataset, chosen: Sequence[str] | None, random_state: int
) -> Topics:
    """The topics of a run, all of the kind's or the chosen ones by name."""
    return TOPICS[settings.topics](settings, dataset, chosen, random_state)


def _categories(
    settings: EvidenceSettings, dataset: Dataset, chosen: Sequence[str] | None, random_state: int
) -> Topics:
    """Random categories that have more images than a topic has examples."""
    if chosen is not None:
        raise InputError("evidence: topics that are categories are drawn, so name none.")
    if dataset.labels is None:
        raise InputError(f"evidence: needs categories as class labels, {dataset.name} has none.")
    labels = dataset.labels
    numbers, counts = np.unique(labels[labels >= 0], return_counts=True)
    large = numbers[counts > settings.n_examples]
    if len(large) < settings.n_topics:
        raise InputError(
            f"evidence: {settings.n_topics} topics need as many categories with more than "
            f"{settings.n_examples} images, {dataset.name} has {len(large)}."
        )
    draws = Shuffler(random_state)
    topics = np.sort(draws.shuffled(large)[: settings.n_topics])
    return _drawn(topics, dataset.class_names, labels == topics[:, None], settings, draws)


def _words(
    settings: EvidenceSettings, dataset: Dataset, chosen: Sequence[str] | None, random_state: int
) -> Topics:
    """The words on the most images, or the chosen words."""
    tags = _dense_tags(dataset)
    counts = tags.sum(axis=0)
    if chosen is None:
        columns = sorted(np.argsort(-counts, kind="stable")[: settings.n_topics].tolist())
    else:
        columns = _columns(dataset, chosen)
    few = [dataset.tag_names[c] for c in columns if counts[c] <= settings.n_examples]
    if (len(columns) < settings.n_topics and chosen is None) or few:
        raise InputError(
            f"evidence: {settings.n_topics} topics need as many words on more than "
            f"{settings.n_examples} images, {dataset.name} has too few."
        )
    names = tuple(dataset.tag_names[c] for c in columns)
    draws = Shuffler(random_state)
    return _drawn(np.arange(len(columns)), names, tags[:, columns].T, settings, draws)


def _published(
    settings: EvidenceSettings, dataset: Dataset, chosen: Sequence[str] | None, random_state: int
) -> Topics:
    """The dataset's own topics with at most ``n_examples`` of their own example images each."""
    if EXAMPLES not in dataset.official:
        raise InputError(
            f"evidence: {dataset.name} comes without example images of topics; "
            "for trecvid2003, set dataset.options = {examples = true}."
        )
    examples = dataset.official[EXAMPLES]
    columns = _columns(dataset, dataset.tag_names if chosen is None else chosen)
    names = tuple(dataset.tag_names[c] for c in columns)
    relevant = _dense_tags(dataset)[:, columns].T
    images = [examples[row[examples]][: settings.n_examples] for row in relevant]
    if without := [name for name, found in zip(names, images, strict=True) if not len(found)]:
        raise InputError(
            f"evidence: no example image of topic {', '.join(without)} is there; add some in a "
            "folder with its number below topics, or leave it out of split.sizes.topics."
        )
    return Topics(np.arange(len(names)), names, _padded(images), relevant, examples)


#: Where topics come from, by name.
TOPICS: Registry[Callable[[Any, Dataset, Sequence[str] | None, int], Topics]] = Registry(
    "kind of topics", {"categories": _categories, "words": _words, "published": _published}
)


def _drawn(
    numbers: NDArray[np.int64],
    names: tuple[str, ...],
    relevant: NDArray[np.bool_],
    settings: EvidenceSettings,
    draws: Shuffler,
) -> Topics:
    """Topics whose examples are drawn from their relevant items."""
    images = [draws.shuffled(np.flatnonzero(row))[: settings.n_examples] for row in relevant]
    examples = np.sort(np.stack(images), axis=1)
    return Topics(numbers, names, examples, relevant, np.unique(examples))


def _padded(images: Sequence[PositionArray]) -> PositionArray:
    out = np.full((len(images), max(map(len, images))), -1, np.intp)
    for row, found in zip(out, images, strict=True):
        row[: len(found)] = found
    return out


def _columns(dataset: Dataset, names: Sequence[str]) -> list[int]:
    table = Registry("topic", {name: i for i, name in enumerate(dataset.tag_names)})
    return [table[name] for name in names]


def _dense_tags(dataset: Dataset) -> NDArray[np.bool_]:
    if dataset.tags is None:
        raise InputError(f"evidence: needs tags as topics, {dataset.name} has none.")
    tags = dataset.tags
    return np.asarray(tags.toarray() if hasattr(tags, "toarray") else tags, np.bool_)
