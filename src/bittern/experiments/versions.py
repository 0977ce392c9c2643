"""What a record was made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import bittern

__all__ = ["versions"]

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "lightgbm")


def versions() -> dict[str, str]:
    """Versions of Python, the package, and the libraries that make its numbers."""
    found = {"bittern": bittern.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"platform": f"{platform.system()} {platform.machine()}"}
