"""The columns of TREC files, plain or gzip, split by array operations.

A file is read in blocks of whole lines; no Python runs per line.  A token is a row of a byte
matrix, padded with NUL to the next power of two, so that one long id widens only the few tokens of
its own width.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file
from bittern.io.text import split_tokens

Integers: TypeAlias = NDArray[np.int64]

_BLOCK_BYTES = 1 << 22  # read and split at a time
_LINE_BYTES = 1 << 24  # longest accepted line
_TABLE_BYTES = 1 << 28  # the ids of one column may always take this much
_TABLE_RATIO = 16  # and in a large file, this many times the size of its text


@dataclass(frozen=True, slots=True)
class _Format:
    """The format of a line; query and document are columns 0 and 2 of both formats."""

    reader: str
    columns: tuple[str, ...]
    number: int  # the column of the score or gain
    dtype: type[np.generic]
    alphabet: bytes  # of numbers: Python would also accept 1_000, nan and inf
    rule: str


RUN = _Format(
    reader="read_run",
    columns=("query", "Q0", "document", "rank", "score", "tag"),
    number=4,
    dtype=np.float64,
    alphabet=b"0123456789+-.eE",
    rule="the score must be a finite number",
)
QRELS = _Format(
    reader="read_qrels",
    columns=("query", "iteration", "document", "gain"),
    number=3,
    dtype=np.int64,
    alphabet=b"0123456789+-",
    rule="the gain must be a whole number that fits 64 bits, written like 2 or -1",
)


@dataclass(frozen=True, slots=True)
class TrecFile:
    """A file and the format of its lines."""

    form: _Format
    path: Path

    def error(self, what: str, line: int | None = None) -> FileError:
        """An error that names the reader, the file and, if given, the line."""
        where = f"{self.path}, line {line}" if line else f"{self.path}"
        return FileError(f"{self.form.reader}: {where}: {what}.")


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a whole file, rows in its order; ids are numbered in byte order."""

    query_ids: NDArray[np.str_]
    document_ids: NDArray[np.str_]
    queries: Integers  # (n_rows,)
    documents: Integers  # (n_rows,)
    values: NDArray[Any]  # (n_rows,)

    def sorted_by(self, order: Integers) -> tuple[Any, ...]:
        """The fields of a :class:`Run` or :class:`Qrels`; ``order`` goes query by query."""
        offsets = np.zeros(len(self.query_ids) + 1, np.int64)
        np.cumsum(np.bincount(self.queries), out=offsets[1:])
        return self.query_ids, self.document_ids, offsets, self.documents[order], self.values[order]


def read_columns(file: TrecFile) -> Columns:
    """All columns of a file; an error names the first line that is wrong."""
    queries, documents = _IdColumn(), _IdColumn()
    values: list[NDArray[Any]] = []
    lines: list[Integers] = []
    next_line, n_bytes = 1, 0
    for text in _blocks(file):
        block = _split(file, text, next_line)
        queries.add(block, 0)
        documents.add(block, 2)
        values.append(_numbers(file, block))
        lines.append(block.lines)
        next_line += text.count(b"\n")
        n_bytes += len(text)
    if not queries.n_rows:
        raise file.error("the file is blank")
    room = max(_TABLE_BYTES, _TABLE_RATIO * n_bytes)
    query_ids, query = queries.numbered(file, room)
    document_ids, document = documents.numbered(file, room)
    table = Columns(query_ids, document_ids, query, document, np.concatenate(values))
    _refuse_repeats(file, table, np.concatenate(lines))
    return table


def first_repeated(queries: Integers, documents: Integers) -> int | None:
    """The first row that repeats the query and document of an earlier one."""
    pairs = queries * (documents.max(initial=0) + 1) + documents
    ordered = np.sort(pairs)
    if not np.any(ordered[1:] == ordered[:-1]):
        return None
    order = np.argsort(pairs, kind="stable")
    return int(order[1:][pairs[order[1:]] == pairs[order[:-1]]].min())


def _refuse_repeats(file: TrecFile, table: Columns, lines: Integers) -> None:
    row = first_repeated(table.queries, table.documents)
    if row is not None:
        raise file.error(
            "a query must not repeat a document, "
            f"got document {_shown(table.document_ids[table.documents[row]])} again "
            f"for query {_shown(table.query_ids[table.queries[row]])}",
            lines[row],
        )


def _blocks(file: TrecFile) -> Iterator[bytes]:
    """The plain text, in blocks of whole lines."""
    try:
        with existing_file(file.path, pipe=True).open("rb") as raw:
            is_gzip = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if is_gzip else raw as plain:
                mark = codecs.BOM_UTF8
                while text := plain.read(_BLOCK_BYTES) + plain.readline(_LINE_BYTES):
                    if len(text) > _LINE_BYTES and not text.endswith(b"\n"):
                        raise file.error(f"a line is longer than {_LINE_BYTES:,} bytes")
                    yield text.removeprefix(mark)
                    mark = b""
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise file.error(
            f"the gzip file is truncated or corrupt ({error}); fetch it again"
        ) from error
    except OSError as error:
        raise file.error(f"cannot be read ({error.strerror})") from error


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some lines, and where the tokens of each that is not blank start and end."""

    characters: NDArray[np.uint8]  # bytes, padded with NUL by the width of the longest token
    starts: Integers  # (n_rows, n_columns)
    ends: Integers  # (n_rows, n_columns)
    lines: Integers  # (n_rows,), counted from 1 in the file

    def tokens(self, column: int) -> Iterator[tuple[Integers, NDArray[np.bytes_]]]:
        """The tokens of one column, those of one padded width at a time, with their rows."""
        starts = self.starts[:, column]
        lengths = self.ends[:, column] - starts
        powers = _power_of_two(lengths)
        for power in np.unique(powers):
            rows = np.flatnonzero(powers == power)
            width = 1 << int(power)
            padded = sliding_window_view(self.characters, width)[starts[rows]]
            padded *= np.arange(width) < lengths[rows, None]  # NUL after the end
            yield rows, padded.view(f"S{width}")[:, 0]


def _split(file: TrecFile, text: bytes, first_line: int) -> _Block:
    """Find the tokens of the lines; each line must have the right number of them, or be blank."""
    _refuse_other_than_text(file, text, first_line)
    found = split_tokens(text, first_line)
    n_columns = len(file.form.columns)
    wrong = np.flatnonzero(found.counts != n_columns)
    if len(wrong):
        rule = f"a line must have {n_columns} columns ({' '.join(file.form.columns)})"
        raise file.error(f"{rule}, got {found.counts[wrong[0]]}", found.lines[wrong[0]])
    longest = (found.ends - found.starts).max(initial=0)
    padding = np.zeros(1 << int(_power_of_two(longest)), np.uint8)
    return _Block(
        np.concatenate((found.characters, padding)),
        found.starts.reshape(-1, n_columns),
        found.ends.reshape(-1, n_columns),
        found.lines,
    )


def _power_of_two(lengths: Integers) -> NDArray[np.int32]:
    """The least powers, from 3 on, with ``2 ** power >= length``."""
    return np.maximum(np.frexp(lengths - 1.0)[1], 3)


def _refuse_other_than_text(file: TrecFile, text: bytes, first_line: int) -> None:
    """Raise an error for NUL too: it is valid UTF-8, but would end an id in C and NumPy."""
    at = text.find(b"\0")
    if at < 0 and not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            at = error.start
    if at >= 0:
        raise file.error(
            f"the text must be UTF-8 without NUL, got byte 0x{text[at]:02x}; convert it with iconv",
            first_line + text.count(b"\n", 0, at),
        )


def _numbers(file: TrecFile, block: _Block) -> NDArray[Any]:
    """The scores or gains of a block; the first that cannot be parsed is an error."""
    numbers = np.empty(len(block.lines), file.form.dtype)
    bad: dict[int, bytes] = {}
    for rows, tokens in block.tokens(file.form.number):
        parsed = _parse(file.form, tokens)
        if parsed is None:
            first = _first_unreadable(file.form, tokens)
            bad[int(rows[first])] = tokens[first]
        else:
            numbers[rows] = parsed
    if bad:
        row = min(bad)
        got = _shown(bad[row].decode("utf-8"))
        raise file.error(f"{file.form.rule}, got {got}", block.lines[row])
    return numbers


def _parse(form: _Format, tokens: NDArray[np.bytes_]) -> NDArray[Any] | None:
    """The tokens as finite numbers; None if one of them is not a finite number."""
    allowed = np.isin(np.arange(256), list(form.alphabet + b"\0"))
    if not allowed[tokens.view(np.uint8)].all():
        return None
    try:
        numbers = tokens.astype(form.dtype)
    except (ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _first_unreadable(form: _Format, tokens: NDArray[np.bytes_]) -> int:
    """Bisect for the shortest beginning that cannot be parsed, and return its last position."""
    return bisect_left(
        range(len(tokens)), True, key=lambda last: _parse(form, tokens[: last + 1]) is None
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Ids:
    """The ids of some rows of a column: row ``rows[i]`` has ``distinct[codes[i]]``."""

    distinct: NDArray[np.bytes_]  # ascending
    rows: Integers
    codes: Integers

    @classmethod
    def of(cls, tokens: NDArray[np.bytes_], rows: Integers) -> _Ids:
        order = tokens.argsort(kind="stable")  # fast on tokens that are already sorted
        ordered = tokens[order]
        is_new = np.ones(len(ordered), bool)
        is_new[1:] = ordered[1:] != ordered[:-1]
        codes = np.empty(len(tokens), np.int64)
        codes[order] = np.cumsum(is_new) - 1
        return cls(ordered[is_new], rows, codes)

    @classmethod
    def merged(cls, parts: list[_Ids]) -> _Ids:
        """The parts joined into one."""
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(part.distinct) for part in parts)])
        codes = [part.codes + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
        union = cls.of(np.concatenate([part.distinct for part in parts]), shifts)
        rows = np.concatenate([part.rows for part in parts])
        return cls(union.distinct, rows, union.codes[np.concatenate(codes)])


class _IdColumn:
    """The ids of one column, added block by block, then numbered."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._parts: dict[int, list[_Ids]] = defaultdict(list)  # by padded width

    def add(self, block: _Block, column: int) -> None:
        for rows, tokens in block.tokens(column):
            part = _Ids.of(tokens, rows + self.n_rows)
            self._parts[tokens.itemsize].append(part)
        self.n_rows += len(block.lines)

    def numbered(self, file: TrecFile, room: int) -> tuple[NDArray[np.str_], Integers]:
        """The distinct ids, ascending, and the position among them of each row's id."""
        parts = [_Ids.merged(self._parts.pop(width)) for width in sorted(self._parts)]
        _refuse_wide_table(file, parts, room)
        whole = _Ids.merged(parts)
        codes = np.empty(self.n_rows, np.int64)
        codes[whole.rows] = whole.codes
        return _decoded(whole.distinct), codes


def _decoded(ids: NDArray[np.bytes_]) -> NDArray[np.str_]:
    characters = ids.view(np.uint8).reshape(len(ids), -1)
    if characters.max() >= 128:
        return np.strings.decode(ids, "utf-8")
    width = int(np.strings.str_len(ids).max())  # ASCII: a byte is a code point
    return characters[:, :width].astype(np.uint32).view(f"U{width}")[:, 0]


def _refuse_wide_table(file: TrecFile, parts: list[_Ids], room: int) -> None:
    """An array of str gives every id the room of the longest, four bytes per character."""
    lengths = np.strings.str_len(parts[-1].distinct)
    longest = parts[-1].distinct[lengths.argmax()]
    n_ids = sum(len(part.distinct) for part in parts)
    size = 4 * n_ids * len(longest)
    if size > room:
        raise file.error(
            f"an array of the {n_ids:,} ids must fit {room:,} bytes, got {size:,} because one id "
            f"has {len(longest):,} bytes; shorten {_shown(longest.decode('utf-8'))}"
        )


def _shown(text: str) -> str:
    """Quoted, and cut if it is long."""
    return repr(str(text)) if len(text) <= 80 else f"{str(text)[:60]!r}…"
