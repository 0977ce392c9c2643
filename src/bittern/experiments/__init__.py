"""Experiments: a protocol in, records out."""

from bittern.experiments.cells import Cell, cells_of
from bittern.experiments.protocol import Method, Protocol
from bittern.experiments.record import Example, Record, Value
from bittern.experiments.records import Records
from bittern.experiments.running import Watcher, run
from bittern.experiments.verification import Verification, verify

__all__ = [
    "Cell",
    "Example",
    "Method",
    "Protocol",
    "Record",
    "Records",
    "Value",
    "Verification",
    "Watcher",
    "cells_of",
    "run",
    "verify",
]
