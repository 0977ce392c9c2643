"""Sources of evidence: a feature with nearest examples, or with features chosen by boosting."""

from __future__ import annotations

from dataclasses import dataclass

from bittern.errors import BitternError, UnknownNameError
from bittern.features import FEATURES
from bittern.registry import Registry

BOOSTED = "boosted-"


@dataclass(frozen=True, slots=True)
class Source:
    """How a source scores items: by which feature, and whether some of its values are chosen."""

    feature: str
    is_boosted: bool

    @property
    def takes_texts(self) -> bool:
        """Whether it describes texts."""
        return FEATURES.find(self.feature).takes == "texts"


def is_source(name: str) -> bool:
    """Whether this names a source."""
    try:
        FEATURES.find(name.removeprefix(BOOSTED))
    except BitternError:
        return False
    return True


def find_source(name: str) -> Source:
    """The source of a name: a feature, or ``boosted-`` and a feature."""
    if ":" in name:
        FEATURES.find(name.removeprefix(BOOSTED))  # fails if there is none
    elif not is_source(name):
        known = (*FEATURES, *(BOOSTED + feature for feature in FEATURES))
        raise UnknownNameError(Registry("feature", dict.fromkeys(known)).refusal(name))
    return Source(name.removeprefix(BOOSTED), name.startswith(BOOSTED))
