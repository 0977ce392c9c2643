"""``bittern index`` and ``bittern search``: collections from images and vectors."""

import contextlib
import json
import signal
import subprocess
import sys
import textwrap

import faiss
import numpy as np
import pytest
from PIL import Image
from processes import seconds

import bittern as bt
from bittern.features import FEATURES
from bittern.hashing import HASHERS
from bittern.store import building, syncing
from bittern.store.montage import draw_montage
from bittern.store.queries import Matches, search_by_images, search_by_row

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (30, 40, 210)}


def build(place, source, *, features=None, hasher="itq", n_bits=16):
    recipe = bt.store.Recipe(
        HASHERS[hasher](n_bits=n_bits), None if features is None else FEATURES[features]()
    )
    return building.build_collection(str(place), source, recipe)


def ask(place, *images, row=None, **options):
    with bt.store.open(place, read_only=True) as collection:
        if images:
            return search_by_images(collection, images, **options)
        return search_by_row(collection, row, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve images of each colour, with some noise."""
    root, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (root / name).mkdir()
        for i in range(12):
            pixels = np.clip(np.array(colour) + rng.normal(0, 25, (24, 32, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{i:02}.png")
    return root


@pytest.fixture(scope="module")
def place(folder, tmp_path_factory):
    made = str(tmp_path_factory.mktemp("collections") / "photos.bittern")
    assert build(made, folder, features="rgb-moments")[:4] == (36, 0, 36, 16)
    return made


def test_an_image_finds_images_of_its_colour(place, folder):
    answer = ask(place, folder / "red/03.png", k=10)
    assert answer.values[0] == 0 and sorted(answer.values) == answer.values.tolist()
    assert [known["label"] for known in answer.metadata] == ["red"] * 10
    assert folder / "red/03.png" in answer.files


def test_an_item_of_the_collection_can_be_the_query(place):
    answer = ask(place, row=0, k=3)
    with bt.store.open(place, read_only=True) as collection:
        hits = collection.search(collection.get([0]).codes, 3)
    assert answer.ids.tolist() == hits[0][0].tolist()


def test_a_condition_holds_inside_the_search(place, folder):
    answer = ask(place, folder / "red/03.png", k=5, where="label <> 'red'")
    assert len(answer) == 5 and all(known["label"] != "red" for known in answer.metadata)


def test_a_radius_gives_all_that_are_near(place, folder):
    assert len(ask(place, folder / "red/03.png", radius=16)) == 36
    near = ask(place, folder / "red/03.png", radius=1)
    assert (near.values <= 1).all() and 0 < len(near) < 36


def test_examples_for_and_against_are_ranked_together(place, folder):
    images = (folder / "red/00.png", folder / "green/00.png")
    both = ask(place, *images, k=24)
    assert not both.is_distance and (np.diff(both.values) <= 0).all()
    assert {known["label"] for known in both.metadata} == {"red", "green"}
    against = ask(place, *images, unlike=[folder / "green/01.png"], k=6)
    assert [known["label"] for known in against.metadata] == ["red"] * 6
    with pytest.raises(bt.InputError, match="radius is for one query"):
        ask(place, *images, radius=3)


def test_a_montage_shows_every_answer(place, folder, tmp_path):
    draw_montage(ask(place, folder / "blue/03.png", k=7), tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape[1] > pixels.shape[0] > 200
    bluish = (pixels[..., 2] > 150) & (pixels[..., 0] < 120)
    assert bluish.sum() > 7 * 24 * 32 * 0.8


def test_a_montage_frames_ties_and_has_a_title(folder, tmp_path):
    known = [{"path": str(folder / f"red/0{i}.png")} for i in range(4)]
    found = Matches(np.arange(4), np.array([1, 3, 3, 4]), True, known)
    blue = np.array([0x3B, 0x6F, 0xB6])
    heights = []
    for title in ("", "a red ball " * 20):
        draw_montage(found, tmp_path / "sheet.png", title=title)
        pixels = np.asarray(Image.open(tmp_path / "sheet.png"))
        across = (pixels == blue).all(axis=2).sum(axis=0)  # frame pixels in each column
        step = pixels.shape[1] // 4
        framed = [across[i * step + 20 : (i + 1) * step - 20].min() > 0 for i in range(4)]
        assert framed == [False, True, True, False]
        heights.append(pixels.shape[0])
    assert heights[1] > heights[0]
    assert (pixels[: heights[1] - heights[0]] < 100).any()  # letters
    similar = Matches(np.arange(4), np.array([0.5, 0.5, 0.4, 0.4]), False, known)
    draw_montage(similar, tmp_path / "sheet.png")
    assert not (np.asarray(Image.open(tmp_path / "sheet.png")) == blue).all(axis=2).any()


def test_the_commands_do_the_same(place, folder, tmp_path, run):
    image = folder / "red/03.png"
    code, out, err = run("search", place, "--image", image, "-k", 3, "--format", "json")
    assert code == 0, err
    assert [item["label"] for item in json.loads(out)] == ["red"] * 3
    code, out, _ = run("index", "info", place)
    assert code == 0 and "rgb-moments" in out and "itq" in out
    code, _, err = run("index", "export", place, "-o", tmp_path / "codes.npy")
    assert code == 0, err
    assert np.load(tmp_path / "codes.npy").shape == (36, 2)


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_faiss_finds_the_same_in_an_exported_collection(tmp_path, run, bitorder):
    codes = bt.Codes.from_bits(np.random.default_rng(0).random((40, 24)) < 0.5)
    place, ids = tmp_path / "a.bittern", np.random.default_rng(1).permutation(40) + 100
    with bt.store.create(place, 24) as collection:
        collection.add(codes, ids=ids)
        ours = collection.search(codes[:6], 40)
    out = tmp_path / "a.faiss"
    code, said, err = run("index", "export", place, "-o", out, "--bitorder", bitorder)
    assert code == 0, err
    assert f"40 items with their ids; search it with Codes.to_packed('{bitorder}')." in said
    theirs = faiss.read_index_binary(str(out))
    distances, found = theirs.search(codes[:6].to_packed(bitorder), 40)
    np.testing.assert_array_equal(distances, ours.distances)
    for i, d, wanted in zip(found.tolist(), distances.tolist(), ours.to_lists(), strict=True):
        assert dict(zip(i, d, strict=True)) == dict(wanted)

    out = tmp_path / "a.npy"
    code, said, err = run("index", "export", place, "-o", out, "--bitorder", bitorder)
    assert code == 0 and "lacks the ids, which are not 0, 1, 2" in err
    assert f"bitorder='{bitorder}'" in said
    np.testing.assert_array_equal(
        np.load(out), np.packbits(codes.to_bits(), axis=1, bitorder=bitorder)
    )
    out = tmp_path / "a.parquet"
    code, _, err = run("index", "export", place, "-o", out, "--bitorder", bitorder)
    assert code == 2 and "--bitorder is for bytes; a .parquet file has words" in err
    assert not out.exists()


def test_items_are_added_and_removed(folder, tmp_path, run):
    made = str(tmp_path / "photos.bittern")
    settings = ["--features", "rgb-moments", "--bits", 8]
    code, out, err = run("index", "create", made, "--from", folder / "red", *settings)
    assert code == 0 and out.endswith("12 items of 8 bits; itq was fitted on 12 of them.\n"), err
    _, out, err = run("index", "add", made, "--from", folder / "blue")
    assert out.endswith("12 items added, 24 in total.\n"), err
    _, out, _ = run("index", "remove", made, "--id", 0, "--id", 1)
    assert out.endswith("2 items removed, 22 left.\n")
    _, out, _ = run("index", "remove", made, "--where", "path LIKE '%blue%'")
    assert out.endswith("10 left.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["photos.bittern"]


def test_vectors_make_a_collection_too(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    vectors = rng.standard_normal((90, 6)) + 5 * np.eye(6)[labels]
    np.savez(tmp_path / "some.npz", vectors=vectors, labels=labels)
    made = str(tmp_path / "v.bittern")
    build(made, tmp_path / "some.npz", hasher="sdh", n_bits=12)
    np.save(tmp_path / "queries.npy", vectors[:4])
    answer = ask(made, row=2, vectors=tmp_path / "queries.npy", k=5)
    assert [known["label"] for known in answer.metadata] == [labels[2]] * 5
    with pytest.raises(bt.InputError, match="has 4 rows, counted from 0; there is no row 4"):
        ask(made, row=4, vectors=tmp_path / "queries.npy")
    with pytest.raises(bt.InputError, match="cannot be searched by images"):
        ask(made, tmp_path / "x.png")


def test_a_failed_creation_leaves_nothing(folder, tmp_path):
    made = str(tmp_path / "photos.bittern")
    with pytest.raises(bt.InputError, match="sdh learns from labels"):
        build(made, folder / "red", features="rgb-moments", hasher="sdh")
    assert not any(path.name.startswith("photos.bittern.new") for path in tmp_path.iterdir())
    assert not (tmp_path / "photos.bittern").exists()


def test_a_recipe_is_not_changed_and_must_suit_the_source(folder, tmp_path):
    place = str(tmp_path / "photos.bittern")
    recipe = bt.store.Recipe(HASHERS["itq"](n_bits=8), FEATURES["rgb-moments"]())
    building.build_collection(place, folder, recipe)
    with pytest.raises(bt.NotFittedError):
        recipe.hasher.encode(np.zeros((1, 6)))
    with pytest.raises(bt.InputError, match="the recipe needs a hasher"):
        building.build_collection(place, folder, bt.store.Recipe())
    with pytest.raises(bt.InputError, match="images need a feature in the recipe"):
        build(tmp_path / "other.bittern", folder)
    with (
        bt.store.open(place, read_only=True) as photos,
        pytest.raises(bt.InputError, match="needs at least one image"),
    ):
        search_by_images(photos, [])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["index", "create", "x.bittern", "--from", "nowhere"], "nowhere: no such file or folder"),
        (["index", "create", "x.bittern", "--from", ".", "--hasher", "ikt"], "did you mean 'itq'"),
        (["index", "info", "nowhere.bittern"], "nowhere.bittern"),
        (["search", "nowhere.bittern"], "give --text, --row, or one or more --image"),
        (["search", "x", "--row", "1", "--unlike", "a.png"], "--unlike needs --image"),
    ],
)
def test_bad_commands_are_refused_in_one_sentence(arguments, says, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2 and says in err, err
    assert len(err.strip().splitlines()) == 1 and not out


# The command itself, with small batches, which says when each is stored.
SLOW_COMMAND = """
    import signal, time
    from bittern.cli import main
    from bittern.store import building, syncing

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by jobs in the background
    building.BATCH = 10

    class Bar:
        def __init__(self, what): self.what = what
        def __enter__(self): return self
        def __exit__(self, *_): pass
        def __call__(self, done, total):
            print(self.what, done, flush=True)
            time.sleep(0.2)

    building.Bar = Bar
    main()
"""


@contextlib.contextmanager
def slow_command(*arguments):
    command = [sys.executable, "-c", textwrap.dedent(SLOW_COMMAND), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def contents(place):
    with bt.store.open(place, read_only=True) as collection:
        items = collection.get(collection.ids)
        everything = collection.search(items.codes, len(items)).to_lists()
        return items.ids.tolist(), items.codes.words.tolist(), items.metadata, everything


def stopped_by(sent, after, made, folder):
    """The command, sent a signal when it has stored so much; its exit code and what it says."""
    settings = ["--features", "rgb-moments", "--bits", 16]
    with slow_command("index", "create", made, "--from", folder, *settings) as process:
        while process.stdout.readline() != f"storing {after}\n":
            assert process.poll() is None
        process.send_signal(sent)
        _, said = process.communicate(timeout=seconds(60))
    return process.returncode, said


def test_a_creation_that_was_stopped_or_killed_goes_on_and_ends_the_same(place, folder, tmp_path):
    made = str(tmp_path / "photos.bittern")
    assert stopped_by(signal.SIGINT, 10, made, folder) == (
        130,
        "bittern: stopped; finished work is kept. Run the same command again to continue.\n",
    )
    assert stopped_by(signal.SIGKILL, 30, made, folder) == (-signal.SIGKILL, "")
    with bt.store.open(made, read_only=True, drafts=True) as draft:
        assert len(draft) == 30
    with pytest.raises(bt.FileError, match="is an unfinished draft; repeat the command"):
        ask(made, row=0)
    with pytest.raises(bt.InputError, match="unfinished draft with --hasher itq --bits 16; repeat"):
        build(made, folder, features="rgb-moments", hasher="lsh", n_bits=8)
    assert build(made, folder, features="rgb-moments")[:4] == (36, 0, 36, 16)
    assert contents(made) == contents(place)
    assert [path.name for path in tmp_path.iterdir()] == ["photos.bittern"]


def test_what_was_described_and_stored_is_not_done_again(folder, tmp_path, monkeypatch):
    made = str(tmp_path / "photos.bittern")
    monkeypatch.setattr(building, "BATCH", 10)
    stored = []

    def store_some(self, vectors, ids, metadata):
        stored.append(ids.tolist())
        if len(stored) == 3:
            raise KeyboardInterrupt
        return upsert(self, vectors, ids, metadata)

    upsert = bt.store.Collection.upsert
    monkeypatch.setattr(bt.store.Collection, "upsert", store_some)
    with pytest.raises(KeyboardInterrupt, match="Run the same command again to continue"):
        build(made, folder, features="rgb-moments")
    monkeypatch.setattr(bt.features.FEATURES["rgb-moments"], "transform", None)
    monkeypatch.setattr(bt.hashing.ITQ, "fit", None)
    build(made, folder, features="rgb-moments")
    assert [ids[0] for ids in stored] == [0, 10, 20, 20, 30]


def test_a_source_that_changed_is_not_gone_on_with(tmp_path, monkeypatch):
    source, made = tmp_path / "some.npy", str(tmp_path / "v.bittern")
    np.save(source, np.random.default_rng(0).standard_normal((50, 8)))
    with monkeypatch.context() as patch:
        patch.setattr(bt.store.Collection, "finish", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build(made, source)
    np.save(source, np.random.default_rng(1).standard_normal((50, 8)))
    with pytest.raises(bt.InputError, match=r"unfinished draft, and .*some\.npy has changed since"):
        build(made, source)
    np.save(source, np.random.default_rng(0).standard_normal((50, 8)))
    build(made, source)
    with pytest.raises(bt.InputError, match="exists already; add to it"):
        build(made, source)


def add(place, source):
    with bt.store.open(place) as collection:
        return syncing.add_from(collection, source), len(collection)


def fail_at(call, patch):
    """Let Recipe.encode fail from this call on."""
    encode, calls = bt.store.Recipe.encode, []

    def some(self, things, name, **options):
        calls.append(name)
        return encode(self, things, name, **options) if len(calls) < call else 1 / 0

    patch.setattr(bt.store.Recipe, "encode", some)


def test_adding_is_all_or_nothing(folder, tmp_path, monkeypatch):
    made, vectors = str(tmp_path / "photos.bittern"), tmp_path / "v.npy"
    np.save(vectors, np.random.default_rng(0).standard_normal((12, 12)))
    build(made, folder / "blue", features="rgb-moments", n_bits=8)
    monkeypatch.setattr(building, "BATCH", 5)
    for source, call, total in ((folder / "red", 1, 24), (vectors, 3, 36)):
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            fail_at(call, patch)
            add(made, source)
        assert add(made, source) == (12, total)
    assert add(made, folder / "red") == (0, 36)  # no image is there twice
    assert {path.name for path in tmp_path.iterdir()} == {"photos.bittern", "v.npy"}


def test_features_that_learn_are_kept_with_what_they_learned(tmp_path):
    (tmp_path / "images").mkdir()
    rng = np.random.default_rng(0)
    for i in range(20):
        pixels = rng.integers(0, 255, (160, 160, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"images/{i:02}.png")
    made = str(tmp_path / "words.bittern")
    build(made, tmp_path / "images", features="visual-words", n_bits=8)
    assert ask(made, tmp_path / "images/07.png", k=1).values.tolist() == [0]
