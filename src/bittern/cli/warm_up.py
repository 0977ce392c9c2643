"""Compile ahead of time: ``bittern warm-up``."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bittern
from bittern.cli.app import app, echo, handle_interrupt
from bittern.errors import FileError
from bittern.progress import Bar

if TYPE_CHECKING:
    from bittern.codes import Codes

LENGTHS = (64, 128, 300)  # one word, two words, and more than AVX2 takes
METRICS = ["ap", "ap@5", "ap@5:retrieved", "ap:database-order", "rr", "hit-rate@5", "precision@5"]
FOLDER = "NUMBA_CACHE_DIR"


class Part(StrEnum):
    """What can be compiled."""

    evaluation = "evaluation"
    search = "search"
    tables = "tables"
    images = "images"


@app.command("warm-up")
def warm_up(
    parts: Annotated[
        list[Part] | None, typer.Argument(help="What to compile; by default all of it.")
    ] = None,
) -> None:
    """Compile the inner loops for this machine, so that no later command has to.

    Small inputs need no compiled code. For larger ones, evaluation, search, hash tables and image
    features have loops that are compiled when they are first used, which takes seconds, and kept
    for later processes. This command uses each of them on random data. The folder of compiled code
    is the package's own, your cache folder, or what the variable NUMBA_CACHE_DIR says.
    """
    from bittern.kernels import small

    _check_folder()
    small.use_kernels()
    steps = [step for part in parts or Part for step in STEPS[part]]
    began = monotonic()
    with handle_interrupt(), Bar("compiling") as progress:
        for done, step in enumerate(steps):
            progress(done, len(steps))
            step()
    echo(_summary(monotonic() - began))


def _check_folder() -> None:
    """Raise FileError if the folder that the user chose cannot be written."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(
            f"{folder}: compiled code cannot be kept there ({error.strerror}); set {FOLDER} to a "
            "folder that can be written."
        ) from None


def _summary(seconds: float) -> str:
    """How many loops were compiled, where they are, and how large that is."""
    kernels = list(_kernels())
    n = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
    folders = sorted({kernel.stats.cache_path for kernel in kernels})
    files = [file for folder in folders for file in Path(folder).glob("*.nb[ci]")]
    size = sum(file.stat().st_size for file in files) / 1e6
    loops = "1 loop" if n == 1 else f"{n} loops"
    what = f"Compiled {loops} in {seconds:.0f} s." if n else "Everything is compiled already."
    return f"{what} Compiled code takes {size:.1f} MB in {os.path.commonpath(folders)}."


def _kernels() -> Iterator[Any]:
    """The compiled loops of the package that were used in this process."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bittern.kernels"):
            for value in vars(module).values():
                of_module = getattr(value, "__module__", None) == name
                if of_module and hasattr(value, "stats") and value.signatures:
                    yield value


def _codes(n: int, n_bits: int) -> Codes:
    import numpy as np

    return bittern.Codes.from_bits(
        np.random.default_rng(0).integers(0, 2, (n, n_bits), dtype=np.uint8)
    )


def _evaluate(n_bits: int) -> None:
    """Every kind of ground truth, and every metric with a loop of its own."""
    import numpy as np

    codes = _codes(40, n_bits)
    tags = codes.to_bits()[:, :20]
    truths = (
        bittern.Relevance.from_classes(np.arange(40) % 3, np.arange(40) % 3),
        bittern.Relevance.from_tags(tags, tags),
        bittern.Relevance.from_tags(tags, tags, graded=True),
        bittern.Relevance.from_matrix(np.eye(40, dtype=np.int64)),
    )
    for truth in truths:
        left_out = truth.excluding(np.arange(40))
        bittern.evaluate(codes, codes, left_out, METRICS).rows()


def _compare() -> None:
    from bittern.metrics.significance import randomisation_test

    randomisation_test([0.1, 0.5, 0.3, 0.9, 0.2], [0.2, 0.1, 0.4, 0.3, 0.8])


def _search(n_bits: int) -> None:
    """Scans, and the tables of segments, which need many codes."""
    from bittern.index.multi_index import FEWEST

    codes = _codes(FEWEST, n_bits)
    for kind in (bittern.FlatIndex, bittern.MultiIndex):
        index = kind(codes)
        index.search(codes[:2], 3)
        index.within(codes[:2], 2)


def _look_up(n_bits: int) -> None:
    import numpy as np

    codes = _codes(1000, n_bits)
    index = bittern.TableIndex(codes, n_tables=2, bits_per_table=8)
    index.search(codes[:2], 3)
    index.within(codes[:2], 2)
    truth = bittern.Relevance.from_classes(np.arange(20) % 3, np.arange(1000) % 3)
    bittern.table_surface(codes[:20], codes, truth, bits_per_table=[4, 8], n_tables=[1, 2])


def _describe(name: str) -> None:
    import numpy as np

    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    bittern.features.FEATURES[name]().fit([image]).transform([image])


def _describe_all() -> None:
    for name in bittern.features.NINE:
        _describe(name)


STEPS: dict[Part, list[Callable[[], None]]] = {
    Part.evaluation: [*(partial(_evaluate, n) for n in LENGTHS), _compare],
    Part.search: [partial(_search, n) for n in LENGTHS],
    Part.tables: [partial(_look_up, n) for n in LENGTHS],
    Part.images: [_describe_all],
}
