"""Small files of published formats, ways to damage them, and where the real ones are."""

import io

import numpy as np
from PIL import Image
from real_files import shared_data

from bittern.errors import BitternError


def jpeg(colour=(200, 30, 30), size=(4, 3), kind="JPEG"):
    """The bytes of an image of one colour, ``size`` wide and high."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, kind)
    return buffer.getvalue()


def write(path, content):
    """Write bytes or text, with the folders above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_bytes(content.encode())
    else:
        path.write_bytes(content)
    return path


def truncations(content, most=300):
    """Every beginning of ``content``, or ``most`` of them, spread evenly."""
    lengths = np.unique(np.linspace(0, len(content) - 1, min(most, len(content))).astype(int))
    return [content[:n] for n in lengths]


def flips(content, n, random_state=0):
    """``n`` copies with one to three bytes changed."""
    rng = np.random.default_rng(random_state)
    copies = []
    for _ in range(n):
        content_bytes = np.frombuffer(content, np.uint8).copy()
        where = rng.integers(0, len(content_bytes), rng.integers(1, 4))
        content_bytes[where] ^= rng.integers(1, 256, len(where), dtype=np.uint8)
        copies.append(content_bytes.tobytes())
    return copies


def count_refused(path, contents, call):
    """How many of these contents of a file make ``call`` raise our error; another one fails."""
    original = path.read_bytes()
    refused = 0
    for content in contents:
        path.write_bytes(content)
        try:
            call()
        except BitternError as error:
            refused += 1
            assert len(str(error).splitlines()) == 1
    path.write_bytes(original)
    call()  # the file itself is good
    return refused


def shared_folder(name):
    """A folder of the real data, or the test is skipped."""
    return shared_data(name) / name
