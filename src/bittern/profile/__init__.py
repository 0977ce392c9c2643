"""TieProfile: for each query, the number of items at each distance and relevance level."""

from bittern.profile.base import TieProfile

__all__ = ["TieProfile"]


def __dir__() -> list[str]:
    return sorted(__all__)
