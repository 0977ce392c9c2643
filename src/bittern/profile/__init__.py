"""The spine: items per distance and relevance level, for each query."""

from bittern.profile.base import TieProfile

__all__ = ["TieProfile"]
