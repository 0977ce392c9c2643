"""The paradigm "evidence": learn on the training partition, open the test partition once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bittern.checks import check_count
from bittern.data import Dataset
from bittern.errors import InputError
from bittern.experiments.evidence.methods import OPTIONS, RankingMethod, find_method
from bittern.experiments.evidence.queries import QUERY_SPLITS, TEST, TRAINING
from bittern.experiments.evidence.scores import EvidenceData, KnnSettings
from bittern.experiments.evidence.sources import BOOSTED, find_source, is_source
from bittern.experiments.evidence.topics import TOPICS
from bittern.experiments.paradigm import Clock, Paradigm
from bittern.experiments.record import describe_profile
from bittern.features import FEATURES, NINE
from bittern.fusion import FUSIONS
from bittern.io.toml import check_keys, read_table
from bittern.metrics import parse
from bittern.metrics.names import DATABASE_ORDER
from bittern.profile import TieProfile
from bittern.registry import Registry

if TYPE_CHECKING:
    from bittern.experiments.cells import Cell
    from bittern.experiments.protocol import Method, Protocol

PARTITIONS = Registry("partition", dict.fromkeys((TRAINING, TEST)))
ORACLE_NOTE = "judgements of the test queries: a bound, not a method"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSettings:
    """The table [evidence]: how images are retrieved from examples, and by which features.

    The ``k`` nearest of the examples and of ``n_negatives`` random images count (2.2 of
    [Yavlinsky-2004], which gives neither number).  Methods combine ``features`` unless they name
    others; ``boosted-convolution`` and the like rank by a few values of a feature, which boosting
    chooses for each query by its examples and the random images.  Methods are evaluated on the
    test ``partition``; those that learn nothing may also be evaluated on the training partition,
    for example to choose k.

    With the split ``trecvid``, queries are topics of up to ``n_examples`` images.  ``topics`` are
    ``n_topics`` random ``"categories"``, the ``n_topics`` commonest ``"words"``, or the
    ``"published"`` ones of the dataset, all of them; ``split.sizes.topics`` names some of these or
    other words.
    """

    k: int
    n_negatives: int
    features: tuple[str, ...] = NINE
    partition: str = TEST
    topics: str = "categories"
    n_topics: int = 25
    n_examples: int = 3

    def __post_init__(self) -> None:
        for name in ("k", "n_negatives", "n_topics", "n_examples"):
            check_count(getattr(self, name), f"evidence: {name}")
        PARTITIONS[self.partition]
        TOPICS[self.topics]
        _check_features(self.features, "evidence: features")


class Evidence(Paradigm):
    """Rank images by their similarity to the examples of a query, by one or more features."""

    table = "evidence"
    tables = (FEATURES, FUSIONS)
    queries_are_items = False  # a query is a set of examples

    def check(self, protocol: Protocol) -> None:
        """Every method must be a feature or a combination of features."""
        settings = _settings_of(protocol)
        QUERY_SPLITS[protocol.split.name]
        if protocol.truth != {"kind": "classes"} or protocol.dataset.steps or protocol.n_bits:
            raise InputError(
                "paradigm 'evidence' ranks images by their categories: "
                "leave out truth, dataset.steps and n_bits."
            )
        for name in protocol.metrics:
            if parse(name).tie_rule == DATABASE_ORDER:
                raise InputError(f"metrics: {name} is for rankings by codes.")
        for method in protocol.method:
            _check_method(method, settings)

    def names_of(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """The method, and the features that it combines."""
        features = method.parameters.get("features", _settings_of(protocol).features)
        names = (method.name, *(() if find_method(method.name).is_single else features))
        return tuple(name.removeprefix(BOOSTED) for name in names)

    def needs_modules(self, protocol: Protocol, method: Method) -> tuple[str, ...]:
        """What its features need."""
        named = [name for name in self.names_of(protocol, method) if is_source(name)]
        needed = [one for name in named for one in FEATURES.find(name)().needs_modules]
        return tuple(dict.fromkeys(needed))

    def lengths(self, protocol: Protocol, method: Method) -> Sequence[int | None]:
        """No method makes codes."""
        return (None,)

    def prepare(self, protocol: Protocol, dataset: Dataset, run: int, folder: Path) -> EvidenceData:
        """Draw the queries of a run; vectors and scores are computed later and cached in folder."""
        return EvidenceData.of(protocol, _settings_of(protocol), dataset, run, folder)

    def measure(
        self, protocol: Protocol, cell: Cell, data: EvidenceData, clock: Clock
    ) -> dict[str, Any]:
        """Combine the scores of the method's features, and evaluate the ranking."""
        settings, method = _settings_of(protocol), find_method(cell.method.name)
        given = cell.method.parameters
        knn = KnnSettings(
            given.get("k", settings.k), given.get("n_negatives", settings.n_negatives)
        )
        names = clock("tune", lambda: _features(cell.method, settings, data, knn))
        train, test = clock(
            "encode",
            lambda: (
                data.scores(TRAINING, names, knn) if method.learns else None,
                data.scores(settings.partition, names, knn),
            ),
        )
        own = {key: value for key, value in given.items() if key not in OPTIONS}
        fused = clock("fit", lambda: method.combine(train, test, own, data.random_state))
        profile = TieProfile.from_distances(-fused.scores, test.relevance)
        categories = data.queries.of(settings.partition).categories
        parameters = given | {"features": list(names), "k": knn.k, "n_negatives": knn.n_negatives}
        return {
            "parameters": parameters | _remarks(method, names, fused.learned, data),
            "query_positions": tuple(range(len(categories))),
            "query_labels": tuple(categories.tolist()),
            **clock("evaluate", lambda: describe_profile(profile, protocol.metrics)),
        }


def _settings_of(protocol: Protocol) -> EvidenceSettings:
    return read_table(EvidenceSettings, protocol.settings, "evidence")


def _check_features(names: tuple[str, ...], where: str) -> None:
    """Raise InputError unless these are one or more distinct names of features."""
    for name in names:
        find_source(name)
    if not names or len(set(names)) < len(names):
        raise InputError(f"{where} must be one or more distinct names, got {list(names)}.")


def _check_method(method: Method, settings: EvidenceSettings) -> None:
    where = f"method {method.label}"
    found = find_method(method.name)
    if method.grid or method.n_bits:
        raise InputError(f"{where}: cannot have grid or n_bits under paradigm 'evidence'.")
    check_keys(method.parameters, dict.fromkeys((*found.parameters, *OPTIONS)), where)
    if found.is_oracle and "oracle" not in method.label.lower():
        raise InputError(f"{where}: sees the test judgements, so its label must say oracle.")
    if settings.partition == TRAINING and found.learns:
        raise InputError(
            f"{where}: learns on the training partition, so it cannot be evaluated on it."
        )
    _check_options(method, found, settings, where)


def _check_options(
    method: Method, found: RankingMethod, settings: EvidenceSettings, where: str
) -> None:
    given = method.parameters
    for name in ("k", "n_negatives"):
        check_count(given.get(name, 1), f"{where}: {name}")
    if found.is_single:
        if wrong := sorted({"features", "best"} & given.keys()):
            raise InputError(f"{where}: is a single feature, so it takes no {wrong[0]}.")
        return
    names = given.get("features", list(settings.features))
    if not isinstance(names, list | tuple):
        raise InputError(f"{where}: features must be a list of names, got {names!r}.")
    _check_features(tuple(names), f"{where}: features")
    check_count(given.get("best", 1), f"{where}: best", most=len(names))


def _features(
    method: Method, settings: EvidenceSettings, data: EvidenceData, knn: KnnSettings
) -> tuple[str, ...]:
    """The features that a method combines; with ``best``, the n best on training queries."""
    if find_method(method.name).is_single:
        return (method.name,)
    names = tuple(method.parameters.get("features", settings.features))
    best = method.parameters.get("best")
    return names if best is None else data.best_features(names, best, knn)


def _remarks(
    method: RankingMethod, names: tuple[str, ...], learned: dict[str, Any], data: EvidenceData
) -> dict[str, Any]:
    """What was learned, what an oracle sees, and which words were withheld."""
    remarks: dict[str, Any] = {}
    if learned:
        remarks["learned"] = learned
    if method.is_oracle:
        remarks["looks_at"] = ORACLE_NOTE
    if any(find_source(name).takes_texts for name in names) and data.texts.withheld:
        remarks["withheld_words"] = list(data.texts.withheld)
    return remarks
