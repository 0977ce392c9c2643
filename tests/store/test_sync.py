"""A collection kept in step with a folder of images."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from places import STORES, new_place

import bittern as bt
from bittern.features import FEATURES
from bittern.hashing import HASHERS
from bittern.store.building import build_collection
from bittern.store.image_items import BROKEN, NO_IMAGE, NO_ROW, OTHER, STATE
from bittern.store.queries import search_by_images
from bittern.store.syncing import add_files, remove_files, sync

pytest.importorskip("duckdb")
NAMES = ("a.png", "x/b.jpg", "x/ü und 'q'.webp", "y/two\nlines.png", "y/z/d.png")


def draw(path, shade, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(shade).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "home" / "photos"
    for shade, name in enumerate(NAMES):
        draw(root / name, shade)
    return root


@cache
def recipe():
    """A fitted one, so that codes depend on the image alone."""
    feature, rng = FEATURES["rgb-moments"](), np.random.default_rng(0)
    some = [rng.integers(0, 256, (6, 8, 3)).astype(np.uint8) for _ in range(50)]
    hasher = HASHERS["lsh"](n_bits=16, random_state=0).fit(feature.transform(some))
    return bt.store.Recipe(hasher, feature)


@pytest.fixture
def place(photos):
    made = str(photos.parent / "photos.bittern")
    build_collection(made, photos, recipe())
    return made


def synced(place, *arguments, **options):
    with bt.store.open(place, read_only=options.get("dry_run", False)) as collection:
        return sync(collection, *arguments, **options)


def contents(place):
    """Path, code and metadata of each item, by path; ids may differ."""
    with bt.store.open(place, read_only=True) as collection:
        items = collection.get(collection.ids)
    rows = zip(items.metadata, items.codes.words.tolist(), strict=True)
    return sorted(((known["path"], words, known) for known, words in rows), key=lambda r: r[:2])


def built_anew(photos, place=None, **options):
    """The contents of a new collection of the same images, by default in the same folder."""
    made = place or str(photos.parent / "anew.bittern")
    build_collection(made, photos, recipe(), **options)
    try:
        return contents(made)
    finally:
        Path(made).unlink(missing_ok=True)


def change(photos):
    """Each kind of change; what sync should call it."""
    draw(photos / "new.png", 20)
    shutil.copy(photos / "new.png", photos / "x/again.png")  # the same content, another name
    draw(photos / "x/b.jpg", 21)
    os.utime(photos / "a.png", (1, 1))
    (photos / "y/z/d.png").unlink()
    return {
        "added": ("new.png", "x/again.png"),
        "encoded": ("x/b.jpg",),
        "described": ("a.png",),
        "removed": ("y/z/d.png",),
        "unchanged": (NAMES[2], NAMES[3]),
        "left_out": (),
    }


@pytest.mark.parametrize("store", STORES)
def test_sync_adds_encodes_again_and_removes_and_then_has_nothing_to_do(store, photos):
    place = new_place(store, photos.parent)
    build_collection(place, photos, recipe())
    with bt.store.open(place) as collection:
        ids = {known["path"]: i for i, known in enumerate(collection.get(range(5)).metadata)}
        before = sync(collection)
        assert before.unchanged == NAMES and not any(before[:4])
        wanted = change(photos)
        assert sync(collection, dry_run=True)._asdict() == wanted
        assert len(collection) == 5
        assert sync(collection)._asdict() == wanted
        assert sync(collection).unchanged == tuple(sorted((*wanted["added"], *NAMES[:4])))
        assert sorted(collection.ids.tolist()) == [0, 1, 2, 3, 5, 6]
        # A server has no folder that paths could be relative to.
        home = photos if store == "postgres" else "photos"
        paths = [f"{home}/{name}" for name in NAMES[:4]]
        assert [m["path"] for m in collection.get([ids[path] for path in paths]).metadata] == paths
    anew = new_place(store, photos.parent) if store == "postgres" else None
    assert contents(place) == built_anew(photos, anew)


def test_the_codes_are_those_of_the_recipe(place, photos):
    change(photos)
    synced(place)
    with bt.store.open(place, read_only=True) as collection:
        for id_ in collection.ids.tolist():
            item = collection.get([id_])
            file = photos.parent / item.metadata[0]["path"]
            assert item.codes == collection.recipe.encode([str(file)], "image")
        found = search_by_images(collection, [photos / "new.png"], k=2)
        assert found.values.tolist() == [0, 0]
        assert set(found.files) == {photos / "new.png", photos / "x/again.png"}


def test_collection_and_images_move_together_or_apart(place, photos, tmp_path):
    moved = tmp_path / "elsewhere" / "deeper"
    moved.parent.mkdir()
    photos.parent.rename(moved)
    place = str(moved / "photos.bittern")
    assert synced(place).unchanged == NAMES
    with bt.store.open(place, read_only=True) as collection:
        found = search_by_images(collection, [moved / "photos/a.png"], k=5)
    assert set(found.files) == {moved / "photos" / name for name in NAMES}
    (moved / "photos").rename(tmp_path / "apart")
    with pytest.raises(bt.InputError, match=r"photos: no such folder; if it has moved"):
        synced(place)
    assert synced(place, tmp_path / "apart").described == NAMES  # only their paths changed
    assert synced(place).unchanged == NAMES
    with bt.store.open(place, read_only=True) as collection:
        assert collection.count("path = '../../apart/a.png'") == 1


def test_images_elsewhere_keep_absolute_paths(photos, tmp_path, monkeypatch):
    monkeypatch.setattr("bittern.store.paths._on_one_drive", lambda *_: False)
    place = str(tmp_path / "p.bittern")
    build_collection(place, photos, recipe())
    assert [path for path, *_ in contents(place)] == [f"{photos}/{name}" for name in NAMES]
    assert synced(place).unchanged == NAMES


def test_collections_of_earlier_versions_keep_working(photos, tmp_path):
    place = str(tmp_path / "old.bittern")
    with bt.store.create(place, **recipe().parts()) as old:
        files = [str(photos / name) for name in NAMES]
        old.add(files, metadata={"path": files, "label": [None, "x", "x", "y", "y"]})
    with bt.store.open(place, read_only=True) as old:
        assert set(search_by_images(old, [photos / "a.png"], k=5).files) == set(map(Path, files))
    with pytest.raises(bt.InputError, match="remembers no folder; name it: 'bittern index sync"):
        synced(place)
    assert synced(place, photos).encoded == NAMES  # nothing was known about the files
    assert synced(place).unchanged == NAMES


def test_nothing_is_removed_because_a_folder_is_empty_or_missing(place, photos):
    shutil.rmtree(photos)
    with pytest.raises(bt.InputError, match="no such folder; if it has moved"):
        synced(place)
    photos.mkdir()
    with pytest.raises(bt.InputError, match="has no images, so that all 5 items would be removed"):
        synced(place)
    assert len(contents(place)) == 5
    assert len(synced(place, allow_empty=True).removed) == 5
    assert contents(place) == []
    draw(photos / "a.png", 1)
    assert synced(place).added == ("a.png",)


def test_items_from_elsewhere_stay(place, photos, tmp_path):
    draw(tmp_path / "other/e.png", 30)
    with bt.store.open(place) as collection:
        added = add_files(collection, [tmp_path / "other"])
        assert added.added == ("e.png",)
        assert sync(collection).unchanged == NAMES
        assert len(collection) == 6
        (tmp_path / "other/e.png").unlink()
        draw(tmp_path / "other/f.png", 31)
        assert sync(collection, tmp_path / "other")[:4] == (("f.png",), (), (), ("e.png",))
        assert sync(collection).unchanged == NAMES  # the first folder is still remembered


def test_single_files_are_added_once_with_the_metadata_of_the_folder(place, photos):
    draw(photos / "x/new.png", 40)
    with bt.store.open(place) as collection:
        done = add_files(collection, [photos / "x/new.png", photos / "a.png"])
        assert done.added == ("x/new.png",) and done.unchanged == ("a.png",)
        draw(photos.parent / "outside.png", 41)
        both = add_files(collection, [photos / "x", photos.parent / "outside.png"])
        assert both.added == ("outside.png",) and len(both.unchanged) == 3
        known = collection.get([5]).metadata[0]
        assert known["label"] == known["folder"] == "x"
        assert sync(collection).unchanged == tuple(sorted((*NAMES, "x/new.png")))
        with pytest.raises(bt.InputError, match=r"none\.png: no such file or folder"):
            add_files(collection, [photos / "none.png"])


def test_items_are_removed_by_path(place, photos, monkeypatch):
    monkeypatch.chdir(photos)
    with bt.store.open(place) as collection:
        with pytest.raises(bt.InputError, match=r"no item has the path 'c\.png'"):
            remove_files(collection, ["a.png", "c.png"])
        assert remove_files(collection, ["a.png", photos / NAMES[2], f"photos/{NAMES[3]}"]) == 3
        assert [known["path"] for known in collection.get(collection.ids).metadata] == [
            "photos/x/b.jpg",
            "photos/y/z/d.png",
        ]


def test_a_second_item_of_one_image_goes(place, photos):
    with bt.store.open(place) as collection:
        one = collection.get([2])
        collection.add(one.codes, metadata=one.metadata)
        assert sync(collection).removed == (NAMES[2],)
        assert collection.ids.tolist() == [0, 1, 2, 3, 4]


TABLE = "file,title,year,width\na.png,First,1999,300\nb.jpg,Second,2001,\ngone.png,Gone,1,1\n"


def test_a_table_exif_and_folders_become_metadata(photos, tmp_path):
    exif = Image.Exif()
    exif[0x0110] = "Brownie"
    draw(photos / "x/b.jpg", 1, exif=exif)
    (photos / "photos.csv").write_text(TABLE)
    (photos / "notes.txt").write_text("")
    place = str(tmp_path / "home/p.bittern")
    built = build_collection(place, photos, recipe(), metadata="photos.csv")
    assert [(one.kind, one.name) for one in built.left_out] == [
        (OTHER, "notes.txt"),
        (NO_IMAGE, "gone.png"),
        *((NO_ROW, name) for name in NAMES[2:]),
    ]
    known = {path: row for path, _, row in contents(place)}
    assert all(row.pop(STATE) for row in known.values())
    assert known["photos/a.png"] == {
        "path": "photos/a.png",
        "title": "First",
        "year": 1999,
        "width": 300,  # the table's, not the file's
        "height": 6,
    }
    assert known["photos/x/b.jpg"] == {
        "path": "photos/x/b.jpg",
        "folder": "x",
        "label": "x",
        "title": "Second",
        "year": 2001,
        "height": 6,
        "camera_model": "Brownie",
    }
    assert known["photos/y/z/d.png"] == {
        "path": "photos/y/z/d.png",
        "folder": "y/z",
        "label": "y",
        "height": 6,
    }
    with bt.store.open(place, read_only=True) as collection:
        assert collection.count("year > 2000 AND folder = 'x'") == 1

    assert synced(place).unchanged == NAMES
    (photos / "photos.csv").write_text(TABLE.replace("Second", "Changed"))
    assert synced(place).described == ("x/b.jpg",)
    assert contents(place) == built_anew(photos, metadata="photos.csv")
    (photos / "photos.csv").write_text("file,title\na.png,First\n")  # width is the file's again
    assert synced(place).described == NAMES
    assert contents(place) == built_anew(photos, metadata="photos.csv")
    assert synced(place, with_exif=False).described == NAMES
    assert contents(place) == built_anew(photos, metadata="photos.csv", with_exif=False)
    (photos / "photos.csv").write_text("file,title,year\na.png,First,about 1999\n")
    with pytest.raises(bt.InputError, match=r"'year' is of type BIGINT .*choose another name"):
        synced(place)
    assert len(contents(place)) == 5


def test_a_hasher_learns_from_the_labels_of_a_table(photos):
    rows = [f'"{name}",{"cat" if i % 2 else "dog"}' for i, name in enumerate(NAMES)]
    (photos / "t.csv").write_text("\n".join(["file,label", *rows]))
    place = str(photos.parent / "sdh.bittern")
    supervised = bt.store.Recipe(HASHERS["sdh"](n_bits=4), FEATURES["rgb-moments"]())
    build_collection(place, photos, supervised, metadata="t.csv")
    assert [row["label"] for _, _, row in contents(place)] == ["dog", "cat", "dog", "cat", "dog"]


def test_broken_images_are_named_and_their_old_items_go(place, photos, monkeypatch):
    (photos / "empty.png").write_bytes(b"")
    (photos / "cut.jpg").write_bytes((photos / "x/b.jpg").read_bytes()[:300])
    (photos / "loop").symlink_to(photos)
    with pytest.raises(bt.FileError, match=r"cut\.jpg: not a readable image"):
        synced(place)
    assert len(contents(place)) == 5
    done = synced(place, skip_broken=True)
    assert done.unchanged == NAMES
    assert [(one.kind, one.name) for one in done.left_out] == [
        (BROKEN, "cut.jpg"),
        (BROKEN, "empty.png"),
    ]
    (photos / "x/b.jpg").write_bytes(b"no image any more")
    assert synced(place).removed == ("x/b.jpg",)  # it remembers to skip
    assert len(contents(place)) == 4
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    draw(photos / "huge.png", 1)
    assert "has more than 40 pixels" in synced(place).left_out[2].reason


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_a_name_that_is_no_text_is_named(place, photos):
    draw(photos / "bad.png", 1)
    (photos / "bad.png").rename(os.fsdecode(os.fsencode(photos) + b"/bad\xff.png"))
    with pytest.raises(bt.FileError, match=r"bad\\udcff\.png: its name is not valid Unicode"):
        synced(place)
    done = synced(place, skip_broken=True)
    assert done.unchanged == NAMES and [one.name for one in done.left_out] == [r"bad\udcff.png"]


@pytest.mark.parametrize(
    ("method", "is_done"),
    [
        ("upsert", False),
        ("upsert", True),  # the first batch
        ("set_metadata", False),
        ("delete", False),
        ("set_origin", False),
    ],
)
def test_an_interrupted_sync_is_completed_by_the_next(place, photos, method, is_done, monkeypatch):
    change(photos)
    monkeypatch.setattr("bittern.store.building.BATCH", 2)
    whole = getattr(bt.store.Collection, method)

    def cut_off(self, *arguments, **options):
        if is_done:
            whole(self, *arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="Run the same"):
        patch.setattr(bt.store.Collection, method, cut_off)
        synced(place)
    assert len(contents(place)) >= 5
    synced(place)
    assert contents(place) == built_anew(photos)
    assert {file.name for file in photos.parent.iterdir()} == {"photos", "photos.bittern"}


KILLED = """
    import os, signal, sys
    import bittern as bt
    from bittern.store import building, syncing

    building.BATCH, upsert = 1, bt.store.Collection.upsert

    def killed(self, *arguments, **options):
        upsert(self, *arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    bt.store.Collection.upsert = killed
    with bt.store.open(sys.argv[1]) as collection:
        syncing.sync(collection)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_killed_sync_is_completed_by_the_next(place, photos):
    change(photos)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), place], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(contents(place)) == 6
    synced(place)
    assert contents(place) == built_anew(photos)


def test_what_is_not_images_cannot_be_synced(tmp_path, photos):
    np.save(tmp_path / "v.npy", np.eye(8))
    place = str(tmp_path / "v.bittern")
    build_collection(place, tmp_path / "v.npy", bt.store.Recipe(HASHERS["lsh"](n_bits=4)))
    with pytest.raises(bt.InputError, match="was not made from images"):
        synced(place, photos)
    with pytest.raises(bt.InputError, match="is not a folder; a table of metadata is about images"):
        build_collection(tmp_path / "w.bittern", tmp_path / "v.npy", recipe(), metadata="t.csv")
