"""Advice: how few bytes keep most of the quality of ranking by the vectors themselves."""

from bittern.experiments.advice.advisor import advise
from bittern.experiments.advice.contenders import LENGTHS, SIZES, SUPERVISED, UNSUPERVISED

__all__ = ["LENGTHS", "SIZES", "SUPERVISED", "UNSUPERVISED", "advise"]
