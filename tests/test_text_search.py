"""Words find images and images find words: ``bittern index create --texts`` and ``search``."""

import json

import numpy as np
import pytest

import bittern as bt
from bittern.data.export import write_folder
from bittern.features import FEATURES
from bittern.hashing.crossmodal import CCAITQ, CROSSMODAL
from bittern.store import building
from bittern.store.queries import search_by_images, search_by_row, search_by_text
from bittern.store.sources import CaptionedItems, VectorItems

pytest.importorskip("duckdb")
N = 60


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Sixty captioned images; two captions are taken away, and one has no image."""
    root = tmp_path_factory.mktemp("captioned") / "photos"
    write_folder(bt.load("captions", n=N, side=32), root)
    lines = (root / "captions.csv").read_text().splitlines()
    (root / "captions.csv").write_text("\n".join([*lines[:-2], ",a purple ring"]))
    return root


@pytest.fixture(scope="module")
def place(photos, tmp_path_factory):
    made = str(tmp_path_factory.mktemp("collections") / "photos.bittern")
    assert build(made, photos)[:4] == (N + N - 2 + 1, 0, N - 2, 16)
    return made


def build(place, photos, hasher="cca-itq", texts="captions.csv", **options):
    recipe = building.make_recipe(hasher, 16, features="hsv-global", texts="bag-of-words")
    return building.build_collection(str(place), photos, recipe, texts=texts, **options)


def by_hand(place, photos, **query):
    """Ids and distances of all items of a kind, by the stored model but not by the search."""
    captions = [line.split(",", 1) for line in (photos / "captions.csv").read_text().splitlines()]
    said = {name: text.strip('"') for name, text in captions[1:]}
    names = sorted(path.name for path in photos.glob("*.png"))
    pairs = [name for name in names if name in said]
    images = FEATURES["hsv-global"]().transform([photos / name for name in names])
    bag = FEATURES["bag-of-words"]().fit([said[name] for name in pairs])
    there = np.isin(names, pairs)
    model = CROSSMODAL["cca-itq"](n_bits=16, random_state=0)
    model.fit(images[there], bag.transform([said[name] for name in pairs]))
    texts = [*(said[name] for name in pairs), said[""]]
    codes = {
        "image": model.encode(images=images),
        "text": model.encode(texts=bag.transform(texts)),
    }
    if "text" in query:
        one = model.encode(texts=bag.transform([query["text"]]))
    else:
        one = model.encode(images=FEATURES["hsv-global"]().transform([query["image"]]))
    return {
        to: (one.to_bits() != known.to_bits()).sum(axis=1).tolist() for to, known in codes.items()
    }


def test_words_find_images(place, photos):
    with bt.store.open(place, read_only=True) as opened:
        found = search_by_text(opened, "two red circles", k=N)
    expected = by_hand(place, photos, text="two red circles")["image"]
    assert len(found) == N and {known["modality"] for known in found.metadata} == {"image"}
    assert found.values.tolist() == sorted(expected)
    assert found.values.tolist() == [expected[i] for i in found.ids]
    assert len(set(expected)) > 3  # they are not all alike
    assert sorted(found.files) == sorted(photos.glob("*.png"))


def test_images_find_words(place, photos):
    with bt.store.open(place, read_only=True) as opened:
        found = search_by_images(opened, [photos / "00007.png"], to="text", k=N)
    expected = by_hand(place, photos, image=photos / "00007.png")["text"]
    assert found.values.tolist() == sorted(expected)
    assert {known["modality"] for known in found.metadata} == {"text"}
    alone = [known for known in found.metadata if "path" not in known]
    assert [known["text"] for known in alone] == ["a purple ring"]


def test_items_find_items_of_either_kind(place):
    with bt.store.open(place, read_only=True) as opened:
        images = search_by_row(opened, 5, k=3)
        texts = search_by_row(opened, 5, k=3, to="text")
        only = search_by_row(opened, 5, k=50, where="path LIKE '%0001%'")
    assert images.ids[0] < N <= texts.ids.min()
    assert images.values[0] == 0
    assert len(only) == 11 and all(known["modality"] == "image" for known in only.metadata)


def test_a_collection_opened_again_encodes_alike(place):
    with bt.store.open(place, read_only=True) as opened:
        recipe = opened.recipe
        assert recipe.names() == {
            "hasher": "cca-itq", "features": "hsv-global", "texts": "bag-of-words",
        }  # fmt: skip
        stored = opened.get([N]).metadata[0]
        code = recipe.encode([stored["text"]], "texts", modality="text")
        assert opened.get([N]).codes == code
        with pytest.raises(bt.InputError, match="this collection holds images and texts"):
            opened.search(["two red circles"], 3)
        with pytest.raises(bt.InputError, match="to must be one of 'image', 'text', got 'sound'"):
            search_by_text(opened, "red", to="sound")
        with pytest.raises(bt.InputError, match="must have at least one word"):
            search_by_text(opened, "  ")
        with pytest.raises(bt.InputError, match="no text of this collection has any word of 'qwe"):
            search_by_text(opened, "qwerty uiop")
        assert len(search_by_text(opened, "qwerty circles", k=3)) == 3


def test_the_commands_do_the_same(photos, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    create = ["index", "create", "p.bittern", "--from", photos, "--texts", "captions.csv"]
    code, out, err = run(*create, "--features", "hsv-global", "--bits", 16)
    assert code == 0, err
    assert out.endswith("p.bittern: 119 items of 16 bits; cca-itq was fitted on 58 pairs.\n")
    code, out, err = run(
        "search", "p.bittern", "--text", "a green star", "-k", 4, "--format", "json"
    )
    assert code == 0, err
    assert [item["modality"] for item in json.loads(out)] == ["image"] * 4
    image = photos / "00003.png"
    code, out, err = run("search", "p.bittern", "--image", image, "--to", "text", "-k", 3)
    assert code == 0, err
    assert len(out.splitlines()) == 4 and out.count("  text  ") == 3
    _, out, _ = run("index", "info", "p.bittern")
    assert "bag-of-words" in out
    code, out, err = run("index", "add", "p.bittern", "--from", photos, "--texts", "captions.csv")
    assert out.endswith("119 items added, 238 in total.\n"), err
    code, out, err = run("index", "add", "p.bittern", "--from", photos)
    assert out.endswith("60 items added, 298 in total.\n"), err
    sheet = tmp_path / "sheet.png"
    code, _, err = run("search", "p.bittern", "--text", "a ring", "-k", 2, "--montage", sheet)
    assert code == 0 and sheet.exists(), err


def test_a_creation_that_was_stopped_goes_on(photos, place, tmp_path, monkeypatch):
    made = str(tmp_path / "photos.bittern")
    monkeypatch.setattr(building, "BATCH", 25)
    upsert, stored = bt.store.Collection.upsert, []

    def store_some(self, things, ids, metadata):
        stored.append(ids.tolist())
        if len(stored) == 4:
            raise KeyboardInterrupt
        return upsert(self, things, ids, metadata)

    monkeypatch.setattr(bt.store.Collection, "upsert", store_some)
    with pytest.raises(KeyboardInterrupt, match="Run the same command again"):
        build(made, photos)
    monkeypatch.setattr(CROSSMODAL["cca-itq"], "fit", None)  # what was learned is kept
    with pytest.raises(bt.InputError, match=r"unfinished draft with --texts captions\.csv"):
        build(made, photos, texts=".txt")
    build(made, photos)
    assert [ids[0] for ids in stored] == [0, 25, 50, 75, 75, 100]
    with bt.store.open(made, read_only=True) as one, bt.store.open(place, read_only=True) as other:
        ids = one.ids
        assert one.get(ids).metadata == other.get(ids).metadata
        assert one.get(ids).codes == other.get(ids).codes


class Supervised(CCAITQ):
    """Needs targets, and can learn from single words; keeps what it was given."""

    needs_y = True

    def fit(self, images, texts, y=None, *, words=None):  # noqa: D102
        type(self).given = texts, y, words
        return super().fit(images, texts, y)


def test_without_classes_a_method_learns_from_shared_words():
    texts = ("a red circle", "two red stars", "a blue star", "a green box", "", "a stray text")
    items = CaptionedItems(VectorItems(np.eye(5) + 1, {}, None), texts)
    assert items.learnable.tolist() == [0, 1, 2, 3] and len(items) == 10
    recipe = bt.store.Recipe(Supervised(n_bits=2), None, FEATURES["bag-of-words"]())
    fitted = items.fitted(recipe, items.learnable)
    rows, y, words = Supervised.given
    stems = ["blue", "box", "circl", "green", "red", "star", "two"]
    assert fitted.texts.vocabulary_.tolist() == stems and rows.shape == (4, 7)
    assert not hasattr(recipe.texts, "vocabulary_")
    # Red and star are in two texts each.
    assert y.toarray().astype(int).tolist() == [[1, 0], [1, 1], [0, 1], [0, 0]]
    np.testing.assert_array_equal(words, np.eye(7)[[4, 5]])  # a word alone has all the weight
    labelled = CaptionedItems(VectorItems(np.eye(5) + 1, {}, np.array([0, 1, 1, 0, 0])), texts)
    labelled.fitted(recipe, labelled.learnable)
    assert Supervised.given[1].tolist() == [0, 1, 1, 0] and Supervised.given[2] is None


def test_without_a_pair_or_a_shared_word_nothing_can_be_learned():
    recipe = bt.store.Recipe(Supervised(n_bits=2), None, FEATURES["bag-of-words"]())
    images = VectorItems(np.eye(2), {}, None)
    with pytest.raises(bt.InputError, match="no image has a text to learn from"):
        CaptionedItems(images, ("", "")).fitted(recipe, np.array([], np.intp))
    with pytest.raises(bt.InputError, match="learns from words that texts share, but there are"):
        CaptionedItems(images, ("red", "blue")).fitted(recipe, np.arange(2))


def test_vectors_with_texts_make_a_collection_too(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "v.npy", rng.standard_normal((30, 6)))
    words = np.array(["red", "green", "blue"])[rng.integers(0, 3, (30, 2))]
    (tmp_path / "t.txt").write_text("\n".join(" ".join(pair) for pair in words))
    recipe = building.make_recipe("cvh", 2, texts="bag-of-words")
    made = str(tmp_path / "v.bittern")
    assert building.build_collection(made, tmp_path / "v.npy", recipe, texts="t.txt")[0] == 60
    with bt.store.open(made, read_only=True) as opened:
        assert len(search_by_text(opened, "red", k=40)) == 30
        found = search_by_row(opened, 3, vectors=tmp_path / "v.npy", k=1)
        assert found.values[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["index", "create", "x.bittern", "--from", ".", "--hasher", "cvh"],
            "cvh learns from images and texts",
        ),
        (
            ["index", "create", "x.bittern", "--from", ".", "--hasher", "itq", "--texts", "c.csv"],
            "itq takes images alone; with texts, choose one of cvh, ",
        ),
        (
            [
                "index",
                "create",
                "x.bittern",
                "--from",
                ".",
                "--texts",
                "c.csv",
                "--text-features",
                "gist",
            ],
            "texts must be a feature of texts",
        ),
        (
            ["search", "x.bittern", "--text", "a", "--row", "1"],
            "give --text, --row, or one or more",
        ),
    ],
)
def test_bad_commands_are_refused_in_one_sentence(arguments, says, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2 and says in err, err
    assert len(err.strip().splitlines()) == 1 and not out


def test_a_collection_without_texts_cannot_be_searched_by_one(tmp_path, run):
    made = tmp_path / "v.bittern"
    vectors = np.random.default_rng(0).standard_normal((20, 4))
    with bt.store.create(made, hasher=bt.hashing.LSH(8).fit(vectors)) as opened:
        opened.add(vectors)
    code, _, err = run("search", made, "--text", "a cat")
    assert code == 2 and "was made without texts" in err
    code, _, err = run("search", made, "--row", 1, "--to", "text")
    assert code == 2 and "does not hold both images and texts" in err
