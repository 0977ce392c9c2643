"""A curator's commands: metadata, sync, single files, montage."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from bittern.store.montage import _shortened, draw_montage
from bittern.store.queries import Matches

pytest.importorskip("duckdb")
COLOURS = {"red": (200, 30, 30), "blue": (30, 40, 210)}


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root, rng = tmp_path / "PHOTOS", np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (root / name).mkdir(parents=True)
        for i in range(4):
            pixels = np.clip(np.array(colour) + rng.normal(0, 25, (24, 32, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{i}.png")
    (root / "broken.jpg").write_bytes(b"nothing")
    (root / "notes.txt").write_text("not an image")
    (tmp_path / "photos.csv").write_text(
        "file,title,year\nred/0.png,A red one,1999\nblue/0.png,A blue one,2001\n"
        "gone.png,Gone,1900\n"
    )
    return root


@pytest.fixture
def made(photos, run):
    code, out, err = run(
        "index", "create", "p.bittern", "--from", "PHOTOS", "--metadata", "photos.csv",
        "--features", "rgb-moments", "--bits", 8, "--on-error", "skip", "--skipped", "left.csv",
    )  # fmt: skip
    assert code == 0, err
    return out, err


def test_what_is_left_out_is_named(photos, made):
    out, err = made
    fitted = "itq was fitted on 8 of them"
    assert out.endswith(f"p.bittern: 8 items of 8 bits, 1 image skipped; {fitted}.\n")
    assert "1 image that cannot be read:\n" in err and "broken.jpg: not a readable image" in err
    assert "1 file that is not an image:\n  notes.txt" in err
    assert "photos.csv, line 4: there is no image 'gone.png'" in err
    assert "7 images without a row:\n  blue/1.png" in err
    assert "and 2 more; left.csv lists all." in err
    with (photos.parent / "left.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert sum(row["kind"] == "image without a row" for row in rows) == 7
    assert {row["file"] for row in rows} >= {"broken.jpg", "notes.txt", "gone.png"}


def test_sync_says_what_it_does(photos, made, run):
    code, out, _ = run("index", "sync", "p.bittern")
    assert code == 0 and out.endswith("p.bittern: 8 unchanged; 8 in total.\n")
    (photos / "red/0.png").rename(photos / "red/renamed\n.png")
    code, out, _ = run("index", "sync", "p.bittern", "--dry-run")
    lines = out.splitlines()[-4:]  # broken.jpg cannot be known to be broken yet
    assert lines[:3] == ["+ broken.jpg", "+ red/renamed\\n.png", "- red/0.png"]
    assert lines[3] == "p.bittern: 2 would be added, 1 would be removed, 7 unchanged."
    code, out, _ = run("index", "sync", "p.bittern")
    assert out.endswith("p.bittern: 1 added, 1 removed, 7 unchanged; 8 in total.\n")
    code, out, err = run("index", "sync", "p.bittern", "--on-error", "stop")
    assert code == 2 and "broken.jpg: not a readable image" in err
    photos.rename(photos.parent / "MOVED")
    code, out, err = run("index", "sync", "p.bittern")
    assert code == 2 and "PHOTOS: no such folder; if it has moved, name its new place" in err
    code, out, err = run("index", "sync", "p.bittern", "MOVED")
    assert out.endswith("p.bittern: 8 described again; 8 in total.\n"), err


def test_single_files_are_added_and_removed(photos, made, run):
    Image.new("RGB", (9, 9), "red").save("one.webp")
    (photos / "red/0.png").write_bytes((photos / "red/1.png").read_bytes())
    code, out, err = run("index", "add", "p.bittern", "one.webp", photos / "red/0.png")
    assert out.endswith("1 items added, 1 changed and encoded again, 9 in total.\n"), err
    code, out, err = run("index", "add", "p.bittern", "one.webp")
    assert out.endswith("0 items added, 1 unchanged, 9 in total.\n"), err
    code, out, err = run("index", "remove", "p.bittern", "one.webp", "PHOTOS/red/0.png")
    assert out.endswith("p.bittern: 2 items removed, 7 left.\n"), err
    for arguments, says in (
        (["add", "p.bittern"], "give images, or --from SOURCE"),
        (["add", "p.bittern", "none.jpg"], "none.jpg: no such file or folder"),
        (["remove", "p.bittern"], "give images, --id or --where"),
        (["remove", "p.bittern", "one.webp"], "no item has the path 'one.webp'"),
        (["sync", "none.bittern"], "none.bittern"),
    ):
        code, out, err = run("index", *arguments)
        assert code == 2 and says in err and len(err.splitlines()) == 1, err


def test_search_filters_and_shows_metadata(photos, made, run):
    code, out, err = run("search", "p.bittern", "--row", 0, "--where", "folder = 'red'")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split() == ["id", "distance", "path", "folder", "label", "title", "year"]
    assert len(lines) == 5 and "A red one  1999" in out
    code, out, _ = run("search", "p.bittern", "--row", 0, "-k", 1, "--columns", "title,width")
    assert [line.split() for line in out.splitlines()] == [
        ["id", "distance", "title", "width"],
        ["0", "0", "A", "blue", "one", "32"],
    ]
    code, _, err = run("search", "p.bittern", "--row", 0, "--columns", "titel")
    assert code == 2 and "no item has 'titel'; items have path, folder" in err
    code, out, err = run(
        "search", "p.bittern", "--row", 0, "--where", "year > 2000", "--format", "json",
        "--montage", "m.png",
    )  # fmt: skip
    (found,) = json.loads(out)
    assert found["path"] == "PHOTOS/blue/0.png" and found["file"] == str(photos / "blue/0.png")
    with Image.open("m.png") as sheet:
        assert sheet.height > 2 * sheet.width  # the query above the only result


def test_a_montage_shows_the_query_above_and_missing_files_in_grey(photos, tmp_path):
    known = [{"path": "PHOTOS/blue/0.png"}, {"path": "PHOTOS/blue/none.png"}]
    found = Matches(np.arange(2), np.array([3, 5]), True, known, tmp_path)
    draw_montage(found, "without.png")
    draw_montage(found, "with.png", queries=[photos / "red/0.png"])
    without, sheet = (np.asarray(Image.open(name)) for name in ("without.png", "with.png"))
    n_above = len(sheet) - len(without)
    np.testing.assert_array_equal(sheet[n_above + 8 :], without[8:])
    red = (sheet[..., 0] > 150) & (sheet[..., 2] < 100)
    assert red[:n_above].sum() > 0.9 * 24 * 32 and not red[n_above:].any()
    assert (sheet == 0xE4).all(axis=2).sum() > 10_000


def test_long_names_lose_their_middle():
    name = "IMG_20190501_a_very_long_name_of_a_photo_number_12.jpg"
    short = _shortened(name, 11, 144)
    start, end = short.split("…")
    assert name.startswith(start) and name.endswith(end) and abs(len(start) - len(end)) <= 1
    assert len(start) > 5 and _shortened("a.jpg", 11, 144) == "a.jpg"
    assert _shortened("two\nlines", 11, 144) == "two␣lines"
