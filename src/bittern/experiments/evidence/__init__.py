"""Combining evidence: queries by example images, ranked by features and by what combines them."""

from bittern.experiments.evidence.measuring import measure_evidence

__all__ = ["measure_evidence"]
