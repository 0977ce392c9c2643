"""Datasets in words: the catalogue as a table, and what is known of one of them."""

from __future__ import annotations

from bittern.data.catalogue import DATASETS, spec_of
from bittern.data.dataset import Dataset
from bittern.data.spec import DatasetSpec
from bittern.data.statistics import Statistics, statistics
from bittern.errors import InputError

__all__ = ["describe", "list_datasets", "parse_options"]


def list_datasets() -> str:
    """Every dataset of the catalogue, a line each."""
    width = max(map(len, DATASETS))
    return "\n".join(f"{name:<{width}}  {spec_of(name).title}" for name in DATASETS)


def describe(spec: DatasetSpec, dataset: Dataset) -> str:
    """Size and statistics, what was checked, where it comes from, how the papers prepare it."""
    lines = [f"{spec.name}: {spec.title}", *_counts(statistics(dataset))]
    for name, positions in dataset.official.items():
        lines.append(_line(f"official {name}", f"{len(positions):,}"))
    lines += [_line("note", note) for note in dataset.notes]
    lines.append(_line("prepared by", ", then ".join(spec.steps) or "nothing"))
    lines.append(_line("cite", spec.citation or "your own source"))
    lines.append(_line("licence", spec.licence))
    return "\n".join(lines)


def parse_options(listed: list[str]) -> dict[str, str | int]:
    """Options written ``name=value``; a whole number becomes one.

    >>> parse_options(["features=gist", "concepts=21"])
    {'features': 'gist', 'concepts': 21}
    """
    options: dict[str, str | int] = {}
    for text in listed:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"an option is written name=value, got {text!r}.")
        options[name] = int(value) if value.isdecimal() else value
    return options


def _counts(found: Statistics) -> list[str]:
    lines = [_line("items", f"{found.n_items:,}")]
    if found.n_labels is not None:
        lines += [
            _line("labels", f"{found.n_labels:,}"),
            _line("labels an item", f"{found.labels_per_item:.2f}"),
            _line("items a label", f"{found.items_per_label:,.1f}"),
        ]
    return lines + [_line(f"modality {name}", text) for name, text in found.descriptors.items()]


def _line(what: str, text: str) -> str:
    return f"  {what:<18}  {text}"
