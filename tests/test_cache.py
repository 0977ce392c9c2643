"""The cache of arrays: made once, shared, and never believed if damaged."""

import numpy as np
import pytest

from bittern.errors import FileError
from bittern.io.cache import ArrayCache, CachedArray, fingerprint_of


@pytest.fixture
def made():
    return []


@pytest.fixture
def squares(made):
    """Arrays of squares, which tell when they are made."""

    def of(n, depends_on=0):
        def make():
            made.append(n)
            return np.arange(n) ** 2

        return CachedArray("squares", f"up-to-{n}", depends_on, make)

    return of


def test_an_array_is_made_once(tmp_path, squares, made):
    cache = ArrayCache(tmp_path / "cache")
    for _ in range(2):
        assert [a.load().tolist() for a in cache.get_all([squares(3), squares(2)])] == [
            [0, 1, 4],
            [0, 1],
        ]
    assert made == [3, 2]
    assert ArrayCache(tmp_path / "cache").get(squares(3)).map().tolist() == [0, 1, 4]
    assert made == [3, 2]


def test_an_array_that_depends_on_something_else_is_another(tmp_path, squares, made):
    cache = ArrayCache(tmp_path)
    paths = {cache.get(squares(3, depends_on)).path for depends_on in (0, 1, [1, "a"])}
    assert len(paths) == 3 and made == [3, 3, 3]


def test_a_damaged_file_is_named(tmp_path, squares):
    cache = ArrayCache(tmp_path)
    path = cache.get(squares(3)).path
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FileError, match=rf"Delete .*{path.name} to compute it again"):
        cache.get(squares(3))


def test_an_array_that_cannot_be_made_leaves_nothing(tmp_path):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ArrayCache(tmp_path).get(CachedArray("a", "b", 0, fail))
    assert not list(tmp_path.rglob("*.npz")) and not list(tmp_path.rglob("*.tmp"))


def test_fingerprints_do_not_change():
    # Files that exist are found by them.
    assert fingerprint_of({"b": [1, "é"], "a": None}) == "1c3d52eb7867"
    assert fingerprint_of([1]) == fingerprint_of([1], 32)[:12] != fingerprint_of(["1"])
