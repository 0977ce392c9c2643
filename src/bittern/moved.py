"""Names that changed: old modules and keywords still work, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Old name: new name.  Everything below an old name is looked for below the new one.
MOVED = {
    "bittern.trec": "bittern.io.trec",
    "bittern.hashing.backbones": "bittern.networks",
    "bittern.experiments.statistics": "bittern.analysis",
    "bittern.index.flat": "bittern.index.flat_index",  # this and the next three: pickles
    "bittern.index.multi": "bittern.index.multi_index",
    "bittern.index.table": "bittern.index.table_index",
    "bittern.relevance.classes": "bittern.relevance.base",
    "bittern.store.metadata": "bittern.io.metadata",
}


def keep_old_names() -> None:
    """Make the old names importable; the package calls this once."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MovedFinder())  # last, so that real modules come first


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function be called with its former keywords: ``@renamed(old="new")``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                warnings.warn(
                    f"{function.__name__}: the keyword {old!r} is now {names[old]!r}.",
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


class _MovedFinder:
    """A finder without importlib's base class, which takes 20 ms to import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for old, new in MOVED.items():
            if fullname == old or fullname.startswith(f"{old}."):
                loader: Any = _MovedLoader(new + fullname.removeprefix(old))
                # As a package without folders, so that this finder is also asked for submodules;
                # otherwise Python would load their files a second time.
                return spec_from_loader(fullname, loader, is_package=True)
        return None


class _MovedLoader:
    """Loads an old module as a proxy, which looks up its attributes in the new one."""

    def __init__(self, new: str) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: ModuleType) -> None:
        real = importlib.import_module(self._new)
        warnings.warn(
            f"{module.__name__} has moved to {self._new}; import it from there.",
            DeprecationWarning,
            stacklevel=2,
        )
        module.__doc__ = real.__doc__
        public = [name for name in vars(real) if not name.startswith("_")]
        module.__all__ = getattr(real, "__all__", public)  # type: ignore[attr-defined]
        module.__getattr__ = partial(getattr, real)  # type: ignore[method-assign]
        module.__dir__ = partial(dir, real)  # type: ignore[method-assign]
