"""``bittern fit`` and ``encode``, and the files that other commands take from them."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import bittern as bt
from bittern import inputs
from bittern.hashing import HASHERS
from bittern.hashing.crossmodal import CROSSMODAL

PAGE = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()
N, DIM = 120, 10


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with vectors of three classes, in several files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, N)
    vectors = (rng.standard_normal((N, DIM)) + 4 * np.eye(DIM)[labels]).astype(np.float32)
    names = np.array([f"item {i}" for i in range(N)])
    np.save("plain.npy", vectors)
    np.save("labels.npy", labels)
    np.savez("known.npz", vectors=vectors, labels=labels, ids=np.arange(N) + 500, title=names)
    np.savez("two.npz", gist=vectors, hsv=vectors[:, :4], labels=labels, class_names=list("abc"))
    tags = scipy.sparse.csr_array(np.eye(3)[labels])
    scipy.sparse.save_npz("tags.npz", tags)
    scipy.sparse.save_npz("texts.npz", scipy.sparse.csr_array(np.eye(3)[labels].repeat(3, axis=1)))
    return tmp_path


def vectors_and_labels():
    return np.load("plain.npy"), np.load("labels.npy")


def test_the_chain_of_the_page_runs_as_it_is_typed(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (python,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    chain, _ = re.findall(r"^```bash\n(bittern.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(python, {})
    said = []
    for line in chain.splitlines():
        code, out, err = run(*shlex.split(line)[1:])
        assert code == 0, f"{line}: {err}"
        said.append(out)
    fitted, _, encoded, scores, created, by_vector, by_code, _ = said
    assert fitted == "model.npz: sdh of 32 bits, fitted on 800 rows, with their labels.\n"
    assert encoded == "codes.npz: 797 codes of 32 bits, with labels, ids.\n"
    assert float(re.search(r"^ap +(0\.\d+)", scores, re.MULTILINE)[1]) > 0.9
    assert created == "digits.bittern: 797 items of 32 bits; model.npz encoded them.\n"
    assert by_vector == by_code and len(by_vector.splitlines()) == 4
    exported = np.load("exported.npz")
    np.testing.assert_array_equal(exported["ids"], np.arange(1000, 1797))
    np.testing.assert_array_equal(exported["labels"], np.load("database.npz")["labels"])
    assert bt.Codes.load("exported.npz") == bt.Codes.load("codes.npz")


def test_images_and_texts_chain_as_on_the_page(here, run):
    np.save("images.npy", np.load("plain.npy"))
    Path("labels.txt").write_text("\n".join(map(str, np.load("labels.npy"))))
    _, chain = re.findall(r"^```bash\n(bittern.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in chain.replace("--bits 32", "--bits 3").splitlines():
        code, _, err = run(*shlex.split(line)[1:])
        assert code == 0, f"{line}: {err}"
    model = bt.hashing.load("pairs.npz")
    assert bt.Codes.load("image-codes.npz") == model.encode(images=np.load("images.npy"))
    texts = scipy.sparse.load_npz("texts.npz")
    assert bt.Codes.load("text-codes.npz") == model.encode(texts=texts)
    for option, says in (("--vectors", "give --images or --texts"), ("--images", "rows of 4 n")):
        code, _, err = run("encode", "pairs.npz", option, "two.npz", "--key", "hsv", "-o", "x.npz")
        assert code == 2 and says in err, err


def test_fit_gives_the_model_that_python_gives(here, run):
    X, y = vectors_and_labels()
    options = ["--bits", 8, "--seed", 3, "--set", "n_iter=7"]
    assert run("fit", "--vectors", "plain.npy", *options, "-o", "m.npz")[0] == 0
    same = bt.hashing.ITQ(n_bits=8, n_iter=7, random_state=3).fit(X)
    assert bt.hashing.load("m.npz").encode(X) == same.encode(X)
    other = bt.hashing.ITQ(n_bits=8, n_iter=7, random_state=4).fit(X)
    assert other.encode(X) != same.encode(X)  # not vacuous: the seed counts
    for given in (["--labels", "labels.npy"], ["--tags", "tags.npz"]):
        words = ["fit", "--vectors", "plain.npy", *given, "--hasher", "sdh", "--bits", 8]
        code, out, err = run(*words, "--force", "-o", "m.npz")
        assert code == 0 and f"with their {given[0][2:]}" in out, err
    by_tags = bt.hashing.SDH(n_bits=8, random_state=0).fit(X, np.eye(3)[y])
    assert bt.hashing.load("m.npz").encode(X) == by_tags.encode(X)


def test_a_sample_is_drawn_and_unused_labels_are_named(here, run):
    words = ["fit", "--vectors", "known.npz", "--fit-sample", 50, "--bits", 4, "-o", "m.npz"]
    code, out, _ = run(*words)
    assert code == 0
    assert out == "m.npz: itq of 4 bits, fitted on 50 rows. itq does not use labels.\n"
    X, _ = vectors_and_labels()
    rows = np.sort(np.random.default_rng(0).choice(N, 50, replace=False))
    same = bt.hashing.ITQ(n_bits=4, random_state=0).fit(X[rows])
    assert bt.hashing.load("m.npz").encode(X) == same.encode(X)


def fitted(run, *options):
    code, _, err = run("fit", "--vectors", "plain.npy", "--bits", 8, *options, "-o", "m.npz")
    assert code == 0, err
    return bt.hashing.load("m.npz")


def test_encode_reads_blocks_and_keeps_what_the_file_knows(here, run, monkeypatch):
    model, (X, y) = fitted(run), vectors_and_labels()
    monkeypatch.setattr("bittern.hashing.base.MEMORY", 4 * (DIM + 4 * 8) * 32)  # 32 rows
    taken, get = [], inputs.VectorFile.__getitem__

    def note(self, rows):
        taken.append(rows)
        return get(self, rows)

    monkeypatch.setattr(inputs.VectorFile, "__getitem__", note)
    assert run("encode", "m.npz", "--vectors", "known.npz", "-o", "c.npz")[0] == 0
    assert [(rows.start, rows.stop) for rows in taken] == [(0, 32), (32, 64), (64, 96), (96, N)]
    assert bt.Codes.load("c.npz") == model.encode(X)
    kept = np.load("c.npz")
    np.testing.assert_array_equal(kept["labels"], y)
    assert kept["ids"][0] == 500 and kept["title"][7] == "item 7"
    code, out, _ = run("encode", "m.npz", "--vectors", "known.npz", "-o", "c.npy")
    assert code == 0 and out == "c.npy: 120 codes of 8 bits.\n"
    assert bt.Codes.load("c.npy") == model.encode(X)


def test_a_bad_row_is_named_by_its_number_in_the_file(here, run, monkeypatch):
    fitted(run)
    X, _ = vectors_and_labels()
    X[77, 3] = np.nan
    np.save("bad.npy", X)
    monkeypatch.setattr("bittern.hashing.base.MEMORY", 4 * (DIM + 4 * 8) * 32)
    code, _, err = run("encode", "m.npz", "--vectors", "bad.npy", "-o", "c.npz")
    assert (code, err) == (2, "bittern: bad.npy: row 77 has NaN or infinity.\n")
    assert not Path("c.npz").exists()
    code, _, err = run("fit", "--vectors", "bad.npy", "-o", "n.npz")
    assert (code, err) == (2, "bittern: bad.npy: row 77 has NaN or infinity.\n")


def test_ctrl_c_leaves_nothing(here, run, monkeypatch):
    fitted(run)
    before = sorted(path.name for path in here.iterdir())

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(inputs.VectorFile, "__getitem__", stop)
    code, _, err = run("encode", "m.npz", "--vectors", "plain.npy", "-o", "c.npz")
    assert (code, err) == (130, "bittern: encode: stopped; nothing was written.\n")
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr(bt.hashing.ITQ, "_fit", stop)
    code, _, err = run("fit", "--vectors", "plain.npy", "-o", "n.npz")
    assert (code, err) == (130, "bittern: fit: stopped; nothing was written.\n")

    def stop_late(self, X, targets):
        bt.hashing.LSH(n_bits=8).fit(X)
        self._keep(mean_=X[0], directions_=X[:8].T)
        raise KeyboardInterrupt

    monkeypatch.setattr(bt.hashing.ITQ, "_fit", stop_late)
    code, _, err = run("fit", "--vectors", "plain.npy", "-o", "n.npz")
    assert (code, err) == (130, "bittern: fit: stopped; nothing was written.\n")
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("fit -o m.npz", "m.npz: exists already; choose another name, or replace it with --force"),
        ("fit -o plain.npz", "give --vectors; or for a hasher of images and texts"),
        ("fit --vectors plain.npy -o x.bin", "a model is an .npz file"),
        ("fit --vectors plain.npy --hasher ikt -o x.npz", "did you mean 'itq'"),
        ("fit --vectors plain.npy --hasher sdh -o x.npz", "give --labels or --tags"),
        ("fit --vectors plain.npy --hasher cca-itq -o x.npz", "give --images and --texts"),
        ("fit --images plain.npy --texts texts.npz -o x.npz", "itq hashes vectors of one kind"),
        ("fit --vectors plain.npy --bits 0 -o x.npz", "--bits must be between 1 and 4096, got 0"),
        ("fit --vectors plain.npy --set n_itr=3 -o x.npz", "did you mean 'n_iter'"),
        ("fit --vectors plain.npy --set n_iter -o x.npz", "--set takes KEY=VALUE"),
        ("fit --vectors plain.npy --fit-sample 0 -o x.npz", "--fit-sample must be at least 1"),
        ("fit --vectors two.npz -o x.npz", "choose one, like --key 'gist'"),
        ("fit --vectors two.npz --key gits -o x.npz", "did you mean 'gist'"),
        ("fit --vectors known.npz --labels short.txt -o x.npz", "short.txt has 1 rows, but known"),
        ("fit --vectors nowhere.npy -o x.npz", "nowhere.npy: no such file"),
        ("fit --vectors known.npz --force -o known.npz", "known.npz: would be overwritten"),
        ("encode m.npz --vectors two.npz --key hsv -o x.npz", "has rows of 4 numbers, but itq"),
        ("encode m.npz --vectors m.npz -o x.npz", "m.npz: is a fitted model, not a file of"),
        ("encode known.npz --vectors plain.npy -o x.npz", "known.npz: is not a saved model"),
        ("encode m.npz --vectors plain.npy -o x.txt", "codes are saved as .npz or .npy"),
        ("encode m.npz --images plain.npy -o x.npz", "itq hashes vectors of one kind"),
        ("index create x --from plain.npy --hasher m.npz --bits 9", "m.npz: makes codes of 8 bits"),
        ("index create x --from two.npz", "choose one, like --key 'gist'"),
        ("search x --codes c.npz", "--vectors and --codes need --row"),
        ("search x --codes c.npz --vectors v.npy --row 1", "give --vectors or --codes, not both"),
        ("index export x -o x.txt", "must end in .parquet, .npy, .faiss or .npz"),
        ("advise --vectors two.npz", "choose one, like --key 'gist'"),
        ("advise --vectors plain.npy --labels a --tags b", "give --labels or --tags, not both"),
    ],
)
def test_what_is_wrong_is_one_sentence(words, says, here, run):
    bt.hashing.ITQ(n_bits=8).fit(np.load("plain.npy")).save("m.npz")
    Path("short.txt").write_text("cat\n")
    code, out, err = run(*shlex.split(words))
    assert code == 2 and says in err and not out, err
    assert len(err.strip().splitlines()) == 1 and not re.search(r"\by\b", err)
    assert not Path("x.npz").exists() and not Path("x").exists()


def metadata_of(place):
    with bt.store.open(place, read_only=True) as collection:
        items = collection.get(collection.ids)
        return items.ids.tolist(), items.metadata, items.codes


def test_a_collection_from_a_model_and_vectors_is_the_one_from_codes(here, run):
    model = fitted(run, "--hasher", "lsh")
    run("encode", "m.npz", "--vectors", "known.npz", "-o", "c.npz")
    for name, source in (("v", "known.npz"), ("c", "c.npz")):
        code, out, err = run("index", "create", name, "--from", source, "--hasher", "m.npz")
        assert (code, out) == (0, f"{name}: 120 items of 8 bits; m.npz encoded them.\n"), err
    ids, known, codes = metadata_of("v")
    assert metadata_of("c")[:2] == (ids, known) and metadata_of("c")[2] == codes
    X, y = vectors_and_labels()
    assert ids == list(range(500, 500 + N)) and codes == model.encode(X)
    assert known[7] == {"label": y[7], "title": "item 7"}
    code, out, err = run("search", "c", "--vectors", "plain.npy", "--row", 3, "--format", "json")
    assert code == 0 and 0 in [item["distance"] for item in json.loads(out)], err


def test_neighbours_by_the_vectors_are_a_ground_truth(here, run):
    model, (X, _) = fitted(run), vectors_and_labels()
    for name, rows in (("q", slice(20)), ("d", slice(20, None))):
        np.save(f"{name}.npy", X[rows])
        model.encode(X[rows]).save(f"{name}-codes.npz")
    files = ["q-codes.npz", "d-codes.npz", "--query-vectors", "q.npy", "--database-vectors"]
    seen = []
    for options in ([], ["--distance", "cosine"]):
        words = [*files, "d.npy", "--neighbours", 7, *options, "--metrics", "ap", "--format"]
        code, out, err = run("evaluate", *words, "json")
        assert code == 0, err
        a, b = X[:20].astype(float), X[20:].astype(float)
        if options:
            a, b = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (a, b))
        order = np.argsort(((a[:, None] - b) ** 2).sum(axis=2), axis=1)
        gains = np.zeros((20, N - 20), int)
        np.put_along_axis(gains, order[:, :7], 1, axis=1)
        truth = bt.Relevance.from_matrix(gains)
        mine = bt.evaluate(model.encode(X[:20]), model.encode(X[20:]), truth, ["ap"])["ap"].mean
        seen.append(mine)
        assert f"{mine:.6f}"[:7] in out, out
    assert seen[0] != seen[1]  # not vacuous: the distance counts
    for wrong, says in (
        (["plain.npy"], "--query-vectors needs --neighbours"),
        (["d.npy", "--neighbours", 7, "--query-labels", "l"], "give one ground truth"),
        (["two.npz", "--neighbours", 7], "choose one, like --key 'gist'"),
        (["d.npy", "--neighbours", 101], "--neighbours must be between 1 and 100, got 101"),
    ):
        code, _, err = run("evaluate", *files, *wrong)
        assert code == 2 and says in err and len(err.splitlines()) == 1, err


def test_codes_alone_make_a_collection_too(here, run):
    fitted(run)
    run("encode", "m.npz", "--vectors", "plain.npy", "-o", "c.npz")
    code, out, err = run("index", "create", "c", "--from", "c.npz")
    assert (code, out) == (0, "c: 120 items of 8 bits.\n"), err
    code, out, err = run("index", "add", "c", "--from", "c.npz")
    assert (code, out) == (0, "c: 120 items added, 240 in total.\n"), err
    code, out, err = run("search", "c", "--codes", "c.npz", "--row", 5, "--radius", 0)
    assert code == 0 and out.splitlines()[1].split() == ["5", "0"], err
    assert run("index", "export", "c.npz", "-o", "packed.npy")[0] == 0
    packed = np.load("packed.npy")
    assert bt.Codes.from_packed(packed, 8) == bt.Codes.load("c.npz")
    code, _, err = run("index", "create", "d", "--from", "c.npz", "--hasher", "itq")
    assert code == 2 and "c.npz: holds codes; leave out --hasher itq" in err


def test_features_that_were_extracted_make_a_collection(here, run):
    words = ["index", "create", "f", "--from", "two.npz", "--key", "gist", "--bits", 8]
    code, out, err = run(*words, "--hasher", "sdh")
    assert (code, out) == (0, "f: 120 items of 8 bits; sdh was fitted on 120 of them.\n"), err
    _, known, _ = metadata_of("f")
    assert known[0] == {"label": "abc"[np.load("labels.npy")[0]]}


def test_a_draft_goes_on_with_its_own_model_only(here, run, monkeypatch):
    fitted(run)
    create = ["index", "create", "x", "--from", "plain.npy", "--hasher", "m.npz"]
    with monkeypatch.context() as patch:
        patch.setattr(bt.store.Collection, "finish", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(*create)
    bt.hashing.ITQ(n_bits=8, random_state=9).fit(np.load("plain.npy")).save("m.npz")
    code, _, err = run(*create)
    assert code == 2 and "has changed since or the model; delete the draft" in err
    fitted(run, "--force")
    assert run(*create)[0] == 0


def test_a_model_takes_no_feature_that_learns(here, run):
    fitted(run)
    Path("images").mkdir()
    words = ["index", "create", "x", "--from", "images", "--hasher", "m.npz"]
    code, _, err = run(*words, "--features", "visual-words")
    assert code == 2 and "--features visual-words would learn anew" in err


def test_the_help_names_every_hasher():
    from typer.testing import CliRunner

    from bittern.cli import app

    text = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).output
    listed = re.findall(r"[a-z-]+", text)
    assert set(listed) >= {*HASHERS, *CROSSMODAL}


def test_booleans_are_codes(here, run):
    bits = np.random.default_rng(1).random((N, 12)) < 0.5
    np.save("bits.npy", bits)
    np.savez("bits.npz", codes=bits, labels=np.load("labels.npy"))
    np.savez("both.npz", vectors=np.load("plain.npy"), bits=bits)
    for source in ("bits.npy", "bits.npz"):
        code, out, err = run("index", "create", f"{source}.bittern", "--from", source)
        assert (code, out) == (0, f"{source}.bittern: 120 items of 12 bits.\n"), err
        with bt.store.open(f"{source}.bittern") as made:
            assert made.get(made.ids).codes == bt.Codes.from_bits(bits)
    assert run("index", "add", "bits.npy.bittern", "--from", "bits.npy")[0] == 0
    code, _, err = run("index", "create", "x.bittern", "--from", "bits.npy", "--hasher", "itq")
    assert code == 2 and "holds codes; leave out --hasher itq" in err and err.count("\n") == 1
    code, out, err = run("index", "create", "v.bittern", "--from", "both.npz", "--bits", 6)
    assert code == 0 and "itq was fitted on 120" in out, err
    np.save("numbers.npy", bits.astype(np.float32))  # to be hashed
    code, out, err = run("index", "create", "n.bittern", "--from", "numbers.npy", "--bits", 6)
    assert code == 0 and "itq was fitted on 120" in out, err
