"""Dataset: items with one or more modalities, labels or tags, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern import notebook
from bittern.checks import PositionArray, check_positions
from bittern.data.rows import Rows, RowView
from bittern.errors import InputError, UnknownNameError
from bittern.registry import Registry


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dataset:
    """``len(self)`` items, in the same order in every modality.

    A modality is an array, a memory map, or files that are read on demand; the first one is the
    default.  ``labels`` are class numbers into ``class_names`` (-1 for none), ``tags`` is multi-hot
    ``(n, n_tags)``, dense booleans or ``scipy.sparse``.  ``official`` holds the publisher's own
    sets as positions.  ``notes`` list the checks and the changes, in order.

    An item may lack a modality, such as an image without a caption.  ``present[modality]`` is then
    False for that item, and its row is a placeholder that nothing learns from: zeros, an empty
    text, or an image that cannot be read.  Modalities that every item has are not in ``present``.
    """

    name: str
    modalities: Mapping[str, Rows]
    present: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)  # (n,) each
    ids: NDArray[np.str_] | None = None  # (n,), distinct
    labels: NDArray[np.int64] | None = None  # (n,)
    class_names: tuple[str, ...] = ()
    tags: Any = None  # (n, n_tags)
    tag_names: tuple[str, ...] = ()
    official: Mapping[str, PositionArray] = field(default_factory=dict)
    citation: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.modalities:
            raise InputError(f"{self.name}: a dataset needs at least one modality.")
        sizes = {f"modality '{name}'": len(rows) for name, rows in self.modalities.items()}
        if self.ids is not None:
            sizes["ids"] = len(self.ids)
        if self.labels is not None:
            sizes["labels"] = len(self.labels)
        if self.tags is not None:
            sizes["tags"] = self.tags.shape[0]
        sizes |= {f"present '{name}'": len(there) for name, there in self.present.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{what} {n}" for what, n in sizes.items())
            raise InputError(f"{self.name}: the numbers of rows differ: {listed}.")
        if self.labels is not None and self.labels.max(initial=-1) >= len(self.class_names):
            raise InputError(
                f"{self.name}: label {self.labels.max()} has no name among "
                f"{len(self.class_names)} classes."
            )
        if self.tags is not None and self.tags.shape[1] != len(self.tag_names):
            raise InputError(
                f"{self.name}: {self.tags.shape[1]} tags for {len(self.tag_names)} names."
            )
        self._check_present()

    def _check_present(self) -> None:
        for name, there in self.present.items():
            self[name]  # fails for an unknown modality
            if there.dtype != np.bool_ or there.ndim != 1:
                raise InputError(
                    f"{self.name}: present '{name}' must be one boolean per item, got "
                    f"{there.dtype} of shape {there.shape}."
                )
        if len(self.present) == len(self.modalities):
            empty = np.flatnonzero(~np.any(list(self.present.values()), axis=0))
            if len(empty):
                raise InputError(f"{self.name}: item {empty[0]} lacks every modality.")

    def __len__(self) -> int:
        return len(next(iter(self.modalities.values())))

    def __getitem__(self, modality: str) -> Rows:
        """The rows of a modality."""
        try:
            return self.modalities[modality]
        except KeyError:
            refusal = Registry("modality", dict(self.modalities)).refusal(modality)
            raise UnknownNameError(f"{self.name}: {refusal}") from None

    @property
    def vectors(self) -> Rows:
        """The rows of the first modality."""
        return next(iter(self.modalities.values()))

    def has(self, modality: str) -> NDArray[np.bool_]:
        """For each item, whether it has the modality."""
        self[modality]  # fails for an unknown modality
        return self.present.get(modality, np.ones(len(self), np.bool_))

    def complete(self, *modalities: str) -> PositionArray:
        """Positions of the items that have all of these modalities; by default, all there are."""
        masks = [self.has(name) for name in modalities or self.modalities]
        return np.flatnonzero(np.all(masks, axis=0))

    def take(self, positions: Any) -> Dataset:
        """The items at some positions; rows are not copied until they are read.

        Drops the publisher's own sets, whose positions would no longer be valid.
        """
        p = check_positions(positions, f"{self.name}: positions", len(self))
        return replace(
            self,
            modalities={name: RowView.of(rows, p) for name, rows in self.modalities.items()},
            present={name: there[p] for name, there in self.present.items()},
            ids=None if self.ids is None else self.ids[p],
            labels=None if self.labels is None else self.labels[p],
            tags=None if self.tags is None else self.tags[p],
            official={},
        )

    def prepared(
        self, train: Any, steps: Sequence[str] | None = None, modality: str | None = None
    ) -> Dataset:
        """The dataset after preprocessing learned only from the rows at positions ``train``.

        ``steps`` are names such as ``"l2"``, ``"centre"`` and ``"pca1000"``; by default those that
        the papers state for this dataset.  Adds what was applied to the notes.
        """
        from bittern.data.catalogue import DATASETS, spec_of
        from bittern.data.prepare import prepared

        if steps is None:
            steps = spec_of(self.name).steps if DATASETS.knows(self.name) else ()
        return prepared(self, train, steps, modality) if steps else self

    def shown(self, ids: Any) -> list[notebook.ShownItem]:
        """The items at some positions as people see them: labels, and images if there are any."""
        from bittern.data.shown_items import shown_items

        return shown_items(self, check_positions(ids, f"{self.name}: positions", len(self)))

    def with_note(self, note: str, **changes: Any) -> Dataset:
        """A changed copy with a note about the change."""
        return replace(self, **changes, notes=(*self.notes, note))

    def __repr__(self) -> str:
        parts = [f"{len(self):,} items"]
        for name, rows in self.modalities.items():
            shape = getattr(rows, "shape", ())[1:]
            parts.append(f"{name} {'×'.join(map(str, shape))}" if shape else name)
        if self.labels is not None:
            parts.append(f"{len(self.class_names)} classes")
        if self.tags is not None:
            parts.append(f"{len(self.tag_names)} tags")
        return f"<Dataset {self.name}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from bittern.data.shown_items import dataset_card

        return dataset_card(self)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download from the publisher."""

    url: str
    filename: str  # below the dataset's own folder
    sha256: str | None = None  # or "md5:…"; None if we know no reliable checksum
    unpack: tuple[
        tuple[str, int], ...
    ] = ()  # members to extract beside it, with their maximum size


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec:
    """A dataset's entry in the catalogue.

    ``load(folder, **options)`` reads the files below ``folder``; ``layout`` is a sentence about the
    files it looks for there; ``folder`` is the name of the dataset's folder below the data root.
    ``find(folder, modalities, options)`` looks for the files that ``load`` would read, reads none,
    and raises FileError if one is missing; None if only ``load`` can tell.
    """

    name: str
    title: str
    load: Callable[..., Dataset]
    layout: str = "its own files."
    citation: str = ""  # key in docs/references.bib
    licence: str = "not stated"
    folder: str = ""
    sources: tuple[RemoteFile, ...] = ()
    steps: tuple[str, ...] = ()  # preprocessing that the papers state, e.g. ("l2", "centre")
    needs_files: bool = True
    find: Callable[[Path, Collection[str], Mapping[str, Any]], object] | None = None
    prepared: tuple[str, ...] = ()  # values of the option "features" that `data prepare` makes
