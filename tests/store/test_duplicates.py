"""Near-duplicates in folders and collections, leaks, what is known from before, and the command."""

import csv
import io
import json
import os
import re

import numpy as np
import pytest
from PIL import Image, ImageFilter
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import app
from bittern.store import coded_images, known_pairs

pytest.importorskip("duckdb")


def scene(random_state, width=192, height=128):
    """A smooth image that no other resembles."""
    rng = np.random.default_rng(random_state)
    coarse = rng.integers(0, 256, (32, 48, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


@pytest.fixture
def folder(tmp_path):
    """Four scenes: 0 as three files, 1 as two, 2 and 3 once."""
    images = tmp_path / "images"
    (images / "more").mkdir(parents=True)
    for i in range(4):
        scene(i).save(images / f"{i}.png")
    scene(0).resize((384, 256)).save(images / "0-large.png")
    scene(0).save(images / "more" / "0.jpg", quality=60)
    scene(1).filter(ImageFilter.GaussianBlur(2)).save(images / "1-soft.png")
    return images


def names(found):
    return [[item.name for item in group] for group in found.groups]


def run(*words):
    return CliRunner().invoke(app, ["duplicates", *map(str, words)])


def fails(*words):
    with pytest.raises(bt.BitternError) as caught:
        CliRunner().invoke(app, ["duplicates", *map(str, words)], catch_exceptions=False)
    return str(caught.value)


@pytest.mark.parametrize("hasher", bt.features.PERCEPTUAL)
def test_groups_of_a_folder(folder, hasher):
    found = bt.duplicates(folder, hasher=hasher)
    assert [sorted(group) for group in names(found)] == [
        ["0-large.png", "0.png", "more/0.jpg"],
        ["1-soft.png", "1.png"],
    ]
    assert (found.n_items, found.n_superfluous, found.hash_name) == (7, 3, hasher)
    kept, _, last = found.groups[0]
    codes = bt.features.FEATURES[hasher]().encode([kept.file, last.file])
    assert last.distance == int(np.bitwise_count(np.bitwise_xor(*codes.words)).sum())


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("largest", ["0-large.png", None]),
        ("sharpest", [None, "1.png"]),
        ("oldest", ["more/0.jpg", "1-soft.png"]),
        ("first", ["0-large.png", "1-soft.png"]),
    ],
)
def test_the_item_to_keep(folder, keep, kept):
    for name in ("more/0.jpg", "1-soft.png"):
        os.utime(folder / name, (10**9, 10**9))
    found = [group[0].name for group in bt.duplicates(folder, keep=keep).groups]
    assert [name for name, want in zip(found, kept, strict=True) if want not in (None, name)] == []


def test_a_collection_has_the_same_groups(folder, tmp_path):
    from bittern.store.building import build_collection, choose_recipe

    place = tmp_path / "photos.bittern"
    build_collection(place, folder, choose_recipe(folder, "dhash", None))
    found, want = bt.duplicates(place), bt.duplicates(folder, hasher="dhash")
    assert [[f"images/{name}" for name in group] for group in names(want)] == names(found)
    assert found.groups[0][0].width == 384
    leaked = bt.leaks(folder, place)
    assert leaked.hash_name == "dhash" and leaked.n_leaked == 7
    assert "leave out --hasher" in fails(place, "--hasher", "phash")
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).standard_normal((9, 4)))
    other = tmp_path / "other.bittern"
    with bt.store.create(other, n_bits=64) as collection:
        collection.add(bt.Codes.from_bits(np.eye(5, 64) > 0))
    assert "cannot be compared" in fails(place, "--against", other)
    assert "was not made from images" in fails(folder, "--against", other)
    assert "give --radius" in fails(other)
    assert "give --keep first" in fails(other, "--radius", 2, "--keep", "largest")
    assert names(bt.duplicates(other, radius=2)) == [[f"id {i}" for i in range(5)]]


def test_leaks_between_two_folders(folder, tmp_path):
    test = tmp_path / "test"
    test.mkdir()
    scene(1).resize((96, 64)).save(test / "small.png")
    scene(9).save(test / "new.png")
    found = bt.leaks(folder, test)
    assert {(pair.name, pair.other) for pair in found.pairs} == {
        ("1.png", "small.png"),
        ("1-soft.png", "small.png"),
    }
    assert (found.n_leaked, found.n_others) == (1, 2)
    rows = json.loads(run(folder, "--against", test, "--format", "json").stdout)
    assert [row["distance"] for row in rows] == [pair.distance for pair in found.pairs]
    assert "leave out --keep" in fails(folder, "--against", test, "--keep", "first")
    assert "must be another place" in fails(folder, "--against", folder / ".." / folder.name)


def test_only_new_and_changed_images_are_read_and_compared(folder, tmp_path, monkeypatch):
    known, read, compared = tmp_path / "known.npz", [], []
    first = bt.duplicates(folder, known=known)
    hash_images, join = coded_images._hash_images, bt.index.near_codes.join
    monkeypatch.setattr(
        coded_images, "_hash_images", lambda *a: (read.extend(a[1]), hash_images(*a))[1]
    )
    monkeypatch.setattr(
        bt.index.near_codes, "join", lambda *a, **k: (compared.append(len(a[1])), join(*a, **k))[1]
    )
    assert names(bt.duplicates(folder, known=known)) == names(first) and not read
    scene(2).save(folder / "2-again.png")
    scene(7).save(folder / "3.png")
    (folder / "0-large.png").unlink()
    found = bt.duplicates(folder, known=known, keep="first")
    assert sorted(read) == ["2-again.png", "3.png"] and compared == [0, 1]
    assert names(found) == names(bt.duplicates(folder, keep="first"))
    assert "within 6" in fails(folder, "--known", known, "--radius", 7)
    assert "is about codes of phash" in fails(folder, "--known", known, "--hasher", "pdq")
    assert len(bt.duplicates(folder, known=known, radius=0).groups) >= 1


def test_a_damaged_file_of_pairs_is_an_error(folder, tmp_path):
    known = tmp_path / "known.npz"
    bt.duplicates(folder, known=known)
    with np.load(known) as file:
        arrays = dict(file)
    for name, value in {
        "pairs": np.array([[0, 100, 1]]),
        "numbers": arrays["numbers"] - 50,
        "states": arrays["states"][1:],
        "about": arrays["about"][:-3],
        "words": arrays["words"].astype(np.float64),
    }.items():
        np.savez(known, **{**arrays, name: value})
        with pytest.raises(bt.FileError, match=re.escape(str(known))):
            known_pairs.read_known(known)
    np.savez(known, others=np.zeros(3))
    assert "is not a file of pairs" in fails(folder, "--known", known)


def test_quality_leaves_out_even_images(folder):
    for i in range(2):
        Image.new("RGB", (80, 80), (200, 200, 200)).save(folder / f"even{i}.png")
    every = bt.duplicates(folder, hasher="pdq")
    assert ["even0.png", "even1.png"] in names(every)
    assert every.groups[-1][0].quality == 0
    shown = bt.duplicates(folder, hasher="pdq", least_quality=1)
    assert names(shown) == [group for group in names(every) if "even0.png" not in group]
    assert "goes with pdq" in fails(folder, "--least-quality", 50)


def test_the_command_writes_tables_csv_json_and_a_page(folder, tmp_path):
    (folder / "broken.jpg").write_bytes(b"no image")
    scene(5).save(folder / "<b>.png")
    scene(5).save(folder / "<i>.png")
    assert "not a readable image" in fails(folder)
    page = tmp_path / "page.html"
    done = run(folder, "--on-error", "skip", "--page", page)
    assert done.exit_code == 0 and "Skipped 1 image" in done.stderr
    assert "3 groups of near-duplicates among 9 items" in done.stdout
    assert re.search(r"^1 +keep +0 +0-large.png +384 +256", done.stdout, re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/jpeg;base64,") == 7 and "&lt;b&gt;.png" in text
    assert "<b>" not in text and "http://" not in text and "https://" not in text
    listed = run(folder, "--on-error", "skip", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(listed)))
    assert [row["keep"] for row in rows].count("1") == 3 and len(rows) == 7
    objects = json.loads(run(folder, "--on-error", "skip", "--format", "json").stdout)
    assert [row["name"] for row in objects] == [row["name"] for row in rows]


def test_bad_input_is_one_sentence(tmp_path, folder):
    assert "no such folder or collection" in fails(tmp_path / "nowhere")
    assert "is not a perceptual hash" in fails(folder, "--hasher", "itq")
    assert "must end in .npz" in fails(folder, "--known", tmp_path / "known.csv")
    with pytest.raises(bt.InputError, match="keep must be one of"):
        bt.duplicates(folder, keep="best")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "broken.png").write_bytes(b"no image")
    assert "no image could be read" in fails(tmp_path / "one", "--on-error", "skip")
