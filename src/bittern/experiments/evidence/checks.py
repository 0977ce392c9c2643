"""What can be wrong in a protocol of the paradigm "evidence", found before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bittern.checks import check_count
from bittern.errors import InputError
from bittern.experiments.evidence.methods import OPTIONS, Way, way_of
from bittern.experiments.evidence.plan import TRAINING, Plan, check_features, plan_of
from bittern.experiments.evidence.questions import ASKING
from bittern.io.records import check_keys

if TYPE_CHECKING:
    from bittern.experiments.protocol import Method, Protocol

__all__ = ["check_evidence"]


def check_evidence(protocol: Protocol) -> None:
    """Refuse tables, methods and parameters that this paradigm does not know."""
    plan = plan_of(protocol)
    ASKING[protocol.split.name]
    if protocol.truth != {"kind": "classes"} or protocol.dataset.steps or protocol.n_bits:
        raise InputError(
            "paradigm 'evidence' ranks images whose categories are the truth: "
            "truth, dataset.steps and n_bits have no place in it."
        )
    for method in protocol.method:
        _check_method(method, plan)


def _check_method(method: Method, plan: Plan) -> None:
    where = f"method {method.label}"
    way = way_of(method.name)
    if method.grid or method.n_bits:
        raise InputError(f"{where}: has no grid and no n_bits under paradigm 'evidence'.")
    check_keys(method.parameters, dict.fromkeys((*way.parameters, *OPTIONS)), where)
    if way.is_oracle and "oracle" not in method.label.lower():
        raise InputError(f"{where}: looks at the test partition, so its label must say oracle.")
    if plan.partition == TRAINING and way.learns:
        raise InputError(f"{where}: learns on the training partition, and is not judged on it.")
    _check_options(method, way, plan, where)


def _check_options(method: Method, way: Way, plan: Plan, where: str) -> None:
    given = method.parameters
    for name in ("k", "n_negatives"):
        check_count(given.get(name, 1), f"{where}: {name}")
    if way.is_alone:
        if wrong := sorted({"features", "best"} & given.keys()):
            raise InputError(f"{where}: is one feature alone, {wrong[0]} has no place in it.")
        return
    names = given.get("features", list(plan.features))
    if not isinstance(names, list | tuple):
        raise InputError(f"{where}: features must be a list of names, got {names!r}.")
    check_features(tuple(names), f"{where}: features")
    check_count(given.get("best", 1), f"{where}: best", most=len(names))
