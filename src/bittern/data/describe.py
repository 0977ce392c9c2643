"""Describe datasets in text: the catalogue as a list, and the statistics of one dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bittern.checks import whole_number
from bittern.data.catalogue import DATASETS, spec_of
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.errors import InputError


def list_datasets() -> str:
    """Every dataset of the catalogue, one per line."""
    width = max(map(len, DATASETS))
    return "\n".join(f"{name:<{width}}  {spec_of(name).title}" for name in DATASETS)


def describe(spec: DatasetSpec, dataset: Dataset) -> str:
    """Size and statistics, checks, source, and the papers' preprocessing."""
    lines = [f"{spec.name}: {spec.title}", *_counts(statistics(dataset))]
    for name, positions in dataset.official.items():
        lines.append(_line(f"official {name}", f"{len(positions):,}"))
    lines += [_line("note", note) for note in dataset.notes]
    lines.append(_line("preprocessing", ", then ".join(spec.steps) or "none"))
    lines.append(_line("cite", spec.citation or "your own source"))
    lines.append(_line("licence", spec.licence))
    return "\n".join(lines)


def parse_options(listed: list[str]) -> dict[str, str | int]:
    """Options written ``name=value``; a whole number becomes an int.

    >>> parse_options(["features=gist", "concepts=21"])
    {'features': 'gist', 'concepts': 21}
    """
    options: dict[str, str | int] = {}
    for text in listed:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"an option must be name=value, got {text!r}.")
        number = whole_number(value)
        options[name] = value if number is None else number
    return options


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of items and labels as in Table 3.1 of [Moran-2016]; None if there are no labels."""

    n_items: int
    n_labels: int | None
    labels_per_item: float | None
    items_per_label: float | None
    descriptors: dict[str, str]


def statistics(dataset: Dataset) -> Statistics:
    """Counts and means over the entire dataset; tags count as labels if there are no classes."""
    descriptors = {name: _descriptor(dataset, name) for name in dataset.modalities}
    if dataset.labels is not None:
        known = dataset.labels >= 0
        n_labels, n_given = len(dataset.class_names), int(known.sum())
    elif dataset.tags is not None:
        n_labels, n_given = len(dataset.tag_names), int(dataset.tags.sum())
    else:
        return Statistics(len(dataset), None, None, None, descriptors)
    return Statistics(
        len(dataset),
        n_labels,
        n_given / max(len(dataset), 1),
        n_given / max(n_labels, 1),
        descriptors,
    )


def _descriptor(dataset: Dataset, modality: str) -> str:
    """Shape and type of the rows, and how many items lack them."""
    rows = dataset[modality]
    shape = getattr(rows, "shape", None)
    text = type(rows).__name__
    if shape is not None:
        dtype = getattr(rows, "dtype", np.dtype(object))
        text = f"{'×'.join(map(str, shape[1:])) or '1'} {dtype}"
    n_lacking = int((~dataset.has(modality)).sum())
    return f"{text}; {n_lacking:,} items lack it" if n_lacking else text


def _counts(found: Statistics) -> list[str]:
    lines = [_line("items", f"{found.n_items:,}")]
    if found.n_labels is not None:
        lines += [
            _line("labels", f"{found.n_labels:,}"),
            _line("labels per item", f"{found.labels_per_item:.2f}"),
            _line("items per label", f"{found.items_per_label:,.1f}"),
        ]
    return lines + [_line(f"modality {name}", text) for name, text in found.descriptors.items()]


def _line(what: str, text: str) -> str:
    return f"  {what:<18}  {text}"
