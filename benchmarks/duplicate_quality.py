"""Precision and recall of near-duplicate hashes by kind of change, beside imagededup's.

    python benchmarks/duplicate_quality.py FOLDER [--root DATA] [--write docs/results/duplicates.md]

FOLDER has the records of ``bittern reproduce duplicates-photographs --out FOLDER``, from which our
figures are, at each hash's own default radius.  imagededup, if it is installed, hashes the same
originals and copies; it groups images within distance 10 by default.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from results import Section

import bittern as bt
from bittern.experiments import Records
from bittern.experiments.near_duplicates import PERCEPTUAL, CopyData, NearDuplicateSettings
from bittern.experiments.run_data import load_dataset
from bittern.io.toml import read_table

IMAGEDEDUP_RADII = (6, 10)  # ours, and its default
LEARNED_RADIUS = {64: 6, 256: 31}  # of gist + itq: those of the perceptual hashes of its length


def main() -> None:
    """Collect everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--root", type=Path, help="folder of the datasets")
    parser.add_argument("--write", type=Path, help="also write the table into this Markdown file")
    options = parser.parse_args()
    records = Records.read(options.folder)
    tasks = read_table(NearDuplicateSettings, records.protocol.settings, "near_duplicates").tasks
    section = Section(
        "Recall / precision in percent, within each hash's default radius",
        ("hash", "bits", "radius", *(task.query for task in tasks)),
    )
    for row in ours(records, list(tasks)):
        section.row(*row)
    if find_spec("imagededup") is not None:
        dataset = load_dataset(records.protocol.dataset, options.root)
        data = records.protocol.kind.prepare(records.protocol, dataset, 0, options.folder)
        for row in imagededup_rows(data, tasks):
            section.row(*row)
    n, n_items = records.records[0].split["sizes"]["queries"], records.records[0].split["sizes"]
    section.note(
        f"{n:,} copies of each kind search {n_items['database']:,} originals in one run. Recall is "
        "the share of copies whose original is within the radius; precision the share of originals "
        "among everything within it, summed over copies; a dash, if nothing is. imagededup’s rows "
        "are its own hashes of the same pixels, at our default radius and at its own, 10."
    )
    print(section.text())
    if options.write:
        command = "python benchmarks/duplicate_quality.py FOLDER"
        Section.write(options.write, "duplicate-quality", command, [section])


def ours(records: Records, tasks: list[Any]) -> Iterator[list[object]]:
    """A row for each record, from its curves over the radius."""
    for record in records:
        n_bits = record.n_bits or 0
        hash_ = PERCEPTUAL.get(record.method)
        radius = LEARNED_RADIUS[n_bits] if hash_ is None else hash_.radius
        cells = [shown(record.tasks[task.name].profile, radius) for task in tasks]
        yield [record.method, n_bits, radius, *cells]


def shown(profile: bt.TieProfile | None, radius: int) -> str:
    """Recall and precision within a radius, in percent."""
    assert profile is not None
    names = [f"micro-recall@r{radius}", f"micro-precision@r{radius}"]
    recall, precision = (bt.evaluate(profile, [name])[name].mean for name in names)
    return f"{100 * recall:.0f} / {'–' if np.isnan(precision) else f'{100 * precision:.0f}'}"


def imagededup_rows(data: CopyData, tasks: dict[Any, Any]) -> Iterator[list[object]]:
    """A row for each hash of imagededup."""
    truth = bt.Relevance.from_classes(
        np.arange(len(data.split.queries)), np.arange(len(data.originals))
    )
    for name, encode in imagededup_hashes().items():
        database = encode(data.images(data.originals))
        profiles = [
            bt.TieProfile.from_codes(encode(data.changed(one)), database, truth)
            for one in tasks.values()
        ]
        for radius in IMAGEDEDUP_RADII:
            cells = [shown(profile, radius) for profile in profiles]
            yield [f"imagededup {name}", database.n_bits, radius, *cells]


def imagededup_hashes() -> dict[str, Any]:
    """Its four hashes; its package imports torchvision for a network that hashes do not need."""
    if find_spec("torchvision") is None:
        for name in ("", ".models", ".transforms", ".models.vision_transformer"):
            sys.modules[f"torchvision{name}"] = MagicMock()
    from imagededup.methods import AHash, DHash, PHash, WHash

    hashes = {"phash": PHash, "dhash": DHash, "ahash": AHash, "whash": WHash}
    return {name: _encoder(kind(verbose=False)) for name, kind in hashes.items()}


def _encoder(hasher: Any) -> Any:
    def encode(images: Iterator[Any]) -> bt.Codes:
        texts = [hasher.encode_image(image_array=np.ascontiguousarray(one)) for one in images]
        packed = np.array([list(bytes.fromhex(text)) for text in texts], np.uint8)
        return bt.Codes.from_packed(packed)

    return encode


if __name__ == "__main__":
    main()
