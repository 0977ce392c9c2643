"""Modules that moved: their old names still import, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

# Old name: new name.  Everything below an old name is looked for below the new one.
MOVED = {
    "bittern.trec": "bittern.io.trec",
    "bittern.hashing.backbones": "bittern.networks",
    "bittern.experiments.statistics": "bittern.analysis",
}


def keep_old_names() -> None:
    """Let the old names be imported; called once, by the package itself."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(_MovedFinder())  # last, so that modules that exist come first


class _MovedFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for old, new in MOVED.items():
            if fullname == old or fullname.startswith(f"{old}."):
                loader = _MovedLoader(new + fullname.removeprefix(old))
                # A package without folders: what is below it is asked of this finder too, and
                # not loaded from its file a second time.
                return spec_from_loader(fullname, loader, is_package=True)
        return None


class _MovedLoader(Loader):
    """Fills a module with the attributes of the one at the new place, looked up when used."""

    def __init__(self, new: str) -> None:
        self._new = new

    def exec_module(self, module: ModuleType) -> None:
        real = importlib.import_module(self._new)
        warnings.warn(
            f"{module.__name__} has moved to {self._new}; import it from there.",
            DeprecationWarning,
            stacklevel=2,
        )
        module.__doc__ = real.__doc__
        module.__getattr__ = partial(getattr, real)  # type: ignore[method-assign]
        module.__dir__ = partial(dir, real)  # type: ignore[method-assign]
