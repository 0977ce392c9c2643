"""Captioned images that are drawn when they are read; needs no files.

An image shows one or two groups of shapes on a background.  Its caption names them as a person
might: with synonyms, in either order, and without some of the details.  So an image has many
fitting captions, and neither side alone tells all about the other.

Item ``i`` depends on ``random_state`` and ``i`` alone: a longer set begins like a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bittern.checks import check_count
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.drawing import SHAPES, Colour, Mark, draw, pattern
from bittern.data.rows import LazyRows, Rows, Texts
from bittern.registry import Registry

T = TypeVar("T")
MOST = 100_000
COLOURS: dict[str, Colour] = {
    "red": (215, 40, 40),
    "orange": (245, 140, 30),
    "yellow": (240, 220, 50),
    "green": (50, 160, 60),
    "blue": (45, 90, 210),
    "purple": (140, 60, 170),
    "pink": (245, 140, 190),
    "brown": (125, 80, 40),
}
BACKGROUNDS: dict[str, Colour] = {
    "white": (250, 250, 250),
    "black": (15, 15, 15),
    "grey": (150, 150, 150),
    "beige": (225, 205, 170),
}
# The first word is the most frequent one.
NOUNS = {
    "circle": ("circle", "disc"),
    "ring": ("ring", "hoop"),
    "square": ("square", "box"),
    "triangle": ("triangle", "wedge"),
    "diamond": ("diamond", "rhombus"),
    "star": ("star",),
    "cross": ("cross", "plus"),
    "crescent": ("crescent", "moon"),
}
PATTERNS = {
    "plain": ("plain",),
    "striped": ("striped", "banded"),
    "dotted": ("dotted", "spotted"),
    "checked": ("checked", "chequered"),
}
SIZES = {"large": ("large", "big"), "small": ("small", "little")}
NUMBERS = ("a", "two", "three", "four")
RELATIONS = {"above": "below", "below": "above", "left of": "right of", "right of": "left of"}
WALLS = ("on a {} background", "against {}", "in front of a {} wall")
OPENINGS = ("{}", "{}", "{}", "there is {}", "an image of {}", "{} can be seen")


def load(
    folder: Path | None = None,
    *,
    n: int = 1000,
    random_state: int = 0,
    side: int = 64,
    text: str = "captions",
    classes: str = "shape",
) -> Dataset:
    """Draw ``n`` captioned images of ``side`` × ``side`` pixels; ``folder`` is ignored.

    The class of an item is the shape that its caption is mainly about, or with
    ``classes="colour"`` the colour of that shape; its tags are the coloured shapes in it, such as
    "red circle".  Every fourth item is in the official test set.  ``text``
    is ``"captions"``, the captions as texts, or ``"words"``, rows of 0 and 1 with a column for each
    word that a caption can have.
    """
    check_count(n, "captions: n", 1, MOST)
    check_count(random_state, "captions: random_state", 0)
    check_count(side, "captions: side", 16, 512)
    scenes = [make_scene(random_state, i) for i in range(n)]
    tag_names = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
    class_names, class_of = CLASSES[classes]
    tags = np.zeros((n, len(tag_names)), np.bool_)
    for i, scene in enumerate(scenes):
        tags[i, [tag_names.index(f"{group.colour} {group.shape}") for group in scene.groups]] = True
    is_test = np.arange(n) % 4 == 3
    return Dataset(
        name="captions",
        modalities={
            "image": DrawnImages(scenes, side),
            "text": FORMS[text]([scene.caption for scene in scenes]),
        },
        ids=np.array([f"{i:05d}" for i in range(n)]),
        labels=np.array(
            [class_names.index(class_of(scene.groups[0])) for scene in scenes], np.int64
        ),
        class_names=class_names,
        tags=tags,
        tag_names=tag_names,
        official={"train": np.flatnonzero(~is_test), "test": np.flatnonzero(is_test)},
        licence=SPEC.licence,
        notes=(
            f"drawn with random_state={random_state}; class = {classes}, tag = coloured shape.",
        ),
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Equal shapes, of one colour, size and pattern."""

    n: int
    size: str
    fill: str
    colour: str
    shape: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What an image shows, and its caption; ``seed`` is for its noise and small variations."""

    groups: tuple[Group, ...]  # one or two, the first is the main one
    relation: str  # of the first group to the second
    background: str
    caption: str
    seed: tuple[int, int]


def make_scene(random_state: int, i: int) -> Scene:
    """The scene of item ``i``."""
    rng = np.random.default_rng((random_state, i))
    groups = tuple(_group(rng) for _ in range(1 if rng.random() < 0.3 else 2))
    relation, background = _any(rng, RELATIONS), _any(rng, BACKGROUNDS)
    caption = _caption(rng, groups, relation, background)
    return Scene(groups, relation, background, caption, (random_state, i))


class DrawnImages(LazyRows):
    """Images of scenes as ``(n, side, side, 3)`` uint8, drawn when they are read."""

    def __init__(self, scenes: Sequence[Scene], side: int) -> None:
        self.scenes = scenes
        self.shape = (len(scenes), side, side, 3)
        self.dtype = np.dtype(np.uint8)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, rows: Any) -> Any:
        positions = np.arange(len(self))[rows]
        if positions.ndim == 0:
            return draw_scene(self.scenes[int(positions)], self.shape[1])
        images = np.empty((len(positions), *self.shape[1:]), np.uint8)
        for image, position in zip(images, positions.tolist(), strict=True):
            image[:] = draw_scene(self.scenes[position], self.shape[1])
        return images


def draw_scene(scene: Scene, side: int) -> NDArray[np.uint8]:
    """The image of a scene, ``(side, side, 3)``."""
    rng = np.random.default_rng((*scene.seed, 1))
    canvas = pattern(
        side, _any(rng, PATTERNS), _varied(rng, BACKGROUNDS[scene.background], 12), 0.08
    )
    for group, (x, y, width, height) in zip(scene.groups, _areas(scene), strict=True):
        for mark in _marks(rng, group, np.array([x, y, width, height]) * side):
            draw(canvas, mark)
    canvas *= rng.uniform(0.85, 1.0)  # the light
    canvas += rng.normal(0, 6, canvas.shape)
    return np.rint(canvas.clip(0, 255)).astype(np.uint8)


def _group(rng: np.random.Generator) -> Group:
    return Group(
        n=_any(rng, (1, 1, 1, 1, 2, 2, 2, 3, 3, 4)),
        size=_any(rng, SIZES),
        fill="plain" if rng.random() < 0.4 else _any(rng, PATTERNS),
        colour=_any(rng, COLOURS),
        shape=_any(rng, SHAPES),
    )


def _caption(
    rng: np.random.Generator, groups: Sequence[Group], relation: str, background: str
) -> str:
    phrases = [_phrase(rng, group) for group in groups]
    said = phrases[0]
    if len(groups) == 2:
        place = f"to the {relation}" if relation.endswith("of") else relation
        if rng.random() < 0.4:  # the other way round
            opposite = RELATIONS[relation]
            place = f"to the {opposite}" if opposite.endswith("of") else opposite
            phrases.reverse()
        said = f"{phrases[0]} {'and' if rng.random() < 0.2 else place} {phrases[1]}"
    if rng.random() < 0.4:
        said = f"{said} {_any(rng, WALLS).format(background)}"
    opening = _any(rng, OPENINGS)
    if opening.startswith("there is") and not said.startswith(("a ", "an ")):
        opening = opening.replace("is", "are")
    return opening.format(said)


def _phrase(rng: np.random.Generator, group: Group) -> str:
    """A group in words, such as "two small striped red circles"."""
    words = []
    if rng.random() < 0.6:
        words.append(_word(rng, SIZES[group.size]))
    if group.fill != "plain" and rng.random() < 0.8:
        words.append(_word(rng, PATTERNS[group.fill]))
    if rng.random() < 0.9:
        words.append(group.colour)
    noun = _word(rng, NOUNS[group.shape])
    words.append(noun if group.n == 1 else _plural(noun))
    number = NUMBERS[group.n - 1]
    if number == "a" and words[0][0] in "aeiou":
        number = "an"
    return " ".join([number, *words])


def _word(rng: np.random.Generator, synonyms: Sequence[str]) -> str:
    """The first of two synonyms three times out of four."""
    return synonyms[0] if rng.random() < 0.5 else _any(rng, synonyms)


def _any(rng: np.random.Generator, things: Iterable[T]) -> T:
    """One of them, each equally likely."""
    known = tuple(things)
    return known[rng.integers(len(known))]


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith(("s", "x")) else f"{noun}s"


def _word_rows(captions: Sequence[str]) -> NDArray[np.float32]:
    words = [caption.split() for caption in captions]
    return np.array([[word in said for word in VOCABULARY] for said in words], np.float32)


def _vocabulary() -> tuple[str, ...]:
    """Every word of the captions, sorted."""
    nouns = [noun for listed in NOUNS.values() for noun in listed]
    others = [word for table in (PATTERNS, SIZES) for listed in table.values() for word in listed]
    phrases = (*RELATIONS, *WALLS, *OPENINGS, "there are to the and an")
    words = " ".join((*nouns, *map(_plural, nouns), *others, *phrases, *NUMBERS)).split()
    return tuple(sorted({*words, *COLOURS, *BACKGROUNDS} - {"{}", "plain"}))


VOCABULARY = _vocabulary()
#: What the classes are: their names, and the class of a group.
CLASSES: Registry[tuple[tuple[str, ...], Callable[[Group], str]]] = Registry(
    "kind of classes",
    {
        "shape": (tuple(SHAPES), lambda group: group.shape),
        "colour": (tuple(COLOURS), lambda group: group.colour),
    },
)
#: Forms of the captions.
FORMS: Registry[Callable[[Sequence[str]], Rows]] = Registry(
    "text of captions", {"captions": Texts, "words": _word_rows}
)


def _areas(scene: Scene) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of each group's part of the image, as fractions."""
    if len(scene.groups) == 1:
        return [(0.0, 0.0, 1.0, 1.0)]
    low, high = (0.0, 0.0, 1.0, 0.5), (0.0, 0.5, 1.0, 0.5)
    if scene.relation.endswith("of"):
        low, high = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 0.5, 1.0)
    return [low, high] if scene.relation in ("above", "left of") else [high, low]


def _marks(rng: np.random.Generator, group: Group, area: NDArray[np.float64]) -> list[Mark]:
    """The shapes of a group, in cells of its area."""
    left, top, width, height = area.tolist()
    columns = group.n if width > height else 1 if width < height else -(-group.n // 2)
    lines = -(-group.n // columns)
    cell = min(width / columns, height / lines)
    side = max(width, height)
    radius = min(0.46 * cell, side * (0.2 if group.size == "large" else 0.11))
    colour = _varied(rng, COLOURS[group.colour], 20)
    loose = max(0.0, cell / 2 - radius)
    marks = []
    for k in range(group.n):
        x = left + width * (k % columns + 0.5) / columns + rng.uniform(-loose, loose)
        y = top + height * (k // columns + 0.5) / lines + rng.uniform(-loose, loose)
        angle = rng.normal(0, 0.15)
        marks.append(Mark(group.shape, x, y, radius, angle, colour, group.fill))
    return marks


def _varied(rng: np.random.Generator, colour: Colour, spread: int) -> Colour:
    varied = np.clip(np.array(colour) + rng.integers(-spread, spread + 1, 3), 0, 255)
    return (int(varied[0]), int(varied[1]), int(varied[2]))


SPEC = DatasetSpec(
    name="captions",
    title="Captions: drawn shapes with captions in words, as many as you like",
    load=load,
    layout="no files: the images are drawn",
    citation="",
    licence="Apache-2.0, as this package",
    needs_files=False,
)
