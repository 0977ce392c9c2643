"""Where the tests keep collections: files, and servers where they are installed."""

import itertools
from importlib.util import find_spec

import pytest
from postgres_server import postgres_place

import bittern as bt

STORES = ["file", "milvus", "postgres"]
_numbers = itertools.count()


def skip_without_milvus():
    if find_spec("pymilvus") is None or find_spec("milvus_lite") is None:
        pytest.skip("needs pymilvus and milvus-lite; pip install 'bittern[milvus]'")


def new_place(store, folder):
    """A place where no collection is yet; those of Milvus share one file, hence one server."""
    name = f"c{next(_numbers)}"
    if store == "file":
        return str(folder / f"{name}.bittern")
    if store == "postgres":
        return postgres_place(name)
    skip_without_milvus()
    return f"milvus://{folder}/lite.db?collection={name}"


def random_codes(n, n_bits, random_state=0):
    import numpy as np

    return bt.Codes.from_bits(np.random.default_rng(random_state).random((n, n_bits)) < 0.5)
