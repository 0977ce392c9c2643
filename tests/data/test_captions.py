"""The captioned images that are drawn."""

import numpy as np
import pytest

import bittern as bt
from bittern.data.drawing import FILLS, SHAPES, Mark, draw
from bittern.data.readers import captions
from bittern.data.readers.captions import BACKGROUNDS, COLOURS, NOUNS, Group, Scene, draw_scene
from bittern.errors import BitternError, InputError


@pytest.fixture(scope="module")
def made():
    return captions.load(n=200)


def scene(*groups, relation="above", background="black"):
    return Scene(groups, relation, background, "", (0, 0))


def places(image, colour):
    """Rows and columns of the pixels that are nearer to a colour than to any other one."""
    known = {**COLOURS, **BACKGROUNDS}
    apart = [np.abs(image.astype(int) - known[name]).sum(axis=2) for name in known]
    return np.nonzero(np.argmin(apart, axis=0) == list(known).index(colour))


def test_a_set_needs_no_files_and_has_pairs(made):
    assert made["image"].shape == (200, 64, 64, 3) and made["image"][3].dtype == np.uint8
    assert all(isinstance(text, str) and text for text in made["text"][:])
    assert len(made.complete()) == 200
    assert not captions.SPEC.needs_files
    assert bt.load("captions", n=3, side=32)["image"].shape == (3, 32, 32, 3)
    assert made.official["test"].tolist() == list(range(3, 200, 4))


def test_items_follow_from_their_number_and_the_random_state(made):
    again, other = captions.load(n=40), captions.load(n=40, random_state=1)
    assert list(again["text"][:]) == list(made["text"][:40]) != list(other["text"][:])
    np.testing.assert_array_equal(again["image"][[39, 7]], made["image"][[39, 7]])
    assert (other["image"][7] != made["image"][7]).any()
    np.testing.assert_array_equal(made.take([5])["image"][0], made["image"][5])


def test_a_known_caption():
    # So that a change of the generator, which would change every result, does not go unseen.
    assert captions.load(n=3)["text"][:] == [
        "a spotted blue crescent to the right of two red circles against grey",
        "a large yellow disc and four brown crescents in front of a grey wall",
        "there is a large checked orange triangle",
    ]


def test_captions_say_what_the_tags_say(made):
    nouns = {noun: shape for shape, synonyms in NOUNS.items() for noun in synonyms}
    nouns |= {captions._plural(noun): shape for noun, shape in nouns.items()}
    for i, text in enumerate(made["text"][:]):
        words = text.split()
        tags = np.array(made.tag_names)[made.tags[i]]
        shapes = {nouns[word] for word in words if word in nouns}
        assert shapes == {tag.split()[1] for tag in tags}
        assert {word for word in words if word in COLOURS} <= {tag.split()[0] for tag in tags}
        assert made.class_names[made.labels[i]] in shapes


def test_the_set_is_varied(made):
    assert len(set(made["text"][:])) > 190
    assert np.bincount(made.labels, minlength=8).min() > 6
    assert (made.tags.sum(axis=0) > 0).all()  # every coloured shape occurs
    assert set(np.unique(made.tags.sum(axis=1))) == {1, 2}
    vocabulary = {word for text in made["text"][:] for word in text.split()}
    assert {"disc", "hoop", "big", "spotted", "wall", "are"} <= vocabulary


@pytest.mark.parametrize("relation", ["above", "below", "left of", "right of"])
def test_groups_are_where_the_relation_says(relation):
    red, blue = (Group(2, "large", "plain", colour, "square") for colour in ("red", "blue"))
    image = draw_scene(scene(red, blue, relation=relation), 64)
    (y, x), (other_y, other_x) = places(image, "red"), places(image, "blue")
    assert min(len(y), len(other_y)) > 100
    is_so = {
        "above": y.max() < other_y.min(),
        "below": y.min() > other_y.max(),
        "left of": x.max() < other_x.min(),
        "right of": x.min() > other_x.max(),
    }
    assert [name for name, holds in is_so.items() if holds] == [relation]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_group_has_as_many_shapes_as_it_says(n):
    from scipy.ndimage import label

    image = draw_scene(scene(Group(n, "small", "plain", "red", "circle")), 128)
    mask = np.zeros((128, 128))
    mask[places(image, "red")] = 1
    labels, found = label(mask)
    assert sum(np.bincount(labels.ravel())[1:] > 20) == n <= found


def test_large_shapes_are_larger():
    sizes = [
        len(places(draw_scene(scene(Group(1, size, "plain", "red", "square")), 64), "red")[0])
        for size in ("small", "large")
    ]
    assert sizes[1] > 2 * sizes[0] > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_lie_inside_their_circle_and_differ(shape):
    areas = {}
    for name in SHAPES:
        canvas = np.zeros((41, 41, 3))
        draw(canvas, Mark(name, 20, 20, 15, 0.0, (200, 200, 200)))
        areas[name] = canvas[..., 0] / 200
    drawn = areas[shape]
    rows, columns = np.mgrid[:41, :41] - 20
    assert drawn.max() == pytest.approx(1) and drawn.min() == 0
    assert not drawn[np.hypot(rows, columns) > 17].any()
    others = [np.abs(drawn - other).mean() for name, other in areas.items() if name != shape]
    assert min(others) > 0.02


def test_a_circle_has_the_area_of_a_circle():
    # Points with u² + v² < 0.9 at radius 10: π · 0.9 · 100 = 282.7 pixels.
    canvas = np.zeros((32, 32, 3))
    draw(canvas, Mark("circle", 15.3, 16.1, 10, 0.7, (1, 1, 1)))
    assert canvas[..., 0].sum() == pytest.approx(np.pi * 90, rel=0.01)


@pytest.mark.parametrize("fill", [fill for fill in FILLS if fill != "plain"])
def test_patterns_darken_a_part(fill):
    canvas = np.zeros((64, 64, 3))
    draw(canvas, Mark("square", 32, 32, 30, 0.0, (100, 100, 100), fill))
    values = canvas[20:44, 20:44, 0]
    assert values.max() == pytest.approx(100) and values.min() == pytest.approx(45)
    assert 0.2 < (values > 90).mean() < 0.9


def test_a_shape_may_leave_the_image():
    canvas = np.zeros((16, 16, 3))
    draw(canvas, Mark("circle", -2, 15, 6, 0.0, (9, 9, 9)))
    assert canvas[15, 0, 0] > 0 and canvas[0, 15, 0] == 0


@pytest.mark.parametrize("bad", [{"n": 0}, {"random_state": -1}, {"side": 8}, {"n": 10**9}])
def test_bad_sizes_are_refused(bad):
    (name,) = bad
    with pytest.raises(InputError, match=f"captions: {name} must be "):
        captions.load(**bad)


def test_words_are_rows_with_a_column_for_each_word_that_a_caption_can_have():
    texts = bt.load("captions", n=300)["text"][:]
    rows = bt.load("captions", n=300, text="words")["text"]
    assert rows.dtype == np.float32 and rows.shape == (300, len(captions.VOCABULARY))
    for text, row in zip(texts, rows, strict=True):
        said = [word for word, there in zip(captions.VOCABULARY, row, strict=True) if there]
        assert said == sorted(set(text.split()))
    assert np.array_equal(rows[:50], bt.load("captions", n=50, text="words")["text"])


def test_classes_can_be_colours():
    shapes, colours = (bt.load("captions", n=200, classes=kind) for kind in ("shape", "colour"))
    assert len(shapes.class_names) == len(colours.class_names) == 8
    for row, shape, colour in zip(shapes.tags, shapes.labels, colours.labels, strict=True):
        tag = f"{colours.class_names[colour]} {shapes.class_names[shape]}"
        assert row[shapes.tag_names.index(tag)]
    with pytest.raises(BitternError, match="did you mean 'colour'"):
        bt.load("captions", classes="color")
    with pytest.raises(BitternError, match="did you mean 'words'"):
        bt.load("captions", text="word")
