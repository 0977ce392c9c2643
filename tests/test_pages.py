"""Every block of code in the documents: Python and commands run as they are typed.

The blocks of a page run in order, in one folder with the files that pages speak of as the reader's
own.  A block that cannot run here says why in a comment above it, ``<!-- not run: … -->``; it must
at least name commands and options that exist (``test_documents.py``).
"""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from processes import one_after_another

import bittern as bt
from bittern.experiments import measure
from bittern.features import chunks

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LANGUAGES = {"python", "bash", "toml", "sql", "text"}  # text is output, or a drawing
BLOCK = re.compile(r"^(?:<!-- not run: (.+?) -->\n\n?)?```(\S*)\n(.*?)^```", re.M | re.S)
OTHERS = ("pip ", "scripts/", ".venv/bin/pip ", "BITTERN_DATA=")  # tried by .ci/run, not here
#: Pages whose Python, or whose commands too, are run by a test of their own, which checks more.
PYTHON_ELSEWHERE = {
    "docs/advise.md": "experiments/test_advise.py",
    "docs/bring-your-own.md": "test_documents.py",
    "docs/commands.md": "test_chain.py",
    "docs/crossmodal.md": "hashing/crossmodal/test_crossmodal_contract.py",
    "docs/evidence.md": "test_documents.py",
    "docs/experiments.md": "test_documents.py",
    "docs/hashing.md": "test_documents.py",
    "docs/search.md": "test_documents.py",
    "docs/serve.md": "web/test_serve_page.py",
    "docs/significance.md": "test_documents.py",
    "docs/tables.md": "test_documents.py",
}
COMMANDS_ELSEWHERE = {"docs/commands.md"}
#: What makes a page quick: smaller data, fewer trials, cheaper methods.
QUICKER = {
    "README.md": [("--target 0.95", "--target 0.5 --methods lsh --bits 8 --splits 1")],
    "docs/advise.md": [("--target 0.95", "--target 0.5 --methods lsh --bits 8 --splits 1")],
    "docs/crossmodal.md": [("n=1000", "n=30"), ("side=128", "side=24"), ("cm-talr", "cca-itq")],
    "docs/search.md": [("cm-talr", "cca-itq"), ("--features deep", "--features rgb-moments")],
    "docs/guides/engineer.md": [
        ("100_000", "1_500"),
        ("64,128,256 --budget 60", "16,32 --splits 1"),
    ],
    "docs/guides/curator.md": [("n=2000", "n=24"), ("side=64", "side=24")],
    "docs/guides/researcher.md": [("runs = 2", "runs = 1")],
    "docs/guides/student.md": [("runs = 2", "runs = 1"), ("n_steps = 50", "n_steps = 2")],
}


def relative(page):
    return page.relative_to(ROOT).as_posix()


def blocks_of(page):
    """Language, text and the reason not to run it, of each block."""
    return [(language, text, why) for why, language, text in BLOCK.findall(page.read_text())]


def playable(page):
    """The blocks that run here."""
    name, found = relative(page), []
    if name.startswith("docs/results/"):
        return found
    for language, text, why in blocks_of(page):
        if why or (name in PYTHON_ELSEWHERE and language == "python"):
            continue
        if language == "python" or (language == "bash" and name not in COMMANDS_ELSEWHERE):
            found.append((language, text))
    return found


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with what pages speak of as the reader's own: vectors, codes, images, captions."""
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(0)
    labels = np.arange(210) % 3
    vectors = (4 * np.eye(16)[labels] + rng.standard_normal((210, 16))).astype(np.float32)
    for name in ("embeddings", "digits"):
        np.save(folder / f"{name}.npy", vectors)
    np.save(folder / "digits-labels.npy", labels)
    np.save(folder / "queries.npy", vectors[:20] > 0)
    np.save(folder / "database.npy", vectors[20:] > 0)
    np.save(folder / "ql.npy", labels[:20])
    np.savetxt(folder / "dl.txt", labels[20:], fmt="%d")
    (folder / "run.txt.gz").write_bytes(b"1 Q0 a 1 0.5 x\n1 Q0 b 2 0.5 x\n")
    (folder / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n")
    (folder / "mine.toml").write_text(
        'title = "Mine"\nn_bits = [8]\nruns = 1\nmetrics = ["ap"]\ndataset.name = "digits"\n'
        'split.name = "improved"\nmethod = [{name = "lsh"}, {name = "pcah"}]\n'
    )
    write_images(folder, rng)
    return folder


def write_images(folder, rng):
    captions = ["file,caption"]
    for place in ("images", "IMAGES", "MORE", "more-photos"):
        for i in range(24 if place.lower() == "images" else 2):
            path = Path(place, ("cat", "dog")[i % 2], f"{place}{i:02}.png")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            tint = rng.integers(0, 255, 3)
            pixels = np.clip(tint + rng.integers(-40, 40, (24, 24, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / path)
            if place == "IMAGES":
                captions.append(f"{path.relative_to(place)},a {path.parts[1]} in the grass {i % 4}")
    (folder / "IMAGES" / "captions.csv").write_text("\n".join(captions))
    for name in ("query", "one", "another", "not-this"):
        shutil.copy(folder / "IMAGES/cat/IMAGES00.png", folder / f"{name}.jpg")


@pytest.mark.slow  # commands that fit, index and measure
@pytest.mark.parametrize("page", [page for page in PAGES if playable(page)], ids=relative)
def test_the_blocks_of_a_page_run_in_order(page, desk, tmp_path, monkeypatch, run, capsys):
    folder = tmp_path / "desk"
    shutil.copytree(desk, folder)
    monkeypatch.chdir(folder)
    for module in (measure, chunks):  # no process of its own, which would import everything again
        monkeypatch.setattr(module, "run_tasks", one_after_another)
    names = {"__name__": "page"}
    for language, text in playable(page):
        for old, new in QUICKER.get(relative(page), ()):
            text = text.replace(old, new)
        if language == "python":
            exec(compile(text, relative(page), "exec"), names)
            capsys.readouterr()
            continue
        for line in text.splitlines():
            if not line.startswith(OTHERS):
                program, *words = shlex.split(line)
                assert program == "bittern", line
                code, _, err = run(*words)
                assert code == 0, f"{line}: {err}"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_block_says_what_it_is(page):
    fences = re.findall(r"^ *```(.*)$", page.read_text(), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert set(fences[::2]) <= LANGUAGES and set(fences[1::2]) <= {""}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_change_for_speed_and_every_exception_is_needed(page):
    text = page.read_text()
    assert all(old in text for old, _ in QUICKER.get(relative(page), ()))
    n_marks = len(re.findall("^<!-- not run: ", text, re.MULTILINE))
    assert n_marks == sum(1 for _, _, why in blocks_of(page) if why)
    if relative(page) in PYTHON_ELSEWHERE:
        test = (ROOT / "tests" / PYTHON_ELSEWHERE[relative(page)]).read_text()
        assert page.name in test and "python" in test


def test_the_results_name_protocols_that_come_with_the_package():
    from bittern.experiments.protocol import shipped

    named = [
        line.split()[2]
        for page in (ROOT / "docs" / "results").glob("*.md")
        for language, text, _ in blocks_of(page)
        if language == "bash"
        for line in text.splitlines()
    ]
    assert len(named) > 15
    assert set(named) <= set(shipped())


def test_the_scores_on_the_page_about_evaluation_are_what_it_prints(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    made, command, shown = blocks_of(ROOT / "docs" / "evaluate.md")[:3]
    exec(made[1], {})
    code, out, _ = run(*shlex.split(command[1])[1:])
    assert code == 0 and shown[0] == "text"
    assert [line.rstrip() for line in out.splitlines()] == shown[1].splitlines()


def test_the_files_of_the_formats_are_as_described(tmp_path):
    codes = bt.Codes.from_bits(np.eye(4, dtype=bool))
    bt.FlatIndex(codes).save(tmp_path / "index.npz")
    truth = bt.Relevance.from_classes([0], [0, 1, 1, 0])
    bt.TieProfile.from_codes(codes[:1], codes, truth).save(tmp_path / "profile.npz")
    bt.hashing.LSH(4).fit(np.eye(4)).save(tmp_path / "model.npz")
    page = (ROOT / "docs" / "formats.md").read_text()
    for name in ("index", "profile"):
        arrays = np.load(tmp_path / f"{name}.npz").files
        assert [array for array in arrays if f"`{array}`" not in page] == []
    head = json.loads(np.load(tmp_path / "index.npz")["index"].tobytes())
    assert {"format", "version", "kind", "n_bits", "next_id", "ids_ascend", "settings"} == set(head)
    head = json.loads(np.load(tmp_path / "model.npz")["model"].tobytes())
    assert (head["format"], head["version"]) == ("bittern hasher", 1) and "model" in head
