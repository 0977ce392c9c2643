"""What a Dask worker does without Dask; a module of its own, so that the worker can import it."""

from __future__ import annotations

import os
import time
from typing import Any

import bittern as bt
from bittern.scale import shard as shard_module


def in_one_go(queries: bt.Codes, shards: Any, truth: Any) -> tuple[float, float]:
    """Seconds, and processor seconds, of one thread for all shards."""
    os.environ["BITTERN_THREADS"] = "1"
    shard_module._checksum.cache_clear()
    began = time.perf_counter(), time.process_time()
    bt.scale.profile(queries, shards, truth)
    return time.perf_counter() - began[0], time.process_time() - began[1]
