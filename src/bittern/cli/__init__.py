"""The command ``bittern``, with one file for each subcommand."""

from bittern.cli import (
    advise,
    data,
    demo,
    encode,
    evaluate,
    features,
    fit,
    fuse,
    index,
    onnx,
    run,
    search,
    warm_up,
)
from bittern.cli.app import Format, app, main

__all__ = [
    "Format",
    "advise",
    "app",
    "data",
    "demo",
    "encode",
    "evaluate",
    "features",
    "fit",
    "fuse",
    "index",
    "main",
    "onnx",
    "run",
    "search",
    "warm_up",
]
