"""Errors in the words of the command line: options instead of the arguments of functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# Who speaks in Python, and means nothing to a user of the command.
OWNERS = (
    "Codes",
    "Collection",
    "Relevance",
    "TieProfile",
    "compare",
    "compare_systems",
    "read_qrels",
    "read_run",
)
# Arguments that the command calls otherwise.
ALIASES = {
    "n_bits": "bits",
    "n_bytes": "bytes",
    "n_threads": "threads",
    "n_splits": "splits",
    "gains": "relevance",
    "ids": "id",
    "X": "vectors",
    "y": "labels",
}
# Calls that an option stands for, by the option that the command must have.
CALLS = {
    "Relevance.from_tags()": ("query_tags", "--query-tags and --database-tags"),
    "Relevance.from_classes()": ("query_labels", "--query-labels and --database-labels"),
}
OWNER = re.compile(rf"(?:{'|'.join(OWNERS)}): ")
SUBJECT = re.compile(r"(?:[a-z]+: )?([A-Za-z]\w*)(?= must | needs | and )")
ARGUMENT = re.compile(r"(?<![\w'\"./-])([a-z]+_\w+)(?:(=)|(?![\w'\"/.(:-]))")


def in_command_words(message: str, command: Any) -> str:
    """A message of the library, with its arguments as the options of this click command."""
    if message.startswith("--"):
        return message
    options = _options(command)
    text = OWNER.sub("", message, count=1) if OWNER.match(message) else message
    for call, (needed, instead) in CALLS.items():
        if needed in options:
            text = text.replace(call, instead)
    text = ARGUMENT.sub(lambda match: _named(match, options), text)
    subject = SUBJECT.match(text)
    if subject and subject[1] in options:
        text = text[: subject.start(1)] + options[subject[1]] + text[subject.end(1) :]
    return text


def _named(match: re.Match[str], options: dict[str, str]) -> str:
    """The option of an argument, with its value as it is typed; or the match as it is."""
    name, equals = match.groups()
    return f"{options[name]}{' ' if equals else ''}" if name in options else match[0]


def find_command(group: Any, words: Sequence[str]) -> Any:
    """The command that these words call: the deepest one whose name they begin with."""
    for word in words:
        inner = getattr(group, "commands", {})
        if word not in inner:
            break
        group = inner[word]
    return group


def _options(command: Any) -> dict[str, str]:
    """Each option of a command by the names of the argument that it sets."""
    found = {
        parameter.name: max(parameter.opts, key=len)
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    aliases = {name: found[alias] for name, alias in ALIASES.items() if alias in found}
    return aliases | found
