"""What the command line says to mistakes: one sentence, in the words of the command line."""

import pickle
import sys

import numpy as np
import pytest
import torch

from bittern.cli import app, main
from bittern.cli.wording import find_command, in_command_words

# What belongs to Python, to NumPy or to scikit-learn, and never to a sentence for users.
FOREIGN = (
    "Relevance.",
    "Relevance:",
    "Collection:",
    "Codes:",
    "()",
    "sklearn",
    "expecting",
    "magic string",
    "Traceback",
    "array([",
    "...",
    "query_labels",
    "n_threads",
    "random_state",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("mistakes")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 384)).astype(np.float32)
    labels = np.arange(60) % 3
    arrays = {
        "x": X,
        "x3": X[:, :3],
        "flat": X[0],
        "none": X[:0],
        "nan": np.where(np.arange(384) == 5, np.nan, X),
        "deep": X.reshape(60, 8, 48),
        "zeros": np.zeros((60, 3)),
        "words": np.array([["a", "b"]]),
        "q": X[:10] > 0,
        "d": X > 0,
        "d16": X[:, :16] > 0,
        "ql": labels[:10],
        "dl": labels,
        "five": np.arange(5),
        "fractions": np.arange(60) / 7,
        "names": np.array(list("abc") * 20),
        "qt": np.eye(3)[labels[:10]],
        "tags": np.eye(3)[labels],
        "twos": 2 * np.eye(3)[labels],
        "wide": np.eye(60),
        "minus": -np.ones((10, 60), int),
        "half": np.full((10, 60), 0.5),
        "large": np.full((10, 60), 2000),
    }
    for name, array in arrays.items():
        np.save(here / f"{name}.npy", array)
    np.savez(here / "both.npz", queries=X[:10] > 0, database=X > 0)
    (here / "image.npy").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    (here / "page.npy").write_text("<!DOCTYPE html><html></html>")
    (here / "empty.npy").touch()
    (here / "pickle.npy").write_bytes(pickle.dumps({"a": 1}))
    (here / "head.npy").write_bytes(b"\x93NUMPY\x01")
    torch.save({"a": np.ones(3)}, here / "objects.pt")
    (here / "run.txt").write_text("a Q0 x 1 3.5 t\n")
    return here


@pytest.fixture(scope="module")
def made(folder):
    """A model and a collection."""
    from bittern.hashing import ITQ
    from bittern.store.building import build_collection
    from bittern.store.recipe import Recipe

    model = ITQ(n_bits=16, random_state=0).fit(np.load(folder / "x.npy"))
    model.save(folder / "model.npz")
    build_collection(folder / "c.bittern", folder / "x.npy", Recipe(model))


TRUTH = "--query-labels ql.npy --database-labels dl.npy"
MISTAKES = [
    # ground truth
    ("evaluate q.npy d.npy --query-labels wide.npy --database-labels dl.npy", "--query-tags"),
    ("evaluate q.npy d.npy --query-labels ql.npy --database-labels names.npy", "--database-labels"),
    ("evaluate q.npy d.npy --query-labels fractions.npy --database-labels dl.npy", "fractions.npy"),
    ("evaluate q.npy d.npy --query-tags ql.npy --database-tags tags.npy", "ql.npy: tags must be 2"),
    ("evaluate q.npy d.npy --query-tags twos.npy --database-tags tags.npy", "twos.npy: tags must"),
    (
        "evaluate q.npy d.npy --query-tags qt.npy --database-tags wide.npy",
        "--query-tags and --dat",
    ),
    ("evaluate q.npy d.npy --relevance minus.npy", "--relevance must be whole numbers"),
    ("evaluate q.npy d.npy --relevance half.npy", "--relevance must be whole numbers"),
    ("evaluate q.npy d.npy --relevance large.npy", "--relevance must be at most 900"),
    ("evaluate q.npy d.npy --relevance dl.npy", "must be 2-D"),
    ("evaluate q.npy d.npy", "give --query-labels"),
    ("evaluate q.npy d.npy --neighbours 3", "--neighbours needs --query-vectors"),
    (
        "evaluate q.npy d.npy --query-vectors deep.npy --database-vectors deep.npy --neighbours 3",
        "--query-vectors must be 2-D",
    ),
    (
        "evaluate q.npy d.npy --query-vectors x3.npy --database-vectors x.npy --neighbours 3",
        "x3.npy has vectors of 3 numbers",
    ),
    (
        "evaluate q.npy d.npy --query-vectors nan.npy --database-vectors x.npy --neighbours 3",
        "nan.npy: row 0 has NaN",
    ),
    (f"evaluate q.npy d.npy {TRUTH} --threads 0", "--threads must be at least 1"),
    # codes
    (f"evaluate x.npy x.npy {TRUTH}", "got float32 from"),
    (f"evaluate q.npy d16.npy {TRUTH}", "d16.npy of 16"),
    (f"evaluate words.npy d.npy {TRUTH}", "words.npy: codes must be bits"),
    (f"evaluate q.npy d.npy {TRUTH} --code-layout packed", "q.npy: packed bytes must be"),
    (f"evaluate q.npy d.npy {TRUTH} --signed --code-layout bits", "--signed or --code-layout"),
    # files
    (f"evaluate image.npy d.npy {TRUTH}", "image.npy: is a PNG image"),
    (f"evaluate page.npy d.npy {TRUTH}", "page.npy: is an HTML page"),
    (f"evaluate empty.npy d.npy {TRUTH}", "empty.npy: is empty"),
    (f"evaluate pickle.npy d.npy {TRUTH}", "pickle.npy: is a pickle"),
    (f"evaluate head.npy d.npy {TRUTH}", "head.npy: not a readable .npy"),
    (f"evaluate objects.pt d.npy {TRUTH}", "objects.pt: is a PyTorch file with more than tensors"),
    ("evaluate --run run.txt --qrels x.npy", "x.npy, line 1: the text must be UTF-8"),
    # vectors
    ("fit --vectors flat.npy -o m.npz", "flat.npy: no array is 2-D numbers"),
    ("fit --vectors nan.npy -o m.npz", "nan.npy: row 0 has NaN"),
    ("fit --vectors none.npy -o m.npz", "none.npy: has no vectors"),
    ("fit --vectors image.npy -o m.npz", "image.npy: is a PNG image"),
    ("fit --vectors x.npy --hasher sdh -o m.npz", "give --labels or --tags"),
    ("fit --vectors x.npy --hasher sdh --labels wide.npy -o m.npz", "--tags"),
    ("fit --vectors x.npy --hasher sdh --labels five.npy -o m.npz", "--labels: five.npy has 5"),
    ("fit --vectors x.npy --hasher sdh --tags twos.npy -o m.npz", "twos.npy: tags must be"),
    ("fit --vectors x.npy --set n_iter=many -o m.npz", "n_iter must be a whole number"),
    ("fit --vectors x.npy --bits 0 -o m.npz", "--bits must be between"),
    ("advise --vectors x.npy --bits 0", "--bits must be between 1 and 4096"),
    ("advise --vectors x.npy --random-state -1", "--random-state must be at least 0"),
    ("advise --vectors x.npy --splits 0", "--splits must be at least 1"),
    ("advise --vectors x.npy --budget -1", "--budget must be a number of seconds"),
    ("advise --vectors x.npy", "--vectors must have at least 200 rows"),
    # models and collections
    ("encode model.npz --vectors x3.npy -o o.npz", "x3.npy: has rows of 3 numbers"),
    ("encode both.npz --vectors x.npy -o o.npz", "both.npz: is not a saved"),
    (
        "encode image.npy --vectors x.npy -o o.npz",
        "image.npy: not a readable .npy or .npz file (it is a PNG image)",
    ),
    ("index add c.bittern --from x3.npy", "rows have 3 numbers, but itq was fitted on rows of 384"),
    ("index add c.bittern --from image.npy", "image.npy: is a PNG image"),
    ("index remove c.bittern", "give images, --id or --where"),
    ("index remove c.bittern --id 5000", "no item has the id 5000"),
    ("search c.bittern --row 0 -k 0", "-k must be at least 1"),
    ("search c.bittern --row 0 --radius -1", "--radius must be at least 0"),
    ("search c.bittern --vectors x3.npy --row 0", "x3.npy: rows have 3 numbers"),
    ("search c.bittern --codes q.npy --row 0", "q.npy: has codes of 384 bits"),
    ("search c.bittern --codes x.npy --row 0", "x.npy: codes must be bits"),
]


@pytest.mark.parametrize(("line", "says"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_one_sentence_in_the_words_of_the_command(
    folder, made, monkeypatch, capsys, line, says
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["bittern", *line.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.startswith("bittern: ") and err.endswith((".\n", "?\n")) and err.count("\n") == 1
    assert says in err
    assert not [word for word in FOREIGN if word in err]
    assert len(err) < 400


@pytest.mark.parametrize(
    ("words", "message", "said"),
    [
        ("evaluate", "Relevance: query_labels must be 1-D.", "--query-labels must be 1-D."),
        (
            "evaluate",
            "Relevance: query_tags must be 2-D; for class labels use Relevance.from_classes().",
            "--query-tags must be 2-D; for class labels use --query-labels and --database-labels.",
        ),
        ("search", "Collection: k must be at least 1.", "-k must be at least 1."),
        ("fit", "ITQ: n_iter must be at least 1.", "ITQ: n_iter must be at least 1."),
        ("fit", "--set n_bits: no such setting.", "--set n_bits: no such setting."),
        # names of files and of arrays stay as they are
        ("evaluate", "query_labels.npy: is empty.", "query_labels.npy: is empty."),
        ("evaluate", "data/query_labels: is empty.", "data/query_labels: is empty."),
        ("evaluate", "a.npz: has no 'n_bits'.", "a.npz: has no 'n_bits'."),
        ("index create", "index: random_state must be 0.", "index: --random-state must be 0."),
    ],
)
def test_words(words, message, said):
    import typer

    command = find_command(typer.main.get_command(app), [*words.split(), "file.npy"])
    assert in_command_words(message, command) == said
