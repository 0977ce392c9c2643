"""A user's own folder of images, with and without a manifest."""

import json
from pathlib import Path

import numpy as np
import pytest
from format_true import count_refused, flips, jpeg, truncations, write
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from bittern.data.readers import folder
from bittern.errors import FileError, PositionError


@pytest.fixture
def pets(tmp_path):
    root = tmp_path / "pets"
    write(root / "dog" / "b.PNG", jpeg((0, 0, 255), kind="PNG"))
    write(root / "cat" / "a.jpg", jpeg((255, 0, 0)))
    write(root / "cat" / "old" / "c.jpeg", jpeg((255, 0, 0), size=(2, 5)))
    write(root / "cat" / ".thumb.jpg", b"hidden")
    write(root / ".git" / "x.jpg", b"hidden")
    write(root / "cat" / "readme.txt", b"not an image")
    return root


def test_sub_folders_are_classes(pets):
    dataset = folder.load(pets)
    assert dataset.name == "pets"
    assert dataset.ids.tolist() == ["cat/a.jpg", "cat/old/c.jpeg", "dog/b.PNG"]
    assert dataset.labels.tolist() == [0, 0, 1]
    assert dataset.class_names == ("cat", "dog")
    assert dataset.tags is None
    assert dataset["image"][1].shape == (5, 2, 3)
    assert dataset["image"][2][0, 0].tolist() == [0, 0, 255]
    assert dataset.notes == ("3 images; 2 hidden and 1 other files skipped.",)


def test_images_are_found_from_another_place(pets, monkeypatch):
    monkeypatch.chdir(pets.parent)
    dataset = folder.load(Path("pets"))
    monkeypatch.chdir("/")
    assert dataset["image"][0].shape == (3, 4, 3)


def test_images_are_read_when_asked_for(pets):
    write(pets / "dog" / "broken.jpg", b"\xff\xd8\xff")
    dataset = folder.load(pets)
    assert len(dataset) == 4
    with pytest.raises(FileError, match=r"dog/broken\.jpg: not a readable image"):
        dataset["image"][3]
    with pytest.raises((IndexError, PositionError)):
        dataset["image"][4]


def test_images_in_the_folder_itself_have_no_class(pets):
    write(pets / "a.jpg", jpeg())
    assert folder.load(pets).labels.tolist() == [-1, 0, 0, 1]


def test_a_flat_folder_has_no_labels(tmp_path):
    for name in ("2.jpg", "10.jpg", "1.jpg"):
        write(tmp_path / name, jpeg())
    dataset = folder.load(tmp_path)
    assert dataset.labels is None
    assert dataset.ids.tolist() == ["1.jpg", "10.jpg", "2.jpg"]


def test_numbered_classes_are_in_the_order_of_numbers(tmp_path):
    for name in ("10", "9", "0"):
        write(tmp_path / name / "a.jpg", jpeg())
    assert folder.load(tmp_path).class_names == ("0", "9", "10")


@pytest.mark.parametrize(
    ("names", "sets"),
    [
        (("train", "test"), {"train": [2, 3], "test": [0, 1]}),
        (("train", "val"), {"train": [0, 1], "test": [2, 3]}),
        (("train", "val", "test"), {"test": [0, 1], "train": [2, 3], "validation_queries": [4, 5]}),
    ],
)
def test_folders_of_sets_are_the_official_sets(tmp_path, names, sets):
    for name in names:
        for kind in ("cat", "dog"):
            write(tmp_path / name / kind / "a.jpg", jpeg())
    dataset = folder.load(tmp_path)
    assert dataset.class_names == ("cat", "dog")
    assert dataset.labels.tolist() == [0, 1] * len(names)
    assert {name: rows.tolist() for name, rows in dataset.official.items()} == sets


def test_a_class_called_train_is_a_class(tmp_path):
    for kind in ("train", "bus"):
        write(tmp_path / kind / "a.jpg", jpeg())
    dataset = folder.load(tmp_path)
    assert dataset.class_names == ("bus", "train")
    assert not dataset.official


def test_links_that_go_round_are_followed_once(pets):
    (pets / "dog" / "round").symlink_to(pets)
    (pets / "dog" / "cat.jpg").symlink_to(pets / "cat" / "a.jpg")
    (pets / "dog" / "itself.jpg").symlink_to(pets / "dog" / "itself.jpg")
    (pets / "dog" / "nothing.jpg").symlink_to(pets / "nothing")
    assert folder.load(pets).ids.tolist()[-2:] == ["dog/b.PNG", "dog/cat.jpg"]


def test_images_are_upright_and_rgb(tmp_path):
    tall = Image.new("L", (4, 2))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    tall.save(tmp_path / "a.jpg", exif=exif)
    palette = Image.new("P", (3, 3))
    palette.save(tmp_path / "b.png", transparency=bytes([0, 128]))
    images = folder.load(tmp_path)["image"]
    assert [image.shape for image in images] == [(4, 2, 3), (3, 3, 3)]


CSV = """path,label,photographer,tags
dog/b.PNG,dog,Ann,"tail; Nose;tail"
./cat/a.jpg , cat,,"[""tail"", ""semi;colon""]"
cat/old/c.jpeg,old cat,"Bob, jr.",
"""
JSONL = "\n".join(
    json.dumps(row)
    for row in [
        {"path": "dog/b.PNG", "label": "dog", "tags": "tail; Nose;tail", "x": 1},
        {"path": "./cat/a.jpg", "label": "cat", "tags": ["tail", "semi;colon"]},
        {"path": "cat\\old\\c.jpeg", "label": "old cat", "tags": None},
    ]
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.csv", CSV),
        ("manifest.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("manifest.jsonl", JSONL),
        ("manifest.jsonl", JSONL.replace("\n", "\r\n\r\n")),
    ],
)
def test_a_manifest_has_the_last_word(pets, name, content):
    write(pets / name, content)
    dataset = folder.load(pets)
    assert dataset.ids.tolist() == ["dog/b.PNG", "cat/a.jpg", "cat/old/c.jpeg"]  # its own order
    assert dataset.class_names == ("cat", "dog", "old cat")
    assert dataset.labels.tolist() == [1, 0, 2]
    assert dataset.tag_names == ("Nose", "semi;colon", "tail")
    assert dataset.tags.toarray().tolist() == [[1, 0, 1], [0, 1, 1], [0, 0, 0]]
    assert dataset.tags.dtype == bool
    assert dataset["image"][2].shape == (5, 2, 3)
    assert folder.load(pets, manifest=False).class_names == ("cat", "dog")


def test_a_manifest_of_another_name_and_without_labels(pets):
    write(pets / "meta" / "some.csv", "tags,path\nred,cat/a.jpg\n")
    dataset = folder.load(pets, manifest="meta/some.csv")
    assert dataset.class_names == ("cat",)  # from the sub-folder
    assert dataset.tag_names == ("red",)
    assert "2 images not in it were skipped" in dataset.notes[1]


def test_whole_numbers_are_labels_too(pets):
    write(
        pets / "manifest.jsonl",
        '{"path": "cat/a.jpg", "label": 10}\n{"path": "dog/b.PNG", "label": 9}',
    )
    assert folder.load(pets).class_names == ("9", "10")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("cat/a.jpg,cat,\ncat/zzz.jpg,cat,", r"line 3: there is no file 'cat/zzz\.jpg'"),
        ("cat/a.jpg,cat,\ncat/../cat/a.jpg,cat,", r"line 3: 'cat/a\.jpg' is repeated, .*line 2"),
        ("cat/a.jpg,,red", r"line 2: the label must be a word"),
        ("cat/a.jpg", r"line 2: the label must be a word"),
        (",cat,", r"line 2: a row must have a path"),
        ("../x.jpg,cat,", r"line 2: '\.\./x\.jpg' is outside"),
        ("/etc/passwd,cat,", r"line 2: '/etc/passwd' is outside"),
        ("cat/a.jpg,cat,a,b", r"line 2: has 4 cells under 3 columns"),
        ('cat/a.jpg,cat,"[1]"', r"line 2: tags must be words"),
        ('cat/a.jpg,cat,"[red"', r"line 2: tags start like a JSON list"),
        ('cat/a.jpg,cat,"red', r"line 2: not CSV"),
        ("cat,cat,", r"line 2: there is no file 'cat'"),
        (f"{'x' * 5000},cat,", r"line 2: there is no file"),
        ("", r"manifest\.csv: has no rows"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(pets, rows, says):
    write(pets / "manifest.csv", f"path,label,tags\n{rows}")
    with pytest.raises(FileError, match=rf"manifest\.csv.*{says}|{says}"):
        folder.load(pets)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            '{"path": "cat/a.jpg"}\n{"path": "dog/b.PNG", "label": "x"}',
            r"line 1: has no label, but 1",
        ),
        ('{"path": "cat/a.jpg", "label": null}', r"line 1: the label must be .*None"),
        ('{"path": "cat/a.jpg", "label": 1.5}', r"line 1: the label must be"),
        ('{"path": "cat/a.jpg", "label": true}', r"line 1: the label must be"),
        ('{"path": "cat/a.jpg", "tags": {"a": 1}}', r"line 1: tags must be"),
        ('{"path": 7}', r"line 1: a row must have a path"),
        ('{"path": "\\u0000"}', r"line 1: there is no file"),
        ('{"path": "\\ud800"}', r"line 1: there is no file"),
        ('\n["cat/a.jpg"]', r"line 2: must be one JSON object"),
        ("[" * 100_000, r"line 1: must be one JSON object"),
    ],
)
def test_a_wrong_line_of_json_is_refused(pets, content, says):
    write(pets / "manifest.jsonl", content)
    with pytest.raises(FileError, match=rf"manifest\.jsonl, {says}"):
        folder.load(pets)


def test_other_refusals(pets, tmp_path):
    with pytest.raises(FileError, match="no such folder"):
        folder.load(tmp_path / "nowhere")
    with pytest.raises(FileError, match="is a file, not a folder"):
        folder.load(pets / "cat" / "a.jpg")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"has no images; .*\.jpg"):
        folder.load(tmp_path / "empty")
    with pytest.raises(FileError, match=r"must end in \.csv, \.jsonl"):
        folder.load(pets, manifest="cat/readme.txt")
    with pytest.raises(FileError, match=r"none\.csv: no such file"):
        folder.load(pets, manifest="none.csv")
    write(pets / "manifest.csv", "file;label\n")
    with pytest.raises(FileError, match=r"one of them path; got \['file;label'\]"):
        folder.load(pets)
    write(pets / "manifest.csv", "path,label,label\n")
    with pytest.raises(FileError, match="label is repeated"):
        folder.load(pets)
    write(pets / "manifest.jsonl", JSONL)
    with pytest.raises(FileError, match="choose one"):
        folder.load(pets)


@pytest.mark.parametrize(("name", "content"), [("manifest.csv", CSV), ("manifest.jsonl", JSONL)])
def test_damage_of_a_manifest_ends_in_our_error(pets, name, content):
    path = write(pets / name, content)
    damaged = [*truncations(path.read_bytes()), *flips(path.read_bytes(), 150)]
    assert count_refused(path, damaged, lambda: folder.load(pets)) > 100


names = st.text(st.sampled_from("abAB09 é-_"), min_size=1, max_size=6).filter(
    lambda name: name.strip() == name
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(names, st.sets(names, min_size=1, max_size=3), min_size=1, max_size=4))
def test_any_tree_is_read_in_one_order(tmp_path_factory, tree):
    root = tmp_path_factory.mktemp("tree")
    expected = sorted(f"{kind}/{name}.jpg" for kind, group in tree.items() for name in group)
    for path in reversed(expected):
        write(root / path, b"")
    dataset = folder.load(root)
    assert dataset.ids.tolist() == expected
    classes = np.array(dataset.class_names)[dataset.labels]
    assert [path.split("/")[0] for path in expected] == classes.tolist()
