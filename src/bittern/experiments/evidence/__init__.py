"""Combining evidence: queries of example images, ranked by features and by their combinations."""

from bittern.experiments.evidence.paradigm import Evidence

__all__ = ["Evidence"]
