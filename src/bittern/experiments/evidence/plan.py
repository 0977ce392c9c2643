"""The table [evidence] of a protocol: which features retrieve, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bittern.checks import check_count
from bittern.errors import InputError
from bittern.features import FEATURES, NINE
from bittern.io.records import read_table
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.experiments.protocol import Protocol

__all__ = ["TRAINING", "Plan", "plan_of"]

TRAINING, TEST = "training", "test"
PARTITIONS = Registry("partition", dict.fromkeys((TRAINING, TEST)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How images are retrieved from examples, and which features are combined.

    ``k`` nearest of the examples and of ``n_negatives`` random images count (2.2 of
    [Yavlinsky-2004], which tells neither number).  ``features`` are what methods combine unless
    they name others.  Methods are judged on the test partition; on the training partition, only
    those that learn nothing can be, such as to choose k.

    ``n_topics`` categories are topics of ``n_examples`` images where the split is ``trecvid``.
    """

    k: int
    n_negatives: int
    features: tuple[str, ...] = NINE
    partition: str = TEST
    n_topics: int = 25
    n_examples: int = 3

    def __post_init__(self) -> None:
        for name in ("k", "n_negatives", "n_topics", "n_examples"):
            check_count(getattr(self, name), f"evidence: {name}")
        PARTITIONS[self.partition]
        check_features(self.features, "evidence: features")


def plan_of(protocol: Protocol) -> Plan:
    """The protocol's table [evidence]."""
    return read_table(Plan, protocol.evidence, "evidence")


def check_features(names: tuple[str, ...], where: str) -> None:
    """Refuse a name that no feature has, one that comes twice, and no names at all."""
    for name in names:
        FEATURES[name]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{where} must be different names, at least one, got {list(names)}.")
