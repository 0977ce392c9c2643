"""The evidence paper's split of TRECVID: two collections, the same topics asked of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.data.balance import Draws
from bittern.data.dataset import Dataset
from bittern.data.splits.base import Split
from bittern.data.splits.corel import deal, two_collections
from bittern.errors import InputError
from bittern.registry import Registry

__all__ = ["TrecvidSplit", "trecvid"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class TrecvidSplit(Split):
    """Two collections as in Corel, and the topics whose example images query both of them.

    ``validation_queries`` and ``queries`` are the quarter of each collection that is never ranked,
    from which negative examples can come; the queries themselves are the topics' own images.
    """

    topics: tuple[str, ...]

    def __post_init__(self) -> None:
        Split.__post_init__(self)
        object.__setattr__(self, "topics", tuple(self.topics))
        if len(set(self.topics)) < max(2, len(self.topics)):
            raise InputError(
                f"{self.name}: needs at least two different topics to leave one out, "
                f"got {list(self.topics)}."
            )

    def folds(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each topic to test on, with all others to learn from."""
        for held_out in self.topics:
            yield held_out, tuple(topic for topic in self.topics if topic != held_out)


def trecvid(dataset: Dataset, draws: Draws, *, topics: Sequence[str] | None = None) -> TrecvidSplit:
    """The partition of ``corel`` over keyframes; topics are kept on both sides, left out in turn.

    Section 2.4 of [Yavlinsky-2004].  The dataset's tags say which keyframe is relevant to which
    topic.  Where the paper is silent, ours is: the keyframes relevant to a topic are dealt among
    the parts as a category is (a keyframe of several topics with its rarest), so that both
    databases have some; a topic for which that fails is refused.
    """
    if dataset.tags is None:
        raise InputError(
            f"trecvid: needs tags that say which item is relevant to which topic, "
            f"{dataset.name} has none."
        )
    names = tuple(dataset.tag_names if topics is None else topics)
    table = Registry("topic", {name: i for i, name in enumerate(dataset.tag_names)})
    relevant = _columns(dataset.tags, [table[name] for name in names])
    quarters = deal(_rarest(relevant), draws)
    for side in ("validation_database", "database"):
        found = np.asarray(relevant[quarters[side]].sum(axis=0)).ravel()
        if not found.all():
            topic = int(np.argmin(found))
            total = int(relevant[:, [topic]].sum())
            raise InputError(
                f"trecvid: topic '{names[topic]}' has {total} relevant items, none of them in "
                f"{side}; leave it out of topics=."
            )
    return TrecvidSplit(
        name="trecvid",
        n_items=len(dataset),
        **two_collections(quarters),
        balanced_by="rarest topic",
        random_state=draws.random_state,
        run=draws.run,
        topics=names,
    )


def _columns(tags: Any, columns: list[int]) -> Any:
    import scipy.sparse

    return (scipy.sparse.csr_array(tags)[:, columns] != 0).astype(np.int64)


def _rarest(relevant: Any) -> NDArray[np.int64]:
    """For each item the column, of those it has, with the fewest items; -1 for none."""
    counts = np.asarray(relevant.sum(axis=0)).ravel()
    groups = np.full(relevant.shape[0], -1, dtype=np.int64)
    for column in np.argsort(-counts, kind="stable"):  # the rarest has the last word
        groups[relevant[:, [column]].nonzero()[0]] = column
    return groups
