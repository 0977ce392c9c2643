"""Wiki in its three forms."""

import numpy as np
import pytest
from format_true import count_refused, flips, shared_folder, truncations, write
from scipy.io import savemat

from bittern.data.readers import wiki
from bittern.errors import FileError

N_TRAIN, N_TEST = 5, 3
TRAIN_LABELS, TEST_LABELS = [1, 10, 3, 3, 2], [10, 1, 7]


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    sizes = {"tr": N_TRAIN, "te": N_TEST}
    return {
        f"{kind}_{part}": rng.random((n, width))
        for part, n in sizes.items()
        for kind, width in (("I", 128), ("T", 10))
    }


@pytest.fixture
def labels():
    return {"L_tr": np.array(TRAIN_LABELS), "L_te": np.array(TEST_LABELS)}


def write_published(folder, arrays):
    savemat(folder / "raw_features.mat", arrays)
    for part, given in (("train", TRAIN_LABELS), ("test", TEST_LABELS)):
        lines = [f"{part}text{i}-1\t{part}{i:x}f4\t{c}\n" for i, c in enumerate(given)]
        write(folder / f"{part}set_txt_img_cat.list", "".join(lines))


def check(dataset, arrays):
    assert dataset.labels.tolist() == [0, 9, 2, 2, 1, 9, 0, 6]  # categories less one
    assert dataset.class_names[:2] == ("art", "biology")
    assert dataset.class_names[-1] == "warfare"
    np.testing.assert_array_equal(dataset["image"], np.vstack((arrays["I_tr"], arrays["I_te"])))
    np.testing.assert_array_equal(dataset["text"], np.vstack((arrays["T_tr"], arrays["T_te"])))
    assert dataset.official["train"].tolist() == [0, 1, 2, 3, 4]
    assert dataset.official["test"].tolist() == [5, 6, 7]


def test_the_published_files(tmp_path, arrays):
    write_published(tmp_path, arrays)
    dataset = wiki.load(tmp_path)
    check(dataset, arrays)
    assert dataset.ids[5] == "testtext0-1/test0f4"


@pytest.mark.parametrize("shape", ["row", "column", "one-hot"])
def test_a_mat_file_with_labels(tmp_path, arrays, labels, shape):
    if shape == "one-hot":
        labels = {key: np.eye(10)[given - 1] for key, given in labels.items()}
    elif shape == "column":
        labels = {key: given[:, None].astype(float) for key, given in labels.items()}
    savemat(tmp_path / "wiki_data.mat", {**arrays, **labels}, do_compression=True)
    check(wiki.load(tmp_path), arrays)


def test_a_matlab_73_file_with_labels(tmp_path, arrays, labels):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "wiki_data.mat", "w", userblock_size=512) as file:
        for name, array in {
            **arrays,
            "L_tr": labels["L_tr"][:, None],
            "L_te": labels["L_te"][:, None],
        }.items():
            file[name] = array.T
    with (tmp_path / "wiki_data.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    check(wiki.load(tmp_path), arrays)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_file(tmp_path, arrays, labels, save):
    save(tmp_path / "wiki.npz", **arrays, **{k: v.astype(np.uint8) for k, v in labels.items()})
    check(wiki.load(tmp_path), arrays)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"I_tr": np.ones((5, 127))}, r"I_tr must have 128 columns, got 127"),
        ({"T_te": np.ones((2, 10))}, r"must come in pairs, got 3 and 2 rows in T_te"),
        ({"T_te": np.full((3, 10), np.nan)}, r"T_te must be finite, but row 0"),
        ({"I_te": np.ones(3)}, r"I_te must be 2-D"),
        ({"L_tr": np.array([1, 2])}, r"has 5 rows, but L_tr labels 2"),
        ({"L_te": np.array([0, 1, 2])}, r"L_te must be categories 1…10"),
        ({"L_te": np.array([1, 1, 2.5])}, r"L_te must be categories 1…10"),
        ({"L_te": np.array(["1", "2", "3"])}, r"L_te must be categories 1…10"),
    ],
)
def test_odd_arrays_are_refused_by_name(tmp_path, arrays, labels, change, says):
    np.savez(tmp_path / "wiki.npz", **{**arrays, **labels, **change})
    with pytest.raises(FileError, match=rf"wiki\.npz: .*{says}|wiki\.npz: {says}"):
        wiki.load(tmp_path)


def test_an_array_that_is_lacking_is_named(tmp_path, arrays):
    np.savez(tmp_path / "wiki.npz", **arrays)
    with pytest.raises(FileError, match=r"wiki\.npz: lacks L_tr, L_te"):
        wiki.load(tmp_path)


def test_pickles_are_not_read(tmp_path, arrays, labels):
    np.savez(tmp_path / "wiki.npz", **{**arrays, **labels, "L_te": np.array([1, 2, None])})
    with pytest.raises(FileError, match="'L_te' holds pickled objects"):
        wiki.load(tmp_path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a\tb\t11\n", r"testset_txt_img_cat\.list, line 2: .*'a\\tb\\t11'"),
        ("a\tb\n", r"testset_txt_img_cat\.list, line 2"),
        ("", r"has 3 rows, but L_te labels 1"),
    ],
)
def test_odd_lists_are_refused(tmp_path, arrays, line, says):
    write_published(tmp_path, arrays)
    write(tmp_path / "testset_txt_img_cat.list", f"a\tb\t1\n{line}")
    with pytest.raises(FileError, match=says):
        wiki.load(tmp_path)


def test_an_empty_folder_says_what_it_lacks(tmp_path):
    with pytest.raises(FileError, match=r"none of raw_features\.mat, wiki_data\.mat"):
        wiki.load(tmp_path)


@pytest.mark.parametrize("compressed", [True, False])
def test_damage_of_a_mat_file_ends_in_our_error(tmp_path, arrays, labels, compressed):
    small = {key: array.astype(np.float32) for key, array in arrays.items()}
    path = tmp_path / "wiki_data.mat"
    savemat(path, {**small, **labels}, do_compression=compressed)
    content = path.read_bytes()
    damaged = [*truncations(content, 150), *flips(content, 150)]
    assert count_refused(path, damaged, lambda: wiki.load(tmp_path)) > 100


def test_damage_of_an_npz_file_ends_in_our_error(tmp_path, arrays, labels):
    path = tmp_path / "wiki.npz"
    np.savez_compressed(path, **arrays, **labels)
    content = path.read_bytes()
    damaged = [*truncations(content, 150), *flips(content, 150)]
    # Checksums find nearly all; a changed date of a member does no harm.
    assert count_refused(path, damaged, lambda: wiki.load(tmp_path)) > 280


def test_damage_of_a_list_ends_in_our_error(tmp_path, arrays):
    write_published(tmp_path, arrays)
    path = tmp_path / "testset_txt_img_cat.list"
    content = path.read_bytes()
    damaged = [*truncations(content), *flips(content, 100)]
    assert count_refused(path, damaged, lambda: wiki.load(tmp_path)) > len(content) / 2


@pytest.mark.shared
def test_the_real_wiki_has_the_published_counts():
    dataset = wiki.load(shared_folder("wiki"))
    assert dataset["image"].shape == (2866, 128)
    assert dataset["text"].shape == (2866, 10)
    train, test = dataset.official["train"], dataset.official["test"]
    assert (len(train), len(test)) == (2173, 693)
    # Table 1 of Rasiwasia et al., art to warfare: this also tells that class 2 is biology.
    published = [138, 272, 244, 248, 202, 178, 186, 144, 214, 347]
    assert np.bincount(dataset.labels[train]).tolist() == published
    assert np.bincount(dataset.labels[test]).tolist() == [34, 88, 96, 85, 65, 58, 51, 41, 71, 104]
    np.testing.assert_allclose(np.asarray(dataset["text"]).sum(axis=1), 1, atol=1e-5)
