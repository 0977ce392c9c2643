"""Tables of names, which suggest the nearest name for an unknown one; some take plug-ins.

A plug-in joins an :class:`OpenRegistry` in one of three ways: ``register`` adds it at run time, an
entry point of an installed package adds it when it is first needed, and a path such as
``package.module:Class`` leads to it without adding it.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar, overload

from bittern.errors import BitternError, InputError, UnknownNameError, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
V = TypeVar("V")
PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NAME = r"[a-z0-9]+(-[a-z0-9]+)*"  # of a plug-in
LONGEST_NAME = 200  # for which a near one is looked for


class Registry(Mapping[str, T]):
    """A read-only table from names to things of one kind, in the order given.

    >>> colours = Registry("colour", {"red": 1, "green": 2})
    >>> colours["red"]
    1
    >>> colours["gren"]
    Traceback (most recent call last):
    bittern.errors.UnknownNameError: no colour is called 'gren'; did you mean 'green'?

    ``former`` maps old names, which keep working but are not listed, to the present ones.
    """

    def __init__(
        self, kind: str, entries: Mapping[str, T], *, former: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self._former = dict(former or {})

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[self._former.get(name, name)]
        except (KeyError, TypeError):  # a list, for instance, is no name
            raise UnknownNameError(self.refusal(name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<{len(self)} {self.kind}s: {', '.join(self)}>"

    def refusal(self, name: object) -> str:
        """The error for an unknown ``name``: it lists the nearest known names, or all of them."""
        names = self._names()
        near = difflib.get_close_matches(name, names, n=3) if _is_short(name) else []
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"there are {', '.join(names)}."
        )
        return f"no {self.kind} is called {shown(name)}; {hint}"

    def _names(self) -> list[str]:
        return list(self._entries)


class Registration(NamedTuple):
    """Something that ``register`` added: to the table of which group, and under which name."""

    group: str
    name: str
    value: Any


class OpenRegistry(Registry[T]):
    """A table that others can extend; a name that is taken is never replaced.

    ``group`` is the group of entry points that are looked up here.  ``accept(value, title)``
    returns what the table holds for a plug-in, or raises InputError, which begins with ``title``.
    ``pattern`` is how a name is written, and ``reserved`` are names that nothing may have.
    ``later`` maps more names to paths; such an entry is imported when it is first used.
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, T],
        *,
        group: str,
        accept: Callable[[Any, str], T],
        pattern: str = NAME,
        reserved: Iterable[str] = (),
        later: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind, entries)
        self._later = dict(later or {})
        self.group = group
        self._accept, self._pattern, self._reserved = accept, pattern, frozenset(reserved)
        self._built_in = (*entries, *self._later)
        self._registered: dict[str, Any] = {}  # as given to register()
        self._by_path: dict[str, T] = {}
        self._points: dict[str, EntryPoint] | None = None  # None until they are looked for
        self._broken: dict[str, str] = {}  # entry points that cannot be used, and why
        _OPEN[group] = self

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str):
            raise UnknownNameError(super().refusal(name))
        if name in self._later:
            self._entries[name] = _imported(self._later.pop(name), f"{self.kind} {name!r}")
        elif name not in self._entries:
            self._load(name)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        for name in self._entry_points():
            if name not in self._entries and name not in self._broken:
                self._load(name)
                if name in self._broken:
                    warnings.warn(f"left out: {self._broken[name]}", stacklevel=3)
        added = self._entries.keys() - set(self._built_in)
        return iter((*self._built_in, *sorted(added)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, name: str) -> T:
        """The entry of that name, or what a path such as ``package.module:Class`` leads to.

        A path imports the module, so take none from a file that you do not trust.
        """
        if not isinstance(name, str) or ":" not in name:
            return self[name]
        if name not in self._by_path:
            title = f"{self.kind} {name!r}"
            self._by_path[name] = self._accept(_imported(name, title), title)
        return self._by_path[name]

    def knows(self, name: str) -> bool:
        """Whether this is a name of the table, or a path that :meth:`find` has followed."""
        return name in self._by_path or name in self

    @overload
    def register(self, name: str) -> Callable[[V], V]: ...
    @overload
    def register(self, name: str, value: V) -> V: ...

    def register(self, name: str, value: Any = None) -> Any:
        """Add something under a new name; without ``value``, a decorator that does so.

        A class also gets the name as its attribute ``name``.  The same class, defined again in a
        notebook, takes the place of the earlier one.
        """
        if value is None:
            return lambda decorated: self.register(name, decorated)
        title = f"{self.kind} {name!r}"
        if not isinstance(name, str) or not re.fullmatch(self._pattern, name):
            raise InputError(f"{title}: a name is lower-case words joined by hyphens.")
        if name in self._reserved:
            raise InputError(f"{title}: the name is reserved.")
        taken = name in self._known() or name in self._entry_points()
        if taken and not _is_same(self._registered.get(name), value):
            raise InputError(f"{title}: the name is taken; choose another one.")
        self._entries[name] = self._taken(value, name, title)
        self._registered[name] = value
        return value

    def origin(self, name: str) -> str | None:
        """Where a plug-in is from: its path, and its distribution with the version.

        None for an entry of the package itself, and for an unknown name.
        """
        if name in self._by_path:
            return f"{name}{_version_of(name)}"
        if name in self._registered:
            return _path_of(self._registered[name])
        point = None if name in self._built_in else self._entry_points().get(name)
        return None if point is None else f"{point.value}{_distribution(point)}"

    @property
    def registrations(self) -> list[Registration]:
        """What was added by ``register``, for other processes."""
        return [Registration(self.group, name, one) for name, one in self._registered.items()]

    def refusal(self, name: object) -> str:
        """The error for an unknown ``name``, or what is wrong with the plug-in of that name."""
        return self._broken.get(name) or super().refusal(name)  # type: ignore[call-overload]

    def _names(self) -> list[str]:
        return [n for n in (*self._known(), *self._entry_points()) if n not in self._broken]

    def _known(self) -> dict[str, None]:
        """The names of the table, without those of entry points that were not loaded."""
        return dict.fromkeys((*self._built_in, *self._entries))

    def _load(self, name: str) -> None:
        """Add the plug-in of an entry point, or note why it cannot be used."""
        point = self._entry_points().get(name)
        if point is None or name in self._broken:
            return
        title = f"{self.kind} {name!r}{_distribution(point)}"
        try:
            self._entries[name] = self._taken(point.load(), name, title)
        except BitternError as error:
            self._broken[name] = str(error)
        except (Exception, SystemExit) as error:  # whatever their module does
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            self._broken[name] = f"{title}: {point.value} cannot be imported ({reason})."

    def _taken(self, value: Any, name: str, title: str) -> T:
        """What the table holds for a value; its attribute ``name`` must be this one.

        A class without a name of its own gets this one.
        """
        is_nameless = isinstance(value, type) and "name" not in vars(value)
        if not is_nameless and (own := getattr(value, "name", name)) != name:
            raise InputError(f"{title}: calls itself {own!r}; use the same name in both places.")
        try:
            if is_nameless:
                with suppress(TypeError):  # a built-in type, which is refused next
                    value.name = name
            return self._accept(value, title)
        except InputError:
            if is_nameless and "name" in vars(value):
                del value.name
            raise

    def _entry_points(self) -> dict[str, EntryPoint]:
        """The entry points of the group by name, without those whose name is taken."""
        if self._points is None:
            from importlib.metadata import entry_points

            self._points = {}
            for point in sorted(entry_points(group=self.group), key=_distribution):
                if problem := self._problem(point):
                    warnings.warn(
                        f"left out: {self.kind} {point.name!r}{_distribution(point)}: {problem}.",
                        stacklevel=3,
                    )
                else:
                    self._points[point.name] = point
        return self._points

    def _problem(self, point: EntryPoint) -> str | None:
        """What is wrong with the name of an entry point."""
        assert self._points is not None
        if not re.fullmatch(self._pattern, point.name):
            return "a name is lower-case words joined by hyphens"
        if point.name in self._points and self._points[point.name].value != point.value:
            return f"{self._points[point.name].value} already has the name"
        if point.name in self._known() or point.name in self._reserved:
            return "the name is taken"
        return None


_OPEN: dict[str, OpenRegistry[Any]] = {}  # every open table by its group


def all_registrations() -> list[Registration]:
    """What ``register`` added to any table of this process."""
    return [one for table in _OPEN.values() for one in table.registrations]


def register_all(registrations: Iterable[Registration]) -> None:
    """Add what another process had; its tables must be imported."""
    for one in registrations:
        _OPEN[one.group].register(one.name, one.value)


def summary_of(path: str) -> str:
    """First line of the docstring of ``package.module:Class``, without importing the module."""
    module, _, name = path.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, path
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    (found,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    return (ast.get_docstring(found) or "").partition("\n")[0]


def check_class(value: Any, base: type, title: str, parameters: Iterable[str] = ()) -> Any:
    """``value`` if it is a complete subclass whose constructor has these parameters."""
    if not isinstance(value, type) or not issubclass(value, base):
        raise InputError(f"{title}: must be a subclass of {base.__name__}, got {value!r}.")
    if lacking := sorted(getattr(value, "__abstractmethods__", ())):
        raise InputError(f"{title}: {value.__name__} lacks {' and '.join(lacking)}.")
    known = inspect.signature(value).parameters
    if without := [name for name in parameters if name not in known]:
        raise InputError(f"{title}: its constructor lacks {' and '.join(without)}.")
    return value


def _imported(path: str, title: str) -> Any:
    """What a path leads to."""
    module_name, _, attribute = path.partition(":")
    if not PATH.fullmatch(path):
        raise InputError(f"{title}: a path is written like package.module:Class.")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module_name}.".startswith(f"{missing}."):
            raise UnknownNameError(
                f"{title}: there is no module {missing!r}; install it, or add its folder to "
                "the variable PYTHONPATH."
            ) from None
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"{title}: {module_name} cannot be imported ({reason}).") from error
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        public = [name for name in dir(module) if not name.startswith("_")]
        near = difflib.get_close_matches(attribute, public, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise UnknownNameError(f"{title}: {module_name} has no {attribute!r}{hint}") from None


def _is_short(name: object) -> TypeGuard[str]:
    """Whether it is a text that can be compared with every name in no time."""
    return isinstance(name, str) and len(name) <= LONGEST_NAME


def _is_same(old: Any, new: Any) -> bool:
    """Whether two things are one, or one class or function that was defined twice."""
    if old is new or old == new:
        return True
    paths = [_path_of(one) for one in (old, new) if hasattr(one, "__qualname__")]
    return len(paths) == 2 and paths[0] == paths[1]


def _path_of(value: Any) -> str:
    of = value if hasattr(value, "__qualname__") else type(value)
    return f"{of.__module__}:{of.__qualname__}"


def _distribution(point: EntryPoint) -> str:
    """The distribution of an entry point, in brackets."""
    return "" if point.dist is None else f" ({point.dist.name} {point.dist.version})"


def _version_of(path: str) -> str:
    """The distribution that has the name of the path's package, in brackets; empty if none has."""
    from importlib.metadata import PackageNotFoundError, version

    package = path.partition(":")[0].partition(".")[0]
    with suppress(PackageNotFoundError):
        return f" ({package} {version(package)})"
    return ""
