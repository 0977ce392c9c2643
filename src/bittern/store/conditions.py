"""SQL conditions translated into Milvus's expressions.

The grammar that both stores understand::

    condition := condition OR condition | condition AND condition | NOT condition | (condition)
               | name = value | name <> value | name < value | … | name BETWEEN value AND value
               | name [NOT] IN (value, …) | name LIKE 'beginning%'

with numbers, ``'strings'`` (a quote inside is doubled), TRUE and FALSE for values, and names of
metadata, or ``id``, plain or in double quotes.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

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


def to_milvus(condition: str) -> str:
    """The condition as a Milvus expression; fails for any other form."""
    return _Parser(condition).parse()


class _Parser:
    """Recursive descent; a negated comparison becomes its opposite, as Milvus Lite has no NOT.

    In SQL an item that lacks the key meets neither a condition nor its negation, but it meets
    Milvus's ``!=``; so "unequal" becomes "less or greater", which such an item does not meet.
    """

    def __init__(self, condition: str) -> None:
        self._condition = condition
        self._tokens = self._tokenise(condition)
        self._at = 0

    def parse(self) -> str:
        expression = self._either(negated=False)
        if self._at < len(self._tokens):
            self._refuse()
        return expression

    def _either(self, negated: bool) -> str:
        parts = [self._both(negated)]
        while self._take("OR"):
            parts.append(self._both(negated))
        return _joined(parts, "and" if negated else "or")

    def _both(self, negated: bool) -> str:
        parts = [self._one(negated)]
        while self._take("AND"):
            parts.append(self._one(negated))
        return _joined(parts, "or" if negated else "and")

    def _one(self, negated: bool) -> str:
        if self._take("NOT"):
            return self._one(not negated)
        if self._take("("):
            expression = self._either(negated)
            self._need(")")
            return expression
        return self._comparison(negated)

    def _comparison(self, negated: bool) -> str:
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
            return self._beginning(name, negated)
        sign = self._next()
        sign = SAME.get(sign, sign)
        if sign not in OPPOSITE:
            self._refuse()
        return _compared(name, sign, self._value(), negated)

    def _among(self, name: str, negated: bool) -> str:
        self._need("(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._need(")")
        if negated:
            return _joined([_compared(name, "!=", value, False) for value in values], "and")
        return f"{name} in [{', '.join(values)}]"

    def _beginning(self, name: str, negated: bool) -> str:
        pattern = self._value()
        body = pattern[1:-2]
        if negated or pattern[0] != '"' or pattern[-2] != "%" or re.search(r"[%_\\]", body):
            raise InputError(
                "Collection: Milvus supports only LIKE 'beginning%', without NOT and without "
                f"further % or _; got {self._condition!r}."
            )
        return f"{name} like {pattern}"

    def _name(self) -> str:
        token = self._next()
        if token[:1] == '"':
            token = token[1:-1]
        elif token.upper() in KEYWORDS:
            self._refuse()
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", token):
            self._refuse()
        return "id" if token.lower() == "id" else f'$meta["{token}"]'

    def _value(self) -> str:
        token = self._next()
        if token[:1] == "'":
            return json.dumps(token[1:-1].replace("''", "'"), ensure_ascii=False)
        if token.upper() in ("TRUE", "FALSE"):
            return token.lower()
        if not re.match(r"[-+.\d]", token):
            self._refuse()
        return token.removeprefix("+")

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
            f"joined by AND, OR and NOT; Milvus cannot evaluate {self._condition!r}."
        )


def _compared(name: str, sign: str, value: str, negated: bool) -> str:
    sign = OPPOSITE[sign] if negated else sign
    if sign == "!=" and value in ("true", "false"):
        return f"{name} == {'false' if value == 'true' else 'true'}"
    if sign == "!=":
        return f"({name} < {value} or {name} > {value})"
    return f"{name} {sign} {value}"


def _joined(parts: list[str], word: str) -> str:
    return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"
