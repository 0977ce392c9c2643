"""The one door to all datasets: names, roots, options, statistics, and the command line's words."""

import numpy as np
import pytest
from typer.testing import CliRunner

import bittern as bt
from bittern.cli import app
from bittern.data.catalogue import DATASETS, folder_of, spec_of
from bittern.data.describe import describe, list_datasets, parse_options, statistics

PAPERS = ["cifar10", "labelme", "nuswide", "sift1m", "wiki", "corel", "trecvid2003"]


def own_arrays(path, labels=(0, 0, 1, 1, 1)):
    vectors = np.arange(2.0 * len(labels)).reshape(-1, 2)
    np.savez(path, vectors=vectors, labels=np.array(labels))
    return path


@pytest.mark.parametrize("name", DATASETS)
def test_every_dataset_has_an_entry_that_says_what_it_needs(name):
    spec = spec_of(name)
    assert spec.name == name
    assert spec.title and spec.layout and spec.licence


def test_every_dataset_of_the_papers_is_there():
    assert set(PAPERS) <= set(DATASETS)
    assert {"mnist", "fashion-mnist", "digits", "folder", "arrays", "embeddings"} <= set(DATASETS)


@pytest.mark.parametrize("name", [name for name in DATASETS if spec_of(name).needs_files])
def test_a_dataset_that_is_not_there_is_refused_by_what_it_needs(name, tmp_path):
    with pytest.raises(bt.BitternError, match=str(tmp_path)):
        bt.load(name, root=tmp_path / "nothing")
    with pytest.raises(bt.BitternError):
        bt.load(name, root=tmp_path)  # a folder without any of its files


def test_a_root_may_hold_all_data_or_be_the_set_itself(tmp_path, monkeypatch):
    wiki = spec_of("wiki")
    (tmp_path / "wiki").mkdir()
    assert folder_of(wiki, tmp_path) == tmp_path / "wiki"
    assert folder_of(wiki, tmp_path / "wiki") == tmp_path / "wiki"
    monkeypatch.setenv("BITTERN_DATA", str(tmp_path))
    assert folder_of(wiki, None) == tmp_path / "wiki"


def test_your_own_data_needs_a_place():
    with pytest.raises(
        bt.InputError, match=r"pass the path of your data: load\('arrays', root=PATH\)"
    ):
        bt.load("arrays")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("digits", {"size": 3}, "digits has no options"),
        ("cifar10", {"feature": "gist"}, "no option of cifar10 is called 'feature'; did you mean"),
    ],
)
def test_an_option_that_a_reader_lacks_is_refused(name, options, says):
    with pytest.raises(bt.InputError, match=says):
        bt.load(name, **options)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(bt.UnknownNameError, match="did you mean 'cifar10'"):
        bt.load("cifar-10")


def test_statistics_are_those_of_the_methodology(tmp_path):
    # Five items, two classes: one label per item, 5 / 2 items per label.
    found = statistics(bt.load("arrays", root=own_arrays(tmp_path / "a.npz")))
    assert (found.n_items, found.n_labels) == (5, 2)
    assert (found.labels_per_item, found.items_per_label) == (1.0, 2.5)
    assert found.descriptors == {"vectors": "2 float64"}


def test_statistics_of_tags_count_tags():
    tags = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 1]], bool)
    rows = {"x": np.zeros((4, 2))}
    made = bt.Dataset(name="t", modalities=rows, tags=tags, tag_names=("a", "b", "c"))
    found = statistics(made)
    assert (found.n_labels, found.labels_per_item, found.items_per_label) == (3, 6 / 4, 6 / 3)
    assert statistics(bt.Dataset(name="t", modalities=rows)).n_labels is None


def test_a_description_has_size_sets_notes_and_licence():
    dataset = bt.load("digits")
    text = describe(spec_of("digits"), dataset)
    for part in ("1,797", "179.7", "pixels", dataset.notes[0], spec_of("digits").licence):
        assert part in text


def test_steps_are_the_papers_unless_others_are_given():
    rng = np.random.default_rng(0)
    made = bt.Dataset(name="sift1m", modalities={"sift": rng.random((20, 3)) + 5})
    train = np.arange(10)
    centred = made.prepared(train)
    np.testing.assert_allclose(np.asarray(centred["sift"])[train].mean(axis=0), 0, atol=1e-12)
    assert any("centre" in note for note in centred.notes)
    unit = made.prepared(train, steps=["l2"])
    np.testing.assert_allclose(np.linalg.norm(np.asarray(unit["sift"]), axis=1), 1)
    mine = bt.Dataset(name="mine", modalities={"x": rng.random((4, 2))})
    assert mine.prepared([0, 1]) is mine  # nobody states steps for it


@pytest.mark.parametrize("text", ["features", "=3", "a b=3", ""])
def test_an_option_is_written_name_equals_value(text):
    with pytest.raises(bt.InputError, match="name=value"):
        parse_options([text])


def data(*words):
    """The command ``bittern data``."""
    return CliRunner().invoke(app, ["data", *map(str, words)])


def test_list_names_them_all():
    assert data("list").output.strip() == list_datasets()
    assert list(DATASETS) == [line.split()[0] for line in list_datasets().splitlines()]


def test_info_reads_and_describes(tmp_path):
    answer = data("info", "arrays", "--root", own_arrays(tmp_path / "a.npz"))
    assert answer.exit_code == 0
    assert answer.output.startswith("arrays: ")
    assert "items per label     2.5" in answer.output


def test_info_passes_options_on(tmp_path):
    path = own_arrays(tmp_path / "a.npz")
    np.savez(path, one=np.zeros((3, 2)), two=np.ones((3, 4)))
    answer = data("info", "arrays", "--root", path, "--option", "vectors=two")
    assert answer.exit_code == 0
    assert "4 float64" in answer.output


def test_fetch_of_what_needs_no_files_says_so():
    assert data("fetch", "digits").output.strip() == "digits needs no files."


def test_fetch_of_what_has_no_address_says_what_to_put_where(tmp_path):
    answer = data("fetch", "nuswide", "--root", tmp_path)
    assert isinstance(answer.exception, bt.FileError)
    assert str(tmp_path / "nuswide") in str(answer.exception)
    assert "Imagelist" in str(answer.exception)
