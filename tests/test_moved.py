"""Old names of modules still import, say so, and give the same objects."""

import importlib
import sys

import pytest

import bittern
from bittern.moved import MOVED, renamed


@pytest.fixture(autouse=True)
def forgotten():
    """Each test imports the old names anew."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if any(name == old or name.startswith(f"{old}.") for old in MOVED):
            del sys.modules[name]


@pytest.mark.parametrize(("old", "new"), MOVED.items(), ids=MOVED)
def test_an_old_name_gives_the_objects_of_the_new_one(old, new):
    real = importlib.import_module(new)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved to {new}; import it from there"):
        module = importlib.import_module(old)
    names = [name for name in dir(module) if not name.startswith("_")]
    assert names and all(getattr(module, name) is getattr(real, name) for name in names)


def test_the_warning_points_at_the_import():
    with pytest.warns(DeprecationWarning) as caught:
        from bittern.trec import Run
    assert caught[0].filename == __file__
    assert Run is importlib.import_module("bittern.io.trec").Run


def test_modules_below_an_old_name_are_not_loaded_twice():
    real = importlib.import_module("bittern.networks.small")
    with pytest.warns(DeprecationWarning):
        module = importlib.import_module("bittern.hashing.backbones.small")
    assert module.SmallNet is real.SmallNet


def test_a_star_import_of_an_old_name_imports_its_names():
    names = {}
    with pytest.warns(DeprecationWarning):
        sys.modules.pop("bittern.trec", None)
        exec("from bittern.trec import *", names)
    assert {"read_run", "read_qrels", "write_run", "Run", "Qrels"} <= names.keys()


def test_former_keywords_still_work():
    @renamed(pictures="images")
    def show(images, n=1):
        return images, n

    with pytest.warns(DeprecationWarning, match="show: the keyword 'pictures' is now 'images'"):
        assert show(pictures="a", n=2) == ("a", 2)
    with pytest.raises(TypeError, match="photos"):
        show(photos="a")
    with pytest.warns(DeprecationWarning), pytest.raises(bittern.InputError):
        bittern.features.extract(pictures="nowhere", features=[], path_out="out.npz")


def test_unknown_names_are_still_unknown():
    with pytest.warns(DeprecationWarning), pytest.raises(ModuleNotFoundError, match="nothing"):
        importlib.import_module("bittern.trec.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"bittern\.nothing"):
        importlib.import_module("bittern.nothing")
    with pytest.raises(ImportError, match="nobody"):
        from bittern.trec import nobody  # noqa: F401
