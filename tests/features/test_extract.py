"""Features of folders: what is in the file, and that no work is lost or done twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image
from processes import seconds
from tiny_features import Centred, Deadly, Letters, MeanColour, Size, Stubborn, Threads
from typer.testing import CliRunner

import bittern.features
from bittern.cli import app
from bittern.errors import BitternError, FileError, InputError, UnknownNameError
from bittern.features import FEATURES, extract, load_features
from bittern.registry import OpenRegistry

HERE = Path(__file__).parent
CLASSES = ("cat", "dog")


def image(path, value, size=(3, 2)):
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.new("RGB", size, (value, 2, 3)).save(path)


@pytest.fixture
def folder(tmp_path):
    """Twelve images of two classes; the n-th in the order of paths has red n."""
    for n in range(12):
        image(tmp_path / f"images/{CLASSES[n // 6]}/{n:02}.png", n)
    (tmp_path / "images/notes.txt").write_text("not an image")
    return tmp_path / "images"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "features.npz"


def parts_of(out):
    return out.with_name("features.npz.parts")


def is_clean(out):
    """Whether the output and the images are all that is left."""
    return sorted(path.name for path in out.parent.iterdir()) == ["features.npz", "images"]


def test_the_file_holds_rows_paths_and_classes(folder, out):
    found = extract(folder, [MeanColour(), Size()], out, jobs=1, chunk_size=5)
    assert found.paths == tuple(f"{CLASSES[n // 6]}/{n:02}.png" for n in range(12))
    np.testing.assert_array_equal(found["mean-colour"], [[n, 2, 3] for n in range(12)])
    np.testing.assert_array_equal(found["size"], [[2, 3]] * 12)
    assert found.labels.tolist() == [0] * 6 + [1] * 6 and found.class_names == CLASSES
    assert (found.skipped, found.fitted_on, len(found)) == ({}, (), 12)
    assert found.parameters["mean-colour"]["scale"] == "1.0"
    assert is_clean(out)
    with np.load(out) as plain:  # readable without this package
        assert plain["mean-colour"].dtype == np.float32
        assert set(plain) == {
            "paths", "labels", "class_names", "mean-colour", "size",
            "skipped", "skipped_reasons", "fitted_on", "about",
        }  # fmt: skip
        assert plain["paths"][0] == "cat/00.png"


@pytest.mark.slow  # two processes import scikit-learn
def test_processes_give_what_one_process_gives(folder, out, monkeypatch):
    image(folder / "cat/05.png", 5, size=(30, 30))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 400)  # which is to hold in the processes too
    features = [MeanColour(), Size()]
    alone = extract(folder, features, out, errors="skip", jobs=1)
    many = extract(folder, [*features, Threads()], out, errors="skip", jobs=2, chunk_size=1)
    np.testing.assert_array_equal(many["mean-colour"], alone["mean-colour"])
    assert many.paths == alone.paths and len(many) == 11
    assert many.skipped == alone.skipped and "400 pixels" in many.skipped["cat/05.png"]
    assert (many["threads"][:, :2] == 1).all(), "one thread each"
    assert np.float32(os.getpid()) not in many["threads"][:, 2]


def test_images_without_folders_have_no_labels(folder, out):
    found = extract(folder / "cat", [Size()], out, jobs=1)
    assert found.labels is None and found.class_names == () and found.paths[0] == "00.png"


def test_paths_may_be_given_instead_of_a_folder(folder, out):
    paths = [folder / "dog/07.png", str(folder / "cat/01.png"), folder / "dog/06.png"]
    found = extract(paths, [MeanColour()], out, jobs=1)
    assert found.paths == ("cat/01.png", "dog/06.png", "dog/07.png")
    assert found["mean-colour"][:, 0].tolist() == [1, 6, 7] and found.labels.tolist() == [0, 1, 1]


def table_of(features):
    return OpenRegistry("feature", features, group="tests", accept=None)


def test_features_may_be_named(folder, out, monkeypatch):
    monkeypatch.setattr(bittern.features, "FEATURES", table_of({"size": Size}))
    assert extract(folder, ["size"], out, jobs=1)["size"].shape == (12, 2)
    with pytest.raises(UnknownNameError, match="no feature is called 'sise'; did you mean 'size'"):
        extract(folder, ["sise"], out)


def broken(folder):
    (folder / "cat/03.png").write_bytes(b"")
    (folder / "dog/11.png").write_bytes((folder / "dog/11.png").read_bytes()[:40])
    image(folder / "dog/10.png", 10, size=(3, 1))


def test_a_broken_image_stops_the_work_by_name(folder, out):
    broken(folder)
    with pytest.raises(InputError, match=r"cat/03\.png: not a readable image"):
        extract(folder, [MeanColour()], out, jobs=1, chunk_size=6)
    assert not out.exists()
    image(folder / "cat/03.png", 3)
    (folder / "dog/11.png").unlink()
    assert len(extract(folder, [MeanColour()], out, jobs=1, chunk_size=6)) == 11
    assert is_clean(out)


def test_broken_images_are_skipped_and_counted(folder, out):
    broken(folder)
    found = extract(folder, [MeanColour(), Size()], out, errors="skip", jobs=1, chunk_size=4)
    assert list(found.skipped) == ["cat/03.png", "dog/10.png", "dog/11.png"]
    assert "not a readable image" in found.skipped["cat/03.png"]
    assert found.skipped["dog/10.png"].endswith("dog/10.png: Size: an image needs two rows.")
    assert found["mean-colour"][:, 0].tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert found.labels.tolist() == [0] * 5 + [1] * 4


def test_a_whole_chunk_may_be_skipped_but_not_all(folder, out):
    for path in (folder / "cat").iterdir():
        path.write_text("no image")
    found = extract(folder, [MeanColour()], out, errors="skip", jobs=1, chunk_size=3)
    assert found["mean-colour"][:, 0].tolist() == [6, 7, 8, 9, 10, 11] and len(found.skipped) == 6
    with pytest.raises(FileError, match=r"no image could be read; .*cat/00\.png: not a readable"):
        extract(folder / "cat", [MeanColour()], out, errors="skip", jobs=1)


def test_what_was_skipped_before_stops_the_work_if_asked_to(folder, out):
    broken(folder)
    with pytest.raises(KeyboardInterrupt):
        extract(folder, [MeanColour(), Interrupted(8)], out, errors="skip", jobs=1, chunk_size=4)
    with pytest.raises(FileError, match=r"cat/03\.png"):
        extract(folder, [MeanColour(), Interrupted(99)], out, jobs=1, chunk_size=4)


class Interrupted(Size):
    """Ctrl-C at the image of a given red."""

    name = "interrupted"
    at = 99

    def __init__(self, at=99):
        type(self).at = at

    def get_params(self, deep=True):
        """Nothing: whether it will be interrupted is no part of what it is."""
        return {}

    def _describe(self, image):
        if image[0, 0, 0] == type(self).at:
            raise KeyboardInterrupt
        return image[0, 0].astype(np.float32)


def test_ctrl_c_leaves_the_parts_and_says_how_to_go_on(folder, out, tmp_path):
    log = tmp_path / "images/log.txt"
    with pytest.raises(KeyboardInterrupt, match=r"^stopped; .*features\.npz\.parts, and the same"):
        extract(folder, [MeanColour(log=log), Interrupted(8)], out, jobs=1, chunk_size=3)
    assert not out.exists() and len(list(parts_of(out).iterdir())) == 2
    seen = reds(log)
    found = extract(folder, [MeanColour(log=log), Interrupted()], out, jobs=1, chunk_size=3)
    assert found["interrupted"][:, 0].tolist() == list(range(12))
    assert seen == list(range(9)) and reds(log)[9:] == list(range(6, 12)), "no finished chunk again"
    assert is_clean(out)


def reds(log):
    return [int(line.split()[0]) for line in Path(log).read_text().splitlines()]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: image(folder / "cat/01.png", 77), id="another image"),
        pytest.param(lambda folder: os.utime(folder / "cat/01.png", (1, 1)), id="another time"),
    ],
)
def test_a_chunk_of_changed_images_is_made_anew(folder, out, tmp_path, change):
    log = tmp_path / "images/log.txt"
    with pytest.raises(KeyboardInterrupt):
        extract(folder, [MeanColour(log=log), Interrupted(8)], out, jobs=1, chunk_size=3)
    change(folder)
    done = len(reds(log))
    found = extract(folder, [MeanColour(log=log), Interrupted()], out, jobs=1, chunk_size=3)
    assert [red for red in reds(log)[done:] if red in (0, 2)] == [0, 2], "the changed chunk"
    assert not {3, 4, 5} & set(reds(log)[done:]), "and no other that was finished"
    with Image.open(folder / "cat/01.png") as opened:
        assert found["mean-colour"][1, 0] == opened.getpixel((0, 0))[0]


def test_parts_of_other_parameters_are_not_taken(folder, out):
    with pytest.raises(KeyboardInterrupt):
        extract(folder, [MeanColour(1.0), Interrupted(8)], out, jobs=1, chunk_size=3)
    found = extract(folder, [MeanColour(2.0), Interrupted()], out, jobs=1, chunk_size=3)
    assert found["mean-colour"][:, 0].tolist() == [2 * n for n in range(12)]
    assert is_clean(out)


@pytest.mark.parametrize("damage", [b"", b"PK not a zip", None])
def test_a_damaged_part_is_made_anew(folder, out, damage):
    with pytest.raises(KeyboardInterrupt):
        extract(folder, [MeanColour(), Interrupted(8)], out, jobs=1, chunk_size=3)
    part = sorted(parts_of(out).iterdir())[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content if damage is None else damage)
    found = extract(folder, [MeanColour(), Interrupted()], out, jobs=1, chunk_size=3)
    assert found["mean-colour"][:, 0].tolist() == list(range(12)) and is_clean(out)


def test_the_parts_folder_keeps_what_is_not_ours(folder, out):
    parts_of(out).mkdir()
    (parts_of(out) / "mine.txt").write_text("mine")
    (parts_of(out) / f".{'0' * 32}.npz.abc.tmp").write_text("left by a killed process")
    extract(folder, [Size()], out, jobs=1)
    assert [path.name for path in parts_of(out).iterdir()] == ["mine.txt"]


# Each of these processes, and each that it starts, imports scikit-learn: hence slow.
SCRIPT = """
import sys
from tiny_features import MeanColour
from bittern.features import extract

if __name__ == "__main__":
    folder, out, log = sys.argv[1:]
    extract(folder, [MeanColour(log=log, delay=0.15)], out, jobs=2, chunk_size=2)
"""


def start(tmp_path, *arguments, script=SCRIPT, **options):
    (tmp_path / "script.py").write_text(script)
    path = os.pathsep.join([str(HERE), str(Path(bittern.__file__).parents[1])])
    return subprocess.Popen(
        [sys.executable, tmp_path / "script.py", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def wait_for(condition):
    end = time.monotonic() + seconds(60)
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def finished_parts(out):
    folder = parts_of(out)
    return list(folder.glob("[0-9a-f]*.npz"))


def workers_of(log):
    return {int(line.split()[1]) for line in log.read_text().splitlines()}


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
def test_a_killed_process_goes_on_where_it_stopped(folder, out, tmp_path):
    log = tmp_path / "images/log.txt"
    process = start(tmp_path, folder, out, log)
    wait_for(lambda: len(finished_parts(out)) >= 2)
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(is_running, workers_of(log))))  # none is left behind
    process.communicate()
    assert not out.exists()
    kept, before = {p: p.stat().st_mtime_ns for p in finished_parts(out)}, len(reds(log))
    assert 2 <= len(kept) < 6

    found = extract(folder, [MeanColour(log=str(log), delay=0.15)], out, jobs=1, chunk_size=2)
    assert found["mean-colour"][:, 0].tolist() == list(range(12))
    redone = reds(log)[before:]
    assert sorted(set(redone)) == sorted(redone) and len(redone) == 12 - 2 * len(kept)
    (tmp_path / "script.py").unlink()
    assert is_clean(out)


COMMAND = """
import sys
from tiny_features import MeanColour
import bittern.features
from bittern.cli import main
from bittern.registry import OpenRegistry

class SlowMean(MeanColour):
    name = "slow"

    def __init__(self):
        super().__init__(delay=0.01, log="log")

    def get_params(self, deep=True):
        return {}

table = {"slow": SlowMean}
bittern.features.FEATURES = OpenRegistry("feature", table, group="tests", accept=None)
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_at_a_terminal_is_one_sentence(folder, out, tmp_path):
    for n in range(12, 140):
        image(folder / f"dog/{n}.png", n)
    arguments = ("features", "extract", folder, "--features", "slow", "-o", out, "--jobs", 2)
    process = start(tmp_path, *arguments, script=COMMAND, start_new_session=True, cwd=tmp_path)
    wait_for((tmp_path / "log").exists)  # without a task that began there is nothing to keep
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes at once
    printed, said = process.communicate(timeout=seconds(60))
    assert (process.returncode, printed) == (130, "")
    assert (
        said.startswith("bittern: stopped; finished images are kept in ") and said.count("\n") == 1
    )
    assert finished_parts(out) and not out.exists()


def n_workers(pid):
    commands = [" ".join(child.cmdline()) for child in psutil.Process(pid).children()]
    return sum("spawn_main" in command for command in commands)


def test_a_process_that_dies_is_reported(folder, out):
    with pytest.raises(BitternError, match="extract: the process ended with signal 9; use fewer"):
        extract(folder, [Deadly()], out, jobs=2, chunk_size=2)
    assert not out.exists()


def test_features_that_learn_are_fitted_on_a_sample_first(folder, out, tmp_path):
    log = tmp_path / "images/log.txt"
    found = extract(folder, [Centred(log=log)], out, jobs=1, fit_sample=5, random_state=3)
    assert len(found.fitted_on) == 5 and set(found.fitted_on) <= set(found.paths)
    mean = np.mean([int(path[4:6]) for path in found.fitted_on])
    np.testing.assert_allclose(found["centred"][:, 0], np.arange(12) - mean, rtol=1e-5)
    again = extract(folder, [Centred()], out, jobs=1, fit_sample=5, random_state=3)
    other = extract(folder, [Centred()], out, jobs=1, fit_sample=5, random_state=4)
    assert again.fitted_on == found.fitted_on != other.fitted_on


def test_what_was_learned_is_kept_with_the_parts(folder, out, tmp_path):
    log = tmp_path / "images/log.txt"
    features = [Centred(log=log), Interrupted(8)]
    with pytest.raises(KeyboardInterrupt):
        extract(folder, features, out, jobs=1, fit_sample=5, chunk_size=3)
    found = extract(folder, [features[0], Interrupted()], out, jobs=1, fit_sample=5, chunk_size=3)
    assert log.read_text() == "5\n", "fitted once"
    assert not hasattr(features[0], "mean_"), "the caller's object stays as it is"
    mean = np.mean([int(path[4:6]) for path in found.fitted_on])
    np.testing.assert_allclose(found["centred"][:, 0], np.arange(12) - mean, rtol=1e-5)


def test_a_fitted_feature_is_taken_as_it_is(folder, out):
    fitted = Centred().fit([np.full((2, 2), 100, np.uint8)])
    found = extract(folder, [fitted], out, jobs=1)
    assert found["centred"][:, 0].tolist() == [n - 100 for n in range(12)]
    assert found.fitted_on == ()


def test_broken_images_are_left_out_of_the_sample(folder, out):
    broken(folder)
    found = extract(folder, [Centred()], out, jobs=1, errors="skip")
    assert set(found.fitted_on) == set(found.paths)
    with pytest.raises(FileError, match=r"03\.png"):
        extract(folder, [Centred()], out, jobs=1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"features": [Letters()]}, "extract: letters takes texts, not images"),
        ({"features": []}, "at least one feature"),
        ({"features": "gist"}, "features must be a list; put a single one in a list"),
        ({"features": Size()}, "features must be a list; put a single one in a list"),
        ({"features": [Size(), Size()]}, "only one feature may be called 'size'"),
        ({"features": [Stubborn()]}, "Stubborn: mean_ of type set cannot be stored; fit"),
        ({"errors": "ignore"}, "errors must be 'raise' or 'skip', got 'ignore'"),
        ({"jobs": 0}, "jobs must be at least 1, got 0"),
        ({"chunk_size": 0}, "chunk_size must be"),
        ({"fit_sample": 0}, "fit_sample must be"),
        ({"path_out": "out.npy"}, r"features must be written as \.npz, got '\.npy'"),
        ({"path_out": "nowhere/out.npz"}, "there is no folder nowhere"),
        ({"images": "nowhere"}, "nowhere: no such folder"),
        ({"images": __file__}, "is a file, not a folder"),
        ({"images": []}, "at least one image"),
        ({"images": ["a.png", "a.png"]}, "a.png is given twice"),
        ({"images": ["a.png"]}, "a.png: no such file"),
    ],
)
def test_bad_input_is_one_sentence(folder, tmp_path, monkeypatch, change, says):
    monkeypatch.chdir(tmp_path)
    given = {"images": folder, "features": [Size()], "path_out": "out.npz", "jobs": 1, **change}
    with pytest.raises(InputError, match=says):
        extract(**given)
    assert [path.name for path in Path().iterdir()] == ["images"], "nothing is left over"


def test_a_feature_written_before_images_were_called_so_still_works(folder, out):
    class Older(bittern.features.PictureFeature):
        name, takes = "older", "pictures"

        def _describe(self, image):
            return image[0, 0].astype(np.float32)

    assert extract(folder, [Older()], out, jobs=1)["older"][:, 0].tolist() == list(range(12))


def test_a_folder_in_the_place_of_the_output_is_refused_first(folder, out):
    out.mkdir()
    with pytest.raises(FileError, match=r"features\.npz: is not an ordinary file"):
        extract(folder, [Size()], out)


def test_an_output_that_is_there_stays_until_the_new_one_is_whole(folder, out):
    out.write_text("the old one")
    with pytest.raises(KeyboardInterrupt):
        extract(folder, [Interrupted(8)], out, jobs=1, chunk_size=3)
    assert out.read_text() == "the old one"
    extract(folder, [Interrupted()], out, jobs=1, chunk_size=3)
    assert len(load_features(out)) == 12


def test_a_file_of_features_is_read_or_refused_by_name(folder, out, tmp_path):
    extract(folder, [Size()], out, jobs=1)
    found = load_features(out)
    with pytest.raises(UnknownNameError, match="'sise'; did you mean 'size'"):
        found["sise"]
    with np.load(out) as arrays:
        others = dict(arrays)
    np.savez(tmp_path / "short.npz", **{**others, "size": others["size"][:3]})
    np.savez(tmp_path / "foreign.npz", size=others["size"])
    np.savez(tmp_path / "lacking.npz", **{k: v for k, v in others.items() if k != "paths"})
    (tmp_path / "cut.npz").write_bytes(out.read_bytes()[:300])
    for name, says in [
        ("short", r"is damaged; .*size must be float32 of shape \(12, dim\)"),
        ("foreign", "is not a file of features"),
        ("lacking", "lacks paths"),
        ("cut", "not a readable"),
        ("none", "no such file"),
    ]:
        with pytest.raises(FileError, match=rf"{name}\.npz: {says}"):
            load_features(tmp_path / f"{name}.npz")


@pytest.fixture
def command(monkeypatch):
    table = {kind.name: kind for kind in (MeanColour, Size, Centred, Letters)}
    for module in (bittern.features, bittern.features.catalogue):
        monkeypatch.setattr(module, "FEATURES", table_of(table))
    return lambda *arguments: CliRunner().invoke(app, ["features", *map(str, arguments)])


def test_the_command_lists_all_features(command):
    shown = command("list").output.splitlines()
    assert [line.split()[:2] for line in shown] == [
        ["mean-colour", "images"],
        ["size", "images"],
        ["centred", "images"],
        ["letters", "texts"],
    ]
    assert shown[1].endswith("Height and width; images of one row are refused.")


def test_the_command_extracts_and_tells(command, folder, out):
    broken(folder)
    asked = ("extract", folder, "--features", "size,centred", "-o", out, "--jobs", 1)
    done = command(*asked, "--on-error", "skip", "--fit-sample", 4)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[:5] == [
        f"{out}: 9 images of 2 classes",
        "  size     2",
        "  centred  3",
        f"Fitted on {len(load_features(out).fitted_on)} of these images, drawn at random.",
        "Skipped 3 images:",
    ]
    assert set(load_features(out).features) == {"size", "centred"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("images", "--features", "sise"), "no feature is called 'sise'"),
        (("images", "--features", ","), "separated by commas"),
        (("images", "--features", "letters"), "letters takes texts, not images"),
        (("nowhere", "--features", "size"), "nowhere: no such folder"),
        (("images", "--features", "size", "--jobs", 0), "jobs must be at least 1"),
        (("images", "--features", "size", "--most-pixels", 0), "--most-pixels must be"),
    ],
)
def test_bad_input_ends_the_command_with_code_2(
    command, folder, tmp_path, monkeypatch, capsys, arguments, says
):
    from bittern.cli import main

    monkeypatch.chdir(tmp_path)
    asked = ["bittern", "features", "extract", *map(str, arguments), "-o", "out.npz"]
    monkeypatch.setattr(sys, "argv", asked)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2 and says in said
    assert said.startswith("bittern: ") and said.count("\n") == 1


def test_the_command_may_accept_larger_images(command, folder, out, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)
    asked = ("extract", folder, "--features", "size", "-o", out, "--jobs", 1)
    assert isinstance(command(*asked).exception, FileError)
    assert command(*asked, "--most-pixels", 6).exit_code == 0
    assert len(load_features(out)) == 12


@pytest.mark.skipif("gist" not in FEATURES, reason="the table has it when all families are there")
def test_the_features_of_the_package_go_over_processes(folder, out):
    found = extract(folder, ["hsv-global", "gist"], out, jobs=2, chunk_size=6)
    assert found["gist"].shape == (12, 512)
