"""The body of a request: JSON, or a form with files and one field of JSON."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from bittern.web.refusal import Refusal

M = TypeVar("M", bound=BaseModel)
MOST_FILES = 1000


async def read(
    request: Request, model: type[M], field: str, of_files: str
) -> tuple[M, list[bytes]]:
    """What a request says, and the files in it.

    A form has files named ``of_files`` and the rest as JSON in ``field``, in which ``of_files`` is
    filled in so that the model sees that there are some.
    """
    if _kind(request) == "multipart/form-data":
        return await _read_form(request, model, field, of_files)
    if _kind(request) == "application/json":
        return await read_json(request, model), []
    raise Refusal(415, "The body must be application/json or multipart/form-data.")


async def read_json(request: Request, model: type[M]) -> M:
    """What a request of JSON says."""
    if _kind(request) != "application/json":
        raise Refusal(415, "The body must be application/json.")
    return _checked(model, _parsed(await request.body()))


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _read_form(
    request: Request, model: type[M], field: str, of_files: str
) -> tuple[M, list[bytes]]:
    try:
        async with request.form(max_files=MOST_FILES, max_fields=10) as form:
            unknown = set(form) - {field, of_files}
            if unknown:
                raise Refusal(
                    422, f"The form has {min(unknown)!r}; it may have {of_files!r} and {field!r}."
                )
            files = [
                await one.read() for one in form.getlist(of_files) if isinstance(one, UploadFile)
            ]
            said = form.get(field, "{}")
    except MultiPartException as error:
        raise Refusal(400, f"The form cannot be read: {error.message}") from None
    if not files:
        raise Refusal(422, f"The form must have a file named {of_files!r}.")
    values = _parsed(said.encode() if isinstance(said, str) else await said.read())
    if not isinstance(values, dict):
        raise Refusal(422, f"The field {field!r} must be a JSON object.")
    is_list = of_files.endswith("s")
    return _checked(model, {**values, of_files: [""] * len(files) if is_list else ""}), files


def _checked(model: type[M], values: Any) -> M:
    """The values as a model, which would count millions of unknown keys one by one."""
    if isinstance(values, dict):
        other = next((key for key in values if key not in model.model_fields), None)
        if other is not None:
            raise Refusal(
                422, f"The request has {other!r}; known are {', '.join(model.model_fields)}."
            )
    return model.model_validate(values)


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal(400, "The request is not valid JSON.") from None
