"""The command ``bittern``, with one file for each subcommand."""

from bittern.cli import (
    advise,
    data,
    demo,
    duplicates,
    encode,
    evaluate,
    exchange,
    features,
    fit,
    fuse,
    index,
    onnx,
    run,
    search,
    shards,
    warm_up,
)
from bittern.cli.app import Format, app, main

__all__ = [
    "Format",
    "advise",
    "app",
    "data",
    "demo",
    "duplicates",
    "encode",
    "evaluate",
    "exchange",
    "features",
    "fit",
    "fuse",
    "index",
    "main",
    "onnx",
    "run",
    "search",
    "shards",
    "warm_up",
]
