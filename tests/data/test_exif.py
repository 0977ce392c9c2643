"""What image files say about themselves, and HEIC."""

import io
import random
import sys

import numpy as np
import pytest
from PIL import Image

from bittern.data.exif import KEYS, read_facts
from bittern.data.images import decode_image, read_image
from bittern.errors import FileError

WIDTH, HEIGHT = 40, 30


def exif(orientation=1, taken="2019:05:01 10:11:12", latitude=(33.0, 51.0, 24.12), side="S"):
    block = Image.Exif()
    block[0x010F], block[0x0110], block[0x0112] = "Canon\0", " EOS  5D ", orientation
    block[0x0132] = "2021:01:01 00:00:00"
    block.get_ifd(0x8769)[0x9003] = taken
    place = block.get_ifd(0x8825)
    place[1], place[2], place[3], place[4] = side, latitude, "E", (151.0, 12.0, 30.5)
    return block


def write(path, block):
    if path.suffix == ".heic":
        pytest.importorskip("pillow_heif").register_heif_opener()
    Image.new("RGB", (WIDTH, HEIGHT), (200, 10, 10)).save(path, exif=block)
    return path


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".png", ".heic"])
def test_the_facts_of_a_photo(tmp_path, suffix):
    facts = read_facts(write(tmp_path / f"a{suffix}", exif()))
    place = {"latitude": -(33 + 51 / 60 + 24.12 / 3600), "longitude": 151 + 12 / 60 + 30.5 / 3600}
    for key, degrees in place.items():
        assert facts.pop(key) == pytest.approx(degrees, abs=1e-6)
    assert facts == {
        "width": WIDTH,
        "height": HEIGHT,
        "taken": "2019-05-01 10:11:12",
        "camera_make": "Canon",
        "camera_model": "EOS 5D",
        "orientation": 1,
    }
    assert set(facts) | set(place) == set(KEYS)


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".png", ".tiff"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_is_that_of_the_image_turned_upright(tmp_path, suffix, orientation):
    file = write(tmp_path / f"a{suffix}", exif(orientation))
    facts = read_facts(file)
    assert (facts["height"], facts["width"]) == read_image(file).shape[:2]
    assert facts["orientation"] == orientation
    assert (facts["width"] == WIDTH) == (orientation < 5)


def test_impossible_values_are_left_out(tmp_path):
    never_set = exif(taken="0000:00:00 00:00:00")
    assert read_facts(write(tmp_path / "a.jpg", never_set))["taken"] == "2021-01-01 00:00:00"
    for wrong in ({"latitude": (133.0, 0.0, 0.0)}, {"side": "X"}, {"latitude": (1.0,)}):
        facts = read_facts(write(tmp_path / "a.jpg", exif(**wrong)))
        assert "latitude" not in facts and "longitude" not in facts and "taken" in facts
    assert read_facts(write(tmp_path / "b.png", Image.Exif())) == {"width": 40, "height": 30}
    (tmp_path / "c.png").write_bytes(b"")
    assert read_facts(tmp_path / "c.png") == read_facts(tmp_path / "none.png") == {}


def test_a_damaged_block_never_stops_the_reading_of_an_image(tmp_path):
    content = write(tmp_path / "a.jpg", exif()).read_bytes()
    start = content.index(b"Exif\0\0") + 6
    length = int.from_bytes(content[start - 8 : start - 6]) - 8
    pixels, rng, n_other = decode_image(io.BytesIO(content), "a"), random.Random(0), 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(start, start + length)] = rng.randrange(256)
        (tmp_path / "b.jpg").write_bytes(damaged)
        facts = read_facts(tmp_path / "b.jpg")
        assert {facts["width"], facts["height"]} == {WIDTH, HEIGHT}
        assert all(isinstance(value, int | float | str) for value in facts.values())
        seen = decode_image(io.BytesIO(damaged), "b")
        assert seen.size == pixels.size
        n_other += facts != read_facts(tmp_path / "a.jpg")
    assert n_other > 20


def test_heic_is_read_whatever_its_name(tmp_path):
    file = write(tmp_path / "a.heic", exif())
    for name in ("a.heic", "b.jpg"):
        (tmp_path / name).write_bytes(file.read_bytes())
        image = read_image(tmp_path / name)
        assert image.shape == (HEIGHT, WIDTH, 3)
        np.testing.assert_allclose(image.mean(axis=(0, 1)), (200, 10, 10), atol=4)


def test_heic_without_its_library_names_the_file_and_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x1cftypheic\0\0\0\0mif1heic")
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setattr(Image, "ID", [kind for kind in Image.ID if kind != "HEIF"])
    with pytest.raises(FileError, match=r"a\.heic: .*pip install 'bittern\[heic\]'") as refused:
        read_image(tmp_path / "a.heic")
    assert len(str(refused.value).splitlines()) == 1
