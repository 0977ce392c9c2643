"""Milvus: addresses, connections, errors in one sentence, and collections of codes."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from bittern.errors import BitternError, FileError, InputError
from bittern.extras import import_extra
from bittern.io.addresses import without_password

DEFAULT_NAME, DEFAULT_PORT = "items", 19530
CONNECT_SECONDS = 30.0
# Milvus Lite closes a connection that asks every few seconds whether it lives, as pymilvus does.
LITE = {"grpc_options": {"grpc.keepalive_time_ms": (1 << 31) - 1}}
TICK = 0.001  # seconds, of the clock that Milvus Lite orders writes and reads by


@dataclass(frozen=True, slots=True)
class MilvusAddress:
    """A server or a file of Milvus Lite, and the name of a collection there.

    >>> MilvusAddress.parse("milvus://db.example.org/pets")
    MilvusAddress(uri='http://db.example.org:19530', name='pets', token='', file=None)
    >>> MilvusAddress.parse("milvus:///data/zoo.db?collection=pets")
    MilvusAddress(uri='/data/zoo.db', name='pets', token='', file='/data/zoo.db')
    """

    uri: str
    name: str
    token: str  # user and password, if they were in the address
    file: str | None  # of Milvus Lite

    @classmethod
    def parse(cls, text: str) -> MilvusAddress:
        """Read ``milvus://[user:password@]host[:port]/NAME`` or ``milvus:///FILE.db?collection=NAME``."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port or DEFAULT_PORT
        except ValueError:
            raise _refusal(text) from None
        asked = parse_qs(parts.query)
        if host:
            name = unquote(parts.path.strip("/"))
            token = (
                f"{unquote(parts.username)}:{unquote(parts.password or '')}"
                if parts.username
                else ""
            )
            address = cls(f"http://{host}:{port}", name, token, None)
            is_good = not asked
        else:
            file = unquote(parts.path)
            address = cls(file, asked.pop("collection", [DEFAULT_NAME])[0], "", file)
            is_good = file.endswith(".db") and not asked
        if not is_good or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,199}", address.name):
            raise _refusal(text)
        return address

    @property
    def recipe_name(self) -> str:
        """The name of the second collection, for the recipe."""
        return f"{self.name}_recipe"

    def __str__(self) -> str:
        """The address without the password."""
        if self.file is not None:
            return f"milvus://{self.file}?collection={self.name}"
        return f"milvus://{self.uri.removeprefix('http://')}/{self.name}"


def connect(address: MilvusAddress) -> Any:
    """A client of a server that answers."""
    pymilvus = pymilvus_module()
    with milvus_errors(address), warnings.catch_warnings():
        # milvus-lite triggers this warning when it is first imported.
        warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)
        client = pymilvus.MilvusClient(
            address.uri,
            token=address.token,
            timeout=CONNECT_SECONDS,
            **({} if address.file is None else LITE),
        )
    if address.file is not None:
        for name in ("insert", "upsert", "delete"):
            setattr(client, name, _with_its_own_tick(getattr(client, name)))
    return client


def _with_its_own_tick(write: Callable[..., Any]) -> Callable[..., Any]:
    """The same write, which returns when the clock of Milvus Lite has moved on.

    Within one millisecond, Milvus Lite does not show what was written, and loses a delete of what
    was inserted.
    """

    def then_wait(*values: Any, **options: Any) -> Any:
        result = write(*values, **options)
        time.sleep(TICK)
        return result

    return then_wait


@contextmanager
def milvus_errors(address: MilvusAddress) -> Iterator[None]:
    """Turn Milvus's errors into one sentence."""
    try:
        yield
    except BitternError:
        raise
    except pymilvus_module().MilvusException as error:
        reason = str(error.message).strip().splitlines() or [type(error).__name__]
        raise FileError(f"{address}: Milvus reports an error ({reason[0]}).") from error


def create_items(client: Any, name: str, n_bits: int, description: str = "") -> None:
    """The Milvus collection of codes; metadata are its dynamic fields."""
    kinds = pymilvus_module().DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True, description=description)
    schema.add_field("id", kinds.INT64, is_primary=True)
    schema.add_field("position", kinds.INT64)
    schema.add_field("code", kinds.BINARY_VECTOR, dim=8 * -(-n_bits // 8))
    index = client.prepare_index_params()
    index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")  # the exact one
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


def pymilvus_module() -> Any:
    """The client library; an error names the extra if it is missing."""
    return import_extra("pymilvus", "Collection")


def _refusal(text: str) -> InputError:
    return InputError(
        "Collection: an address is milvus://host:port/NAME or milvus:///FILE.db?collection=NAME, "
        f"with a name of letters, digits and _; got '{without_password(text)}'."
    )
