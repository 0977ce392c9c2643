"""Images of every kind, each made with Pillow, as ``(h, w, 3)`` uint8."""

import io
import warnings
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from bittern.data.images import ZipImages
from bittern.errors import FileError, InputError
from bittern.features.base import iter_images, to_image

RED, GREEN, BLUE, WHITE, BLACK = (
    (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0),
)  # fmt: skip


def encoded(image, form="png", **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def two_pixels(mode, left, right):
    image = Image.new(mode, (2, 1), left)
    image.putpixel((1, 0), right)
    return image


def read(content):
    """An image as rows of tuples, checked to be what all features are promised."""
    image = to_image(content, "it")
    assert (image.dtype, image.ndim, image.shape[2]) == (np.uint8, 3, 3)
    assert image.flags.c_contiguous and not image.flags.writeable
    return [[tuple(pixel) for pixel in row] for row in image.tolist()]


def with_palette(**options):
    image = Image.new("P", (2, 1))
    image.putpalette([*RED, *BLUE])
    image.putpixel((1, 0), 1)
    return encoded(image, **options)


def png_of_grey_16(values):
    return encoded(Image.fromarray(np.array([values], np.uint16)))


def tiff_of_grey_16(values, mode="I;16"):
    order = "<u2" if mode == "I;16" else ">u2"
    content = np.array(values).astype(order).tobytes()
    return encoded(Image.frombytes(mode, (len(values), 1), content), "tiff")


@pytest.mark.parametrize(
    ("content", "pixels"),
    [
        pytest.param(encoded(two_pixels("RGB", RED, BLUE)), [RED, BLUE], id="colour"),
        pytest.param(encoded(two_pixels("L", 7, 200)), [(7,) * 3, (200,) * 3], id="grey"),
        pytest.param(encoded(two_pixels("1", 0, 1)), [BLACK, WHITE], id="black and white"),
        pytest.param(encoded(two_pixels("RGBA", (*RED, 255), (*RED, 0))), [RED, WHITE], id="alpha"),
        # (255, 0, 0) at 102 / 255 = 0.4 over white: 255, 0.6 * 255 = 153, 153
        pytest.param(
            encoded(two_pixels("RGBA", (*RED, 102), (*BLACK, 51))),
            [(255, 153, 153), (204, 204, 204)],
            id="half transparent",
        ),
        pytest.param(
            encoded(two_pixels("LA", (9, 255), (9, 0))), [(9, 9, 9), WHITE], id="grey with alpha"
        ),
        pytest.param(with_palette(), [RED, BLUE], id="palette"),
        pytest.param(with_palette(form="gif"), [RED, BLUE], id="palette in a GIF"),
        pytest.param(with_palette(transparency=1), [RED, WHITE], id="palette, one transparent"),
        pytest.param(
            with_palette(transparency=bytes((102, 255))),
            [(255, 153, 153), BLUE],
            id="palette with alpha",
        ),
        pytest.param(
            encoded(two_pixels("RGB", RED, BLUE), transparency=RED), [WHITE, BLUE], id="key colour"
        ),
        pytest.param(
            encoded(two_pixels("CMYK", (0, 255, 255, 0), (0, 0, 0, 255)), "tiff"),
            [RED, BLACK],
            id="CMYK",
        ),
        pytest.param(
            encoded(Image.new("CMYK", (16, 8), (0, 255, 255, 0)), "jpeg", quality=100),
            None,
            id="CMYK as Adobe writes it",
        ),
        # 257 * 100 is 100; 65535 is 255; 300 / 257 = 1.17; 65400 / 257 = 254.5 …
        pytest.param(
            png_of_grey_16([0, 25700, 65535, 300, 65400]),
            [(v,) * 3 for v in (0, 100, 255, 1, 254)],
            id="16-bit grey PNG",
        ),
        pytest.param(
            tiff_of_grey_16([0, 25700, 65535]), [(v,) * 3 for v in (0, 100, 255)], id="16-bit TIFF"
        ),
        pytest.param(
            tiff_of_grey_16([0, 25700, 65535], "I;16B"),
            [(v,) * 3 for v in (0, 100, 255)],
            id="16-bit TIFF, the other way round",
        ),
        pytest.param(b"P5 2 1 65535\n\xff\xff\x64\x64", [WHITE, (100,) * 3], id="16-bit PGM"),
        pytest.param(encoded(Image.new("RGB", (1, 1), GREEN)), [GREEN], id="1 × 1"),
        pytest.param(
            encoded(
                Image.new("RGB", (1, 1), RED),
                "gif",
                save_all=True,
                append_images=[Image.new("RGB", (1, 1), BLUE)],
            ),
            [RED],
            id="first frame of an animation",
        ),
        pytest.param(
            encoded(
                Image.new("RGB", (1, 1), RED),
                "tiff",
                save_all=True,
                append_images=[Image.new("RGB", (9, 9), BLUE)],
            ),
            [RED],
            id="first of many pages",
        ),
    ],
)
def test_every_kind_is_three_bytes_a_pixel(content, pixels, tmp_path):
    (tmp_path / "file").write_bytes(content)
    assert read(content) == read(tmp_path / "file") == read(str(tmp_path / "file"))
    with Image.open(io.BytesIO(content)) as opened:
        assert read(opened) == read(content)
    if pixels is not None:
        assert read(content) == [pixels]


def test_cmyk_of_adobe_is_not_the_negative():
    # Pillow writes JPEGs in CMYK as Adobe does, inverted, with Adobe's mark.
    content = encoded(Image.new("CMYK", (16, 8), (0, 255, 255, 0)), "jpeg", quality=100)
    assert b"Adobe" in content
    assert np.abs(to_image(content, "it").astype(int) - RED).max() <= 3


def test_16_bits_round_to_the_nearest_of_256():
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    image = to_image(encoded(Image.fromarray(values)), "it")
    np.testing.assert_array_equal(image[..., 1], np.rint(values / 257))
    np.testing.assert_array_equal(to_image(values, "it"), image)


def test_the_transparent_value_of_16_bit_grey_is_white():
    plain = png_of_grey_16([0, 25700])
    chunk = b"tRNS" + (25700).to_bytes(2, "big")
    whole = (2).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    place = plain.index(b"IDAT") - 4
    assert read(plain[:place] + whole + plain[place:]) == [[BLACK, WHITE]]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["jpeg", "png", "tiff"])
def test_images_are_turned_upright(orientation, form):
    # EXIF's definition: the stored row 0 and column 0 are the upright image's (top, left),
    # (top, right), (bottom, right), (bottom, left), (left, top), (right, top), …
    upright = np.zeros((24, 16, 3), np.uint8)
    upright[:8, :8] = 255  # the top left corner
    upright[16:, :8] = 128
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright.transpose(1, 0, 2)[::-1],
        7: upright.transpose(1, 0, 2)[::-1, ::-1],
        8: upright.transpose(1, 0, 2)[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(Image.fromarray(np.ascontiguousarray(stored)), form, exif=exif)
    image = to_image(content, "it")
    assert image.shape == upright.shape
    assert np.abs(image.astype(int) - upright).mean() < 3
    with Image.open(io.BytesIO(content)) as opened:
        np.testing.assert_array_equal(to_image(opened, "it"), image)
        if form != "tiff":  # which Pillow turns when it loads it
            assert opened.getexif()[0x0112] == orientation, "the caller's image stays as it is"


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (np.array([[5, 6]], np.uint8), [[(5,) * 3, (6,) * 3]]),
        (np.array([[[5], [6]]], np.uint8), [[(5,) * 3, (6,) * 3]]),
        (np.array([[RED, BLUE]], np.uint8), [[RED, BLUE]]),
        (np.array([[[*RED, 102], [*RED, 0]]], np.uint8), [[(255, 153, 153), WHITE]]),
        (np.array([[True, False]]), [[WHITE, BLACK]]),
        (np.array([[65535, 25700]], np.uint16), [[WHITE, (100,) * 3]]),
        (np.array([[[65535, 0, 0, 26214]]], np.uint16), [[(255, 153, 153)]]),
    ],
)
def test_arrays_mean_what_files_mean(pixels, expected):
    pixels.flags.writeable = False
    assert read(pixels) == expected


def test_slices_of_arrays_are_as_good(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 4), dtype=np.uint8)
    for part in (pixels[::2, ::-1], pixels[..., ::-1][..., 1:], pixels.transpose(1, 0, 2)):
        np.testing.assert_array_equal(to_image(part, "it"), to_image(part.copy(), "it"))


def test_the_caller_s_array_may_still_be_written_to():
    pixels = np.zeros((2, 2, 3), np.uint8)
    assert not to_image(pixels, "it").flags.writeable
    pixels[0] = 1


@pytest.mark.parametrize("form", ["png", "jpeg", "gif", "bmp", "tiff", "webp", "ppm"])
@pytest.mark.parametrize("kept", [0, 5, 0.5, 0.95])
def test_truncated_and_empty_files_are_named(form, kept, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    whole = encoded(Image.fromarray(noise), form)
    path = tmp_path / "cut.jpg"
    path.write_bytes(whole[: int(kept if kept >= 1 else kept * len(whole))])
    with pytest.raises(FileError, match=r"cut\.jpg: not a readable image \(.+\)\.$") as caught:
        to_image(path, "it")
    assert "BytesIO" not in str(caught.value)
    with pytest.raises(FileError, match=r"^it: not a readable image \(.+\)\.$") as caught:
        to_image(path.read_bytes(), "it")
    assert "BytesIO" not in str(caught.value)


def test_damaged_files_never_raise_anything_else(tmp_path):
    rng = np.random.default_rng(1)
    noise = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
    n_refused = 0
    for form in ("png", "jpeg", "gif", "tiff"):
        for _ in range(40):
            content = bytearray(encoded(noise, form))
            for place in rng.integers(0, len(content), 4):
                content[place] = rng.integers(256)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    assert to_image(bytes(content), "it").shape[2] == 3
                except FileError as error:
                    n_refused += 1
                    assert str(error).startswith("it: ")
    assert n_refused > 20  # not vacuous


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (lambda path: None, "no such file"),
        (lambda path: path.write_text("no image"), "not a readable image"),
        (
            lambda path: Image.fromarray(np.ones((2, 2), np.float32)).save(path, "tiff"),
            r"32-bit numbers of unknown range; save it with 8 or 16 bits\)\.$",
        ),
        (
            lambda path: Image.fromarray(np.ones((2, 2), np.int32)).save(path, "tiff"),
            "32-bit numbers of unknown range",
        ),
    ],
)
def test_what_is_no_image_is_refused_by_name(make, says, tmp_path):
    path = tmp_path / "an image.jpg"
    make(path)
    with pytest.raises(FileError, match=rf"an image\.jpg: .*{says}"):
        to_image(path, "it")


@pytest.mark.parametrize("n_pixels", [101, 150, 200, 201, 10_000])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bombs_are_refused_above_the_limit_alike(n_pixels, monkeypatch, tmp_path):
    content = encoded(Image.new("L", (n_pixels, 1)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    (tmp_path / "bomb.png").write_bytes(content)
    says = r"bomb\.png: has more than 100 pixels.* raise PIL\.Image\.MAX_IMAGE_PIXELS\.$"
    with pytest.raises(FileError, match=says):
        to_image(tmp_path / "bomb.png", "it")
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(to_image, content, "it").exception() for _ in range(20)]
    assert {type(error) for error in found} == {FileError}
    assert Image.MAX_IMAGE_PIXELS == 100


def test_a_bomb_is_refused_also_where_warnings_are_errors(monkeypatch):
    content = encoded(Image.new("L", (150, 1)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FileError, match=r"^it: has more than 100 pixels"):
            to_image(content, "it")


def test_the_limit_itself_is_allowed_and_may_be_raised_or_lifted(monkeypatch):
    content = encoded(Image.new("L", (100, 3)))
    for limit in (300, 301, None):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        assert to_image(content, "it").shape == (3, 100, 3)


def test_large_images_are_read(tmp_path):
    Image.new("L", (6000, 3000), 9).save(tmp_path / "large.png", compress_level=1)
    image = to_image(tmp_path / "large.png", "it")
    assert image.shape == (3000, 6000, 3) and (image[::999, ::999] == 9).all()


def test_images_in_a_zip_file_are_decoded_alike(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("a.png", png_of_grey_16([0, 65535]))
    np.testing.assert_array_equal(ZipImages(tmp_path / "some.zip")[0], [[BLACK, WHITE]])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (np.zeros((2, 2), np.float32), "of uint8, uint16 or bool, got float32"),
        (np.zeros((2, 2, 5), np.uint8), r"of shape .* got \(2, 2, 5\)"),
        (np.zeros(4, np.uint8), r"got \(4,\)"),
        (np.zeros((0, 4), np.uint8), r"got \(0, 4\)"),
        (7, "a path, bytes, a Pillow image or an array, got int"),
        (None, "got NoneType"),
    ],
)
def test_what_cannot_be_an_image_is_refused(source, says):
    with pytest.raises(InputError, match=f"^Gist: image 1 must be .*{says}"):
        list(iter_images([np.zeros((1, 1), np.uint8), source], "Gist"))


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ("a.jpg", "put a single one in a list"),
        (b"content", "put a single one in a list"),
        (Image.new("L", (2, 2)), "put a single one in a list"),
        (np.zeros((8, 9, 3), np.uint8), "put a single one in a list"),
        (np.zeros((8, 9), np.uint8), "put a single one in a list"),
        ([], "at least one image"),
        (iter(["a.jpg"]), "a sequence of images, got list_iterator"),
        ({"a.jpg"}, "a sequence of images, got set"),
        (5, "a sequence of images, got int"),
    ],
)
def test_one_alone_and_none_at_all_are_refused_at_once(X, says):
    with pytest.raises(InputError, match=f"^Gist: X must .*{says}"):
        iter_images(X, "Gist")


def test_an_array_of_images_is_many():
    assert [p.shape for p in iter_images(np.zeros((2, 5, 6, 3), np.uint8), "it")] == [(5, 6, 3)] * 2
    assert len(list(iter_images(np.zeros((4, 5, 6), np.uint8), "it"))) == 4
