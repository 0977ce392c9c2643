"""Tables of metadata, matched with images."""

import json

import pytest

from bittern.data.metadata_files import read_metadata
from bittern.errors import FileError

PATHS = ("a.jpg", "x/b.jpg", "x/c.jpg", "y/c.jpg", "y/träume.jpg")


def read(tmp_path, content, name="t.csv", paths=PATHS, **options):
    (tmp_path / name).write_text(content, encoding="utf-8")
    return read_metadata(tmp_path / name, tmp_path, paths, **options)


def test_columns_get_the_types_of_their_values(tmp_path):
    found = read(
        tmp_path,
        "file,year,size,inventory,public,title,tags,empty\n"
        'a.jpg,1999,1.5,007,true," one, two ",red; round;,\n'
        "x/b.jpg,-3,2,12,False,3,,\n"
        "x/c.jpg,,,,,,,\n"
        "nowhere.jpg,1,1,x,true,t,,\n",
    )
    assert found.columns == ("year", "size", "inventory", "public", "title", "tags")
    assert found.rows == {
        "a.jpg": {
            "year": 1999,
            "size": 1.5,
            "inventory": "007",
            "public": True,
            "title": "one, two",
            "tags": ["red", "round"],
        },
        "x/b.jpg": {"year": -3, "size": 2.0, "inventory": "12", "public": False, "title": "3"},
        "x/c.jpg": {},
    }
    assert [name for name, _ in found.unmatched] == ["nowhere.jpg"]
    assert "t.csv, line 5: there is no image 'nowhere.jpg'" in found.unmatched[0][1]
    assert found.undescribed == ("y/c.jpg", "y/träume.jpg")


def test_types_are_those_of_all_rows_also_of_rows_without_an_image(tmp_path):
    content = "file,number\na.jpg,12\nnowhere.jpg,12b\n"
    assert read(tmp_path, content).rows["a.jpg"] == {"number": "12"}
    assert read(tmp_path, content[:-2]).rows["a.jpg"] == {"number": 12}


def test_json_lines_keep_their_types_unless_they_differ(tmp_path):
    rows = [
        {"path": "a.jpg", "n": 1, "mixed": 1, "real": 1, "list": ["a"]},
        {"path": "x/b.jpg", "n": 2, "mixed": "b", "real": 0.5, "list": []},
    ]
    found = read(tmp_path, "\n".join(map(json.dumps, rows)), "t.jsonl")
    first = found.rows["a.jpg"]
    assert first == {"n": 1, "mixed": "1", "real": 1.0, "list": ["a"]}
    assert type(first["real"]) is float


@pytest.mark.parametrize(
    ("cell", "image"),
    [
        ("x/b.jpg", "x/b.jpg"),
        ("./x/b.jpg", "x/b.jpg"),
        ("b.jpg", "x/b.jpg"),  # the only one of that name
        ("x\\b.jpg", "x/b.jpg"),
        ("y/tra\u0308ume.jpg", "y/träume.jpg"),  # as macOS writes it
        ("tra\u0308ume.jpg", "y/träume.jpg"),
    ],
)
def test_an_image_is_found_by_path_or_by_a_name_that_is_unique(tmp_path, cell, image):
    assert set(read(tmp_path, f"Filename,t\n{cell},1\n").rows) == {image}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("file,t\nc.jpg,1\n", r"line 2: 2 images are called 'c.jpg'; write the path, such as 'x/c"),
        ("file,t\na.jpg,1\n./a.jpg,2\n", r"line 3: 'a.jpg' is repeated, first in line 2"),
        ("file,t\n ,1\n", "line 2: a row must name its image"),
        ("title,t\nx,1\n", "one of them file or path"),
        ("file,a b,a_b\na.jpg,1,2\n", "'a b' and 'a_b' would both be called a_b"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(tmp_path, content, says):
    with pytest.raises(FileError, match=says):
        read(tmp_path, content, rename=lambda name: name.replace(" ", "_"))
