"""NUS-WIDE's text files, written small and as the publisher writes them."""

import re

import numpy as np
import pytest
from format_true import count_refused, flips, jpeg, truncations, write
from hypothesis import given, settings
from hypothesis import strategies as st

from bittern.data.readers import nuswide
from bittern.errors import BitternError, FileError, InputError, UnknownNameError
from bittern.io import text as tables

CONCEPTS = ["airport", "animal", "sky", *(f"concept{i:02d}" for i in range(78))]
IMAGES = [f"actor\\{i:04d}_{2124494179 + i}.jpg" for i in range(6)]
# Which image has which concept: sky 4, animal 2, airport 1; image 4 has none.
HAS = {"sky": [0, 1, 2, 5], "animal": [1, 3], "airport": [3]}
TAGS = ["red", "sunset", "été", *(f"tag{i:04d}" for i in range(5015))]


def bits(rows, end, between):
    """Lines of 0 and 1 with something after each, as the publisher's tables have it."""
    return "".join(between.join(map(str, row)) + end for row in rows)


def column(images, n=6):
    return [[int(i in images)] for i in range(n)]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "ImageList" / "Imagelist.txt", "".join(f"{name}\r\n" for name in IMAGES))
    write(tmp_path / "ImageList" / "TrainImagelist.txt", "\n".join(IMAGES[i] for i in (5, 0, 3)))
    write(tmp_path / "ImageList" / "TestImagelist.txt", "\n".join(IMAGES[i] for i in (1, 2, 4)))
    write(tmp_path / "ConceptsList" / "Concepts81.txt", "\n".join(CONCEPTS) + "\n")
    for name in CONCEPTS:
        text = bits(column(HAS.get(name, [])), "\n", " ")
        write(tmp_path / "Groundtruth" / "AllLabels" / f"Labels_{name}.txt", text)
    write(tmp_path / "Low_Level_Features" / "BoW_int.dat", bits(bow(), " \r\n", " "))
    tags = np.zeros((6, 1000), int)
    tags[0, 999] = tags[2, 0] = tags[2, 7] = 1
    write(tmp_path / "NUS_WID_Tags" / "AllTags1k.txt", bits(tags, "\t\r\n", "\t"))
    write(tmp_path / "NUS_WID_Tags" / "AllTags81.txt", bits(tags[:, :81], " \r\n", " "))
    write(tmp_path / "NUS_WID_Tags" / "Final_Tag_List.txt", "\r\n".join(TAGS))
    write(tmp_path / "NUS_WID_Tags" / "All_Tags.txt", all_tags())
    return tmp_path


def bow():
    return (np.arange(6 * 500) % 97).reshape(6, 500)


def all_tags():
    words = ["sunset red sunset", "", "nikon d80", "tag5014 été", "red", "2124494184"]
    return "".join(f"{2124494179 + i}      {line} \r\n" for i, line in enumerate(words))


def test_worked_example(folder):
    dataset = nuswide.load(folder)
    assert len(dataset) == 6
    assert dataset.ids[0] == "actor/0000_2124494179.jpg"
    assert dataset.tag_names == tuple(CONCEPTS)
    assert dataset.tags.dtype == bool
    assert {
        name: np.flatnonzero(dataset.tags[:, i]).tolist() for i, name in enumerate(CONCEPTS[:3])
    } == {
        "airport": [3],
        "animal": [1, 3],
        "sky": [0, 1, 2, 5],
    }
    assert dataset.tags.sum() == 7
    assert dataset["image"].dtype == np.float32
    np.testing.assert_array_equal(dataset["image"], bow())
    assert dataset.official["train"].tolist() == [0, 3, 5]
    assert dataset.official["test"].tolist() == [1, 2, 4]
    assert "269,648 were published" in dataset.notes[0]


def test_the_most_frequent_concepts_keep_their_items_and_columns(folder):
    dataset = nuswide.load(folder, concepts=2)
    assert dataset.tag_names == ("animal", "sky")  # 2 and 4 images; in the publisher's order
    assert dataset.ids.tolist() == [IMAGES[i].replace("\\", "/") for i in (0, 1, 2, 3, 5)]
    assert dataset.tags.tolist() == [[0, 1], [1, 1], [0, 1], [1, 0], [0, 1]]
    np.testing.assert_array_equal(dataset["image"], bow()[[0, 1, 2, 3, 5]])
    assert dataset.official["train"].tolist() == [0, 3, 4]  # images 0, 3, 5
    assert dataset.official["test"].tolist() == [1, 2]  # 1, 2; image 4 is gone


def test_of_equally_frequent_concepts_the_earlier_is_kept(folder):
    path = folder / "Groundtruth" / "AllLabels" / f"Labels_{CONCEPTS[5]}.txt"
    write(path, bits(column([4]), "\n", " "))
    assert nuswide.load(folder, concepts=3).tag_names == ("airport", "animal", "sky")


@pytest.mark.parametrize("text", ["tags1k", "tags81", "tags5018"])
def test_tags_are_a_second_modality_of_sparse_rows(folder, text):
    dataset = nuswide.load(folder, text=text, concepts=3)
    rows = dataset["text"]
    width = {"tags1k": 1000, "tags81": 81, "tags5018": 5018}[text]
    assert rows.shape == (5, width)
    ones = {
        "tags1k": [(0, 999), (2, 0), (2, 7)],
        "tags81": [(2, 0), (2, 7)],
        # twice sunset counts once; words outside the list, and an id among the words, not at all
        "tags5018": [(0, 0), (0, 1), (3, 2), (3, 5017)],
    }[text]
    assert sorted(zip(*(axis.tolist() for axis in rows[:].nonzero()), strict=True)) == ones
    assert rows[:].max() == 1
    taken = dataset.take([3, 0])["text"]
    np.testing.assert_array_equal(np.asarray(taken), rows[:].toarray()[[3, 0]])


@pytest.mark.parametrize(
    ("text", "there"), [("tags1k", [0, 2]), ("tags81", [2]), ("tags5018", [0, 3, 4])]
)
def test_items_without_a_tag_lack_the_text(folder, text, there):
    dataset = nuswide.load(folder, text=text)
    assert dataset.complete().tolist() == there
    assert f"{6 - len(there)} items have no tag of it" in dataset.notes[-1]


def test_the_methodology_s_text_is_learned_on_training_rows(folder):
    # PCA of the tags, on the training rows that have one: 0 and 3.
    dataset = nuswide.load(folder, text="tags5018")
    ready = dataset.prepared([0, 1, 3], ["pca1"], "text").prepared([0, 1, 3], None, "image")
    rows = np.asarray(ready["text"])
    first, second = np.zeros((2, 5018))
    first[[0, 1]] = second[[2, 5017]] = 1  # two tags each, none shared: 2 apart
    assert np.linalg.norm(first - second) == pytest.approx(2)
    assert abs(rows[0] - rows[3]) == pytest.approx(2, rel=1e-5)
    assert rows[0] == pytest.approx(-rows[3], rel=1e-5)  # centred on these two
    assert not rows[[1, 2, 5]].any()  # the items that lack a text
    images = np.asarray(ready["image"])
    assert np.abs(images[[0, 1, 3]].mean(axis=0)).max() < 1e-6  # unit length, then centred


@pytest.mark.parametrize("concepts", [None, 10, 21, 81])
def test_concepts_of_the_papers_are_tags(folder, concepts):
    dataset = nuswide.load(folder, concepts=concepts, text="tags1k")
    assert dataset.tags.shape == (6 if concepts is None else 5, concepts or 81)
    assert len(dataset["text"]) == len(dataset["image"]) == len(dataset)


def test_one_table_of_labels_is_read_too(folder):
    expected = nuswide.load(folder).tags
    move_labels(folder)
    write(folder / "Groundtruth" / "AllLabels81.txt", bits(expected.astype(int), " \n", " "))
    np.testing.assert_array_equal(nuswide.load(folder).tags, expected)


def test_labels_of_the_official_sets_are_put_in_the_order_of_the_list(folder):
    expected = nuswide.load(folder).tags
    move_labels(folder)
    write_parts(folder, expected)
    np.testing.assert_array_equal(nuswide.load(folder).tags, expected)


def test_the_known_mistake_in_the_labels_of_lakes_is_refused_with_the_way_out(folder):
    expected = nuswide.load(folder).tags
    move_labels(folder)
    write_parts(folder, expected)
    path = folder / "Groundtruth" / "TrainTestLabels" / f"Labels_{CONCEPTS[9]}_Train.txt"
    write(path, "0\n-1130179\n0\n")
    with pytest.raises(FileError, match=r"line 2.*got '-1130179'.*AllLabels has the same"):
        nuswide.load(folder)


def move_labels(folder):
    (folder / "Groundtruth" / "AllLabels").rename(folder / "elsewhere")


def write_parts(folder, tags):
    for part, rows in {"Train": [5, 0, 3], "Test": [1, 2, 4]}.items():
        for c, name in enumerate(CONCEPTS):
            path = folder / "Groundtruth" / "TrainTestLabels" / f"Labels_{name}_{part}.txt"
            write(path, bits(tags[rows, c : c + 1].astype(int), "\r\n", " "))


def test_images_are_read_when_asked_for(folder):
    write(folder / "Flickr" / "actor" / "0002_2124494181.jpg", jpeg(size=(5, 2)))
    (folder / "Low_Level_Features" / "BoW_int.dat").unlink()
    dataset = nuswide.load(folder, image="files")
    assert dataset["image"][2].shape == (2, 5, 3)
    with pytest.raises(FileError, match=r"0003_2124494182\.jpg"):
        dataset["image"][3]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("ImageList/Imagelist.txt", "", r"Imagelist\.txt: lists no image"),
        ("ImageList/Imagelist.txt", "a\n\nb\n", r"Imagelist\.txt: has a blank line"),
        ("ImageList/TrainImagelist.txt", "b\\1.jpg", r"TrainImagelist\.txt: b/1\.jpg is not in"),
        ("ConceptsList/Concepts81.txt", "sky\nsea\n", r"Concepts81\.txt: must name 81 .* got 2"),
        ("Groundtruth/AllLabels/Labels_sky.txt", "1\n0\n", r"Labels_sky\.txt: has 2 rows for 6"),
        (
            "Groundtruth/AllLabels/Labels_sky.txt",
            "1\n" * 7,
            r"Labels_sky\.txt: has more than the 6",
        ),
        (
            "Groundtruth/AllLabels/Labels_sky.txt",
            "1\n2\n",
            r"line 2: an entry must be 0 or 1, got '2'",
        ),
        ("Groundtruth/AllLabels/Labels_sky.txt", "1\n\n0 1\n", r"line 3: .* 1 columns, got 2"),
        (
            "Low_Level_Features/BoW_int.dat",
            "1 2 3\n",
            r"BoW_int\.dat, line 1: .*500 columns, got 3",
        ),
        ("Low_Level_Features/BoW_int.dat", "0 " * 499 + "-1", r"line 1: a count .*got '-1'"),
        (
            "Low_Level_Features/BoW_int.dat",
            "0 " * 499 + "12345678",
            r"1 to 7 digits, got '12345678'",
        ),
        ("Low_Level_Features/BoW_int.dat", ("0 " * 500 + "\n") * 5, r"has 5 rows for 6 images"),
        ("NUS_WID_Tags/Final_Tag_List.txt", "red\n", r"Final_Tag_List\.txt: must name 5,018"),
        ("NUS_WID_Tags/All_Tags.txt", "1 red\n" * 6, r"All_Tags\.txt: line 1 is for image 1"),
        ("NUS_WID_Tags/All_Tags.txt", "1 red\n" * 7, r"All_Tags\.txt: has more than the 6"),
    ],
)
def test_an_odd_file_is_refused_by_name(folder, name, content, says):
    write(folder / name, content)
    with pytest.raises(FileError, match=says):
        nuswide.load(folder, text="tags5018")


@pytest.mark.parametrize(
    "name",
    [
        "ImageList/Imagelist.txt",
        "ConceptsList/Concepts81.txt",
        "Groundtruth/AllLabels/Labels_sky.txt",
        "Low_Level_Features/BoW_int.dat",
        "NUS_WID_Tags/AllTags1k.txt",
    ],
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileError, match=re.escape(name.rsplit("/", 1)[1])):
        nuswide.load(folder, text="tags1k")


def test_options_are_checked(folder):
    with pytest.raises(InputError, match="between 1 and 81, got 82"):
        nuswide.load(folder, concepts=82)
    with pytest.raises(UnknownNameError, match=r"did you mean .*'tags1k'"):
        nuswide.load(folder, text="tags1")
    with pytest.raises(UnknownNameError, match="no image of nuswide"):
        nuswide.load(folder, image="gist")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ImageList/Imagelist.txt", None),
        ("ConceptsList/Concepts81.txt", None),
        ("Groundtruth/AllLabels/Labels_sky.txt", None),
        ("NUS_WID_Tags/All_Tags.txt", "tags5018"),
    ],
)
def test_damage_ends_in_our_error(folder, name, text):
    path = folder / name
    content = path.read_bytes()
    damaged = [*truncations(content, 25), *flips(content, 25)]
    assert count_refused(path, damaged, lambda: nuswide.load(folder, text=text)) > 10


@pytest.mark.parametrize("name", ["AllTags1k.txt", "BoW_int.dat"])
def test_damage_of_a_table_ends_in_our_error(folder, name):
    path = next(folder.rglob(name))
    content = path.read_bytes()

    def read():
        if name == "BoW_int.dat":
            return tables.read_counts(path, 500, 6, np.arange(6))
        return tables.read_bits(path, 1000, 6)

    assert count_refused(path, [*truncations(content, 150), *flips(content, 150)], read) > 200


# Against a slow oracle, with blocks so small that lines fall on their edges.
cells = st.integers(0, 3).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 9_999_999), min_size=width, max_size=width), max_size=8
    )
)


@settings(max_examples=60, deadline=None)
@given(cells, st.sampled_from([" ", "\t", "  "]), st.sampled_from(["\n", " \r\n", "\n\n"]))
def test_counts_are_those_of_a_slow_reader(tmp_path_factory, rows, between, end):
    path = tmp_path_factory.mktemp("counts") / "table"
    path.write_text(bits(rows, end, between))
    rows = [row for row in rows if row]
    width = len(rows[0]) if rows else 1
    keep = np.arange(0, len(rows), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_BLOCK_BYTES", 7)
        counts = tables.read_counts(path, width, len(rows), keep)
    np.testing.assert_array_equal(counts, np.array(rows).reshape(-1, width)[::2])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["red", "blue", "1", "é", "other"]), max_size=5), max_size=8)
)
def test_words_are_those_of_a_slow_reader(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("words") / "table"
    path.write_text("".join(f"{i} {' '.join(row)}\n" for i, row in enumerate(rows)), "utf-8")
    vocabulary = {"red": 0, "blue": 1, "1": 2, "é": 3}  # the id of line 1 is no word
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_BLOCK_BYTES", 5)
        ids, words = tables.read_words(
            path, {word.encode(): i for word, i in vocabulary.items()}, len(rows)
        )
    assert ids == [str(i).encode() for i in range(len(rows))]
    expected = [[int(word in row) for word in vocabulary] for row in rows]
    np.testing.assert_array_equal(words.toarray(), np.array(expected).reshape(-1, 4))


def test_lines_are_counted_over_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 5)
    path = write(tmp_path / "table", "0 1\n" * 10 + "\n0 2\n")
    with pytest.raises(FileError, match=r"table, line 12: an entry must be 0 or 1, got '2'"):
        tables.read_bits(path, 2, 11)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(tables, "_LINE_BYTES", 64)
    path = write(tmp_path / "table", b"0" * 1000)
    with pytest.raises(BitternError, match="table"):
        tables.read_bits(path, 1, 1)
