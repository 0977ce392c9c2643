"""A Dask cluster as an executor."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from bittern.errors import BitternError
from bittern.extras import import_extra

PATIENCE = 30  # seconds for an answer of the scheduler
ATTEMPTS = 3  # to begin to talk with it


@contextmanager
def connect(address: str) -> Iterator[Executor]:
    """An executor whose tasks run on the workers of the cluster at this address."""
    client = _client(address)
    with client, _quiet():
        yield client.get_executor(retries=2, pure=False)


def _client(address: str) -> Any:
    """A client of the scheduler; an answer that comes in two parts at once confuses Dask."""
    distributed = import_extra("distributed", "scale")
    for attempt in range(ATTEMPTS):
        try:
            return distributed.Client(address, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise BitternError(f"{address}: no Dask scheduler answers there ({error}).") from error
        except AssertionError as error:  # its check that the first answer comes alone
            if attempt + 1 == ATTEMPTS:
                raise BitternError(f"{address}: the Dask scheduler cannot be asked.") from error
    raise AssertionError("the last attempt returns or raises")


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
