"""Errors of requests: a status and one sentence, as JSON; never a traceback."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from bittern.errors import BitternError, MissingExtraError, shortened
from bittern.web.refusal import Refusal, log


def answer(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer to a request that failed."""
    text = shortened(sentence).encode(errors="replace").decode()  # it may quote what is no text
    return JSONResponse({"error": text}, status, headers)


def answer_to(error: Exception) -> JSONResponse:
    """The answer to an error that some code raised on purpose, or by mistake."""
    if isinstance(error, Refusal):
        return answer(error.status, str(error), _advice(error.status))
    if isinstance(error, MissingExtraError):
        return answer(503, str(error))
    if isinstance(error, ValidationError | RequestValidationError):
        return answer(422, f"The request is not valid: {_first(error)}.")
    if isinstance(error, BitternError):
        return answer(422, str(error))
    if isinstance(error, ClientDisconnect):
        return answer(400, "The client is gone.")  # which nobody reads
    if isinstance(error, HTTPException):
        return answer(error.status_code, _of_status(error), dict(error.headers or {}))
    log.error("a request failed", exc_info=error)
    return answer(500, "The server made a mistake; its log says more.")


def install(app: FastAPI) -> None:
    """Let the application answer every error in this way."""

    async def handle(_: Request, error: Exception) -> JSONResponse:
        return answer_to(error)

    kinds = (BitternError, ValidationError, RequestValidationError, HTTPException)
    for kind in (*kinds, ClientDisconnect, Exception):
        app.add_exception_handler(kind, handle)


def _advice(status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status == 408:  # the rest of the body may never come
        return {"Connection": "close"}
    return {"Retry-After": "1"} if status == 503 else {}


def _first(error: Any) -> str:
    """Where the first trouble is, and what it is."""
    found = error.errors()[0]
    if found["type"] == "model_type":  # whose message names our class
        return "it must be a JSON object"
    place = ".".join(str(part) for part in found["loc"] if part != "body")
    said = str(found["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{place}: {said}" if place else said


def _of_status(error: HTTPException) -> str:
    if error.status_code == 404:
        return "There is nothing at this address; /openapi.json lists what there is."
    if error.status_code == 405:
        return "This address does not take this method; /openapi.json lists what it takes."
    return f"{str(error.detail).rstrip('.')}."
