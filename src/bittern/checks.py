"""Checks of arguments: each returns the checked value, or raises an error that says what to do."""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bittern.errors import InputError, KindError, PositionError, shown

Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
PositionArray = NDArray[np.intp]  # row numbers, counted from 0
LARGEST_FLOAT = sys.float_info.max
LARGEST_ID = np.iinfo(np.int64).max
INDEX_ERRORS = (IndexError, OverflowError, RuntimeError, TypeError, ValueError)  # of array[odd]
MOST_DIGITS = 18  # of a whole number in a text; 64 bits hold it, and no sign is needed


def check_array(value: Any, name: str) -> NDArray[Any]:
    """``value`` as an array; its rows must have the same length, and no entry may be masked."""
    refuse_masked(value, name)
    try:
        return np.asarray(value)
    except Exception as error:  # PyTorch, for instance, raises RuntimeError
        raise InputError(
            f"{name} must be an array with rows of the same length ({error})."
        ) from None


def refuse_masked(value: Any, name: str) -> None:
    """Raise an error for masked entries, whose values NumPy would otherwise take."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} has masked entries; leave such rows out, or fill them.")


def check_list(value: Any, name: str, kind: str = "list") -> list[Any]:
    """What can be iterated over as a list."""
    try:
        values = iter(value)
    except TypeError:
        raise InputError(f"{name} must be a {kind}, got {shown(value)}.") from None
    return list(values)


def refuse_odd_rows(rows: Any, name: str) -> None:
    """Raise an error, in one sentence, for what can be no rows of vectors.

    It leaves everything else to whoever reads the numbers: arrays, lists, sparse matrices, frames.
    """
    is_other = isinstance(rows, str | bytes | Mapping | set | frozenset)
    if is_other and not hasattr(rows, "shape"):  # one of SciPy's sparse matrices is a mapping
        raise KindError(
            f"{name}: needs rows of numbers (n, dim), got a {type(rows).__name__}; pass an array."
        )
    if isinstance(rows, np.matrix):
        raise KindError(f"{name}: needs an array, got an np.matrix; pass np.asarray of it.")
    refuse_masked(rows, f"{name}: X")
    dtype = getattr(rows, "dtype", None)
    if not any(hasattr(rows, name) for name in ("shape", "__len__", "__array__")):
        raise KindError(
            f"{name}: needs rows of numbers (n, dim), got {type(rows).__name__}; pass an array."
        )
    if isinstance(rows, list | tuple):
        rows = check_array(rows, f"{name}: rows")
        dtype = rows.dtype
    if not isinstance(dtype, np.dtype):
        return
    if dtype.names is not None:
        fields = ", ".join(dtype.names[:5])
        raise KindError(
            f"{name}: needs rows of numbers, got records with the fields {fields}; pass one array "
            "with a column for each number."
        )
    if dtype.kind == "O":
        _refuse_objects(rows, name)
    if dtype.kind == "c":
        raise InputError(f"{name}: Complex data not supported; pass the real numbers that matter.")
    if dtype.kind in "SUMmV":
        what = {"S": "bytes", "U": "text", "V": "raw bytes"}.get(dtype.kind, "dates")
        raise KindError(f"{name}: needs rows of numbers, got {what} ({dtype}).")
    _refuse_shape(rows, name)


def _refuse_objects(rows: Any, name: str) -> None:
    """Raise an error if an array of objects holds anything but numbers."""
    odd = (one for one in np.ravel(rows).tolist() if not isinstance(one, int | float | None))
    kind = next((type(one).__name__ for one in odd if not hasattr(one, "__float__")), None)
    if kind is not None:
        raise KindError(
            f"{name}: the argument must be rows without a string or other things among the "
            f"numbers, got a {kind}."
        )


def _refuse_shape(rows: Any, name: str) -> None:
    """Raise an error unless rows are 2-D, or finite if they are an array."""
    shape = getattr(rows, "shape", ())
    if len(shape) < 2:
        hint = " Reshape your data: X[None] is one row, X[:, None] one column." if shape else ""
        raise InputError(f"{name}: needs rows (n, dim), got shape {tuple(shape)}.{hint}")
    if len(shape) > 2:
        raise InputError(
            f"{name}: needs vectors (n, dim), got shape {tuple(shape)}; extract features, or "
            "reshape."
        )


def refuse_infinite(rows: NDArray[Any], name: str) -> None:
    """Raise an error that names the first row with NaN or infinity."""
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{name}: rows must be finite, but row {int(finite.argmin())} has NaN or infinity; "
            "leave such rows out, or fill them."
        )


def check_type(value: Any, kind: type, name: str) -> None:
    """Raise an error unless ``value`` is a ``kind``."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {type(value).__name__}.")


def whole_number(text: str) -> int | None:
    """The number that a text of digits means; None for other texts, or if 64 bits cannot hold it.

    >>> whole_number("64"), whole_number("6 4"), whole_number("²"), whole_number("9" * 19)
    (64, None, None, None)
    """
    is_whole = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if is_whole else None


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int within [least, most]; booleans and fractions are errors."""
    try:
        count = None if isinstance(value, bool | np.bool_ | np.ndarray) else operator.index(value)
    except TypeError:
        count = None
    if count is not None and count >= least and (most is None or count <= most):
        return count
    bound = f"at least {least}" if most is None else f"between {least} and {most}"
    kind = "" if count is not None else "a whole number "
    raise InputError(f"{name} must be {kind}{bound}, got {shown(value)}.")


def check_number(
    value: Any, name: str, *, above: float | None = None, least: float | None = None
) -> float:
    """``value`` as a finite float within bounds."""
    if not is_number(value) or not -LARGEST_FLOAT <= value <= LARGEST_FLOAT:
        raise InputError(f"{name} must be a number, got {shown(value)}.")
    if above is not None and value <= above:
        raise InputError(f"{name} must be above {above:g}, got {shown(value)}.")
    if least is not None and value < least:
        raise InputError(f"{name} must be at least {least:g}, got {shown(value)}.")
    return float(value)


def check_share(value: Any, name: str) -> float:
    """``value`` as a float from 0 to less than 1."""
    share = check_number(value, name, least=0)
    if share >= 1:
        raise InputError(f"{name} must be less than 1, got {value!r}.")
    return share


def is_number(value: object) -> bool:
    """Whether a value is a real number of Python or NumPy, and not a boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """``value`` if it is one of the choices; the error lists them."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise InputError(f"{name} must be one of {known}, got {shown(value)}.")
    return value


def check_vectors(vectors: ArrayLike, name: str) -> NDArray[np.floating[Any]]:
    """``vectors`` as a finite ``(n, dim)`` array of float32 or float64, C-contiguous.

    float32 and float64 keep their type; float16 becomes float32 and integers float64.
    """
    v = check_array(vectors, name)
    if v.ndim != 2:
        raise InputError(f"{name} must be 2-D (n, dim), got shape {v.shape}.")
    if v.dtype.kind not in "fiub":
        raise InputError(f"{name} must be numbers, got dtype {v.dtype}.")
    if len(v) == 0 or v.shape[1] == 0:
        raise InputError(f"{name} must have at least one row and one column, got shape {v.shape}.")
    target = np.float32 if v.dtype in (np.float16, np.float32) else np.float64
    v = np.ascontiguousarray(v, dtype=target)
    for rows in row_blocks(len(v), v.shape[1]):
        finite = np.isfinite(v[rows]).all(axis=1)
        if not finite.all():
            raise InputError(
                f"{name} must be finite, but row {rows.start + int(finite.argmin())} is not."
            )
    return v


def check_labels(labels: ArrayLike, name: str, n: int | None = None) -> NDArray[Any]:
    """``labels`` as a 1-D array of integers, booleans or strings, one per row.

    Floats pass only if each is whole, so that NaN never equals NaN by accident.
    """
    refuse_masked(labels, name)
    y = labels if isinstance(labels, np.ndarray) else _listed(labels, name)
    if y.ndim != 1:
        hint = "; for multi-hot rows use Relevance.from_tags()" if y.ndim == 2 else ""
        raise InputError(f"{name} must be 1-D, got shape {y.shape}{hint}.")
    if y.dtype == object:
        y = _of_one_kind(y, name)
    if y.dtype.kind == "f":
        y = _whole(y, name)
    if y.dtype.kind == "S":
        y = _decoded(y, name)
    if y.dtype.kind in "bi" or (y.dtype.kind == "u" and y.max(initial=0) < 1 << 63):
        y = y.astype(np.int64, copy=False)
    if y.dtype.kind not in "iuU":
        raise InputError(f"{name} must be integers or strings, got dtype {y.dtype}.")
    if n is not None and len(y) != n:
        raise InputError(f"{name} must have one entry for each of {n} rows, got {len(y)}.")
    return y


def check_positions(positions: ArrayLike, name: str, n: int, *, none: int | None = None) -> Any:
    """``positions`` as int64 in [0, n); ``none``, if given, is allowed too."""
    p = check_array(positions, name)
    if p.ndim != 1 or p.dtype.kind not in "iu":
        raise InputError(f"{name} must be a 1-D array of whole numbers, got {p.dtype} {p.shape}.")
    p = p.astype(np.int64)
    wrong = (p < 0) | (p >= n)
    if none is not None:
        wrong &= p != none
    if wrong.any():
        raise InputError(f"{name} must lie in [0, {n}), got {p[wrong][0]}.")
    return p


def chosen_queries(queries: Any, n: int, owner: str) -> PositionArray:
    """Positions of the queries that a slice, mask or array of positions chooses among n."""
    try:
        chosen = np.atleast_1d(np.arange(n)[queries])
    except INDEX_ERRORS as error:
        raise PositionError(f"{owner}: no such queries among {n}: {error}.") from None
    if chosen.ndim != 1:
        raise PositionError(f"{owner}: choose queries by a slice, a mask or a 1-D array.")
    return chosen


def check_same_length(a: int, b: int, what: str) -> None:
    """Raise an error if two lengths differ."""
    if a != b:
        raise InputError(f"{what} must agree, got {a} and {b}.")


def check_ids(ids: Any, name: str) -> NDArray[np.int64]:
    """Whole numbers as a new 1-D int64 array; they need not be distinct."""
    i = check_array(list(ids) if isinstance(ids, set | frozenset) else ids, name)
    if i.ndim != 1 or (i.dtype.kind not in "iu" and i.size):
        raise InputError(
            f"{name} must be a 1-D array of whole numbers, got {i.dtype} of shape {i.shape}."
        )
    if i.dtype.kind == "u" and i.max(initial=0) > LARGEST_ID:
        raise InputError(f"{name} must be at most {LARGEST_ID}, got {i.max()}.")
    return i.astype(np.int64)


def check_new_ids(ids: Any, n: int, owner: str) -> NDArray[np.int64]:
    """Ids of ``n`` codes: distinct whole numbers from 0."""
    new = check_ids(ids, f"{owner}: ids")
    check_same_length(len(new), n, f"{owner}: the numbers of ids and of codes")
    if new.min(initial=0) < 0:
        raise InputError(f"{owner}: ids must be at least 0, got {new.min()}.")
    if not (np.diff(new) > 0).all():
        values, counts = np.unique(new, return_counts=True)
        if (counts > 1).any():
            raise InputError(f"{owner}: ids must be distinct, {values[counts > 1][0]} is not.")
    return new


def row_blocks(n: int, row_bytes: int, memory: int = 1 << 24) -> list[slice]:
    """Slices that cover ``range(n)``, each of at most ``memory`` bytes but at least one row."""
    step = max(1, memory // max(1, row_bytes))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def squared_lengths(rows: Float64Array) -> Float64Array:
    """The squared Euclidean length of each row."""
    return np.einsum("ij,ij->i", rows, rows)


def to_unit_length(rows: Float64Array, owner: str) -> Float64Array:
    """Rows of length 1, whose squared distances rank as cosine distances do."""
    lengths = np.sqrt(squared_lengths(rows))
    if not lengths.all():
        raise InputError(f"{owner}: cosine distance needs rows that are not all zero.")
    return rows / lengths[:, None]


def _listed(labels: Any, name: str) -> NDArray[Any]:
    """A list of labels as an array of objects: NumPy would make 1 and "1" equal."""
    if hasattr(labels, "__array__"):
        return check_array(labels, name)
    try:
        return np.array(labels, dtype=object)
    except ValueError as error:
        raise InputError(f"{name} must be a list of labels ({error}).") from None


def _of_one_kind(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Objects as strings if all are strings, as numbers if all are numbers."""
    kinds = {type(label) for label in labels.tolist()}
    try:
        if kinds and all(issubclass(kind, str) for kind in kinds):
            return labels.astype(str)
        if kinds and all(issubclass(kind, bytes) for kind in kinds):
            return labels.astype(bytes)
        if all(issubclass(kind, int | np.integer | np.bool_) for kind in kinds):
            return labels.astype(np.int64)
        if all(issubclass(kind, int | float | np.number | np.bool_) for kind in kinds):
            return labels.astype(np.float64)
    except OverflowError:
        raise InputError(f"{name} must be integers of at most 64 bits.") from None
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"{name} must be all integers or all strings, got {names}.")


def _whole(labels: NDArray[Any], name: str) -> NDArray[np.int64]:
    labels = labels.astype(np.float64)  # 2**53 is too large for half precision
    if not np.isfinite(labels).all() or (labels != np.trunc(labels)).any():
        raise InputError(f"{name} must be whole numbers or strings, got fractions or NaN.")
    if (np.abs(labels) > 1 << 53).any():
        raise InputError(f"{name} must be integers; floats this large are not exact.")
    return labels.astype(np.int64)


def _decoded(labels: NDArray[Any], name: str) -> NDArray[np.str_]:
    try:
        return np.char.decode(labels, "utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{name} must be UTF-8 if they are bytes.") from None
