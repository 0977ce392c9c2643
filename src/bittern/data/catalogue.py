"""Every dataset by its name: where its files are, and how to load it."""

from __future__ import annotations

import importlib
import inspect
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from bittern.data.dataset import Dataset, DatasetSpec
from bittern.errors import FileError, InputError
from bittern.registry import OpenRegistry, Registry


def _accept(value: Any, title: str) -> DatasetSpec:
    """A DatasetSpec, or a function that returns a Dataset and whose keywords are the options."""
    if isinstance(value, DatasetSpec):
        return value
    if not inspect.isfunction(value):
        raise InputError(f"{title}: must be a DatasetSpec or a function, got {value!r}.")
    folder = inspect.Parameter("folder", inspect.Parameter.POSITIONAL_ONLY)
    options = inspect.signature(value).parameters.values()
    if required := [option.name for option in options if option.default is option.empty]:
        raise InputError(f"{title}: {value.__name__} needs a default for {required[0]}.")

    def read(folder: Path, /, **options: Any) -> Dataset:
        return value(**options)

    signature = inspect.Signature([folder, *(p.replace(kind=p.KEYWORD_ONLY) for p in options)])
    read.__signature__ = signature  # type: ignore[attr-defined]
    summary = (value.__doc__ or value.__name__).strip().splitlines()[0]
    return DatasetSpec(name=value.__name__, title=summary, load=read, needs_files=False)


# Name to the reader's module and the entry in it; a reader is imported when it is first used.
# Installed packages may add entries, which are specs.
DATASETS: OpenRegistry[tuple[str, str] | DatasetSpec] = OpenRegistry(
    "dataset",
    {
        "cifar10": ("cifar10", "SPEC"),
        "labelme": ("labelme", "SPEC"),
        "nuswide": ("nuswide", "SPEC"),
        "sift1m": ("sift1m", "SPEC"),
        "wiki": ("wiki", "SPEC"),
        "corel": ("corel", "SPEC"),
        "corel1000": ("corel", "COREL1000"),
        "corel5k": ("corel", "COREL5K"),
        "trecvid2003": ("trecvid", "SPEC"),
        "mnist": ("mnist", "MNIST"),
        "fashion-mnist": ("mnist", "FASHION_MNIST"),
        "digits": ("digits", "SPEC"),
        "captions": ("captions", "SPEC"),
        "folder": ("folder", "SPEC"),
        "arrays": ("arrays", "ARRAYS"),
        "embeddings": ("arrays", "EMBEDDINGS"),
    },
    group="bittern.datasets",
    accept=_accept,
)


def spec_of(name: str) -> DatasetSpec:
    """The catalogue's entry."""
    entry = DATASETS.find(name)
    if isinstance(entry, DatasetSpec):
        return entry
    module, attribute = entry
    spec: DatasetSpec = getattr(
        importlib.import_module(f"bittern.data.readers.{module}"), attribute
    )
    return spec


def load(name: str, root: str | os.PathLike[str] | None = None, **options: Any) -> Dataset:
    """The dataset of that name, read from its published files.

    ``root`` is the folder that holds all data (default: :func:`data_root`) or the dataset's own
    folder; for ``folder``, ``arrays`` and ``embeddings`` it is your folder or file.  ``options``
    are those of the dataset's reader.
    """
    spec = spec_of(name)
    known = dict.fromkeys(list(inspect.signature(spec.load).parameters)[1:])
    for option in options:
        if option not in known:
            refusal = Registry(f"option of {name}", known).refusal(option)
            raise InputError(f"load: {refusal if known else f'{name} has no options.'}")
    folder = folder_of(spec, root) if spec.needs_files else Path()
    dataset = spec.load(folder, **options)
    if DATASETS.origin(name) is None:
        return dataset
    if not isinstance(dataset, Dataset):
        raise InputError(f"{name}: must return a Dataset, got {type(dataset).__name__}.")
    return replace(dataset, name=name)


def folder_of(spec: DatasetSpec, root: str | os.PathLike[str] | None) -> Path:
    """Where a dataset's files are: its own folder below the root, or the root itself."""
    if not spec.folder:  # the user's own data
        if root is None:
            raise InputError(f"load: pass the path of your data: load({spec.name!r}, root=PATH).")
        top = Path(root)
    else:
        top = data_root(root)
    own = top / spec.folder
    where = own if own.exists() else top
    if not where.exists():
        raise FileError(f"{where}: no such file or folder; {spec.name} needs {spec.layout}")
    return where


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    r"""The folder that holds all data.

    It is ``root`` if given, else the environment variable ``BITTERN_DATA``, else the user's data
    folder: ``~/.local/share/bittern`` on Linux, ``~/Library/Application Support/bittern`` on macOS,
    ``%LOCALAPPDATA%\bittern`` on Windows.  It need not exist yet.
    """
    if root is not None:
        return Path(root).expanduser()
    if given := os.environ.get("BITTERN_DATA"):
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("bittern", appauthor=False))
