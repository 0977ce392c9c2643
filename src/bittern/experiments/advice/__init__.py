"""Advice: how few bits keep most of the quality of ranking by the vectors themselves."""

from bittern.experiments.advice.advisor import LENGTHS, SUPERVISED, UNSUPERVISED, advise

__all__ = ["LENGTHS", "SUPERVISED", "UNSUPERVISED", "advise"]
