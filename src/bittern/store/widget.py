"""The search view of notebooks: a widget that asks, and the answers that Python gives."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from bittern.checks import check_count
from bittern.data.images import decode_image
from bittern.errors import BitternError, InputError
from bittern.extras import import_extra
from bittern.notebook import bands_of
from bittern.store.base import Collection
from bittern.store.queries import Matches, search_by_images, search_by_row, search_by_text
from bittern.store.shown_items import shown_items

MOST = 1000  # items of an answer: each brings a small image
LARGEST_IMAGE = 1 << 26  # bytes


def make_widget(collection: Collection, k: int) -> Any:
    """The widget of :func:`bittern.store.search_widget`."""
    import_extra("anywidget", "search_widget()")
    import anywidget
    import traitlets

    check_count(k, "search_widget: k", most=MOST)
    recipe, static = collection.recipe, files("bittern").joinpath("web", "static")

    class SearchWidget(anywidget.AnyWidget):
        """Bands of items; its messages are answered by :func:`answer`."""

        # The widget is one module: what it shares with the explorer's page, and its own part.
        _esm = "".join(static.joinpath(name).read_text() for name in ("bands.js", "widget.js"))
        _css = static.joinpath("bands.css").read_text()
        k = traitlets.Int().tag(sync=True)
        by_text = traitlets.Bool(takes_texts(collection)).tag(sync=True)
        by_image = traitlets.Bool(
            recipe.features is not None and recipe.features.takes == "images"
        ).tag(sync=True)

    widget = SearchWidget(k=k)
    widget.on_msg(lambda one, content, buffers: one.send(answer(collection, content, buffers)))
    return widget


def takes_texts(collection: Collection) -> bool:
    """Whether the collection can be searched by a text."""
    recipe = collection.recipe
    return recipe.texts is not None or (
        recipe.features is not None and recipe.features.takes == "texts"
    )


def answer(
    collection: Collection, message: Mapping[str, Any], buffers: Sequence[Any] = ()
) -> dict[str, Any]:
    """What a message asks for, as plain values: bands, or an error as one sentence.

    A message is ``{"kind": "search", "query": QUERY, "k": K}``, where QUERY is ``{"id": 7}``,
    ``{"text": "red car"}``, or ``{"image": NAME}`` with the bytes of a file in ``buffers``.
    """
    try:
        found = _found(collection, message, buffers)
    except BitternError as error:
        return {"kind": "error", "sentence": str(error)}
    items = shown_items(found.ids, found.metadata, found.folder)
    n = len(items)
    summary = f"{n:,} nearest item{'' if n == 1 else 's'}; inside a box, no order is claimed."
    return {"kind": "bands", "summary": summary, **bands_of(items, found.values.tolist())}


def _found(collection: Collection, message: Mapping[str, Any], buffers: Sequence[Any]) -> Matches:
    query = message.get("query")
    if message.get("kind") != "search" or not isinstance(query, Mapping) or len(query) != 1:
        raise InputError("search: a message must have kind 'search' and one query.")
    k = check_count(message.get("k", MOST), "search: k", most=MOST)
    ((what, value),) = query.items()
    if what == "id":
        return search_by_row(collection, check_count(value, "search: id", least=0), k=k)
    if what == "text" and isinstance(value, str):
        return search_by_text(collection, value, k=k)
    if what == "image" and len(buffers) == 1:
        content = bytes(buffers[0])
        if len(content) > LARGEST_IMAGE:
            raise InputError(f"search: an image may have {LARGEST_IMAGE:,} bytes at most.")
        pixels = decode_image(io.BytesIO(content), str(value))
        return search_by_images(collection, [pixels], k=k)
    raise InputError("search: a query must be an id, a text, or an image with its bytes.")
