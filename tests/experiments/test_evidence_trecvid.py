"""Table 3 of the evidence paper on small TRECVID files, in the formats of NIST and the LDC."""

import numpy as np
import pytest
from format_true import write
from PIL import Image
from processes import one_after_another

import bittern as bt
from bittern.data.readers import trecvid
from bittern.errors import BitternError
from bittern.experiments import Protocol, Records, cells_of, measure, run
from bittern.experiments.evidence.scores import KnnSettings
from bittern.experiments.measure import measure_cell
from bittern.experiments.run_data import load_dataset
from bittern.io.protocol_files import shipped_table
from bittern.io.toml import to_toml
from bittern.report import to_markdown

N_SHOTS = 64
TOPICS = {"0100": "aerial views of a city", "0102": "a pitcher throws", "0125": "a busy street"}
WORDS = {"0100": "city sky", "0102": "baseball pitcher game", "0125": "street people"}
COLOURS = {"0100": (40, 60, 200), "0102": (40, 180, 50), "0125": (150, 140, 130)}


def draw_image(path, colour, rng):
    """Write an image of one colour with noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = rng.integers(-60, 60, (16, 20, 3))
    Image.fromarray(np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """64 shots: 16 relevant to each of three topics, of which four to two, and others."""
    root = tmp_path_factory.mktemp("trecvid2003")
    rng = np.random.default_rng(0)
    names, qrels, said = list(TOPICS), [], []
    for i in range(N_SHOTS):
        shot = f"shot{1 + i // 8}_{1 + i % 8}"
        number = names[i % 4] if i % 4 < 3 else None
        colour = COLOURS[number] if number else rng.integers(0, 255, 3)
        draw_image(root / "keyframes" / f"{i // 8}" / f"{shot}_RKF.jpg", colour, rng)
        qrels += [f"{name} 0 {shot} {int(name == number)}" for name in names]
        words = [*rng.choice(["today", "news", "report", "people", "sky"], 3)]
        if number and rng.random() < 0.7:
            words += WORDS[number].split()
        said += [f"{shot}\t{' '.join(words)}"] * (i % 9 != 0)  # some shots are silent
    for i in (0, 4, 8, 12):  # also relevant to another topic
        line = f"0102 0 shot{1 + i // 8}_{1 + i % 8} 0"
        qrels[qrels.index(line)] = line[:-1] + "1"
    topics = ""
    for name, text in TOPICS.items():
        sources = [f"http://example.org/images/{name}image{i}.jpg" for i in range(2)]
        shown = "".join(f'<imageExample src="{source}"/>' for source in sources)
        topics += (
            f'<videoTopic num="{name}"><textDescription text="Find shots of {text}, '
            f'{WORDS[name]}"/>{shown}<videoExample src="a.mpg"/></videoTopic>\n'
        )
        for file in ("image0", "image1", "frame"):  # of the video, named by nothing
            draw_image(root / "topics" / name / f"{name}{file}.jpg", COLOURS[name], rng)
    write(root / "topics" / "topics.2003.xml", topics)
    write(root / "search.qrels.tv03", "\n".join(qrels) + "\n")
    write(root / "transcripts.tsv", "\n".join(said) + "\n")
    return root


def shipped():
    """The shipped protocol with few enough negative examples for few images."""
    table = shipped_table("evidence-table-3-trecvid")
    table["evidence"] |= {"k": 4, "n_negatives": 5}
    return table


@pytest.fixture(scope="module")
def data(folder, tmp_path_factory):
    protocol = Protocol.of(shipped())
    dataset = load_dataset(protocol.dataset, folder)
    return protocol.kind.prepare(protocol, dataset, 0, tmp_path_factory.mktemp("arrays"))


def test_the_whole_table_is_measured(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    (tmp_path / "table.toml").write_text(to_toml(shipped()), encoding="utf-8")
    records = run(tmp_path / "table.toml", tmp_path / "results", root=folder, jobs=1)
    assert not records.failures
    labels = [method["label"] for method in shipped()["method"]]
    assert set(records.methods) == set(labels) and len(labels) == 19
    page = to_markdown(Records.read(tmp_path / "results"))
    assert all(f"| {label} |" in page for label in labels)
    found = {record.method: record for record in records.records}
    assert all(len(record.per_query("ap")) == 3 for record in found.values())
    assert found["Bag of words"].split["class_names"] == ["100", "102", "125"]
    assert "withheld_words" not in found["Bag of words"].parameters
    assert found["CombSUM"].values["ap"].mean > 0.5  # colours and words tell a lot


def test_queries_are_the_topics_and_their_judgements_the_truth(folder, data):
    given = trecvid.topics(folder)
    assert [len(paths) for paths in given.examples] == [3, 3, 3]
    queries, n = data.queries, N_SHOTS
    assert queries.test.images.tolist() == (n + np.arange(9).reshape(3, 3)).tolist()
    assert data.dataset["text"][n] == given.descriptions[0]
    for side in (queries.training, queries.test):
        assert side.database.max() < n and side.pool.max() < n
        for t, relevant in enumerate(given.relevant):
            assert side.relevant[t].tolist() == np.isin(side.database, relevant).tolist()
            assert side.relevant[t].sum() >= 4
    both = queries.test.relevant.sum(axis=0)
    assert (both > 1).any() or (queries.training.relevant.sum(axis=0) > 1).any()


@pytest.mark.parametrize("label", ["Bag of words", "Thumbnail", "Convolution, boosted"])
def test_a_row_by_hand(folder, data, label):
    protocol = Protocol.of(shipped())
    (cell,) = (c for c in cells_of(protocol) if c.method.label == label)
    record = measure_cell(protocol, cell, data)
    given, test = trecvid.topics(folder), data.queries.test
    shots = trecvid.load(folder)
    feature = bt.features.FEATURES[cell.method.name.removeprefix("boosted-")]()
    if feature.takes == "texts":
        said = shots["text"][:]
        feature.fit([said[i] for i in data.queries.split.train])
        items = feature.transform(said)
        examples = [feature.transform([text] * 3) for text in given.descriptions]
    else:
        items = feature.fit_transform(shots["image"])
        examples = [feature.fit_transform(list(paths)) for paths in given.examples]
    negatives = bt.fusion.draw_negatives(test.images, test.pool, 5, random_state=data.random_state)
    scores = []
    for own, unlike in zip(examples, negatives, strict=True):
        if label.endswith("boosted"):
            found = bt.fusion.boost(own, items[unlike]).scores(items[test.database])
        else:
            power = 3.0 if feature.takes == "texts" else 1.0
            found = bt.fusion.similarity(own, items[unlike], items[test.database], k=4, power=power)
        scores.append(found.astype(np.float32))
    truth = np.stack([np.isin(test.database, rows) for rows in given.relevant])
    profile = bt.TieProfile.from_distances(-np.stack(scores), bt.Relevance.from_matrix(truth))
    np.testing.assert_array_equal(
        record.per_query("ap"), bt.evaluate(profile, ["ap"])["ap"].per_query
    )


def test_an_svm_of_a_topic_learns_from_that_topic_only(data):
    protocol = Protocol.of(shipped())
    (cell,) = (c for c in cells_of(protocol) if c.method.name == "topic-svm")
    record = measure_cell(protocol, cell, data)
    names = protocol.settings["features"]
    train, test = (data.scores(p, names, KnnSettings(4, 5)) for p in ("training", "test"))
    fused = []
    for q in range(3):
        svm = bt.fusion.SVMFusion(100, random_state=data.random_state)
        svm.fit(train.scores[:, [q]], train.relevant[[q]], [0])
        assert svm.labels_.sum() == train.relevant[q].sum()  # fewer than 100
        fused.append(svm.combine(test.scores[:, [q]])[0])
    profile = bt.TieProfile.from_distances(-np.stack(fused), test.relevance)
    np.testing.assert_array_equal(
        record.per_query("ap"), bt.evaluate(profile, ["ap"])["ap"].per_query
    )
    assert len(record.parameters["learned"]["weights"]) == 3


def test_some_topics_may_be_chosen(folder, tmp_path):
    table = shipped()
    table["split"]["sizes"] = {"topics": ["125", "100"]}
    protocol = Protocol.of(table)
    dataset = load_dataset(protocol.dataset, folder)
    queries = protocol.kind.prepare(protocol, dataset, 0, tmp_path).queries
    assert queries.names == ("125", "100")
    n = N_SHOTS
    assert queries.test.images.tolist() == [[n + 6, n + 7, n + 8], [n, n + 1, n + 2]]
    ranked = np.concatenate([queries.test.database, queries.training.database])
    assert ranked.max() < n  # nor are the examples of the topic that was left out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: table["dataset"].pop("options"), "examples = true"),
        (lambda table: table["evidence"].update(topics="categories"), "class labels"),
        (lambda table: table["split"].update(sizes={"topics": ["101", "100"]}), "101"),
    ],
)
def test_what_is_missing_is_said(folder, tmp_path, change, says):
    table = shipped()
    change(table)
    protocol = Protocol.of(table)
    dataset = load_dataset(protocol.dataset, folder)
    with pytest.raises(BitternError, match=says):
        protocol.kind.prepare(protocol, dataset, 0, tmp_path)
