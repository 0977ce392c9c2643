"""The codes and the ground truth that ``bittern evaluate`` reads, and the counts of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bittern
from bittern.cli.app import BitOrder, CodeLayout
from bittern.errors import FileError, InputError
from bittern.progress import Bar

if TYPE_CHECKING:
    from bittern.codes import Codes
    from bittern.profile import TieProfile
    from bittern.relevance import Relevance

ONE_TRUTH = "give one ground truth: labels, tags, --relevance or --neighbours."
NO_TRUTH = (
    "there is no ground truth; give --query-labels and --database-labels, --query-tags and "
    "--database-tags, --relevance, or --neighbours, or an array 'labels' or 'tags' in the .npz "
    "files of codes."
)
# Names of the arrays of queries and database in one file, as programs of papers call them too.
QUERIES = ("queries", "query_codes", "query", "qB")
DATABASE = ("database", "database_codes", "db", "rB", "dB")


@dataclass(frozen=True, slots=True)
class CodeFiles:
    """Where the codes of a system are; without a database, the queries search each other.

    ``arrays`` are the names of the arrays of queries and database, if one file has both.
    """

    queries: Path
    database: Path | None
    arrays: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """The options that say how codes are laid out."""

    bits: int | None
    signed: bool
    layout: CodeLayout | None
    bitorder: BitOrder | None

    @property
    def options(self) -> dict[str, object]:
        """Each option by its name on the command line."""
        return {
            "--bits": self.bits,
            "--signed": self.signed,
            "--code-layout": self.layout,
            "--bitorder": self.bitorder,
        }

    def check(self) -> None:
        """Raise InputError if options contradict each other."""
        if self.signed and self.layout not in (None, CodeLayout.signed):
            raise InputError("evaluate: give --signed or --code-layout, not both.")

    def read(self, path: Path, array: str | None = None) -> Codes:
        """The codes of a file."""
        from bittern.inputs import read_codes

        return read_codes(
            path,
            n_bits=self.bits,
            signed=self.signed,
            layout=None if self.layout is None else self.layout.value,
            bitorder=(self.bitorder or BitOrder.big).value,
            array=array,
        )


@dataclass(frozen=True, slots=True)
class GroundTruthFiles:
    """The options that say what is relevant."""

    query_labels: Path | None
    database_labels: Path | None
    query_tags: Path | None
    database_tags: Path | None
    graded: bool
    relevance: Path | None
    query_vectors: Path | None
    database_vectors: Path | None
    neighbours: int | None
    distance: str | None
    key: str | None

    @property
    def options(self) -> dict[str, Path | bool | int | str | None]:
        """Each option by its name on the command line."""
        return {f"--{f.name.replace('_', '-')}": getattr(self, f.name) for f in fields(self)}

    @property
    def files(self) -> list[Path]:
        """The files given."""
        return [value for value in self.options.values() if isinstance(value, Path)]

    @property
    def has_labels(self) -> bool:
        """Whether a file of labels is given."""
        return self.query_labels is not None or self.database_labels is not None

    @property
    def has_tags(self) -> bool:
        """Whether a file of tags is given."""
        return self.query_tags is not None or self.database_tags is not None

    def check(self, *, sharded: bool = False) -> None:
        """Raise InputError if options contradict each other."""
        if sharded:
            self._check_sharded()
        if self.neighbours is None:
            for option in ("--query-vectors", "--database-vectors", "--distance", "--key"):
                if self.options[option] is not None:
                    raise InputError(f"evaluate: {option} needs --neighbours, such as 10.")
        elif self.query_vectors is None or (self.database_vectors is None and not sharded):
            raise InputError("evaluate: --neighbours needs --query-vectors and --database-vectors.")
        if self.neighbours is not None and (self.has_labels or self.has_tags or self.graded):
            raise InputError(f"evaluate: {ONE_TRUTH}")
        if self.graded and (self.has_labels or self.relevance is not None):
            raise InputError(
                "evaluate: --graded is for tags; labels have no grades, --relevance has its own."
            )
        matrices = (self.relevance is not None) + (self.neighbours is not None)
        if self.has_labels + self.has_tags + matrices > 1:
            raise InputError(f"evaluate: {ONE_TRUTH}")

    def _check_sharded(self) -> None:
        for option in ("--database-labels", "--database-tags", "--database-vectors"):
            if self.options[option] is not None:
                raise InputError(f"evaluate: {option} is not for --shards, which have their own.")

    def read(self, codes: list[CodeFiles]) -> Relevance:
        """Gains, labels or tags from the files given; otherwise from the files of codes.

        These must agree, if several systems have their own.
        """
        from bittern.inputs import read_gains

        if self.relevance is not None:
            return bittern.Relevance.from_matrix(read_gains(self.relevance))
        if self.neighbours is not None:
            return self._nearest(codes[0].database)
        if not (self.has_tags or self.graded) and (labels := self._pair("labels", codes)):
            return bittern.Relevance.from_classes(*labels)
        if tags := self._pair("tags", codes):
            return bittern.Relevance.from_tags(*tags, graded=self.graded)
        raise InputError(f"evaluate: {NO_TRUTH}")

    def _pair(self, kind: str, codes: list[CodeFiles]) -> tuple[Any, Any] | None:
        """Labels (or tags) of queries and database; None if there are none."""
        given = {
            "labels": (self.query_labels, self.database_labels),
            "tags": (self.query_tags, self.database_tags),
        }[kind]
        is_given = given != (None, None)
        found = [files for one in codes if (files := _find_files(kind, given, one))]
        pairs = [(_read(kind, q, "query"), _read(kind, d, "database")) for q, d in found]
        for (query_file, _), pair in zip(found[1:], pairs[1:], strict=True):
            if not is_given and not all(map(_are_equal, pairs[0], pair)):
                raise InputError(
                    f"evaluate: {found[0][0][0]} and {query_file[0]} have different {kind}; give "
                    f"those of all systems with --query-{kind} and --database-{kind}."
                )
        return pairs[0] if pairs else None

    def _nearest(self, database: Path | None) -> Relevance:
        """The nearest items by the vectors."""
        from bittern.checks import check_count
        from bittern.inputs import read_vectors

        if database is None:
            raise InputError("evaluate: --neighbours is for two files of codes.")
        assert self.query_vectors is not None and self.database_vectors is not None
        files = self.query_vectors, self.database_vectors
        queries, items = (read_vectors(path, key=self.key) for path in files)
        if queries.shape[1:] != items.shape[1:]:
            raise InputError(
                f"evaluate: {queries.path} has vectors of {queries.shape[1]} numbers, "
                f"{items.path} of {items.shape[1]}."
            )
        k = check_count(self.neighbours, "evaluate: --neighbours", most=len(items))
        metric = self.distance or "euclidean"
        return bittern.Relevance.from_neighbours(queries[:], items[:], k, metric=metric)


def parse_systems(given: Iterable[str]) -> dict[str, CodeFiles]:
    """The files of each system by its name: NAME=FILE, or NAME=QUERIES,DATABASE."""
    systems: dict[str, CodeFiles] = {}
    for text in given:
        name, equals, files = text.partition("=")
        if not name.strip() or not equals or not files:
            raise InputError(
                f"evaluate: --system takes NAME=FILE or NAME=QUERIES,DATABASE, got {text!r}."
            )
        if name in systems:
            raise InputError(f"evaluate: two systems are called {name!r}; choose another name.")
        systems[name] = _files(name, files)
    if len(systems) < 2:
        raise InputError(
            "evaluate: give --system at least twice; one system is given as QUERIES and DATABASE."
        )
    return systems


def count_systems(
    systems: dict[str, CodeFiles],
    truth: GroundTruthFiles,
    options: CodeOptions,
    n_threads: int | None,
) -> tuple[dict[str, TieProfile], dict[str, int]]:
    """The tie profile and the code length of each system, with a progress bar."""
    codes = {name: _read_codes(files, options) for name, files in systems.items()}
    _check_same_size(codes)
    relevance = truth.read(list(systems.values()))
    (files, (queries, database)) = next(iter(systems.values())), next(iter(codes.values()))
    for what, path, n_truth, n_codes in (
        ("queries", files.queries, relevance.n_queries, len(queries)),
        ("items", files.database or files.queries, relevance.n_database, len(database)),
    ):
        if n_truth != n_codes:
            raise InputError(
                f"evaluate: the ground truth is for {n_truth} {what}, {path} has {n_codes} codes."
            )
    if files.database is None:
        relevance = relevance.excluding(range(len(queries)))
    with Bar("comparing") as progress:
        profiles = {
            name: bittern.TieProfile.from_codes(
                q, d, relevance, n_threads=n_threads, progress=progress
            )
            for name, (q, d) in codes.items()
        }
    return profiles, {name: q.n_bits for name, (q, _) in codes.items()}


def _files(name: str, text: str) -> CodeFiles:
    whole = Path(text)
    if "," in text and not whole.exists():
        queries, _, database = text.partition(",")
        return CodeFiles(Path(queries.strip()), Path(database.strip()))
    from bittern.io.arrays import ArrayFile

    names = ArrayFile(whole).names
    sides = [next((n for n in known if n in names), None) for known in (QUERIES, DATABASE)]
    if sides[0] is not None and sides[1] is not None:
        return CodeFiles(whole, whole, (sides[0], sides[1]))
    if sides != [None, None]:
        raise FileError(
            f"{whole}: has one array of {'queries' if sides[0] else 'database'}; a system has "
            f"'queries' and 'database', and the file has {', '.join(sorted(names))}."
        )
    return CodeFiles(whole, None)


def _read_codes(files: CodeFiles, options: CodeOptions) -> tuple[Codes, Codes]:
    """Codes of queries and database, of the same length."""
    query_array, database_array = files.arrays or (None, None)
    queries = options.read(files.queries, query_array)
    database = queries if files.database is None else options.read(files.database, database_array)
    if queries.n_bits != database.n_bits:
        other = "its database" if files.arrays else files.database
        raise InputError(
            f"evaluate: {files.queries} has codes of {queries.n_bits} bits, {other} of "
            f"{database.n_bits}; if bytes are padded, give the length with --bits."
        )
    return queries, database


def _check_same_size(codes: dict[str, tuple[Codes, Codes]]) -> None:
    """Raise InputError unless all systems have the same numbers of queries and items."""
    sizes = {name: (len(q), len(d), q is d) for name, (q, d) in codes.items()}
    (first, wanted), *others = sizes.items()
    for name, (n_queries, n_items, is_alone) in others:
        if (n_queries, n_items) != wanted[:2]:
            raise InputError(
                f"evaluate: {first} has {wanted[0]:,} queries and {wanted[1]:,} items, {name} "
                f"{n_queries:,} and {n_items:,}; every system encodes the same ones."
            )
        if is_alone != wanted[2]:
            raise InputError(
                f"evaluate: only one of {first} and {name} has a database; give it to both, or to "
                "none."
            )


Place = tuple[Path, str | None]  # a file, and the name of the array in it


def _find_files(
    kind: str, given: tuple[Path | None, Path | None], codes: CodeFiles
) -> tuple[Place, Place] | None:
    """The files with labels (or tags) of queries and database, by default those of the codes."""
    query_file, database_file = given
    if codes.database is None:  # queries are the database, so one of the two is enough
        query_file = query_file or database_file
        database_file = database_file or query_file
    queries = (query_file, None) if query_file else _beside(codes, kind, "query")
    database = (database_file, None) if database_file else _beside(codes, kind, "database")
    if queries is None and database is None:
        return None
    if queries is None or database is None:
        missing = "query" if queries is None else "database"
        raise InputError(f"evaluate: --{missing}-{kind} is missing.")
    return queries, database


def _beside(codes: CodeFiles, kind: str, side: str) -> Place | None:
    """Where the file of the codes itself has labels (or tags) of one side; None if it has none."""
    from bittern.inputs import has_array
    from bittern.io.arrays import ArrayFile

    if codes.arrays is not None:
        name = f"{side}_{kind}"
        return (codes.queries, name) if name in ArrayFile(codes.queries).names else None
    path = codes.queries if side == "query" else codes.database or codes.queries
    return (path, None) if has_array(path, kind) else None


def _read(kind: str, place: Place, side: str) -> Any:
    from bittern.inputs import read_classes, read_tags

    path, array = place
    if kind == "labels":
        return read_classes(path, f"--{side}-tags", array=array)
    return read_tags(path, array=array)


def _are_equal(one: Any, other: Any) -> bool:
    import numpy as np

    dense = [x.toarray() if hasattr(x, "toarray") else x for x in (one, other)]
    return bool(np.array_equal(*dense))
