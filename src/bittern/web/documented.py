"""What the OpenAPI description says beside what FastAPI finds out: bodies, answers, errors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

SENTENCES = {
    400: ("malformed", "The request is not valid JSON."),
    401: ("no token", "This server needs its token, in the header 'Authorization: Bearer TOKEN'."),
    403: ("not allowed", "Pages of other sites may not use this server."),
    404: ("no such item", "No item has the id 7."),
    408: ("too slow", "The request came too slowly."),
    409: ("id taken", 'The id 7 exists already; "replace": true replaces the item.'),
    413: ("too large", "A request may have at most 33,554,432 bytes."),
    415: ("wrong kind", "The upload is not an image that can be read."),
    422: ("bad values", "The request is not valid: k: Input should be greater than 0."),
    503: ("not now", "The collection is being opened; try again in a moment."),
}
SCHEMA = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
ITEM_EXAMPLE = {"id": 7, "code": "0f3a99c4d2e17b60", "metadata": {"label": "cat"}}


def _answer(description: str, example: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": description, "content": _json(example, {"type": "object"})}}


def _json(example: Any, schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema, "example": example}}


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": title, "content": _json({"error": sentence}, SCHEMA)}
    for status, (title, sentence) in SENTENCES.items()
}
RESULTS = _answer(
    "the hits of each query, nearest first; ties: how many items there are at each distance of a "
    "hit; tie_is_cut: whether k ended in the middle of a tie",
    {
        "results": [
            {
                "hits": [{"id": 7, "distance": 0, "metadata": {"label": "cat"}}],
                "ties": [{"distance": 0, "count": 3}],
                "tie_is_cut": True,
            }
        ]
    },
)
ITEM = _answer("the item", ITEM_EXAMPLE)
ITEMS = _answer("some items", {"total": 1000, "start": 0, "items": [ITEM_EXAMPLE]})
ADDED = _answer("the ids of the new items", {"ids": [1000, 1001]})
DELETED = _answer("how many items were deleted", {"deleted": 2})


def body_of(
    model: type[BaseModel], field: str | None = None, of_files: str | None = None
) -> dict[str, Any]:
    """The description of a body that is JSON or, with ``field``, a form with files."""
    schema = model.model_json_schema()
    examples = {f"{n}": {"value": value} for n, value in enumerate(schema.pop("examples"), 1)}
    content: dict[str, Any] = {"application/json": {"schema": schema, "examples": examples}}
    if field is not None and of_files is not None:
        file: dict[str, Any] = {"type": "string", "format": "binary"}
        listed = {"type": "array", "items": file} if of_files.endswith("s") else file
        properties = {of_files: listed, field: {"type": "string", "description": "The rest: JSON."}}
        form = {"type": "object", "properties": properties, "required": [of_files]}
        content["multipart/form-data"] = {"schema": form}
    return {"requestBody": {"required": True, "content": content}}
