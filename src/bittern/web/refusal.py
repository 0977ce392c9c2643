"""Refusal: why a request cannot be answered, as a status and a sentence."""

from __future__ import annotations

import logging

from bittern.errors import BitternError

log = logging.getLogger("bittern.web")


class Refusal(BitternError):
    """A request that is answered by a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
