"""Perceptual hashes against imagehash and pdqhash, bit for bit."""

import json
from pathlib import Path

import imagehash
import numpy as np
import pytest
from PIL import Image

import bittern as bt
from bittern.features import PERCEPTUAL

ORACLES = {
    "phash": imagehash.phash,
    "dhash": imagehash.dhash,
    "ahash": imagehash.average_hash,
    "whash": imagehash.whash,
}
SIZES = [(5, 5), (4, 9), (1, 1), (48, 64), (64, 64), (128, 128), (3, 200), (200, 3), (300, 420)]


def images():
    """Smooth, noisy and even images of many sizes; where values are equal, rounding decides."""
    rng = np.random.default_rng(0)
    for height, width in [*SIZES, (63, 65), (513, 700)]:
        coarse = rng.integers(0, 256, (height // 7 + 1, width // 9 + 1, 3), dtype=np.uint8)
        smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        yield np.asarray(smooth)
        yield rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        yield np.full((height, width, 3), 200, np.uint8)
        yield np.repeat(np.arange(width, dtype=np.uint8)[None, :, None], height, 0).repeat(3, 2)


@pytest.mark.parametrize("name", ORACLES)
def test_bits_are_those_of_imagehash(name):
    shown = list(images())
    codes = bt.features.FEATURES[name]().encode(shown)
    want = [ORACLES[name](Image.fromarray(image)).hash.reshape(-1) for image in shown]
    np.testing.assert_array_equal(codes.to_bits(), want)
    assert len(np.unique(codes.words)) > 20, "hardly any two of these images look alike"


def recorded():
    """What pdqhash gives for these images: bits and quality of each.

    It is recorded, because pdqhash may have to be compiled, which the tests must not ask for.
    """
    record = json.loads(Path(__file__).with_name("pdqhash.json").read_text())
    packed = [list(bytes.fromhex(text)) for text in record["hashes"]]
    return np.unpackbits(np.array(packed, np.uint8), axis=1), record["quality"]


def test_bits_and_quality_are_those_of_pdqhash():
    shown, (bits, quality) = list(images()), recorded()
    np.testing.assert_array_equal(bt.features.PDQ().encode(shown).to_bits(), bits)
    np.testing.assert_array_equal(bt.features.PDQ().quality(shown), quality)
    assert {0, 100} <= set(quality)


def test_the_record_of_pdqhash_is_what_it_gives():
    pdqhash = pytest.importorskip("pdqhash", reason="pdqhash is not installed")
    bits, quality = zip(*map(pdqhash.compute, images()), strict=True)
    np.testing.assert_array_equal(recorded()[0], bits)
    assert recorded()[1] == list(quality)


@pytest.mark.parametrize("name", PERCEPTUAL)
def test_a_collection_of_images_is_searched_by_a_perceptual_hash(name, tmp_path):
    pytest.importorskip("duckdb")
    from bittern.store.building import build_collection, choose_recipe

    shown = [image for image in images() if min(image.shape[:2]) > 40][::4]
    (tmp_path / "images").mkdir()
    for i, image in enumerate(shown):
        Image.fromarray(image).save(tmp_path / "images" / f"{i}.png")
    recipe = choose_recipe(tmp_path / "images", name, None)
    place = tmp_path / "photos.bittern"
    summary = build_collection(place, tmp_path / "images", recipe)
    codes = bt.features.FEATURES[name]().encode(shown)
    assert (summary.n_items, summary.n_fitted) == (len(shown), 0)
    with bt.store.open(place, read_only=True) as collection:
        assert collection.get(collection.ids).codes == codes
        hits = collection.search([shown[2]], k=1)
        assert hits.to_lists() == [[(2, 0)]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n_bits": 32}, "phash has 64 bits"),
        ({"features": "gist"}, "leave out --features"),
        ({"texts": "bag-of-words"}, "leave out --features, --texts"),
    ],
)
def test_a_perceptual_hash_takes_no_other_feature_and_no_length(tmp_path, options, says):
    from bittern.store.building import choose_recipe

    with pytest.raises(bt.InputError, match=says):
        choose_recipe(tmp_path, "phash", options.pop("n_bits", None), **options)


def test_a_perceptual_hash_takes_no_vectors(tmp_path):
    from bittern.store.building import choose_recipe

    np.save(tmp_path / "vectors.npy", np.zeros((3, 4)))
    with pytest.raises(bt.InputError, match="is not a folder; phash takes images"):
        choose_recipe(tmp_path / "vectors.npy", "phash", None)
