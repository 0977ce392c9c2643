"""PostgreSQL with pgvector: addresses, connections, errors in one sentence, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from bittern.errors import FileError, InputError
from bittern.extras import import_extra
from bittern.io.addresses import without_password

if TYPE_CHECKING:
    from psycopg import Connection

CONNECT_SECONDS = 10
EXTENSION, OLDEST = "vector", (0, 7)  # the first version that compares bits
# A collection has a second table, and PostgreSQL cuts names after 63 characters.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,54}")
# An @ of a password that is not escaped would make a part of the password the host.
ADDRESS = re.compile(r"postgres(?:ql)?://(?:[^@/?]*@)?[^@?]*\?[^@]*")


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A database and the name of a collection there."""

    name: str
    shown: str  # the address without the password
    parameters: Mapping[str, Any] = field(repr=False)  # of libpq, with the password

    @classmethod
    def parse(cls, text: str) -> PostgresAddress:
        """Read an address of libpq with the parameter ``collection``.

        ``postgresql://[user[:password]@][host][:port][/database]?collection=NAME[&sslmode=…]``
        """
        base, _, query = text.partition("?")
        options = query.split("&")
        named = [one for one in options if one.startswith("collection=")]
        others = "&".join(one for one in options if one not in named)
        name = unquote(named[0].partition("=")[2]) if len(named) == 1 else ""
        if not ADDRESS.fullmatch(text) or not NAME.fullmatch(name):
            raise _refusal(text)
        try:
            parameters = psycopg().conninfo.conninfo_to_dict(f"{base}?{others}")
        except psycopg().ProgrammingError:  # whose text may hold parts of the password
            raise _refusal(text) from None
        return cls(name, without_password(text), parameters)

    @property
    def file(self) -> None:
        """There is no file."""

    @property
    def recipe_name(self) -> str:
        """The name of the second table, for the recipe."""
        return f"{self.name}_recipe"

    def __str__(self) -> str:
        """The address without the password."""
        return self.shown


def psycopg() -> Any:
    """The library, with its modules ``sql``, ``errors`` and ``conninfo``."""
    return import_extra("psycopg", "Collection")


def connect(address: PostgresAddress) -> Connection:
    """A connection that commits every statement outside of a transaction."""
    defaults = {"connect_timeout": CONNECT_SECONDS, "fallback_application_name": "bittern"}
    library = psycopg()
    try:
        return library.connect(
            **(defaults | dict(address.parameters)),
            autocommit=True,
            prepare_threshold=None,  # poolers give each transaction another session
        )
    except library.Error as error:
        reason = _first_line(str(error)).rpartition(" failed: ")[2].removeprefix("FATAL:").strip()
        hint = "; PGPASSWORD, ~/.pgpass or the address may hold it" if "password" in reason else ""
        raise FileError(f"{address}: cannot connect to PostgreSQL ({reason}){hint}.") from error


@contextmanager
def postgres_errors(address: PostgresAddress, connection: Connection) -> Iterator[None]:
    """Turn PostgreSQL's errors into one sentence."""
    library = psycopg()
    try:
        yield
    except library.errors.UndefinedTable as error:
        raise no_such_collection(address) from error
    except library.Error as error:
        if connection.closed:
            raise FileError(
                f"{address}: the connection to PostgreSQL was lost; open the collection again. "
                "A write at that moment is stored whole or not at all."
            ) from error
        said = [error.diag.message_primary or _first_line(str(error)), error.diag.message_detail]
        reason = ": ".join(part.strip().rstrip(".") for part in said if part)
        raise FileError(f"{address}: PostgreSQL reports an error ({reason}).") from error


def no_such_collection(address: PostgresAddress) -> FileError:
    """The error for a name that no collection has."""
    return FileError(f"{address}: there is no such collection.")


def has_tables(connection: Connection, address: PostgresAddress) -> tuple[bool, bool]:
    """Whether there is a table of items, and one of a recipe."""
    query = "SELECT to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL"
    names = [f'"{address.name}"', f'"{address.recipe_name}"']
    ((items, recipe),) = connection.execute(query, names).fetchall()
    return items, recipe


def create_tables(
    connection: Connection, address: PostgresAddress, n_bits: int, entries: Mapping[str, bytes]
) -> None:
    """Make both tables and store the entries, all or nothing."""
    sql = psycopg().sql
    names = {"items": sql.Identifier(address.name), "recipe": sql.Identifier(address.recipe_name)}
    with connection.transaction():
        # One creation at a time: those of one name, and those that enable pgvector, collide.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('bittern'))")
        items, recipe = has_tables(connection, address)
        if items and recipe:
            raise FileError(f"{address}: exists already; open() it, or drop its tables.")
        if items or recipe:
            taken = address.name if items else address.recipe_name
            raise FileError(f"{address}: the name is taken, by a table '{taken}'; choose another.")
        vector_schema(connection, address, enable=True)
        for statement in (
            "CREATE TABLE {items} (id bigint PRIMARY KEY, position bigint GENERATED ALWAYS AS "
            "IDENTITY, code bit({n_bits}) NOT NULL, metadata jsonb NOT NULL)",
            "CREATE TABLE {recipe} (name text PRIMARY KEY, value bytea NOT NULL)",
        ):
            connection.execute(sql.SQL(statement).format(**names, n_bits=sql.Literal(n_bits)))
        for name, content in entries.items():
            statement = "INSERT INTO {recipe} VALUES (%s, %b)"
            connection.execute(sql.SQL(statement).format(**names), [name, content])


def vector_schema(connection: Connection, address: PostgresAddress, *, enable: bool) -> str:
    """The schema that holds pgvector's operators; ``enable`` enables it if it is not."""
    query = (
        "SELECT nspname, extversion FROM pg_extension JOIN pg_namespace ON "
        "pg_namespace.oid = extnamespace WHERE extname = %s"
    )
    found = connection.execute(query, [EXTENSION]).fetchall()
    if not found and enable:
        _enable_vector(connection, address)
        found = connection.execute(query, [EXTENSION]).fetchall()
    if not found:
        raise _not_enabled(address)
    ((schema, version),) = found
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        raise FileError(
            f"{address}: pgvector {version} cannot compare bits; update it to "
            f"{'.'.join(map(str, OLDEST))} or later."
        )
    return str(schema)


def _enable_vector(connection: Connection, address: PostgresAddress) -> None:
    library = psycopg()
    name = library.sql.Identifier(EXTENSION)
    try:
        connection.execute(library.sql.SQL("CREATE EXTENSION {}").format(name))
    except (library.errors.UndefinedFile, library.errors.FeatureNotSupported) as error:
        raise FileError(
            f"{address}: the server has no pgvector; install pgvector "
            f"{'.'.join(map(str, OLDEST))} or later there."
        ) from error
    except library.errors.InsufficientPrivilege as error:
        raise _not_enabled(address) from error


def _not_enabled(address: PostgresAddress) -> FileError:
    return FileError(
        f"{address}: pgvector is not enabled in this database; "
        "an administrator must run CREATE EXTENSION vector."
    )


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0]


def _refusal(text: str) -> InputError:
    return InputError(
        "Collection: an address is postgresql://user@host:port/database?collection=NAME, with a "
        "name of at most 55 letters, digits and _, and with %40 for an @ in the password, %2F for "
        f"a /; got '{without_password(text)}'."
    )
