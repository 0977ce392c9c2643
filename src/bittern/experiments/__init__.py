"""Experiments: a protocol in, records out."""

from bittern.experiments.advice import advise
from bittern.experiments.advice.record import Advice
from bittern.experiments.cells import Cell, Trial, cells_of, trials_of
from bittern.experiments.protocol import PARADIGMS, Method, Protocol
from bittern.experiments.record import Example, Record, Value
from bittern.experiments.records import Records
from bittern.experiments.running import Watcher, run
from bittern.experiments.search import SearchSettings
from bittern.experiments.split_files import write_splits
from bittern.experiments.verification import Verification, verify

__all__ = [
    "PARADIGMS",
    "Advice",
    "Cell",
    "Example",
    "Method",
    "Protocol",
    "Record",
    "Records",
    "SearchSettings",
    "Trial",
    "Value",
    "Verification",
    "Watcher",
    "advise",
    "cells_of",
    "run",
    "trials_of",
    "verify",
    "write_splits",
]


def __dir__() -> list[str]:
    return sorted(__all__)
