"""TRECVID's protocol on Corel-5K with its words as the transcript: Table 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from results import Section

import bittern as bt
from bittern.features import NINE
from evidence.corel import Settings
from evidence.methods import oracle
from evidence.sides import Side, score
from evidence.vectors import texts_of

N_TOPICS, N_EXAMPLES = 25, 3
PER_TOPIC = 15  # positive, and as many negative, score vectors for the SVM
STEP = 0.25  # of the raster


def topics(
    dataset: bt.Dataset, vectors: Mapping[str, np.ndarray], settings: Settings, runs: range
) -> list[Section]:
    """Table 3, over runs that draw the topics, their examples and the partition anew."""
    vectors = {name: vectors[name] for name in NINE}
    texts, withheld = texts_of(dataset)
    found = [one_run(dataset, vectors, texts, settings, run) for run in runs]
    section = Section(
        f"Corel-5K with words, {N_TOPICS} topics, Table 3: MAP, mean and deviation over runs",
        ("feature or combination", "MAP", "±"),
    )
    singles = sorted(("bag-of-words", *NINE), key=lambda n: -np.mean([r[n] for r in found]))
    for name in (*singles, *(name for name in found[0] if name not in singles)):
        values = [run[name] for run in found]
        section.row(name, f"{np.mean(values):.4f}", f"{np.std(values):.4f}")
    section.note(f"Words that name a category, withheld everywhere: {', '.join(withheld)}.")
    return [section]


def one_run(
    dataset: bt.Dataset,
    vectors: Mapping[str, np.ndarray],
    texts: list[str],
    settings: Settings,
    run: int,
) -> dict[str, float]:
    """MAP of every feature and combination."""
    rng = np.random.default_rng([run, N_TOPICS])
    labels = np.asarray(dataset.labels)
    chosen = np.sort(rng.choice(np.unique(labels), N_TOPICS, replace=False))
    images = np.stack(
        [rng.choice(np.flatnonzero(labels == c), N_EXAMPLES, replace=False) for c in chosen]
    )
    rest = np.setdiff1d(np.arange(len(labels)), images)
    split = bt.make_split("trecvid", as_topics(dataset, chosen, rest), random_state=0, run=run)
    words = bt.features.BagOfWords().fit([texts[i] for i in rest[split.train]])
    rows = {"bag-of-words": words.transform(texts), **vectors}
    options = dict(k=settings[0], n_negatives=settings[1], random_state=run)
    train, test = (
        score(rows, images, chosen, rest[pool], rest[database], labels, **options)
        for pool, database in (
            (split.validation_queries, split.validation_database),
            (split.queries, split.database),
        )
    )
    return left_out_in_turn(train, test, run)


def as_topics(dataset: bt.Dataset, chosen: np.ndarray, rest: np.ndarray) -> bt.Dataset:
    """The pictures that are no examples, with a tag for each topic."""
    part = dataset.take(rest)
    tags = np.asarray(part.labels)[:, None] == chosen[None, :]
    names = tuple(dataset.class_names[c] for c in chosen)
    return replace(part, tags=tags, tag_names=names, official={})


def left_out_in_turn(train: Side, test: Side, run: int) -> dict[str, float]:
    """What is learned for a topic is learned from the others."""
    ap = {name: test.ap(test.scores[i]) for i, name in enumerate(test.names)}
    for title, name in (
        ("CombSUM", "comb-sum"),
        ("CombMAX", "comb-max"),
        ("CombMIN", "comb-min"),
        ("BordaFuse", "borda"),
    ):
        ap[title] = test.ap(bt.fusion.FUSIONS[name](test.scores))
    for title, learn in (("SVM", learned_svm), ("raster, fixed weights", learned_raster)):
        fused = np.empty(test.scores.shape[1:])
        for q in range(len(fused)):
            others = np.arange(len(fused)) != q
            fused[q] = learn(train.queries(others), run).combine(test.scores[:, q : q + 1])[0]
        ap[title] = test.ap(fused)
    ap["oracle weights of each topic"] = oracle(test)
    means = {name: float(np.nanmean(values)) for name, values in ap.items()}
    print(f"run {run}: " + ", ".join(f"{k} {v:.3f}" for k, v in means.items()), flush=True)
    return means


def learned_svm(train: Side, run: int) -> bt.fusion.SVMFusion:
    """An SVM on the other topics."""
    fusion = bt.fusion.SVMFusion(PER_TOPIC, random_state=run)
    return fusion.fit(train.scores, train.relevant, train.categories)


def learned_raster(train: Side, run: int) -> bt.fusion.RasterFusion:
    """Fixed weights of the other topics."""
    return bt.fusion.RasterFusion(step=STEP).fit(train.scores, train.relevant)
