"""Words find images, and images find words: a collection of captioned images.

    python examples/words_and_images.py [FOLDER CAPTIONS.csv [TEXT]]

Without a folder, three hundred captioned images are drawn into a temporary one.  A file of captions
has the columns ``file`` and ``caption``.  Needs the extras ``store`` and ``features``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import bittern as bt
from bittern.data.export import write_folder
from bittern.store.building import build_collection, make_recipe
from bittern.store.queries import search_by_images, search_by_text


def main() -> None:
    """Index, then search in both directions."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, captions = Path(scratch, "photos"), "captions.csv"
        if len(sys.argv) > 2:
            folder, captions = Path(sys.argv[1]), sys.argv[2]
        else:
            write_folder(bt.load("captions", n=300), folder)
        place = Path(scratch, "photos.bittern")
        recipe = make_recipe("cca-itq", 32, features="colour-structure", texts="bag-of-words")
        print(build_collection(place, folder, recipe, texts=captions))
        with bt.store.open(place, read_only=True) as photos:
            text = sys.argv[3] if len(sys.argv) > 3 else "two large red circles"
            print(f"\nimages for {text!r}:")
            show(search_by_text(photos, text, k=5))
            image = sorted(folder.rglob("*.png"))[0]
            print(f"\ntexts for {image.name}:")
            show(search_by_images(photos, [image], to="text", k=5))


def show(found: bt.store.queries.Matches) -> None:
    """A line for each item: its distance, its image and its text."""
    for distance, known in zip(found.values, found.metadata, strict=True):
        print(f"{distance:3}  {Path(known.get('path', '-')).name:12}  {known.get('text', '')}")


if __name__ == "__main__":
    main()
