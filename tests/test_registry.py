import pytest

from bittern import BitternError, UnknownNameError
from bittern.registry import Registry

BIRDS = Registry("bird", {"bittern": 1, "heron": 2, "egret": 3})


def test_known_names_lead_to_their_things():
    assert [BIRDS[name] for name in ("egret", "bittern")] == [3, 1]


def test_names_come_in_the_order_given():
    assert list(BIRDS) == ["bittern", "heron", "egret"]
    assert list(BIRDS.items()) == [("bittern", 1), ("heron", 2), ("egret", 3)]
    assert len(BIRDS) == 3


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("biterns", "no bird is called 'biterns'; did you mean 'bittern'?"),
        ("Heron", "no bird is called 'Heron'; did you mean 'heron'?"),
        ("gull", "no bird is called 'gull'; there are bittern, heron, egret."),
        ("", "no bird is called ''; there are bittern, heron, egret."),
        (None, "no bird is called None; there are bittern, heron, egret."),
        (3, "no bird is called 3; there are bittern, heron, egret."),
    ],
)
def test_an_unknown_name_is_refused_kindly(name, says):
    with pytest.raises(UnknownNameError) as caught:
        BIRDS[name]
    assert str(caught.value) == says
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, BitternError)


def test_several_near_names_are_all_offered():
    with pytest.raises(UnknownNameError, match=r"did you mean 'ap@100' or 'ap@10'\?"):
        Registry("metric", {"ap@10": 1, "ap@100": 2})["ap@1000"]


def test_asking_whether_a_name_is_there_raises_nothing():
    assert "heron" in BIRDS
    assert "gull" not in BIRDS
    assert BIRDS.get("gull") is None
    assert BIRDS.get("gull", 7) == 7


def test_the_table_cannot_be_written():
    with pytest.raises(TypeError):
        BIRDS["gull"] = 4
    with pytest.raises(TypeError):
        del BIRDS["heron"]


def test_the_table_keeps_its_own_copy():
    entries = {"wren": 1}
    birds = Registry("bird", entries)
    entries["gull"] = 2
    assert list(birds) == ["wren"]


def test_an_empty_table_refuses_everything():
    with pytest.raises(UnknownNameError, match="no bird is called 'wren'"):
        Registry("bird", {})["wren"]


def test_repr_lists_the_names():
    assert repr(BIRDS) == "<3 birds: bittern, heron, egret>"
