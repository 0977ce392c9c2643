"""Numbers and words from large text files, split by array operations.

A file is read in blocks of whole lines; no Python runs per line, and memory is bounded by a block
and the result.  Any ASCII white space separates columns; blank lines are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.io.files import existing_file

_BLOCK_BYTES = 1 << 22  # read and split at a time
_LINE_BYTES = 1 << 24  # longest accepted line
_CHARACTERS = 1 << 26  # of an array, each of 4 bytes
_COUNT_DIGITS = 7  # so that a count is exact in float32
_IS_TOKEN = ~np.isin(np.arange(256), list(b" \t\n\r\v\f"))
_IS_DIGIT = np.isin(np.arange(256), list(b"0123456789"))


def read_lines(path: Path) -> NDArray[np.str_]:
    """The lines of a file, stripped, without blank lines at its end."""
    content = _whole(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if "\0" in text:
        raise FileError(f"{path}: is not text; it contains a NUL.")
    lines = [line.strip() for line in text.rstrip().split("\n")]
    return as_strings(lines, path) if lines != [""] else np.empty(0, np.str_)


def as_strings(texts: Sequence[str], path: str | os.PathLike[str]) -> NDArray[np.str_]:
    """Texts of a file as an array, in which each takes as much memory as the longest."""
    longest = max(map(len, texts), default=0)
    if longest * len(texts) > max(16 * sum(map(len, texts)), _CHARACTERS):
        raise FileError(
            f"{path}: has a text of {longest:,} characters among {len(texts):,}, which is too long "
            "for a name."
        )
    return np.array(texts, np.str_)


def read_bits(path: Path, n_columns: int, n_rows: int) -> Any:
    """A table of 0 and 1 as a ``scipy.sparse`` CSR array of float32."""
    from scipy.sparse import csr_array

    columns, per_row = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for block in _rows(path, n_columns, n_rows):
        bits = block.characters[block.starts]
        wrong = (block.ends - block.starts != 1) | ((bits != ord("0")) & (bits != ord("1")))
        if wrong.any():
            raise block.refusal(path, "an entry must be 0 or 1", int(wrong.argmax()))
        is_one = (bits == ord("1")).reshape(-1, n_columns)
        columns.append(np.nonzero(is_one)[1].astype(np.int32))
        per_row.append(is_one.sum(axis=1, dtype=np.int64))
    indices = np.concatenate(columns)
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(per_row))))
    return csr_array((np.ones(len(indices), np.float32), indices, indptr), (n_rows, n_columns))


def read_counts(
    path: Path, n_columns: int, n_rows: int, keep: NDArray[np.intp]
) -> NDArray[np.float32]:
    """The rows ``keep``, ascending, of a table of whole numbers below 10⁷, as float32."""
    counts = np.empty((len(keep), n_columns), np.float32)
    row = 0
    for block in _rows(path, n_columns, n_rows):
        wrong = _wrong_counts(block)
        if wrong is not None:
            raise block.refusal(path, f"a count must have 1 to {_COUNT_DIGITS} digits", wrong)
        numbers = np.fromstring(block.text, np.int32, sep=" ").reshape(-1, n_columns)
        first, last = np.searchsorted(keep, (row, row + len(numbers)))
        counts[first:last] = numbers[keep[first:last] - row]
        row += len(numbers)
    return counts


def read_words(path: Path, vocabulary: Mapping[bytes, int], n_rows: int) -> tuple[list[bytes], Any]:
    """Lines of an id and words: the ids, and which words of the vocabulary each line has.

    The words are a CSR array of float32 zeros and ones; words outside the vocabulary are left out.
    """
    from scipy.sparse import csr_array

    ids: list[bytes] = []
    columns, per_row = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for block in _rows(path, None, n_rows):
        tokens = block.text.split()
        column = np.fromiter(map(vocabulary.get, tokens, repeat(-1)), np.int32, len(tokens))
        firsts = np.cumsum(block.counts) - block.counts
        column[firsts] = -1  # the id is not a word
        ids += map(tokens.__getitem__, firsts)
        row = np.repeat(np.arange(len(block.counts)), block.counts)
        columns.append(column[column >= 0])
        per_row.append(np.bincount(row[column >= 0], minlength=len(block.counts)))
    indices = np.concatenate(columns)
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(per_row))))
    width = max(vocabulary.values(), default=-1) + 1
    words = csr_array((np.ones(len(indices), np.float32), indices, indptr), (n_rows, width))
    words.sum_duplicates()
    words.data[:] = 1
    return ids, words


@dataclass(frozen=True, slots=True, eq=False)
class TokenBlock:
    """Some whole lines, and where their tokens are."""

    text: bytes
    characters: NDArray[np.uint8]  # the bytes of the text
    starts: NDArray[np.intp]  # (n_tokens,)
    ends: NDArray[np.intp]  # (n_tokens,)
    counts: NDArray[np.intp]  # (n_rows,), tokens of each line that is not blank
    lines: NDArray[np.intp]  # (n_rows,), counted from 1 in the file

    def refusal(self, path: Path, rule: str, token: int) -> FileError:
        """The error that names the line of a token that breaks a rule."""
        row = int(np.searchsorted(np.cumsum(self.counts), token, side="right"))
        got = self.text[self.starts[token] : self.ends[token]].decode("latin-1")
        return FileError(f"{path}, line {self.lines[row]}: {rule}, got {got[:40]!r}.")


def split_tokens(text: bytes, first_line: int) -> TokenBlock:
    """The tokens of whole lines, the first of which is ``first_line`` in its file."""
    characters = np.frombuffer(text, np.uint8)
    is_token = np.zeros(len(characters) + 2, bool)
    is_token[1:-1] = _IS_TOKEN[characters]
    starts, ends = np.flatnonzero(is_token[1:] != is_token[:-1]).reshape(-1, 2).T
    line_ends = np.append(np.flatnonzero(characters == ord("\n")), len(characters))
    counts = np.diff(np.searchsorted(starts, line_ends), prepend=0)
    lines = np.flatnonzero(counts)
    return TokenBlock(text, characters, starts, ends, counts[lines], first_line + lines)


def _rows(path: Path, n_columns: int | None, n_rows: int) -> Iterator[TokenBlock]:
    """The blocks of a file, which must have ``n_rows`` rows, of ``n_columns`` columns if given."""
    seen = 0
    for block in _blocks(path):
        wrong = block.counts != n_columns
        if n_columns is not None and wrong.any():
            row = int(wrong.argmax())
            raise FileError(
                f"{path}, line {block.lines[row]}: a line must have {n_columns} columns, "
                f"got {block.counts[row]}."
            )
        seen += len(block.counts)
        if seen > n_rows:
            raise FileError(f"{path}: has more than the {n_rows} expected rows.")
        if len(block.counts):
            yield block
    if seen < n_rows:
        raise FileError(f"{path}: has {seen} rows for {n_rows} images; it may be cut short.")


def _blocks(path: Path) -> Iterator[TokenBlock]:
    first_line = 1
    try:
        with existing_file(path).open("rb") as file:
            while text := file.read(_BLOCK_BYTES) + file.readline(_LINE_BYTES):
                yield split_tokens(text, first_line)
                if len(text) > _LINE_BYTES and not text.endswith(b"\n"):
                    raise FileError(f"{path}: has a line longer than {_LINE_BYTES:,} bytes.")
                first_line += text.count(b"\n")
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error


def _wrong_counts(block: TokenBlock) -> int | None:
    """The first token that is not a count."""
    too_long = block.ends - block.starts > _COUNT_DIGITS
    if too_long.any():
        return int(too_long.argmax())
    other = np.flatnonzero(_IS_TOKEN[block.characters] & ~_IS_DIGIT[block.characters])
    return int(np.searchsorted(block.ends, other[0], side="right")) if len(other) else None


def _whole(path: Path) -> bytes:
    try:
        return existing_file(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error
