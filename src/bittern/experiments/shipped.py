"""The protocols that come with the package: one for each table and figure of the papers."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from bittern.errors import UnknownNameError
from bittern.experiments.protocol import Protocol
from bittern.registry import Registry

__all__ = ["find_protocol", "shipped"]


def shipped() -> Registry[Path]:
    """Files of protocols by name."""
    folder = Path(str(files("bittern") / "protocols"))
    return Registry("protocol", {path.stem: path for path in sorted(folder.glob("*.toml"))})


def find_protocol(name: str) -> Path:
    """The file that a name or a path means."""
    path = Path(name)
    known = shipped()
    if path.suffix == ".toml" or path.exists():
        return path
    if name not in known:
        raise UnknownNameError(f"{known.refusal(name)} A file of your own ends in .toml.")
    return known[name]


def listing() -> str:
    """Names, titles, data and times of the protocols."""
    protocols = {name: Protocol.load(path) for name, path in shipped().items()}
    width = max(map(len, protocols), default=0)
    return "\n".join(
        f"{name:<{width}}  {protocol.title}. On {protocol.dataset.name}. {protocol.takes}".rstrip()
        for name, protocol in protocols.items()
    )
