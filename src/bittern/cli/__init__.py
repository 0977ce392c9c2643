"""The command ``bittern``, with one file for each subcommand."""

from bittern.cli import advise, data, demo, evaluate, features, fuse, index, run, search
from bittern.cli.app import Format, app, main

__all__ = [
    "Format",
    "advise",
    "app",
    "data",
    "demo",
    "evaluate",
    "features",
    "fuse",
    "index",
    "main",
    "run",
    "search",
]
