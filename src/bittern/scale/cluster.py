"""A Dask cluster as an executor."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from bittern.errors import BitternError
from bittern.extras import import_extra

PATIENCE = 10  # seconds for an answer of the scheduler


@contextmanager
def connect(address: str) -> Iterator[Executor]:
    """An executor whose tasks run on the workers of the cluster at this address."""
    distributed = import_extra("distributed", "scale")
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise BitternError(f"{address}: no Dask scheduler answers there ({error}).") from error
    with client, _quiet():
        yield client.get_executor(retries=2, pure=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from logging what is raised as an error of ours, such as a scheduler that ended."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
