"""``bittern index`` and ``bittern search``: collections from pictures and vectors."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

import bittern as bt
from bittern import collecting, searching
from bittern.cli import main

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 40), "blue": (30, 40, 210)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve pictures of each colour, with some noise."""
    root, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (root / name).mkdir()
        for i in range(12):
            pixels = np.clip(np.array(colour) + rng.normal(0, 25, (24, 32, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{i:02}.png")
    return root


@pytest.fixture(scope="module")
def place(folder, tmp_path_factory):
    made = str(tmp_path_factory.mktemp("collections") / "photos.bittern")
    plan = collecting.Plan(source=folder, features="rgb-moments", hasher="itq", n_bits=16)
    assert "36 items of 16 bits" in collecting.create(made, plan)
    return made


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command in this process: its exit code, what it printed, what it complained of."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["bittern", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()

    return call


def test_a_picture_finds_pictures_of_its_colour(place, folder):
    answer = searching.ask(place, searching.Question(images=(folder / "red/03.png",), k=10))
    assert answer.values[0] == 0 and sorted(answer.values) == answer.values.tolist()
    assert [known["label"] for known in answer.metadata] == ["red"] * 10
    assert str(folder / "red/03.png") in [known["path"] for known in answer.metadata]


def test_an_item_of_the_collection_can_be_the_query(place):
    answer = searching.ask(place, searching.Question(row=0, k=3))
    with bt.store.open(place, read_only=True) as collection:
        hits = collection.search(collection.get([0]).codes, 3)
    assert answer.ids.tolist() == hits[0][0].tolist()


def test_a_condition_holds_inside_the_search(place, folder):
    question = searching.Question(images=(folder / "red/03.png",), k=5, where="label <> 'red'")
    answer = searching.ask(place, question)
    assert len(answer) == 5 and all(known["label"] != "red" for known in answer.metadata)


def test_a_radius_gives_all_that_are_near(place, folder):
    question = searching.Question(images=(folder / "red/03.png",), radius=16)
    assert len(searching.ask(place, question)) == 36
    near = searching.ask(place, searching.Question(images=(folder / "red/03.png",), radius=1))
    assert (near.values <= 1).all() and 0 < len(near) < 36


def test_examples_for_and_against_are_ranked_together(place, folder):
    images = (folder / "red/00.png", folder / "green/00.png")
    both = searching.ask(place, searching.Question(images=images, k=24))
    assert not both.is_distance and (np.diff(both.values) <= 0).all()
    assert {known["label"] for known in both.metadata} == {"red", "green"}
    against = searching.Question(images=images, unlike=(folder / "green/01.png",), k=6)
    assert [known["label"] for known in searching.ask(place, against).metadata] == ["red"] * 6


def test_a_montage_shows_every_answer(place, folder, tmp_path):
    answer = searching.ask(place, searching.Question(images=(folder / "blue/03.png",), k=7))
    searching.draw_montage(answer, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape[1] > pixels.shape[0] > 200
    bluish = (pixels[..., 2] > 150) & (pixels[..., 0] < 120)
    assert bluish.sum() > 7 * 24 * 32 * 0.8


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


def test_items_are_added_and_removed(folder, tmp_path):
    made = str(tmp_path / "photos.bittern")
    plan = collecting.Plan(source=folder / "red", features="rgb-moments", n_bits=8)
    collecting.create(made, plan)
    assert collecting.add_to(made, folder / "blue").endswith("12 items added, 24 in all.")
    assert collecting.remove_from(made, [0, 1], None).endswith("2 items removed, 22 left.")
    assert collecting.remove_from(made, None, "path LIKE '%blue%'").endswith("10 left.")
    assert [path.name for path in tmp_path.iterdir()] == ["photos.bittern"]


def test_vectors_make_a_collection_too(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    vectors = rng.standard_normal((90, 6)) + 5 * np.eye(6)[labels]
    np.savez(tmp_path / "some.npz", vectors=vectors, labels=labels)
    made = str(tmp_path / "v.bittern")
    collecting.create(made, collecting.Plan(source=tmp_path / "some.npz", hasher="sdh", n_bits=12))
    np.save(tmp_path / "queries.npy", vectors[:4])
    question = searching.Question(row=2, vectors=tmp_path / "queries.npy", k=5)
    answer = searching.ask(made, question)
    assert [known["label"] for known in answer.metadata] == [labels[2]] * 5
    with pytest.raises(bt.InputError, match="has 4 rows, counted from 0; there is no row 4"):
        searching.ask(made, searching.Question(row=4, vectors=tmp_path / "queries.npy"))
    with pytest.raises(bt.InputError, match="cannot be searched by pictures"):
        searching.ask(made, searching.Question(images=(tmp_path / "x.png",)))


def test_a_failed_creation_leaves_nothing(folder, tmp_path):
    made = str(tmp_path / "photos.bittern")
    plan = collecting.Plan(source=folder / "red", features="rgb-moments", hasher="sdh")
    with pytest.raises(bt.InputError, match="sdh learns from labels"):
        collecting.create(made, plan)
    assert not any(path.name.startswith("photos.bittern.new") for path in tmp_path.iterdir())
    assert not (tmp_path / "photos.bittern").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["index", "create", "x.bittern", "--from", "nowhere"], "nowhere: no such file or folder"),
        (["index", "create", "x.bittern", "--from", ".", "--hasher", "ikt"], "did you mean 'itq'"),
        (["index", "info", "nowhere.bittern"], "nowhere.bittern"),
        (["search", "nowhere.bittern"], "give --image, once or more, or --row"),
        (["search", "x", "--row", "1", "--unlike", "a.png"], "--unlike goes with --image"),
    ],
)
def test_bad_commands_are_refused_in_one_sentence(arguments, says, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2 and says in err, err
    assert len(err.strip().splitlines()) == 1 and not out
