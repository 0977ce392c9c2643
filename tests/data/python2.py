"""CIFAR-10's pickles as Python 2 wrote them, byte by byte: protocol 2."""

import struct


def text(value):
    """SHORT_BINSTRING."""
    return b"U" + bytes([len(value)]) + value


def integer(value):
    """BININT1, BININT2 or BININT."""
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    return b"J" + struct.pack("<i", value)


def a_list(items):
    return b"](" + b"".join(items) + b"e"


def array(raw, shape, code=b"u1", module=b"numpy.core.multiarray"):
    """``_reconstruct(ndarray, (0,), 'b')`` and its state: version, shape, dtype, order, bytes."""
    dtype = b"cnumpy\ndtype\n" + text(code) + b"K\x00K\x01\x87R"
    dtype += b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    start = b"c" + module + b"\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    sizes = b"(" + b"".join(map(integer, shape)) + b"t"
    content = b"T" + struct.pack("<i", len(raw)) + raw  # BINSTRING
    return start + b"(K\x01" + sizes + dtype + b"\x89" + content + b"tb"


def a_dict(items):
    """A whole pickle of a dict; keys are text."""
    pairs = b"".join(text(key) + value for key, value in items.items())
    return b"\x80\x02}q\x01(" + pairs + b"u."


def batch(pixels, labels, filenames=None, label=b"training batch 1 of 5"):
    """A data batch: ``pixels`` are (n, 3072) nested bytes."""
    items = {
        b"batch_label": text(label),
        b"labels": a_list([integer(y) for y in labels]),
        b"data": array(b"".join(pixels), (len(pixels), 3072)),
    }
    if filenames is not None:
        items[b"filenames"] = a_list([text(name) for name in filenames])
    return a_dict(items)


def meta(names):
    return a_dict(
        {
            b"num_cases_per_batch": integer(10000),
            b"label_names": a_list([text(name) for name in names]),
            b"num_vis": integer(3072),
        }
    )
