"""TRECVID 2003: keyframes of news video, transcripts of the shots, topics and judgements.

Files below the folder:

- ``keyframes``: images at any depth, named by their shot, ``shot12_34_RKF.jpg`` or
  ``shot12_34.jpg``; those of sub-shots (``_NRKF_``) are skipped, so that there is one per shot;
- ``transcripts.tsv``, with lines of a shot, a tab and its text; or ``transcripts``, a folder of
  ``shot12_34.txt``; without either there is no text;
- ``topics``: NIST's topics in ``.xml``, ``.txt`` or ``.topics`` files, and the example images that
  they name, at any depth; images below ``topics/0100`` are examples of topic 100 too, for frames
  of its example videos;
- the judgements in TREC's format, in the one file whose name contains ``qrels``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np

from bittern.checks import PositionArray
from bittern.data.caption_files import present_texts
from bittern.data.dataset import Dataset, DatasetSpec
from bittern.data.images import ImageFiles
from bittern.data.readers import folder as folders
from bittern.data.readers.trecvid_topics import Topic, read_text, read_topics
from bittern.data.rows import Rows, Texts
from bittern.errors import FileError, InputError
from bittern.io.trec import Qrels, read_qrels

N_SHOTS, N_TOPICS = 32_318, 25
_MAX_TRANSCRIPT_BYTES = 1 << 20  # of one shot


@dataclass(frozen=True, slots=True, eq=False)
class Topics:
    """Topics, their example images, and the positions of the shots that are relevant to each.

    ``relevant[t]`` are ascending positions in the dataset of :func:`load`; ``unseen[t]`` counts
    relevant shots without a keyframe; ``missing`` names example images that are not in the folder.
    """

    ids: tuple[str, ...]  # without leading zeros
    descriptions: tuple[str, ...]
    examples: tuple[tuple[Path, ...], ...]
    relevant: tuple[PositionArray, ...]
    unseen: tuple[int, ...]
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        others = (self.descriptions, self.examples, self.relevant, self.unseen)
        if any(len(other) != len(self.ids) for other in others):
            raise InputError(
                "Topics: every topic needs a description, examples and relevant shots."
            )
        if len(set(self.ids)) != len(self.ids):
            raise InputError("Topics: ids must be distinct.")

    def __len__(self) -> int:
        return len(self.ids)


def load(folder: Path, *, examples: bool = False) -> Dataset:
    """Read the keyframe and the transcript of every shot.

    The tags of a shot are the topics that it is relevant to, if there are judgements;
    :func:`topics` reads the topics themselves.

    With ``examples``, the example images of the topics follow the shots.  They are in the set
    ``official["examples"]``, their tags are their topics, and their texts, if shots have any, are
    the descriptions of these topics.
    """
    root = Path(folder)
    shots = _shots(root)
    notes = [f"{len(shots.ids):,} keyframes ({shots.skipped}); the papers have {N_SHOTS:,}."]
    modalities: dict[str, Rows] = {"image": ImageFiles(shots.paths)}
    texts, present = _transcripts(root), {}
    if texts is not None:
        said = [texts.get(shot, "") for shot in shots.ids]
        modalities["text"], present = Texts(said), present_texts(said)
        notes.append(_about_texts(root, texts, shots.ids))
    dataset = Dataset(
        name="trecvid2003",
        modalities=modalities,
        present=present,
        ids=np.array(shots.ids, dtype=np.str_),
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=tuple(notes),
        **_judged(root, shots.ids),
    )
    return _with_examples(dataset, topics(root), shots, texts) if examples else dataset


def topics(folder: Path) -> Topics:
    """The topics of a folder, with the positions of their relevant shots."""
    root = Path(folder)
    given = _topics_in(root)
    qrels = _qrels_in(root)
    if qrels is None:
        raise FileError(f"{root}: has no file of judgements; its name must contain qrels.")
    position = {shot: i for i, shot in enumerate(_shots(root).ids)}
    judged = _relevant_shots(qrels)
    images, of_topic = _example_images(root), _images_by_topic(root)
    relevant, unseen, examples = [], [], []
    for topic in given:
        shots = judged.get(topic.number, [])
        found = [position[shot] for shot in shots if shot in position]
        relevant.append(np.sort(np.array(found, np.intp)))
        unseen.append(len(shots) - len(found))
        wanted = [_base(source) for source in topic.examples]
        named = [images[name] for name in wanted if name in images]
        examples.append(tuple(dict.fromkeys([*named, *of_topic.get(topic.number, [])])))
    missing = {s for topic in given for s in topic.examples if _base(s) not in images}
    return Topics(
        ids=tuple(topic.number for topic in given),
        descriptions=tuple(topic.description for topic in given),
        examples=tuple(examples),
        relevant=tuple(relevant),
        unseen=tuple(unseen),
        missing=tuple(sorted(missing)),
    )


def _with_examples(
    shots: Dataset, given: Topics, files: _Shots, texts: dict[str, str] | None
) -> Dataset:
    """The shots, and then the example images of all topics."""
    from scipy.sparse import csr_array

    paths = [str(path) for found in given.examples for path in found]
    counts = [len(found) for found in given.examples]
    topic = np.repeat(np.arange(len(given)), counts)
    n_shots, n = len(shots), len(shots) + len(paths)
    modalities: dict[str, Rows] = {"image": ImageFiles([*files.paths, *paths])}
    present = {}
    if texts is not None:
        said = [*shots["text"][:], *(given.descriptions[t] for t in topic)]
        modalities["text"], present = Texts(said), present_texts(said)
    rows = np.concatenate([*given.relevant, np.arange(n_shots, n)])
    columns = np.concatenate(
        [np.repeat(np.arange(len(given)), list(map(len, given.relevant))), topic]
    )
    names = [f"topic{given.ids[t]}_{i}" for t, n_of in enumerate(counts) for i in range(n_of)]
    missing = f" {len(given.missing)} that topics name are missing." if given.missing else ""
    return shots.with_note(
        f"{len(paths)} example images of {len(given)} topics follow the keyframes.{missing}",
        modalities=modalities,
        present=present,
        ids=np.concatenate([np.asarray(shots.ids), np.array(names, dtype=np.str_)]),
        tags=csr_array((np.ones(len(rows), bool), (rows, columns)), (n, len(given))),
        tag_names=given.ids,
        official={"examples": np.arange(n_shots, n)},
    )


@dataclass(frozen=True, slots=True)
class _Shots:
    """Shots in the order of their numbers, and their keyframes."""

    ids: tuple[str, ...]
    paths: tuple[str, ...]
    skipped: str


def _shots(root: Path) -> _Shots:
    place = _keyframes(root)
    found = folders.find_images(place)
    paths: dict[str, str] = {}
    n_others = 0
    for path in found.paths:
        stem = PurePosixPath(path).stem
        if "NRKF" in stem:
            n_others += 1
            continue
        shot = re.sub(r"_RKF$", "", stem)
        if shot in paths:
            raise FileError(f"{place}: {paths[shot]} and {path} are keyframes of one shot.")
        paths[shot] = path
    if not paths:
        raise FileError(f"{place}: has no keyframes.")
    ids = sorted(paths, key=_natural)
    skipped = f"{n_others} of sub-shots, {found.skipped()}"
    return _Shots(tuple(ids), tuple(f"{place.absolute()}/{paths[shot]}" for shot in ids), skipped)


def _keyframes(root: Path, *_: object) -> Path:
    place = root / "keyframes"
    if not place.is_dir():
        raise FileError(f"{place}: no such folder; the keyframes are below it.")
    return place


def _natural(name: str) -> tuple[Any, ...]:
    """Sort key that puts ``shot2_10`` after ``shot2_9``."""
    parts = re.split(r"([0-9]{1,15})", name)
    return (*((int(p), "") if i % 2 else (-1, p) for i, p in enumerate(parts)), (-2, name))


def _transcripts(root: Path) -> dict[str, str] | None:
    table, place = root / "transcripts.tsv", root / "transcripts"
    if table.exists():
        return _from_table(table)
    if place.is_dir():
        return {
            path.stem: read_text(path, _MAX_TRANSCRIPT_BYTES, "one shot").strip()
            for path in sorted(place.rglob("*.txt"))
        }
    return None


def _from_table(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        shot, tab, text = line.partition("\t")
        if not tab or not shot.strip():
            raise FileError(f"{path}, line {number}: a line must be a shot, a tab and its text.")
        if shot.strip() in texts:
            raise FileError(f"{path}, line {number}: the shot {shot.strip()[:40]} is repeated.")
        texts[shot.strip()] = text.strip()
    if not texts:
        raise FileError(f"{path}: has no lines.")
    return texts


def _about_texts(root: Path, texts: dict[str, str], shots: Sequence[str]) -> str:
    n_both = len(texts.keys() & set(shots))
    if not n_both:
        raise FileError(
            f"{root}: no transcript belongs to a shot with a keyframe; the first is for "
            f"{next(iter(texts), 'none')!r}, the first keyframe is of {shots[0]!r}."
        )
    return (
        f"{n_both:,} shots have a transcript, {len(shots) - n_both:,} have none; "
        f"{len(texts) - n_both:,} transcripts have no keyframe."
    )


def _judged(root: Path, shots: Sequence[str]) -> dict[str, Any]:
    """Which topics each shot is relevant to, as tags."""
    from scipy.sparse import csr_array

    qrels = _qrels_in(root)
    if qrels is None:
        return {}
    judged = _relevant_shots(qrels)
    position = {shot: i for i, shot in enumerate(shots)}
    names = sorted(judged, key=_natural)
    pairs = [
        (position[shot], column)
        for column, name in enumerate(names)
        for shot in judged[name]
        if shot in position
    ]
    rows, columns = np.array(pairs, np.intp).reshape(-1, 2).T
    tags = csr_array((np.ones(len(rows), bool), (rows, columns)), (len(shots), len(names)))
    return {"tags": tags, "tag_names": tuple(names)}


def _qrels_in(root: Path) -> Qrels | None:
    there = sorted(
        path for path in root.glob("*qrels*") if path.is_file() and not path.name.startswith(".")
    )
    if len(there) > 1:
        raise FileError(f"{root}: has {there[0].name} and {there[1].name}; keep one qrels file.")
    return read_qrels(there[0]) if there else None


def _relevant_shots(qrels: Qrels) -> dict[str, list[str]]:
    """Shots with a positive gain for every judged topic, by its number."""
    shots: dict[str, list[str]] = {}
    for q, name in enumerate(qrels.query_ids.tolist()):
        rows = slice(qrels.offsets[q], qrels.offsets[q + 1])
        documents = qrels.documents[rows][qrels.gains[rows] > 0]
        shots.setdefault(name.lstrip("0") or "0", []).extend(qrels.document_ids[documents].tolist())
    return {name: list(dict.fromkeys(found)) for name, found in shots.items()}


def _topics_in(root: Path) -> list[Topic]:
    place = root / "topics"
    if not place.is_dir():
        raise FileError(f"{place}: no such folder; the topics are in it.")
    files = [
        path
        for path in sorted(place.rglob("*"))
        if path.suffix in (".xml", ".txt", ".topics") and not path.name.startswith(".")
    ]
    given = [topic for path in files for topic in read_topics(path)]
    if not given:
        raise FileError(f"{place}: has no topics; they must be in .xml, .txt or .topics files.")
    numbers = [topic.number for topic in given]
    repeated = [number for number in numbers if numbers.count(number) > 1]
    if repeated:
        raise FileError(f"{place}: the topic {repeated[0]} is repeated.")
    return sorted(given, key=lambda topic: _natural(topic.number))


def _example_images(root: Path) -> dict[str, Path]:
    """Images below ``topics`` by their names in lower case; of equal names, the first."""
    place = root / "topics"
    found = folders.find_images(place).paths
    return {_base(path): place / path for path in reversed(found)}


def _images_by_topic(root: Path) -> dict[str, list[Path]]:
    """Images in the folders below ``topics`` that are named by a topic's number."""
    place = root / "topics"
    found: dict[str, list[Path]] = {}
    for path in folders.find_images(place).paths:
        folder = PurePosixPath(path).parts[0]
        if folder != path and folder.isdigit():
            found.setdefault(folder.lstrip("0"), []).append(place / path)
    return found


def _base(source: str) -> str:
    """The file name, in lower case, of a path or an address."""
    return PurePosixPath(unquote(source).replace("\\", "/")).name.lower()


SPEC = DatasetSpec(
    name="trecvid2003",
    title="TRECVID 2003 search task: 32,318 keyframes of news, transcripts, 25 topics",
    load=load,
    layout=(
        "keyframes/…/shot12_34_RKF.jpg and transcripts.tsv or transcripts/shot12_34.txt (from "
        "https://catalog.ldc.upenn.edu/LDC2007V02), topics/*.xml with the example images they "
        "name or topics/0100/*.jpg, and the judgements search.qrels.tv03 (from "
        "https://trecvid.nist.gov)."
    ),
    citation="Smeaton-Kraaij-Over-2003",
    licence="By agreement with the Linguistic Data Consortium; topics and judgements from NIST.",
    folder="trecvid2003",
    find=_keyframes,
)
