"""SQL conditions on metadata: parsed once, and written in the language of each server.

The grammar that every store understands::

    condition := condition OR condition | condition AND condition | NOT condition | (condition)
               | name = value | name <> value | name < value | … | name BETWEEN value AND value
               | name [NOT] IN (value, …) | name LIKE 'beginning%'

with numbers, ``'strings'`` (a quote inside is doubled), TRUE and FALSE for values, and names of
metadata, or ``id``, plain or in double quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn

from bittern.errors import InputError

TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign><>|!=|<=|>=|==|=|<|>|\(|\)|,))""",
    re.VERBOSE,
)
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SAME = {"=": "==", "<>": "!="}
KEYWORDS = {"AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "TRUE", "FALSE", "IS", "NULL"}

Kind = Literal["number", "string", "boolean"]  # as PostgreSQL's jsonb_typeof says it
POSTGRES_TYPES: dict[Kind, str] = {"number": "numeric", "string": "text", "boolean": "boolean"}
POSTGRES_SIGNS = {"==": "=", "!=": "<>"}


class Value(NamedTuple):
    """A number as it was written, a string without its quotes, or ``true`` or ``false``."""

    kind: Kind
    text: str


class Comparison(NamedTuple):
    """``name sign value``; the sign is a key of ``OPPOSITE``."""

    name: str
    sign: str
    value: Value


class Among(NamedTuple):
    """``name IN (values)``."""

    name: str
    values: list[Value]


class Like(NamedTuple):
    """``name [NOT] LIKE pattern``; % is any text, _ any character."""

    name: str
    pattern: str
    is_negated: bool


class Joined(NamedTuple):
    """Conditions of which one or all must hold."""

    word: Literal["or", "and"]
    parts: Sequence[Condition]


Condition = Comparison | Among | Like | Joined


def parse(condition: str, server: str) -> Condition:
    """The condition as a tree; fails for any form that is not in the grammar.

    Negations are moved into the comparisons: in SQL, an item that lacks the key meets neither a
    comparison nor its opposite, so this changes nothing.
    """
    return _Parser(condition, server).parse()


def to_milvus(condition: str) -> str:
    """The condition as a Milvus expression; fails for any other form."""
    return _in_milvus(parse(condition, "Milvus"), condition)


def to_postgres(condition: str) -> tuple[str, list[Any]]:
    """The condition in PostgreSQL's SQL on ``id`` and ``metadata``, a jsonb, and its values.

    The text has a ``%s`` for each value, names of metadata among them.  An item whose value is
    missing or of another type meets neither a comparison nor its opposite.
    """
    values: list[Any] = []
    return _in_postgres(parse(condition, "PostgreSQL"), condition, values), values


class _Parser:
    """Recursive descent."""

    def __init__(self, condition: str, server: str) -> None:
        self._condition, self._server = condition, server
        self._tokens = self._tokenise(condition)
        self._at = 0

    def parse(self) -> Condition:
        expression = self._either(negated=False)
        if self._at < len(self._tokens):
            self._refuse()
        return expression

    def _either(self, negated: bool) -> Condition:
        parts = [self._both(negated)]
        while self._take("OR"):
            parts.append(self._both(negated))
        return _joined(parts, "and" if negated else "or")

    def _both(self, negated: bool) -> Condition:
        parts = [self._one(negated)]
        while self._take("AND"):
            parts.append(self._one(negated))
        return _joined(parts, "or" if negated else "and")

    def _one(self, negated: bool) -> Condition:
        if self._take("NOT"):
            return self._one(not negated)
        if self._take("("):
            expression = self._either(negated)
            self._need(")")
            return expression
        return self._comparison(negated)

    def _comparison(self, negated: bool) -> Condition:
        name = self._name()
        negated ^= self._take("NOT")
        if self._take("IN"):
            return self._among(name, negated)
        if self._take("BETWEEN"):
            low = self._value()
            self._need("AND")
            bounds = [_compared(name, ">=", low, negated)]
            bounds.append(_compared(name, "<=", self._value(), negated))
            return _joined(bounds, "or" if negated else "and")
        if self._take("LIKE"):
            pattern = self._value()
            if pattern.kind != "string":
                self._refuse()
            return Like(name, pattern.text, negated)
        sign = self._next()
        sign = SAME.get(sign, sign)
        if sign not in OPPOSITE:
            self._refuse()
        return _compared(name, sign, self._value(), negated)

    def _among(self, name: str, negated: bool) -> Condition:
        self._need("(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._need(")")
        if negated:
            return _joined([Comparison(name, "!=", value) for value in values], "and")
        return Among(name, values)

    def _name(self) -> str:
        token = self._next()
        if token[:1] == '"':
            token = token[1:-1]
        elif token.upper() in KEYWORDS:
            self._refuse()
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", token):
            self._refuse()
        return "id" if token.lower() == "id" else token

    def _value(self) -> Value:
        token = self._next()
        if token[:1] == "'":
            return Value("string", token[1:-1].replace("''", "'"))
        if token.upper() in ("TRUE", "FALSE"):
            return Value("boolean", token.lower())
        if not re.match(r"[-+.\d]", token):
            self._refuse()
        return Value("number", token.removeprefix("+"))

    def _next(self) -> str:
        if self._at == len(self._tokens):
            self._refuse()
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, token: str) -> bool:
        taken = self._at < len(self._tokens) and self._tokens[self._at].upper() == token
        self._at += taken
        return taken

    def _need(self, token: str) -> None:
        if not self._take(token):
            self._refuse()

    def _tokenise(self, condition: str) -> list[str]:
        tokens, end = [], 0
        rest = condition.rstrip()
        while end < len(rest):
            match = TOKEN.match(rest, end)
            if match is None:
                self._refuse()
            tokens.append(match[0].strip())
            end = match.end()
        return tokens

    def _refuse(self) -> NoReturn:
        raise InputError(
            "Collection: where must be comparisons like label = 'cat' or year IN (1990, 1991), "
            f"joined by AND, OR and NOT; {self._server} cannot evaluate {self._condition!r}."
        )


def _compared(name: str, sign: str, value: Value, negated: bool) -> Comparison:
    return Comparison(name, OPPOSITE[sign] if negated else sign, value)


def _joined(parts: Sequence[Condition], word: Literal["or", "and"]) -> Condition:
    return parts[0] if len(parts) == 1 else Joined(word, parts)


def _in_milvus(condition: Condition, asked: str) -> str:
    if isinstance(condition, Joined):
        parts = [_in_milvus(part, asked) for part in condition.parts]
        return f"({f' {condition.word} '.join(parts)})"
    name = "id" if condition.name == "id" else f'$meta["{condition.name}"]'
    if isinstance(condition, Among):
        return f"{name} in [{', '.join(map(_milvus_value, condition.values))}]"
    if isinstance(condition, Like):
        return f"{name} like {_milvus_beginning(condition, asked)}"
    return _milvus_comparison(name, condition.sign, condition.value)


def _milvus_comparison(name: str, sign: str, value: Value) -> str:
    """An item that lacks the key meets Milvus's ``!=``, so "unequal" becomes "less or greater"."""
    written = _milvus_value(value)
    if sign == "!=" and value.kind == "boolean":
        return f"{name} == {'false' if written == 'true' else 'true'}"
    if sign == "!=":
        return f"({name} < {written} or {name} > {written})"
    return f"{name} {sign} {written}"


def _milvus_beginning(like: Like, asked: str) -> str:
    if like.is_negated or like.pattern[-1:] != "%" or re.search(r"[%_\\]", like.pattern[:-1]):
        raise InputError(
            "Collection: Milvus supports only LIKE 'beginning%', without NOT and without "
            f"further % or _; got {asked!r}."
        )
    return json.dumps(like.pattern, ensure_ascii=False)


def _milvus_value(value: Value) -> str:
    is_string = value.kind == "string"
    return json.dumps(value.text, ensure_ascii=False) if is_string else value.text


def _in_postgres(condition: Condition, asked: str, values: list[Any]) -> str:
    if isinstance(condition, Joined):
        parts = [_in_postgres(part, asked, values) for part in condition.parts]
        return f"({f' {condition.word.upper()} '.join(parts)})"
    if isinstance(condition, Among):
        kinds = dict.fromkeys(value.kind for value in condition.values)
        parts = []
        for kind in kinds:
            some = [value.text for value in condition.values if value.kind == kind]
            compared = f"= ANY(%s::{POSTGRES_TYPES[kind]}[])"
            parts.append(_postgres_test(condition.name, kind, compared, some, asked, values))
        return f"({' OR '.join(parts)})"
    if isinstance(condition, Like):  # without an escape character, as in a file
        compared = f"{'NOT ' if condition.is_negated else ''}LIKE %s::text ESCAPE ''"
        return _postgres_test(condition.name, "string", compared, condition.pattern, asked, values)
    value, sign = condition.value, POSTGRES_SIGNS.get(condition.sign, condition.sign)
    compared = f"{sign} %s::{POSTGRES_TYPES[value.kind]}"
    return _postgres_test(condition.name, value.kind, compared, value.text, asked, values)


def _postgres_test(
    name: str, kind: Kind, compared: str, value: Any, asked: str, values: list[Any]
) -> str:
    """A test of the value of that name; NULL if it is of another kind."""
    if name == "id":
        if kind != "number":
            raise InputError(f"Collection: ids are whole numbers; got where {asked!r}.")
        values.append(value)
        return f"id {compared}"
    values += [name, kind, name, value]
    text = "(metadata ->> %s::text)"
    typed = f'{text} COLLATE "C"' if kind == "string" else f"{text}::{POSTGRES_TYPES[kind]}"
    return f"CASE WHEN jsonb_typeof(metadata -> %s::text) = %s::text THEN {typed} {compared} END"
