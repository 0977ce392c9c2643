"""Profiles saved and loaded."""

import errno
import gzip
import os

import numpy as np
import pytest

from bittern import Codes, FileError, InputError, Relevance, TieProfile, evaluate

TRUTH = Relevance.from_matrix([[0, 1, 2], [1, 0, 0]])
RUN = "q1 Q0 a 1 2.5 t\nq1 Q0 b 2 2.5 t\nq1 Q0 c 3 1.0 t\nq3 Q0 a 1 1 t\n"
QRELS = "q1 0 b 1\nq1 0 d 2\nq2 0 a 1\n"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def from_trec(folder):
    (folder / "run").write_text(RUN)
    (folder / "qrels.gz").write_bytes(gzip.compress(QRELS.encode()))
    return TieProfile.from_trec(folder / "run", folder / "qrels.gz")


PROFILES = {
    "codes": lambda _: TieProfile.from_codes(
        Codes.from_bits(np.eye(2, 70)), Codes.from_bits(np.eye(3, 70)), TRUTH
    ),
    "real distances": lambda _: TieProfile.from_distances(
        [[0.5, 1, 1], [-np.inf, 0, np.inf]], TRUTH
    ),
    "compact": lambda _: TieProfile.from_distances([[0.5, 1, 2], [3, 2, 1.5]], TRUTH, compact=True),
    "hits": lambda _: TieProfile.from_hits([[2, -1], [1, 0]], [[1, 0], [3, 4]], TRUTH),
    "trec": from_trec,
    "no queries": lambda _: TieProfile.from_distances([[0.5, 1, 1]] * 2, TRUTH).take([]),
}


@pytest.fixture(params=PROFILES)
def profile(request, tmp_path):
    (tmp_path / "trec").mkdir()
    return PROFILES[request.param](tmp_path / "trec")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "saved").mkdir()
    return tmp_path / "saved" / "p.npz"


def assert_alike(a, b):
    """The same in every field, not only equal in counts."""
    assert a == b
    for name in ("counts", "gains", "unretrieved", "distances", "query_ids"):
        mine, other = getattr(a, name), getattr(b, name)
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert mine.dtype == other.dtype, name
            np.testing.assert_array_equal(mine, other, err_msg=name)
    assert a.is_compact == b.is_compact
    assert isinstance(a.is_compact, bool)


def test_a_profile_survives_the_round_trip(profile, path):
    profile.save(path)
    loaded = TieProfile.load(str(path))
    assert_alike(loaded, profile)
    assert (loaded.trec is None) == (profile.trec is None)
    if profile.trec is not None:
        assert_alike(loaded.trec, profile.trec)
    assert names_in(path.parent) == ["p.npz"]


def test_the_order_of_trec_eval_survives_the_round_trip(tmp_path, path):
    profile = from_trec(tmp_path)
    profile.save(path)
    names = ["ap", "ap:trec", "rr:trec"]
    before, after = evaluate(profile, names), evaluate(TieProfile.load(path), names)
    for name in names:
        np.testing.assert_array_equal(before[name].per_query, after[name].per_query)
    # a and b tie at rank 1; trec_eval puts b first, and b is relevant.
    assert before["rr:trec"].per_query[0] == 1
    assert before["ap"].per_query[0] == pytest.approx((1 + 1 / 2) / 2 / 2)  # of two relevant


def test_saved_shards_add_up(path):
    a = TieProfile.from_distances([[0, 1, 1], [2, 0, 1]], TRUTH)
    a.save(path)
    assert TieProfile.load(path) + TieProfile.load(path) == a + a


@pytest.mark.parametrize("name", ["p.npy", "p", "p.NPZ", "p.txt"])
def test_an_unknown_ending_is_refused_and_nothing_written(tmp_path, name):
    profile = PROFILES["codes"](None)
    with pytest.raises(InputError, match=r"save a profile as \.npz"):
        profile.save(tmp_path / name)
    assert names_in(tmp_path) == []


def test_a_failing_write_leaves_the_old_file_and_no_other(path, monkeypatch):
    old = PROFILES["codes"](None)
    old.save(path)

    def fail(file, *arrays, **options):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(FileError, match="No space left on device"):
        PROFILES["hits"](None).save(path)
    assert names_in(path.parent) == ["p.npz"]
    assert TieProfile.load(path) == old


def test_a_missing_file_and_a_folder_are_file_errors(tmp_path):
    with pytest.raises(FileError, match=r"none\.npz: no such file"):
        TieProfile.load(tmp_path / "none.npz")
    with pytest.raises(FileError, match="is a folder"):
        TieProfile.load(tmp_path)


def test_a_file_cut_anywhere_is_a_file_error(path):
    PROFILES["real distances"](None).save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(
            FileError, match=r"p\.npz: .*not a readable (tie profile|(\.npy or )?\.npz file)"
        ):
            TieProfile.load(path)


def test_a_file_with_one_byte_changed_is_never_another_error(path):
    PROFILES["real distances"](None).save(path)
    whole = path.read_bytes()
    refused, escaped = 0, []
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x29]) + whole[place + 1 :])
        try:
            TieProfile.load(path)
        except FileError:
            refused += 1
        except Exception as error:
            escaped.append(f"byte {place}: {error!r}")
    assert refused
    assert not escaped, "\n".join(escaped[:9])


def test_a_plain_array_is_no_profile(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FileError, match=r"p\.npz: "):
        TieProfile.load(path)


def test_a_file_of_codes_is_no_profile(path):
    Codes.from_bits(np.eye(3)).save(path)
    with pytest.raises(
        FileError, match=r"not a tie profile; it has the arrays \['n_bits', 'words'\]"
    ):
        TieProfile.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("counts", np.zeros(3)),
        ("counts", np.array(1)),
        ("counts", np.zeros((2, 3, 3))),
        ("counts", np.zeros((2, 3, 2), np.uint32)),
        ("counts", None),
        ("gains", None),
        ("gains", np.array([0, 2, 1])),
        ("gains", np.array([1, 2, 3])),
        ("gains", np.array([0.0, 0.5, 1.0])),
        ("gains", np.array(["0", "1", "2"])),
        ("gains", np.array(0)),
        ("unretrieved", None),
        ("unretrieved", np.full((2, 3), -1)),
        ("unretrieved", np.zeros((2, 2), np.int64)),
        ("unretrieved", np.full((2, 3), "a")),
        ("unretrieved", np.full((2, 3), 0.5)),
        ("is_compact", None),
        ("is_compact", np.array([True, False])),
        ("distances", np.zeros((1, 1))),
        ("distances", np.full((2, 3), "a")),
        ("query_ids", np.array(["only one"])),
        ("another", np.zeros(3)),
        ("trec_counts", np.zeros((2, 3, 3), np.uint32)),
        ("counts", np.array([[[None]]])),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value).replace("\n", ""),
)
def test_a_file_whose_arrays_do_not_fit_is_a_file_error(path, name, value):
    TieProfile.from_distances([[0.5, 1, 2], [-3, 0, 9]], TRUTH).save(path)
    with np.load(path) as archive:
        arrays = dict(archive) | {name: value}
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(FileError, match=r"p\.npz: "):
        TieProfile.load(path)
