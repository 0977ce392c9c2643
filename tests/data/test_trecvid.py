"""TRECVID 2003: keyframes, transcripts, topics and judgements, as NIST and the LDC write them."""

import time

import numpy as np
import pytest
from format_true import count_refused, flips, jpeg, truncations, write

from bittern.data.readers import trecvid
from bittern.data.readers.trecvid import read_topics
from bittern.data.splits import make_split
from bittern.errors import FileError, InputError

# One topic a document, one after the other, as in NIST's all.topics: with a misspelt declaration,
# comments that hold ampersands and other examples, and an address with one unescaped.
TOPICS = """<!DUCTYPE videoTopic SYSTEM "videoTopic.dtd">
<videoTopic num="0100"  interactive="Y-I" automatic="N-A" knownItems="Y-K">
  <!-- imageExample src="http://corbis.example/details.asp?linkid=2623&imageid=11287096"-->
  <textDescription text="Find shots with aerial views containing
 both buildings &amp; roads"/>
  <imageExample src="extra/11287096.jpg"/>
  <imageExample src="http://example.org/a%20view.JPG?x=1&y=2" desc="R&D"/>
  <imageExample src="http://example.org/a%20road.JPG"/>
  <videoExample src="NAD28.MPG" start="00m57s" stop="00m59s"/>
</videoTopic><!DOCTYPE videoTopic SYSTEM "videoTopic.dtd">
<videoTopic num="0099"><textDescription>Find shots of a basket</textDescription></videoTopic>
"""
QRELS = """0100 0 shot2_10 1
0100 0 shot2_9 0
0100 0 shot1_1 1
0100 0 shot77_1 1
99 0 shot2_9 1
"""
SHOTS = ["shot1_1", "shot2_9", "shot2_10", "shot10_1"]  # in the order of their numbers


@pytest.fixture
def folder(tmp_path):
    for i, shot in enumerate(SHOTS):
        write(tmp_path / "keyframes" / f"{i}" / f"{shot}_RKF.jpg", jpeg(size=(4 + i, 3)))
    write(tmp_path / "keyframes" / "0" / "shot1_1_NRKF_1.jpg", jpeg())
    write(tmp_path / "topics" / "topics.2003.xml", TOPICS)
    write(tmp_path / "topics" / "extra" / "11287096.jpg", jpeg())
    write(tmp_path / "topics" / "A road.jpg", jpeg())
    write(tmp_path / "search.qrels.tv03", QRELS)
    write(
        tmp_path / "transcripts.tsv",
        "shot2_9\tgood evening\nshot1_1\t caf\u00e9\tnow \nshot5_5\tx\n",
    )
    return tmp_path


def test_shots_and_what_was_said(folder):
    dataset = trecvid.load(folder)
    assert dataset.ids.tolist() == SHOTS
    assert dataset["image"][3].shape == (3, 7, 3)
    assert dataset["text"][:] == ["caf\u00e9\tnow", "good evening", "", ""]
    assert dataset.tag_names == ("99", "100")
    assert dataset.tags.toarray().tolist() == [[0, 1], [1, 0], [0, 1], [0, 0]]
    assert "4 keyframes (1 of sub-shots" in dataset.notes[0]
    assert dataset.notes[1] == (
        "2 shots have a transcript, 2 have none; 1 transcripts have no keyframe."
    )


def test_topics(folder):
    topics = trecvid.topics(folder)
    assert topics.ids == ("99", "100")
    assert topics.descriptions == (
        "Find shots of a basket",
        "Find shots with aerial views containing both buildings & roads",
    )
    assert [rows.tolist() for rows in topics.relevant] == [[1], [0, 2]]
    assert topics.unseen == (0, 1)  # shot77_1 has no keyframe
    assert topics.examples == (
        (),
        (folder / "topics" / "extra" / "11287096.jpg", folder / "topics" / "A road.jpg"),
    )
    assert topics.missing == ("http://example.org/a%20view.JPG?x=1&y=2",)
    assert len(topics) == 2


def test_example_images_follow_the_shots(folder):
    write(folder / "topics" / "0099" / "frame.jpg", jpeg(size=(9, 7)))
    dataset = trecvid.load(folder, examples=True)
    assert dataset.ids.tolist() == [*SHOTS, "topic99_0", "topic100_0", "topic100_1"]
    assert dataset.official["examples"].tolist() == [4, 5, 6]
    assert dataset["image"][4].shape == (7, 9, 3)  # by the name of its folder
    assert dataset["text"][4:] == [
        "Find shots of a basket",
        *["Find shots with aerial views containing both buildings & roads"] * 2,
    ]
    assert dataset.tag_names == ("99", "100")
    assert dataset.tags.toarray().tolist() == [
        *[[0, 1], [1, 0], [0, 1], [0, 0]],
        [1, 0],
        *[[0, 1]] * 2,
    ]
    assert "3 example images of 2 topics" in dataset.notes[-1]
    assert "1 that topics name are missing" in dataset.notes[-1]
    (folder / "transcripts.tsv").unlink()
    assert list(trecvid.load(folder, examples=True).modalities) == ["image"]


def test_topics_inside_one_element(folder):
    text = (
        '<?xml version="1.0"?><!DOCTYPE videoTopics SYSTEM "videoTopics.dtd"><videoTopics>'
        '<videoTopic num="0221"><textDescription text="a door"/></videoTopic></videoTopics>'
    )
    path = write(folder / "topics" / "topics.2003.xml", text)
    (topic,) = read_topics(path)
    assert (topic.number, topic.description, topic.examples) == ("221", "a door", ())


def test_transcripts_in_a_folder(folder):
    (folder / "transcripts.tsv").unlink()
    write(folder / "transcripts" / "2" / "shot2_10.txt", b"caf\xe9 \n")  # ISO 8859-1
    assert trecvid.load(folder)["text"][:] == ["", "", "caf\u00e9", ""]


def test_without_transcripts_and_judgements_there_are_the_images(folder):
    (folder / "transcripts.tsv").unlink()
    (folder / "search.qrels.tv03").unlink()
    dataset = trecvid.load(folder)
    assert list(dataset.modalities) == ["image"]
    assert dataset.tags is None
    with pytest.raises(FileError, match="no file of judgements"):
        trecvid.topics(folder)


def test_entities_are_neither_read_nor_grown(folder):
    secret = write(folder / "secret", "the secret")
    path = folder / "topics" / "topics.2003.xml"
    for declaration in (
        f'<!DOCTYPE videoTopic [<!ENTITY x SYSTEM "file://{secret}">]>',
        '<!DOCTYPE videoTopic [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]>',
        '<!ENTITY x "ha">',
    ):
        body = '<videoTopic num="1"><textDescription>&x;</textDescription></videoTopic>'
        path.write_text(declaration + body)
        try:
            (topic,) = read_topics(path)
            assert topic.description == "&x;"
        except FileError as error:
            assert "declares entities" in str(error)


def test_many_comments_that_never_end_take_no_time(folder):
    path = write(folder / "topics" / "topics.2003.xml", "<!--" * 1_000_000)
    start = time.process_time()
    with pytest.raises(FileError, match="never closes it"):
        read_topics(path)
    write(path, "<!x" * 1_000_000)
    with pytest.raises(FileError, match="declares"):
        read_topics(path)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("topics/topics.2003.xml", '<videoTopic num="x">', r"topics\.2003\.xml: not a readable"),
        ("topics/topics.2003.xml", '<videoTopic num="x"/>', r"num must be a number, got 'x'"),
        ("topics/topics.2003.xml", '<videoTopic num="1"/>', r"topic 1 has no textDescription"),
        ("topics/topics.2003.xml", "<other/>", r"topics: has no topics"),
        ("topics/more.topics", TOPICS, r"the topic (0)?(99|100) is repeated"),
        ("search.qrels.tv03", "100 0 shot1\n", r"search\.qrels\.tv03, line 1"),
        ("other.qrels", QRELS, r"keep one qrels file"),
        ("keyframes/9/shot1_1.jpg", b"", r"are keyframes of one shot"),
    ],
)
def test_odd_files_are_refused_by_name(folder, name, content, says):
    write(folder / name, content)
    with pytest.raises(FileError, match=says):
        trecvid.topics(folder)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("shot1_1 good evening\n", r"transcripts\.tsv, line 1: a line must be a shot, a tab"),
        ("shot1_1\ta\n\nshot1_1\tb\n", r"line 3: the shot shot1_1 is repeated"),
        ("", r"transcripts\.tsv: has no lines"),
        (
            "video1\ta\n",
            r"no transcript belongs to a shot with a keyframe; the first is for 'video1'",
        ),
    ],
)
def test_odd_transcripts_are_refused(folder, content, says):
    write(folder / "transcripts.tsv", content)
    with pytest.raises(FileError, match=says):
        trecvid.load(folder)


def test_a_folder_without_keyframes_is_refused(tmp_path):
    with pytest.raises(FileError, match="keyframes: no such folder"):
        trecvid.load(tmp_path)
    (tmp_path / "keyframes").mkdir()
    with pytest.raises(FileError, match="has no keyframes"):
        trecvid.load(tmp_path)


def test_a_record_of_topics_checks_itself():
    one = np.array([0])
    with pytest.raises(InputError, match="every topic needs"):
        trecvid.Topics(("1",), (), ((),), (one,), (0,))
    with pytest.raises(InputError, match="distinct"):
        trecvid.Topics(("1", "1"), ("a", "b"), ((), ()), (one, one), (0, 0))


@pytest.mark.parametrize("name", ["topics/topics.2003.xml", "search.qrels.tv03", "transcripts.tsv"])
def test_damage_ends_in_our_error(folder, name):
    path = folder / name
    content = path.read_bytes()

    def read():
        return trecvid.load(folder), trecvid.topics(folder)

    assert count_refused(path, [*truncations(content, 80), *flips(content, 80)], read) > 20


def test_the_split_of_the_paper_takes_it(tmp_path):
    for i in range(40):
        write(tmp_path / "keyframes" / f"shot1_{i}.jpg", b"")
    lines = [f"{100 + i % 2} 0 shot1_{i} 1\n" for i in range(40)]
    write(tmp_path / "qrels.txt", "".join(lines))
    split = make_split("trecvid", trecvid.load(tmp_path), random_state=0, run=0)
    assert split.topics == ("100", "101")
