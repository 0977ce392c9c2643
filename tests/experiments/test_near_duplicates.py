"""Near-duplicates: what each change does to an image, and what copies find, by imagehash itself."""

import tomllib

import imagehash
import numpy as np
import pytest
from PIL import Image

from bittern.data.image_changes import CHANGES, ImageChange
from bittern.errors import InputError, UnknownNameError
from bittern.experiments import Protocol, cells_of
from bittern.experiments.measure import measure_cell
from bittern.experiments.run_data import load_dataset

N = 40
PLAN = """
title = "Copies"
paradigm = "near-duplicates"
runs = 1
metrics = ["ap", "micro-recall@r6", "micro-precision@r6"]
dataset = { name = "folder" }
split = { name = "improved", sizes = { queries = 8, train = 20, validation_queries = 0, validation_database = 0 } }
method = [{ name = "phash" }, { name = "itq", n_bits = [8], parameters = { features = "thumbnail" } }]
near_duplicates = { changes = ["mirrored", "cropped-10"] }
"""  # noqa: E501


def plan_of(**changes):
    return Protocol.of(tomllib.loads(PLAN) | changes)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Smooth random images in two folders; the first two of each are nearly the same."""
    folder = tmp_path_factory.mktemp("images")
    for i in range(N):
        rng = np.random.default_rng(max(i // 2, 1) if i < 4 else i)
        coarse = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        place = folder / ("a" if i % 2 else "b")
        place.mkdir(exist_ok=True)
        image = Image.fromarray(coarse).resize((96, 72), Image.Resampling.BICUBIC)
        image.save(place / f"{i:02}.png")
    return folder


def image_of(random_state=0, height=40, width=60):
    rng = np.random.default_rng(random_state)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def changed(name, pixels, random_state=0):
    return ImageChange.parse(name).apply(pixels, np.random.default_rng(random_state))


def test_each_change_does_what_it_says():
    pixels = image_of()
    np.testing.assert_array_equal(changed("mirrored", pixels), np.fliplr(pixels))
    assert changed("resized-50", pixels).shape == (20, 30, 3)
    assert changed("resized-25", pixels).shape == (10, 15, 3)
    cropped = changed("cropped-10", pixels)
    assert cropped.shape == (36, 54, 3)
    assert any(
        np.array_equal(cropped, pixels[y : y + 36, x : x + 54]) for y in range(5) for x in range(7)
    )
    bordered = changed("bordered-5", pixels)
    assert bordered.shape == (44, 64, 3)
    np.testing.assert_array_equal(bordered[2:-2, 2:-2], pixels)
    assert bordered.sum() == pixels.sum()  # the rest is black
    grey = np.full((4, 4, 3), 100, np.uint8)
    assert set(changed("brighter-30", grey).ravel()) == {130}
    assert set(changed("darker-30", grey).ravel()) == {70}
    assert set(changed("brighter-30", grey + 100).ravel()) == {255}
    errors = [
        np.abs(changed(f"jpeg-{q}", pixels).astype(int) - pixels).mean() for q in (95, 50, 10)
    ]
    assert 0 < errors[0] < errors[1] < errors[2]
    marked = changed("watermarked-20", grey.repeat(10, 0).repeat(10, 1))
    differs = (marked != 100).any(axis=2)
    assert differs.sum() == 8 * 20  # a fifth of the height, half of the width
    assert set(marked[differs].ravel()) == {50, 178}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_leaves_the_image_alone_and_repeats(kind):
    pixels = image_of()
    pixels.flags.writeable = False
    name = f"{kind}-20" if CHANGES[kind].takes_percent else kind
    assert str(ImageChange.parse(name)) == name
    first = changed(name, pixels, 3)
    assert first.dtype == np.uint8
    assert not np.array_equal(first, pixels)
    np.testing.assert_array_equal(first, changed(name, pixels, 3))
    assert changed(name, image_of(0, 1, 1)).size  # of one pixel


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("cropped", InputError, "like 'cropped-10', got 'cropped'"),
        ("mirrored-5", InputError, "like 'mirrored', got 'mirrored-5'"),
        ("cropped-0", InputError, "got 'cropped-0'"),
        ("cropped-100", InputError, "got 'cropped-100'"),
        (7, InputError, "got 7"),
        ("croped-5", UnknownNameError, "did you mean 'cropped'"),
    ],
)
def test_a_change_is_written_in_one_way(text, error, says):
    with pytest.raises(error, match=says):
        ImageChange.parse(text)


def test_copies_find_what_imagehash_says(images):
    plan = plan_of()
    data = plan.kind.prepare(plan, load_dataset(plan.dataset, images), 0, images)
    rows = data.dataset["image"]
    originals = [imagehash.phash(Image.fromarray(rows[p])) for p in data.originals.tolist()]
    assert data.originals[:8].tolist() == data.split.queries.tolist()
    assert len(set(data.originals.tolist())) == len(originals) == N - 20
    cell = next(one for one in cells_of(plan) if one.method.name == "phash")
    record = measure_cell(plan, cell, data)
    for task, change in (("mirrored", np.fliplr), ("cropped 10 %", None)):
        found = record.tasks[f"{task} → image, originals"]
        copies = list(data.changed(ImageChange.parse("cropped-10")))
        if change is not None:
            copies = [change(rows[p]) for p in data.split.queries.tolist()]
        hashes = [imagehash.phash(Image.fromarray(np.ascontiguousarray(one))) for one in copies]
        apart = np.array([[one - other for other in originals] for one in hashes])
        near, own = apart <= 6, np.arange(8)
        assert found.values["micro-recall@r6"].mean == near[own, own].mean()
        precision = found.values["micro-precision@r6"].mean
        if near.any():
            assert precision == near[own, own].sum() / near.sum()
        else:
            assert np.isnan(precision)
        # One relevant item among t tied ones after n nearer: the mean of 1 / rank.
        expected = []
        for q in range(8):
            nearer, tied = (apart[q] < apart[q, q]).sum(), (apart[q] == apart[q, q]).sum()
            expected.append(np.mean(1 / np.arange(nearer + 1, nearer + tied + 1)))
        np.testing.assert_allclose(found.values["ap"].per_query, expected)
    # Not vacuous: a crop is mostly found, and a mirror image is not.
    recalls = [one.values["micro-recall@r6"].mean for one in record.tasks.values()]
    assert recalls[0] < 0.2
    assert record.tasks["cropped 10 % → image, originals"].values["ap"].mean > 0.5


def test_a_learned_hash_is_fitted_on_training_images_and_finds_exact_copies(images):
    plan = plan_of(near_duplicates={"changes": ["resized-50", "darker-10"]})
    data = plan.kind.prepare(plan, load_dataset(plan.dataset, images), 0, images)
    cell = next(one for one in cells_of(plan) if one.method.name == "itq")
    assert cell.n_bits == 8
    record = measure_cell(plan, cell, data)
    assert len(record.tasks) == 2
    assert record.values["ap"].mean > 0.3  # at random, 20 images would give .18
    assert record.split["sizes"] == {"train": 20, "queries": 8, "database": 20}


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"truth": {"kind": "tags"}}, InputError, "leave out truth"),
        ({"near_duplicates": {"changes": []}}, InputError, "at least one"),
        ({"near_duplicates": {"changes": ["mirrored"] * 2}}, InputError, "named twice"),
        ({"near_duplicates": {"change": []}}, InputError, "change"),
        ({"method": [{"name": "itq", "n_bits": [8]}]}, InputError, "features = 'gist'"),
        (
            {"method": [{"name": "phash", "parameters": {"features": "gist"}}]},
            InputError,
            "no parameters",
        ),
        ({"method": [{"name": "phash", "n_bits": [64]}]}, InputError, "one length"),
        (
            {"method": [{"name": "ksh", "n_bits": [8], "parameters": {"features": "gist"}}]},
            InputError,
            "learns from labels",
        ),
        (
            {"method": [{"name": "itq", "n_bits": [8], "parameters": {"features": "sentence"}}]},
            InputError,
            "not a feature of images",
        ),
        ({"method": [{"name": "itq", "parameters": {"features": "gist"}}]}, InputError, "n_bits"),
        ({"method": [{"name": "phish"}]}, UnknownNameError, "phish"),
    ],
)
def test_a_protocol_that_makes_no_sense_says_why(changes, error, says):
    with pytest.raises(error, match=says):
        plan_of(**changes)


def test_vectors_are_no_images():
    plan = plan_of(dataset={"name": "digits"})
    with pytest.raises(InputError, match="need colour images"):
        plan.kind.prepare(plan, load_dataset(plan.dataset), 0, None)
