"""Damage to files: bits, lengths and pieces of any file, and the insides of those with structure.

A structural change keeps the file well-formed (the checksums of a zip file are right again), so
that it passes the first guards and reaches what lies behind them.
"""

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib

import numpy as np

NUMBERS = (0, 1, 2, 7, 255, 256, 65_535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 33)
NUMBERS += ((1 << 63) - 1, 1 << 63, (1 << 64) - 1)
DTYPES = ("u1", "i1", "<u4", "<i8", ">i8", "<u8", "<f2", "<f4", "<f8", "?", "<c16", "S3", "<U2")
DTYPES += ("<M8[s]", "V5")
VALUES = (None, True, 0, -1, 3, 1 << 70, -(1 << 63), 1.5, float("nan"), float("inf"), 1e300, "")
VALUES += ("x", "\ud800", "../../../etc/passwd", "a" * 5000, [], [1], [[1, 2], [3]], {}, {"a": 1})
DIGITS = "9" * 5000  # more than Python makes a number of
WORDS = ("nan", "-1", "1e999", "99999999999999999999", "", '"', "[[", "true", "\x00", "é", "0x10")
WORDS += ("²", DIGITS, "a." * 20_000 + "a", "[" * 50_000, "x" * 100_000)


def mutated(content, kind, rng):
    """The bytes of a file, changed once or a few times, and whether only as bytes.

    ``kind`` says what is inside.
    """
    inside, n = INSIDE.get(kind), rng.choice((1, 1, 1, 2, 4))
    is_raw = inside is None or rng.random() < 0.4
    for _ in range(n):
        change = inside if inside and not is_raw else rng.choice(ANY)
        try:
            content = change(content, rng)
        except Exception:  # it is too damaged already for a change that keeps the structure
            content = rng.choice(ANY)(content, rng)
    return content, is_raw


def _place(content, rng):
    """A place in a file; ends, where headers and tables are, more often than the middle."""
    n = len(content)
    near = rng.randrange(1 + min(n, 512))
    return max(0, rng.choice((near, n - near, rng.randrange(n + 1))) - 1)


def flip_bits(content, rng):
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[_place(changed, rng) % len(changed)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_number(content, rng):
    size = rng.choice((1, 2, 4, 8))
    order = rng.choice("<>")
    number = rng.choice(NUMBERS) & ((1 << 8 * size) - 1)
    packed = struct.pack(order + {1: "B", 2: "H", 4: "I", 8: "Q"}[size], number)
    at = _place(content, rng)
    return content[:at] + packed + content[at + size :]


def cut(content, rng):
    return content[: _place(content, rng)]


def lengthen(content, rng):
    return content + rng.randbytes(rng.choice((1, 8, 300)))


def remove(content, rng):
    at = _place(content, rng)
    return content[:at] + content[at + rng.choice((1, 4, 8, 64)) :]


def repeat(content, rng):
    at, n = _place(content, rng), rng.choice((1, 4, 8, 64, 512))
    return content[:at] + content[at : at + n] * 2 + content[at + n :]


def blank(content, rng):
    at, n = _place(content, rng), rng.choice((1, 4, 8, 64, 512))
    return content[:at] + bytes(len(content[at : at + n])) + content[at + n :]


def swap(content, rng):
    a, b = sorted((_place(content, rng), _place(content, rng)))
    n = rng.choice((4, 8, 64))
    return (
        content[:a]
        + content[b : b + n]
        + content[a + n : b]
        + content[a : a + n]
        + content[b + n :]
    )


ANY = (flip_bits, flip_bits, set_number, set_number, cut, lengthen, remove, repeat, blank, swap)


def change_array(content, rng):
    """An ``.npy`` file with other numbers, another dtype or another shape."""
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype == np.uint8 and array.ndim == 1 and array[:1].tobytes() in (b"{", b"["):
        return _npy(np.frombuffer(change_json(array.tobytes(), rng), np.uint8))
    if array.dtype.kind == "U" and array.ndim == 0 and str(array)[:1] == "{":
        return _npy(np.asarray(change_json(str(array).encode(), rng).decode()))
    return _npy(rng.choice(ARRAY_CHANGES)(array, rng))


def _npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _other_dtype(array, rng):
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(DTYPES))


def _other_shape(array, rng):
    shapes = ((-1,), (1, -1), (-1, 1), (1, 1, -1))
    return array.reshape(rng.choice(shapes)) if array.size else np.zeros((3, 0), array.dtype)


def _other_values(array, rng):
    out = array.copy().reshape(-1)
    if not out.size:
        return np.zeros(3, array.dtype)
    at = rng.randrange(out.size)
    if out.dtype.kind in "iu":
        with np.errstate(all="ignore"):
            out[at] = np.array(rng.choice(NUMBERS) & ((1 << 64) - 1), np.uint64).astype(out.dtype)
        if out.dtype.kind == "i" and rng.random() < 0.3:
            out[at] = -1
    elif out.dtype.kind == "f":
        out[at] = rng.choice((np.nan, np.inf, -1.0, 1e30, 0.5, 1e-40))
    elif out.dtype.kind == "U":
        return _damaged_text(out.reshape(array.shape), rng)
    else:
        raw = bytearray(out.tobytes())
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        out = np.frombuffer(bytes(raw), out.dtype)
    return out.reshape(array.shape)


def _damaged_text(array, rng):
    """Text whose code points are no characters."""
    raw = bytearray(np.ascontiguousarray(array).tobytes() or bytes(4))
    raw[rng.randrange(len(raw) // 4) * 4 + 2] = 0xFF
    return np.frombuffer(bytes(raw), array.dtype)[: array.size].reshape(array.shape)


def _fewer(array, rng):
    return array[: rng.randrange(len(array))] if array.ndim and len(array) else array[None]


def _more(array, rng):
    return np.concatenate([array, array]) if array.ndim else np.stack([array] * 3)


def _only_one(array, rng):
    return array.reshape(-1)[0] if array.size else np.float32(0)


def _turned(array, rng):
    return np.asfortranarray(array.T)


def _names(array, rng):
    made = np.zeros(array.shape, [("a", array.dtype if array.dtype.names is None else "u1")])
    return made


ARRAY_CHANGES = (_other_values,) * 4 + (_other_dtype, _other_dtype, _other_shape, _fewer, _more)
ARRAY_CHANGES += (_only_one, _turned, _names)


def change_zip(content, rng):
    """A zip file with a member changed, gone, twice, renamed, or no array; its checksums hold."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        comment = archive.comment
    at = rng.randrange(len(members))
    name, inner = members[at]
    how = rng.random()
    if how < 0.6:
        members[at] = (
            name,
            change_array(inner, rng) if name.endswith(".npy") else rng.choice(ANY)(inner, rng),
        )
    elif how < 0.7:
        del members[at]
    elif how < 0.75:
        members.append((name, inner))
    elif how < 0.85:
        other = rng.choice(
            (name.removesuffix(".npy"), "x.npy", name + ".npy", rng.choice(members)[0])
        )
        members[at] = (other, inner)
    elif how < 0.9:
        members[at] = (name, rng.choice((b"", b"text", inner[:20], b"\x93NUMPY")))
    else:
        other = rng.randrange(len(members))
        members[at], members[other] = (name, members[other][1]), (members[other][0], inner)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as out:
        out.comment = b"" if rng.random() < 0.8 else comment  # without the seal, what lies behind
        names = set()
        for one, data in members:
            if one in names:
                info = zipfile.ZipInfo(one)
                out.NameToInfo.pop(one, None)  # it would warn of a name that is there twice
                out.writestr(info, data)
            else:
                out.writestr(one, data)
            names.add(one)
    return file.getvalue()


def change_json(content, rng):
    """JSON with a value of another kind, gone, or twice."""
    tree = json.loads(content)
    places = list(_places(tree))
    holder, key = rng.choice(places) if places else (None, None)
    value = rng.choice(VALUES)
    if holder is None:
        tree = value
    elif rng.random() < 0.2 and isinstance(holder, dict | list):
        del holder[key]
    elif isinstance(holder, dict) and rng.random() < 0.1:
        holder[str(value)[:50]] = holder.pop(key)
    elif isinstance(holder, list) and rng.random() < 0.2:
        holder.insert(key, holder[key])
    elif rng.random() < 0.2:
        holder[key] = rng.choice([one[0][one[1]] for one in places])
    elif isinstance(holder[key], int | float) and rng.random() < 0.5:
        holder[key] = rng.choice(
            (holder[key] + 1, -holder[key], holder[key] * 1000, holder[key] / 3)
        )
    else:
        holder[key] = value
    how = rng.random()
    if how < 0.01:
        return b"[" * 100_000 + b"]" * 100_000
    text = json.dumps(tree)
    if how < 0.03:
        text = re.sub(r"\b[0-9]+\b", DIGITS, text, count=1)
    return text.encode("utf-8", "surrogatepass")


def _places(tree):
    """Every (container, key) of a tree."""
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in items:
        yield tree, key
        if not isinstance(value, list) or len(value) < 200:
            yield from _places(value)


def change_gzip_json(content, rng):
    return gzip.compress(change_json(gzip.decompress(content), rng), 1)


def change_lines(content, rng):
    """Text with a line gone, twice, joined or moved, or with another word or number in it."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    how = rng.random()
    if how < 0.15:
        del lines[at]
    elif how < 0.3:
        lines.insert(rng.randrange(len(lines) + 1), lines[at])
    elif how < 0.4:
        lines[at] = lines[at] + b" " + rng.choice(lines)
    else:
        words = re.split(rb"([\s,;=\[\]\"]+)", lines[at])
        word = rng.randrange(len(words))
        other = rng.choice((*WORDS, *map(repr, VALUES[:12])))
        words[word] = other.encode("utf-8", "surrogatepass")
        lines[at] = b"".join(words)
    return b"\n".join(lines)


def change_json_lines(content, rng):
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = change_json(lines[at], rng)
    return b"\n".join(lines)


def change_png(content, rng):
    """A PNG image whose chunk was changed, with the right checksum."""
    at = content.index(b"IHDR")
    chunk = bytearray(content[at : at + 17])
    chunk[4 + rng.randrange(13)] = rng.choice((0, 1, 255, rng.randrange(256)))
    return content[:at] + bytes(chunk) + struct.pack(">I", zlib.crc32(chunk)) + content[at + 21 :]


INSIDE = {
    "npy": change_array,
    "npz": change_zip,
    "json": change_json,
    "json.gz": change_gzip_json,
    "jsonl": change_json_lines,
    "text": change_lines,
    "png": change_png,
}


def generator(*seed):
    """Random numbers that depend on these values alone."""
    return random.Random(repr(seed))
