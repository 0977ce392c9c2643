"""Pages of the reference that are read off the package: commands, metrics, protocol keys.

Nothing here is typed by hand, so a new option, metric or key is on its page at the next build.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

import typer

from bittern.cli import app
from bittern.data import SPLITS
from bittern.experiments import PARADIGMS
from bittern.experiments.crossmodal import CrossModalSettings
from bittern.experiments.evidence.paradigm import EvidenceSettings
from bittern.experiments.near_duplicates import NearDuplicateSettings
from bittern.experiments.open_vocabulary import OpenVocabularySettings
from bittern.experiments.protocol import (
    DatasetSettings,
    Method,
    Protocol,
    SignificanceSettings,
    SplitSettings,
)
from bittern.experiments.retrieval import TableGrid
from bittern.experiments.search import SearchSettings
from bittern.experiments.truth import TRUTHS
from bittern.metrics import METRICS
from bittern.metrics.names import TIE_RULES, Metric

#: The record of each paradigm's own table, by its key.
OWN_TABLES: dict[str, type] = {
    "tables": TableGrid,
    "evidence": EvidenceSettings,
    "crossmodal": CrossModalSettings,
    "open_vocabulary": OpenVocabularySettings,
    "near_duplicates": NearDuplicateSettings,
}
PARTS: dict[str, type] = {
    "[dataset]": DatasetSettings,
    "[split]": SplitSettings,
    "[[method]]": Method,
    "[significance]": SignificanceSettings,
    "[search]": SearchSettings,
}
COMMENT = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)


def commands_page() -> str:
    """Every command with its arguments and options, as the command line knows them."""
    top = typer.main.get_command(app)
    context = typer.Context(top, info_name="bittern")
    found = list(_commands(top, context))
    lines = [
        "# Every command",
        "",
        "Made from the commands themselves; `bittern help COMMAND` shows the same.",
        "",
        _table(
            ("command", "does"),
            [(f"[`{path}`](#{_anchor(path)})", _first(one.help)) for path, one, _ in found],
        ),
        "",
        *(_command(path, one, its) for path, one, its in found),
    ]
    return "\n".join(lines)


def metrics_page() -> str:
    """Every metric of the table, and what may follow its name."""
    rows = [
        (f"`{name}`", metric.title, _places(metric), _options(metric))
        for name, metric in METRICS.items()
    ]
    return "\n".join(
        [
            "# Table of metrics",
            "",
            "Made from `bt.METRICS`. [Names of metrics](../metrics.md) explains how they are "
            "written, and [the functions](api/metrics.md) have the formulas.",
            "",
            _table(("name", "is", "may be followed by", "options"), rows),
            "",
            "A rule for ties comes last: "
            + ", ".join(f"`:{rule}`" for rule in TIE_RULES)
            + ". Without one, the value is the expectation over all orders of tied items. "
            "Any number above 0 may stand for the 1 of `f1`, `micro-f1` and `macro-f1`.",
            "",
        ]
    )


def protocol_page() -> str:
    """Every key of a protocol with its type and default."""
    lines = [
        "# Keys of a protocol",
        "",
        "Made from the records that a TOML file is read into; any other key is an error. "
        "[Experiments](../experiments.md) explains them by example.",
        "",
        _keys("Top level", Protocol, skip=("settings",)),
    ]
    lines += [_keys(f"`{key}`", record) for key, record in PARTS.items()]
    lines += ["## `[split] sizes`", "", "The sizes that each split takes, with their defaults.", ""]
    sizes = [(f"`{name}`", _parameters(make)) for name, make in SPLITS.items()]
    lines += [_table(("split", "sizes"), sizes), "", "## `[truth]`", ""]
    lines += [_keys(f'`kind = "{kind}"`', one, 3) for kind, one in TRUTHS.items()]
    for name, paradigm in PARADIGMS.items():
        if paradigm.table is not None:
            title = f'`[{paradigm.table}]`, with `paradigm = "{name}"`'
            lines.append(_keys(title, OWN_TABLES[paradigm.table]))
    return "\n".join(lines)


def _commands(group: Any, context: typer.Context) -> Iterator[tuple[str, Any, typer.Context]]:
    """Each command below a group: its path, itself, and its context."""
    for name, command in sorted(group.commands.items()):
        its = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from _commands(command, its)
        else:
            yield its.command_path, command, its


def _command(path: str, command: Any, context: typer.Context) -> str:
    records = [(one, one.get_help_record(context)) for one in command.params]
    rows = [
        (f"`{_escaped(names)}`", _escaped(text))
        for one, (names, text) in ((one, record) for one, record in records if record)
        if not getattr(one, "hidden", False)
    ]
    return "\n".join(
        [
            f"## `{path}`",
            "",
            "```text",
            command.get_usage(context).removeprefix("Usage: "),
            "```",
            "",
            inspect.cleandoc(command.help or ""),
            "",
            _table(("argument or option", "is"), rows) if rows else "",
            "",
        ]
    )


def _keys(title: str, record: type, level: int = 2, skip: Sequence[str] = ()) -> str:
    """A section about the fields of a record."""
    comments = dict(COMMENT.findall(inspect.getsource(record)))
    rows = [
        (
            f"`{one.name}`",
            _type_name(one),
            _default(one),
            _escaped(comments.get(one.name, "")),
        )
        for one in fields(record)
        if one.name not in skip
    ]
    about = _markdown(inspect.getdoc(record) or "")
    table = _table(("key", "type", "default", ""), rows)
    return "\n".join([f"{'#' * level} {title}", "", about, "", table, ""])


def _type_name(one: Field[Any]) -> str:
    """The type of a field as TOML has it."""
    words = {"str": "string", "int": "whole number", "float": "number", "bool": "true or false"}
    text = str(one.type).replace(" | None", "")
    if text.startswith("tuple["):
        inner = text.removeprefix("tuple[").partition(",")[0]
        return f"list of {words.get(inner, 'table')}s"
    return words.get(text, "table")


def _default(one: Field[Any]) -> str:
    if one.default is not MISSING:
        return "" if one.default in (None, "", ()) else f"`{_toml(one.default)}`"
    if one.default_factory is not MISSING:
        made = one.default_factory()
        return f"`{_toml(made)}`" if isinstance(made, dict) and made else ""
    return "required"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _parameters(function: Any) -> str:
    given = list(inspect.signature(function).parameters.values())[2:]
    shown = [
        one.name if one.default in (one.empty, None) else f"{one.name} = {_toml(one.default)}"
        for one in given
    ]
    return ", ".join(f"`{one}`" for one in shown)


def _places(metric: Metric) -> str:
    places = ["`@100`"] * metric.cutoff + ["`@r2`"] * metric.radius
    return " or ".join(places) + (", one is needed" if metric.needs_place else "")


def _options(metric: Metric) -> str:
    return ", ".join([f"`:{one}`" for one in metric.options] + ["a rule for ties"] * metric.ranked)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown(docstring: str) -> str:
    """A docstring with Markdown's code marks; roles become code."""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", docstring.replace("``", "`"))


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _first(text: str | None) -> str:
    return _escaped(inspect.cleandoc(text or "").partition("\n\n")[0])


def _anchor(path: str) -> str:
    return path.replace(" ", "-")
