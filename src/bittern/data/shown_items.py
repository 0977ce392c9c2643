"""Items of a dataset as people see them: labels, small images, and a card for notebooks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bittern import notebook
from bittern.checks import PositionArray
from bittern.data.dataset import Dataset
from bittern.data.describe import statistics
from bittern.data.thumbnails import image_address, image_modality
from bittern.errors import FileError
from bittern.notebook import ShownItem

N_EXAMPLES = 10  # images of a card
MOST_TEXT = 80  # letters of a label


def shown_items(dataset: Dataset, positions: PositionArray) -> list[ShownItem]:
    """The items at some positions, with an image if the dataset has images that can be read."""
    modality = image_modality(dataset) if len(positions) else None
    return [
        ShownItem(p, _label(dataset, p), None if modality is None else _image(dataset, modality, p))
        for p in positions.tolist()
    ]


def dataset_card(dataset: Dataset) -> str:
    """Size, modalities, labels, the publisher's sets and notes; and some images."""
    n = len(dataset)
    heading = f"Dataset {dataset.name}: {n:,} item{'' if n == 1 else 's'}"
    known = notebook.facts(_facts(dataset))
    if not n or image_modality(dataset) is None:
        return notebook.card(heading, known)
    return notebook.card(heading, known, notebook.strip(shown_items(dataset, _examples(dataset))))


def _facts(dataset: Dataset) -> Iterator[tuple[str, str]]:
    found = statistics(dataset)
    for name, text in found.descriptors.items():
        yield f"modality {name}", text
    if dataset.labels is not None:
        yield "classes", f"{len(dataset.class_names):,}: {_listed(dataset.class_names)}"
    if dataset.tags is not None:
        yield "tags", f"{len(dataset.tag_names):,}: {_listed(dataset.tag_names)}"
    for name, positions in dataset.official.items():
        yield f"official {name}", f"{len(positions):,} items"
    for note in dataset.notes:
        yield "note", note
    if dataset.licence:
        yield "licence", dataset.licence


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:N_EXAMPLES]) + (", …" if len(names) > N_EXAMPLES else "")


def _examples(dataset: Dataset) -> PositionArray:
    """The first item of each class, or items spread over the dataset."""
    if dataset.labels is not None and len(dataset.class_names) > 1:
        labels, first = np.unique(dataset.labels, return_index=True)
        return first[labels >= 0][:N_EXAMPLES]
    return np.unique(np.linspace(0, len(dataset) - 1, N_EXAMPLES).astype(np.intp))


def _label(dataset: Dataset, position: int) -> str:
    """The item's class, or else its id, or else its position."""
    if dataset.labels is not None and dataset.labels[position] >= 0:
        return f"{position}: {dataset.class_names[dataset.labels[position]]}"[:MOST_TEXT]
    if dataset.ids is not None:
        return str(dataset.ids[position])[-MOST_TEXT:]
    return str(position)


def _image(dataset: Dataset, modality: str, position: int) -> str | None:
    if not dataset.has(modality)[position]:
        return None
    try:
        return image_address(np.asarray(dataset[modality][position]))
    except FileError:
        return None
