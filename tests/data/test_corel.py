"""Corel-1000 and Corel-5K out of zips, numbered images, and category folders."""

import multiprocessing
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from format_true import count_refused, flips, jpeg, shared_folder, truncations, write

from bittern.data.images import ZipImages
from bittern.data.readers import corel
from bittern.errors import BitternError, FileError, InputError, UnknownNameError

IDS = [1000, 1001, 10005, 12000, 12001]  # CDs 1, 10, 12
ANNOTATION = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1]], np.uint8)


def colour(number):
    return (number % 7 * 30, number % 5 * 50, 100)


def write_zip(path, names, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for number, name in enumerate(names):
            member = zipfile.ZipInfo(name)
            member.compress_type = method
            member.extra = b"\x99\x99\x02\x00ab" if number % 2 else b""  # as some packers write
            archive.writestr(member, jpeg(colour(number), size=(8, 6)))


def corel5k_labels(**changes):
    return {
        "image_id": np.array(IDS),
        "category": np.array([0, 0, 1, 2, 2], np.uint8),
        "category_cd": np.array([1, 10, 12]),
        "is_test": np.array([0, 1, 0, 0, 1], np.uint8),
        "annot": ANNOTATION,
        "words": np.array(["city", "sky", "sun"]),
        **changes,
    }


@pytest.fixture
def corel5k(tmp_path):
    write_zip(tmp_path / "corel5k_jpeg.zip", [f"{number}.jpeg" for number in IDS])
    np.savez(tmp_path / "labels.npz", **corel5k_labels())
    return tmp_path


@pytest.fixture
def corel1000(tmp_path):
    names = [f"image.orig/{number}.jpg" for number in range(120)]
    write_zip(tmp_path / "corel1000_jpg.zip", names)
    labels = np.arange(120) // 100
    np.savez(tmp_path / "labels.npz", label=labels.astype(np.uint8), names=np.array(["a", "b"]))
    np.savez(
        tmp_path / "corel1000_efflite0_224_f16.npz",
        feat=np.arange(240, dtype=np.float16).reshape(120, 2),
        label=labels,
    )
    return tmp_path


def test_corel_1000_out_of_a_zip(corel1000):
    dataset = corel.load(corel1000, min_images=1)
    assert dataset.name == "corel1000"
    assert dataset.ids[[0, 9, 10, 119]].tolist() == ["0", "9", "10", "119"]  # by number
    assert np.bincount(dataset.labels).tolist() == [100, 20]
    assert dataset.class_names == ("a", "b")
    assert dataset["cnn"].dtype == np.float32
    assert dataset["cnn"][119].tolist() == [238, 239]
    for number in (0, 10, 119):
        image = dataset["image"][number]
        assert image.shape == (6, 8, 3)
        assert np.abs(image.mean(axis=(0, 1)) - colour(number)).max() < 4  # JPEG rounds


def test_small_categories_are_left_out_in_every_part(corel1000):
    dataset = corel.load(corel1000)  # b has 20 images, fewer than 90
    assert len(dataset) == 100
    assert dataset.class_names == ("a",)
    assert len(dataset["cnn"]) == len(dataset["image"]) == 100
    assert any("1 of 2 categories" in note for note in dataset.notes)


def test_corel_5k_out_of_a_zip(corel5k):
    dataset = corel.load(corel5k, min_images=1)
    assert dataset.ids.tolist() == ["1000", "1001", "10005", "12000", "12001"]
    assert dataset.labels.tolist() == [0, 0, 1, 2, 2]
    assert dataset.class_names == ("1", "10", "12")
    assert dataset.tag_names == ("city", "sky", "sun")
    np.testing.assert_array_equal(dataset.tags, ANNOTATION > 0)
    assert dataset.official["train"].tolist() == [0, 2, 3]
    assert dataset.official["test"].tolist() == [1, 4]
    assert [len(batch) for batch in (dataset["image"][1:3], dataset["image"][[0, 4, 2]])] == [2, 3]


def test_a_choice_of_categories_numbers_classes_and_sets_anew(corel5k):
    dataset = corel.load(corel5k, min_images=2)
    assert dataset.class_names == ("1", "12")
    assert dataset.labels.tolist() == [0, 0, 1, 1]
    assert dataset.official["test"].tolist() == [1, 3]
    np.testing.assert_array_equal(dataset.tags, ANNOTATION[[0, 1, 3, 4]] > 0)
    assert corel.load(corel5k, min_images=1, categories=1).class_names == ("1",)  # tie: the first
    assert corel.load(corel5k, min_images=1, categories=["10"]).ids.tolist() == ["10005"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_members_are_read_by_threads_and_processes(tmp_path, method):
    write_zip(tmp_path / "a.zip", [f"{i}.jpg" for i in range(20)], method)
    images = ZipImages(tmp_path / "a.zip")
    first = [image.tolist() for image in images]
    copy = pickle.loads(pickle.dumps(images))
    with ThreadPoolExecutor(4) as pool:
        assert [image.tolist() for image in pool.map(copy.__getitem__, range(20))] == first
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert [image.tolist() for image in pool.map(images.__getitem__, range(20))] == first
    assert first[0] != first[1]  # not vacuous


def test_nothing_is_extracted(corel5k):
    before = sorted(corel5k.rglob("*"))
    corel.load(corel5k, min_images=1)["image"][:]
    assert sorted(corel5k.rglob("*")) == before


def test_loose_numbered_images_with_labels(corel5k):
    (corel5k / "corel5k_jpeg.zip").unlink()
    for number in IDS:
        write(corel5k / "images" / f"{number}.jpeg", jpeg())
    dataset = corel.load(corel5k, min_images=1)
    assert dataset.ids.tolist() == list(map(str, IDS))
    assert dataset["image"][4].shape == (3, 4, 3)


def test_images_numbered_from_0_need_no_labels(tmp_path):
    for number in range(101):
        write(tmp_path / "image.orig" / f"{number}.jpg", b"")
    dataset = corel.load(tmp_path, min_images=1)
    assert dataset.class_names == corel.COREL1000_NAMES[:2]
    assert dataset.labels[[99, 100]].tolist() == [0, 1]


def test_category_folders(tmp_path):
    for name, n in {"Birds": 3, "CD2/Tigers": 2, "Paris": 1}.items():
        for i in range(n):
            write(tmp_path / name / f"{i}.jpg", jpeg())
    dataset = corel.load(tmp_path, min_images=2)
    assert dataset.class_names == ("Birds", "CD2/Tigers")
    assert dataset.labels.tolist() == [0, 0, 0, 1, 1]
    assert dataset.ids[3] == "CD2/Tigers/0.jpg"
    assert corel.load(tmp_path, min_images=1, categories=2).class_names == ("Birds", "CD2/Tigers")
    with pytest.raises(FileError, match=r"no category has min_images=90 images; .* has 3"):
        corel.load(tmp_path)
    with pytest.raises(FileError, match=r"has only 3 categories that are large enough, not 63"):
        corel.load(tmp_path, min_images=1, categories=63)
    with pytest.raises(UnknownNameError, match="did you mean 'Birds'"):
        corel.load(tmp_path, min_images=1, categories=["Bird"])


def test_a_manifest_counts(tmp_path):
    write(tmp_path / "7.jpg", jpeg())
    write(tmp_path / "8.jpg", jpeg())
    write(tmp_path / "manifest.csv", "path,label\n8.jpg,sea\n7.jpg,sky\n")
    dataset = corel.load(tmp_path, min_images=1)
    assert dataset.class_names == ("sea", "sky")
    assert dataset.ids.tolist() == ["8.jpg", "7.jpg"]


def test_a_folder_of_collections_asks_which(corel1000):
    root = corel1000.parent / "root"
    (root / "corel5k").mkdir(parents=True)
    corel1000.rename(root / "corel1000")
    with pytest.raises(InputError, match="pass collection="):
        corel.load(root)
    assert corel.load(root, collection="corel1000").name == "corel1000"
    with pytest.raises(UnknownNameError, match="corel1000"):
        corel.load(root, collection="corel1001")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image_id": np.array([1000, 1001, 10005, 12000, 12002])}, "must be the numbers"),
        ({"image_id": np.array(IDS[:4])}, r"category must be whole numbers of shape \(4,\)"),
        ({"category": np.array([0, 0, 1, 2, 3])}, r"category must lie in 0…2"),
        ({"category": np.array([0, 0, -1, 2, 2])}, r"category must lie in 0…2"),
        ({"annot": ANNOTATION[:, :2]}, r"annot must be whole numbers of shape \(5, 3\)"),
        ({"annot": ANNOTATION / 2}, r"annot must be whole numbers"),
        ({"words": np.array([1, 2, 3])}, r"words must be a list of text"),
        ({"image_id": np.empty(0, int)}, r"labels\.npz"),
    ],
)
def test_odd_labels_are_refused_by_name(corel5k, changes, says):
    np.savez(corel5k / "labels.npz", **corel5k_labels(**changes))
    with pytest.raises(FileError, match=rf"labels\.npz.*{says}|{says}"):
        corel.load(corel5k, min_images=1)


@pytest.mark.parametrize("lack", ["category", "annot"])
def test_an_array_that_is_lacking_is_named(corel5k, lack):
    labels = corel5k_labels()
    del labels[lack]
    np.savez(corel5k / "labels.npz", **labels)
    with pytest.raises(FileError, match=rf"labels\.npz: lacks {lack}"):
        corel.load(corel5k)


def test_a_gap_in_the_numbers_is_refused(tmp_path):
    write_zip(tmp_path / "a.zip", ["0.jpg", "2.jpg"])
    with pytest.raises(FileError, match=r"a\.zip: images must be numbered 0, 1, 2"):
        corel.load(tmp_path)


def test_labels_that_are_not_the_hundreds_are_refused(corel1000):
    np.savez(corel1000 / "labels.npz", label=np.zeros(120, int), names=np.array(["a", "b"]))
    with pytest.raises(FileError, match=r"labels\.npz: label must be the image's number // 100"):
        corel.load(corel1000)


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ({"feat": np.ones((119, 2))}, r"one row of floats for each of 120"),
        ({"feat": np.full((120, 2), np.inf)}, "feat must be finite"),
        ({"feat": np.ones((120, 2)), "label": np.ones(120, int)}, "label differs"),
    ],
)
def test_features_of_other_images_are_refused(corel1000, features, says):
    np.savez(corel1000 / "corel1000_efflite0_224_f16.npz", **features)
    with pytest.raises(FileError, match=rf"efflite0_224_f16\.npz: .*{says}"):
        corel.load(corel1000)


def test_a_damaged_member_is_refused_by_name(corel5k):
    path = corel5k / "corel5k_jpeg.zip"
    dataset = corel.load(corel5k, min_images=1)
    content = bytearray(path.read_bytes())
    content[300] ^= 255
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"corel5k_jpeg\.zip: 1000\.jpeg: is damaged"):
        dataset["image"][0]
    assert dataset["image"][4].shape == (6, 8, 3)


def test_damage_ends_in_our_error(tmp_path):
    write_zip(tmp_path / "a.zip", ["0.jpg", "1.jpg"], zipfile.ZIP_DEFLATED)
    labels = np.zeros(2, np.uint8)
    np.savez(tmp_path / "labels.npz", label=labels, names=np.array(["a"]))

    def read():
        return corel.load(tmp_path, min_images=1)["image"][:]

    for name in ("a.zip", "labels.npz"):
        content = (tmp_path / name).read_bytes()
        damaged = [*truncations(content, 100), *flips(content, 100)]
        assert count_refused(tmp_path / name, damaged, read) > 140


def test_damaged_images_end_in_our_error(tmp_path):
    from bittern.data.images import ImageFiles

    for kind in ("JPEG", "PNG", "GIF", "TIFF", "BMP"):
        path = write(tmp_path / f"image.{kind.lower()}", jpeg(size=(9, 7), kind=kind))
        content = path.read_bytes()
        images = ImageFiles([path])
        damaged = [*truncations(content, 40), *flips(content, 40)]
        assert count_refused(path, damaged, lambda images=images: images[0]) > 10


def test_an_encrypted_or_strange_member_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("0.jpg", jpeg())
    with pytest.raises(BitternError, match=r"a\.zip: 0\.jpg is encrypted or not stored"):
        corel.load(tmp_path)


@pytest.mark.shared
def test_the_real_corel_1000():
    dataset = corel.load(shared_folder("corel1000"))
    assert np.bincount(dataset.labels).tolist() == [100] * 10
    assert dataset.class_names == corel.COREL1000_NAMES
    assert dataset["cnn"].shape == (1000, 1280)
    assert {image.shape for image in dataset["image"][::50]} == {(256, 384, 3), (384, 256, 3)}
    assert [image.ndim for image in dataset["image"]] == [3] * 1000  # every image decodes


@pytest.mark.shared
def test_the_real_corel_5k_has_the_published_counts():
    dataset = corel.load(shared_folder("corel5k"))
    assert len(dataset) == 4999
    counts = np.bincount(dataset.labels)
    assert len(counts) == 50
    assert set(counts.tolist()) == {99, 100}
    assert len(dataset.tag_names) == len(set(dataset.tag_names)) == 374
    assert dataset.tags.sum(axis=1).mean() == pytest.approx(3.5, abs=0.05)
    assert (len(dataset.official["train"]), len(dataset.official["test"])) == (4500, 499)
    cds = np.array(dataset.class_names, int)[dataset.labels]
    np.testing.assert_array_equal(cds, dataset.ids.astype(int) // 1000)
    assert dataset["cnn"].shape == (4999, 1280)
    assert [image.ndim for image in dataset["image"]] == [3] * 4999


@pytest.mark.shared
def test_real_features_know_the_real_classes():
    # Rows of features and images are in one order: the nearest neighbour is of the same class.
    dataset = corel.load(shared_folder("corel1000"))
    unit = dataset["cnn"] / np.linalg.norm(dataset["cnn"], axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -1)
    assert (dataset.labels[similarity.argmax(axis=1)] == dataset.labels).mean() > 0.9


@pytest.mark.parametrize("text", ["tags", "words"])
def test_words_can_be_a_second_modality(corel5k, text):
    dataset = corel.load(corel5k, min_images=1, text=text)
    rows = dataset["text"][:]
    if text == "tags":
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, ANNOTATION)
    else:
        assert rows == ["city sky", "sky", "", "city sun", "sun"]
    assert dataset.has("text").tolist() == [True, True, False, True, True]
    np.testing.assert_array_equal(dataset.tags, ANNOTATION)  # still the truth
    assert "1 image has none" in dataset.notes[-1]
    kept = corel.load(corel5k, min_images=2, text=text)
    assert kept.ids.tolist() == ["1000", "1001", "12000", "12001"]
    assert kept.has("text").all()


def test_an_unknown_form_of_the_words_is_refused(corel5k):
    with pytest.raises(UnknownNameError, match="no text of corel is called 'word'"):
        corel.load(corel5k, min_images=1, text="word")


def test_images_without_words_have_no_text(corel1000):
    with pytest.raises(FileError, match="text='words' needs words, and these images have none"):
        corel.load(corel1000, text="words")


@pytest.mark.shared
def test_the_real_corel_5k_has_words_for_every_image():
    dataset = corel.load(shared_folder("corel5k"), text="words")
    said = dataset["text"][:]
    assert len(said) == 4999 and dataset["cnn"].shape == (4999, 1280)
    assert len(dataset.complete("cnn", "text")) == 4999
    known = [set(np.array(dataset.tag_names)[row]) for row in dataset.tags]
    assert [set(text.split()) for text in said] == known
    rows = corel.load(shared_folder("corel5k"), text="tags")["text"]
    np.testing.assert_array_equal(rows, dataset.tags)
