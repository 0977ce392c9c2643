"""Ground truth: which database item is relevant to which query, and how much."""

from bittern.relevance.base import Relevance
from bittern.relevance.neighbours import ball_radius

__all__ = ["Relevance", "ball_radius"]


def __dir__() -> list[str]:
    return sorted(__all__)
