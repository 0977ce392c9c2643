"""From a folder of images to a dataset with a split.

    python examples/your_own_images.py FOLDER

One sub-folder per class, or a manifest.csv in the folder with the columns path, label and tags.
Without an argument, the script makes a small folder.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import bittern as bt
from bittern.data import make_split


def main(folder: Path) -> None:
    """Read, split, and look for duplicates across the split."""
    dataset = bt.load("folder", root=folder)
    print(dataset, *dataset.notes, sep="\n")

    split = make_split("improved", dataset, random_state=0, run=0)
    print(f"\n{split}\n\n{split.check(dataset)}")

    queries = dataset.take(split.queries)  # nothing is read until you ask
    first = queries["image"][0]
    print(
        f"\nThe first of {len(queries)} queries is {queries.ids[0]}, {first.shape} {first.dtype}."
    )


def paint(folder: Path) -> Path:
    """Five colours, 40 noisy images of each, one folder per colour."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for name in ("red", "green", "blue", "gold", "grey"):
        (folder / "colours" / name).mkdir(parents=True)
        plain = np.asarray(Image.new("RGB", (32, 24), name), np.int16)
        for number in range(40):
            noisy = np.clip(plain + rng.integers(-60, 61, plain.shape), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(folder / "colours" / name / f"{number}.png")
    return folder / "colours"


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(paint(Path(made)))
