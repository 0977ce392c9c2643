"""Milvus: what a collection stores beside its codes, as text in a second Milvus collection."""

from __future__ import annotations

import base64
from typing import Any

from bittern.io.milvus import pymilvus_module

PART_CHARACTERS = 60_000  # of a part of the recipe; Milvus takes 65,535
PARTS_PER_CALL = 64


def create_recipe(client: Any, name: str) -> None:
    """The Milvus collection for the format, the next id, and hasher and feature, as text."""
    kinds = pymilvus_module().DataType
    schema = client.create_schema(auto_id=False)
    schema.add_field("key", kinds.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("name", kinds.VARCHAR, max_length=32)
    schema.add_field("part", kinds.INT64)
    schema.add_field("text", kinds.VARCHAR, max_length=65_535)
    schema.add_field("nothing", kinds.BINARY_VECTOR, dim=8)  # Milvus requires a vector
    index = client.prepare_index_params()
    index.add_index("nothing", index_type="BIN_FLAT", metric_type="HAMMING")
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


def is_incomplete(client: Any, recipe: str) -> bool:
    """Whether a recipe lacks its head, which is written last: its creation was interrupted."""
    if not client.has_collection(recipe):
        return False
    client.load_collection(recipe)
    return not client.query(recipe, filter='name == "head"', output_fields=["part"])


def put_entry(client: Any, collection: str, name: str, blob: bytes) -> None:
    """Store bytes under a name, as text in parts."""
    text = base64.b64encode(blob).decode()
    rows = [
        {
            "key": f"{name}/{part}",
            "name": name,
            "part": part,
            "text": text[part * PART_CHARACTERS : (part + 1) * PART_CHARACTERS],
            "nothing": b"\0",
        }
        for part in range(max(1, -(-len(text) // PART_CHARACTERS)))
    ]
    for start in range(0, len(rows), PARTS_PER_CALL):
        client.upsert(collection, rows[start : start + PARTS_PER_CALL])
