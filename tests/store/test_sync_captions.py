"""A collection of images and texts kept in step with a folder and its captions."""

import csv
import shutil

import pytest

import bittern as bt
from bittern.data.export import write_folder
from bittern.store import building
from bittern.store.image_items import NO_IMAGE, OTHER
from bittern.store.queries import search_by_text
from bittern.store.syncing import add_files, sync

pytest.importorskip("duckdb")
N = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Captioned images, one without a caption and a caption without an image; a collection."""
    home = tmp_path_factory.mktemp("made")
    write_folder(bt.load("captions", n=N, side=24), home / "photos")
    rows = read(home / "photos")
    write(home / "photos", [*rows[:-1], ("", "a purple ring")])
    recipe = building.make_recipe("cca-itq", 8, features="rgb-moments", texts="bag-of-words")
    building.build_collection(
        str(home / "c.bittern"), home / "photos", recipe, texts="captions.csv"
    )
    return home


@pytest.fixture
def home(made, tmp_path):
    return shutil.copytree(made, tmp_path / "home")


def read(folder):
    with (folder / "captions.csv").open(newline="") as file:
        return [(row["file"], row["caption"]) for row in csv.DictReader(file)]


def write(folder, rows):
    with (folder / "captions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "caption"), *rows])


def synced(home, *arguments, **options):
    with bt.store.open(home / "c.bittern", read_only=options.get("dry_run", False)) as collection:
        return sync(collection, *arguments, **options)


def contents(place):
    """Code and metadata of each item, in an order that does not depend on ids."""
    with bt.store.open(place, read_only=True) as collection:
        items = collection.get(collection.ids)
    rows = zip(items.metadata, items.codes.words.ravel().tolist(), strict=True)
    return sorted((sorted(known.items()), code) for known, code in rows)


def built_anew(home):
    """The contents of a new collection of the same folder, by the same hasher and features."""
    with bt.store.open(home / "c.bittern", read_only=True) as collection:
        recipe = collection.recipe
    place = str(home / "anew.bittern")
    building.build_collection(place, home / "photos", recipe, texts="captions.csv")
    return contents(place)


def texts_of(home):
    """Images by the captions of their texts."""
    known = [dict(known) for known, _ in contents(home / "c.bittern")]
    said = {k["path"]: k["text"] for k in known if k["modality"] == "text" and "path" in k}
    assert said == {k["path"]: k["text"] for k in known if k["modality"] == "image" and "text" in k}
    return said


def test_an_unchanged_folder_changes_nothing(home):
    before = contents(home / "c.bittern")
    done = synced(home)
    assert [len(part) for part in done] == [0, 0, 0, 0, N, 0]
    assert contents(home / "c.bittern") == before
    assert len(before) == N + N - 1 + 1


def test_captions_are_added_changed_and_removed_with_their_images(home):
    folder = home / "photos"
    rows = read(folder)
    names = [name for name, _ in rows if name]
    last = sorted(path.name for path in folder.glob("*.png") if path.name not in names)
    (folder / names[3]).unlink()  # an image is gone, and its caption with it
    shutil.copy(folder / names[4], folder / "new.png")
    shutil.copy(folder / names[5], folder / names[6])  # other content
    changed = dict(rows) | {names[0]: "a red circle", last[0]: "a blue square"}
    del changed[names[1]], changed[names[3]]
    write(folder, [*changed.items(), ("new.png", "two rings")])
    would, done = synced(home, dry_run=True), synced(home)
    assert would == done
    assert done.added == ("new.png",) and done.removed == (names[3],)
    assert done.encoded == (names[6],)
    assert set(done.described) == {names[0], names[1], *last}
    assert contents(home / "c.bittern") == built_anew(home)
    said = texts_of(home)
    assert said["photos/new.png"] == "two rings" and said[f"photos/{names[0]}"] == "a red circle"
    assert f"photos/{names[1]}" not in said and len(said) == N - 1
    assert len(synced(home).unchanged) == N


def test_a_table_given_again_is_remembered(home):
    rows = read(home / "photos")
    (home / "photos" / "captions.csv").unlink()
    write(home, [(name, "a small green ring") for name, _ in rows if name])
    with pytest.raises(bt.errors.BitternError, match=r"captions\.csv"):
        synced(home)
    assert len(synced(home, texts=home / "captions.csv").described) == N - 1
    assert set(texts_of(home).values()) == {"a small green ring"}
    assert len(synced(home).unchanged) == N


def test_captions_beside_the_images(home):
    for path in (home / "photos").glob("*.png"):
        path.with_suffix(".txt").write_text(f"a ring called {path.stem}\n")
    done = synced(home, texts=".txt")
    assert len(done.described) == N
    assert [one.name for one in done.left_out if one.kind == OTHER] == ["captions.csv"]
    assert len(texts_of(home)) == N
    next((home / "photos").glob("*.txt")).write_text("a square")
    assert len(synced(home).described) == 1


def test_images_without_a_table_keep_their_captions(home):
    said = texts_of(home)
    with bt.store.open(home / "c.bittern") as collection:  # as it was before it was remembered
        collection.set_origin({**collection.origin, "texts": None})
    image = sorted((home / "photos").glob("*.png"))[0]
    image.unlink()
    shutil.copy(sorted((home / "photos").glob("*.png"))[0], home / "photos" / "new.png")
    done = synced(home)
    assert done.added == ("new.png",) and done.removed == (image.name,)
    assert texts_of(home) == {k: v for k, v in said.items() if k != f"photos/{image.name}"}


def test_what_an_interrupted_call_left_is_done(home, monkeypatch):
    folder = home / "photos"
    write(folder, [(name, "two circles") for name, _ in read(folder)])

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("bittern.store.syncing.update_texts", stop)
        synced(home)
    synced(home)
    assert set(texts_of(home).values()) == {"two circles"}
    with bt.store.open(home / "c.bittern", read_only=True) as collection:
        assert collection.count("modality = 'text' AND text = 'a purple ring'") == 1


def test_a_folder_that_moved_takes_its_captions_along(home):
    (home / "photos").rename(home / "moved")
    done = synced(home, home / "moved")
    assert len(done.described) == N and not done.removed
    assert len(texts_of(home)) == N - 1
    assert all(path.startswith("moved/") for path in texts_of(home))


def test_rows_of_captions_without_an_image_are_named(home):
    write(home / "photos", [*read(home / "photos"), ("gone.png", "a ring")])
    (one,) = synced(home).left_out
    assert one.kind == NO_IMAGE and one.name == "gone.png"
    assert one.reason.startswith(f"{home / 'photos' / 'captions.csv'}, line {N + 2}: there is no")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("file,caption\nx.png,a ring\n", "none of its captions is of an image in"),
        ("file,words\nx.png,a ring\n", "caption"),
        ("", "captions.csv"),
    ],
)
def test_a_table_that_does_not_fit_is_one_sentence_and_changes_nothing(home, run, table, says):
    before = contents(home / "c.bittern")
    (home / "captions.csv").write_text(table)
    code, _, complaint = run("index", "sync", home / "c.bittern", "--texts", home / "captions.csv")
    assert code == 2 and complaint.count("\n") == 1 and says in complaint
    assert contents(home / "c.bittern") == before


def test_the_command_takes_captions(home, run):
    folder = home / "photos"
    write(home, [(name, "a ring") for name, _ in read(folder) if name])
    code, printed, _ = run("index", "sync", home / "c.bittern", "--texts", home / "captions.csv")
    assert code == 0
    assert printed == f"{home / 'c.bittern'}: 11 described again, 1 unchanged; 24 in total.\n"


def test_a_collection_of_images_alone_takes_no_captions(home, run):
    place = home / "plain.bittern"
    recipe = building.make_recipe("lsh", 8, features="rgb-moments")
    building.build_collection(str(place), home / "photos", recipe)
    code, _, complaint = run("index", "sync", place, "--texts", "captions.csv")
    assert code == 2 and complaint.count("\n") == 1 and "was made without texts" in complaint


def test_single_files_are_not_added_to_images_and_texts(home):
    image = sorted((home / "photos").glob("*.png"))[0]
    with (
        bt.store.open(home / "c.bittern") as collection,
        pytest.raises(bt.errors.InputError, match="holds images and texts"),
    ):
        add_files(collection, [image])


def test_words_find_an_image_that_sync_added(home):
    shutil.copy(home / "photos" / read(home / "photos")[0][0], home / "photos" / "new.png")
    write(home / "photos", [*read(home / "photos"), ("new.png", "seven yellow rings")])
    synced(home)
    with bt.store.open(home / "c.bittern", read_only=True) as collection:
        found = search_by_text(collection, "seven yellow rings", k=3 * N, to="text")
    texts = [known["text"] for known in found.metadata]
    assert found.values[texts.index("seven yellow rings")] == 0
