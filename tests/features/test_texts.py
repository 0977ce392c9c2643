"""Words, stems, bags of words and topics."""

import json
import math
import pickle
import sys

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

import bittern as bt
from bittern.data.rows import RowView, Texts
from bittern.features import text as words
from bittern.features.text import BagOfWords, Topics, shared_words, stem_of, words_of
from bittern.hashing import LSH

TEXTS = [
    "The cat sat on the mat.",
    "Cats and dogs: a dog sits on no mats!",
    "Relational databases; related conditions, 42 tables.",
    "The dogs chased the cat, the cat chased the mice.",
]

# The examples of [Porter-1980], each with its stem after all steps.
# fmt: off
STEMS = {
    "caresses": "caress", "ponies": "poni", "ties": "ti", "caress": "caress", "cats": "cat",
    "feed": "feed", "agreed": "agre", "plastered": "plaster", "bled": "bled", "motoring": "motor",
    "sing": "sing", "conflated": "conflat", "troubled": "troubl", "sized": "size",
    "hopping": "hop", "tanned": "tan", "falling": "fall", "hissing": "hiss", "fizzed": "fizz",
    "failing": "fail", "filing": "file", "happy": "happi", "sky": "sky", "relational": "relat",
    "conditional": "condit", "rational": "ration", "valenci": "valenc", "hesitanci": "hesit",
    "digitizer": "digit", "conformabli": "conform", "radicalli": "radic", "differentli": "differ",
    "vileli": "vile", "analogousli": "analog", "vietnamization": "vietnam",
    "predication": "predic", "operator": "oper", "feudalism": "feudal", "decisiveness": "decis",
    "hopefulness": "hope", "callousness": "callous", "formaliti": "formal",
    "sensitiviti": "sensit", "sensibiliti": "sensibl", "triplicate": "triplic",
    "formative": "form", "formalize": "formal", "electriciti": "electr", "electrical": "electr",
    "hopeful": "hope", "goodness": "good", "revival": "reviv", "allowance": "allow",
    "inference": "infer", "airliner": "airlin", "gyroscopic": "gyroscop",
    "adjustable": "adjust", "defensible": "defens", "irritant": "irrit",
    "replacement": "replac", "adjustment": "adjust", "dependent": "depend",
    "adoption": "adopt", "communism": "commun", "activate": "activ", "angulariti": "angular",
    "homologous": "homolog", "effective": "effect", "bowdlerize": "bowdler",
    "probate": "probat", "rate": "rate", "cease": "ceas", "controll": "control", "roll": "roll",
    "generalizations": "gener", "oscillators": "oscil",
}
# fmt: on


def test_stems_are_the_published_ones():
    stem = stem_of("test")
    assert {word: stem(word) for word in STEMS} == STEMS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The CAT, the mat.", ["the", "cat", "the", "mat"]),
        ("John's don't", ["john", "don"]),
        ("x2y a1bc22de_fg", ["bc", "de", "fg"]),
        ("naïve Ωμέγα 東京", ["naïve", "ωμέγα", "東京"]),
        ("nai\u0308ve ﬁsh ｗｉｄｅ", ["naïve", "fish", "wide"]),  # decomposed, ligature, full width
        (" \n\t 7 — ?", []),
    ],
)
def test_words_are_runs_of_letters_in_lower_case(text, expected):
    assert words_of(text) == expected


def textbook_weights(texts, learned_from):
    """tf-idf of stems, by dictionaries: a {stem: weight} for each text."""
    stem = stem_of("test")

    def counts(text):
        found = {}
        for word in words_of(text):
            found[stem(word)] = found.get(stem(word), 0) + 1
        return found

    known = [set(counts(text)) for text in learned_from]
    rows = []
    for text in texts:
        weights = {}
        for one, times in counts(text).items():
            having = sum(one in stems for stems in known)
            if having:
                weights[one] = times * math.log(len(known) / having)
        total = sum(weights.values())
        rows.append({one: weight / total for one, weight in weights.items()} if total else {})
    return rows


def as_dictionaries(bag, rows):
    return [{str(bag.vocabulary_[j]): float(row[j]) for j in np.flatnonzero(row)} for row in rows]


def test_weights_are_the_textbook_s():
    new = [*TEXTS, "cats cats unseenword table", "mice"]
    bag = BagOfWords().fit(TEXTS)
    rows = bag.transform(new)
    assert rows.dtype == np.float32 and rows.shape == (6, len(bag.vocabulary_))
    for found, expected in zip(
        as_dictionaries(bag, rows), textbook_weights(new, TEXTS), strict=True
    ):
        assert found == pytest.approx({k: v for k, v in expected.items() if v}, rel=1e-5)


def test_worked_example():
    # Of 2 texts, "cat" is in both: ln(2/2) = 0.  "dog" is twice and "mat" once in the first,
    # each in one text: 2 ln 2 and 1 ln 2, of which the sum is 3 ln 2.
    bag = BagOfWords().fit(["Cat dog, dogs mat.", "Cats!"])
    assert bag.vocabulary_.tolist() == ["cat", "dog", "mat"]
    np.testing.assert_allclose(bag.idf_, [0, math.log(2), math.log(2)])
    np.testing.assert_allclose(
        bag.transform(["Cat dog, dogs mat.", "Cats!"]), [[0, 2 / 3, 1 / 3], [0, 0, 0]], rtol=1e-6
    )


def test_weights_sum_to_one_or_there_are_none():
    rows = BagOfWords().fit(TEXTS).transform([*TEXTS, "", "unknown things", "42"])
    np.testing.assert_allclose(rows.sum(axis=1), [1, 1, 1, 1, 0, 0, 0], atol=1e-6)
    assert (rows >= 0).all()


@pytest.mark.parametrize("feature", [BagOfWords(), Topics(2)], ids=lambda one: one.name)
def test_a_row_depends_on_its_own_text_only(feature):
    rows = feature.fit(TEXTS[:3]).transform(TEXTS)
    vocabulary = feature.vocabulary_.tolist()
    assert "chase" not in vocabulary and "mice" not in vocabulary
    np.testing.assert_array_equal(feature.transform(TEXTS[1:2]), rows[1:2])
    np.testing.assert_array_equal(feature.transform(TEXTS[::-1]), rows[::-1])
    assert feature.vocabulary_.tolist() == vocabulary
    assert len(np.unique(rows.round(4), axis=0)) > 2


@pytest.mark.parametrize("kind", [BagOfWords, Topics])
@pytest.mark.parametrize("collection", [list, np.array])
def test_stop_words_go_before_stemming(kind, collection):
    plain = kind().fit(TEXTS)
    stopped = kind(stop_words=collection(["The", "on", "dogs"])).fit(TEXTS)
    assert set(plain.vocabulary_) - set(stopped.vocabulary_) == {"the", "on"}  # "dog" has its stem


@pytest.mark.parametrize("kind", [BagOfWords, Topics])
def test_rare_stems_can_be_left_out(kind):
    assert kind(min_df=2).fit(TEXTS).vocabulary_.tolist() == ["cat", "dog", "mat", "on", "the"]
    assert kind(min_df=3).fit(TEXTS).vocabulary_.tolist() == ["cat"]


def test_sparse_rows_are_the_same():
    dense = BagOfWords().fit(TEXTS).transform(TEXTS)
    sparse = BagOfWords(sparse=True).fit(TEXTS).transform(TEXTS)
    assert issparse(sparse) and sparse.format == "csr" and sparse.dtype == np.float32
    assert sparse.nnz == (dense != 0).sum() > 0
    np.testing.assert_array_equal(sparse.toarray(), dense)


def test_too_large_a_dense_array_is_refused(monkeypatch):
    bag = BagOfWords().fit(TEXTS)
    monkeypatch.setattr(words, "LARGEST", 4 * 4 * len(bag.vocabulary_) - 1)
    with pytest.raises(bt.InputError, match=r"4 texts by \d+ stems are too large .* sparse=True"):
        bag.transform(TEXTS)
    assert bag.transform(TEXTS[:3]).any()
    assert bag.set_params(sparse=True).transform(TEXTS).nnz


@pytest.mark.parametrize(
    "X",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        Texts(TEXTS),
        RowView(Texts(["x", *TEXTS]), np.arange(1, 5)),
    ],
    ids=["tuple", "array", "objects", "Texts", "RowView"],
)
def test_any_sequence_of_texts_will_do(X):
    expected = BagOfWords().fit(TEXTS).transform(TEXTS)
    np.testing.assert_array_equal(BagOfWords().fit_transform(X), expected)
    assert expected.any()


# Topics.


SEA = ["fish", "boat", "sail", "wave", "sail", "fish", "boat", "fish", "net"]
LAND = ["tree", "cow", "grass", "farm", "cow", "grass", "tree", "barn", "hay"]


def two_subjects(n=30):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(SEA if i % 2 else LAND, 20)) for i in range(n)]


def test_topics_are_scikit_learn_s_on_the_counts():
    texts = two_subjects()
    stem = stem_of("test")
    stemmed = [" ".join(stem(word) for word in words_of(text)) for text in texts]
    counts = CountVectorizer().fit_transform(stemmed)
    expected = LatentDirichletAllocation(3, max_iter=7, random_state=5).fit(counts)
    found = Topics(3, n_iter=7, random_state=5).fit(texts)
    np.testing.assert_allclose(found.transform(texts), expected.transform(counts), atol=1e-6)


def test_topics_tell_two_subjects_apart():
    texts = two_subjects()
    topics = Topics(2).fit(texts)
    rows = topics.transform(texts)
    assert rows.dtype == np.float32 and rows.shape == (30, 2)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(topics.topics_.sum(axis=1), 1)
    assert topics.topics_.shape == (2, len(topics.vocabulary_))
    (sea,) = set(rows[1::2].argmax(axis=1))
    (land,) = set(rows[::2].argmax(axis=1))
    assert sea != land
    assert topics.vocabulary_[topics.topics_[sea].argmax()] in ("fish", "boat", "sail")


def test_a_text_without_known_words_has_each_topic_alike():
    np.testing.assert_allclose(Topics(4).fit(TEXTS).transform(["", "zebras"]), 1 / 4)


def test_topics_follow_from_the_random_state():
    texts = two_subjects()
    rows = [
        Topics(4, n_iter=2, random_state=state).fit(texts).transform(texts) for state in (0, 0, 1)
    ]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.allclose(rows[0], rows[2])


# What both promise.


@pytest.fixture(params=[BagOfWords, Topics])
def feature(request):
    return request.param()


def test_fit_returns_self_and_leaves_parameters_alone(feature):
    before = feature.get_params()
    assert feature.fit(TEXTS) is feature
    assert feature.get_params() == before
    assert (feature.takes, feature.name) in {("texts", "bag-of-words"), ("texts", "topics")}


def test_clones_and_pickles(feature):
    rows = feature.fit(TEXTS).transform(TEXTS)
    np.testing.assert_array_equal(clone(feature).fit(TEXTS).transform(TEXTS), rows)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(feature)).transform(TEXTS), rows)
    assert rows.any()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda f: f.transform(TEXTS), bt.NotFittedError, r"call fit\(\) before transform\(\)"),
        (lambda f: f.fit("one text"), bt.InputError, r"a sequence of texts, got str; put one"),
        (lambda f: f.fit(7), bt.InputError, "a sequence of texts, got int"),
        (lambda f: f.fit([]), bt.InputError, "at least one text"),
        (lambda f: f.fit(["a", b"b"]), bt.InputError, "text 1 must be a string, got bytes"),
        (lambda f: f.fit(["", "7"]), bt.InputError, "is in 1 or more of the 2 texts"),
        (lambda f: f.set_params(min_df=5).fit(TEXTS), bt.InputError, "in 5 or more of the 4 texts"),
        (lambda f: f.set_params(min_df=0).fit(TEXTS), bt.InputError, "min_df must be at least 1"),
        (lambda f: f.set_params(stop_words="the").fit(TEXTS), bt.InputError, "got 'the'"),
        (lambda f: f.set_params(stop_words=[1]).fit(TEXTS), bt.InputError, "collection of words"),
    ],
)
def test_bad_input_says_what_rule_it_broke(feature, call, error, says):
    with pytest.raises(error, match=f"{type(feature).__name__}: .*{says}"):
        call(feature)


@pytest.mark.parametrize("bad", [{"n_topics": 0}, {"n_iter": 0}, {"random_state": -1}])
def test_bad_numbers_of_topics_are_refused(bad):
    (name,) = bad
    with pytest.raises(bt.InputError, match=f"Topics: {name} must be at least"):
        Topics(**bad).fit(TEXTS)


def test_a_missing_stemmer_says_what_to_install(feature, monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(bt.MissingExtraError, match=r"pip install 'bittern\[features\]'"):
        feature.fit(TEXTS)


def test_what_was_learned_is_saved_without_code(feature, tmp_path):
    feature.set_params(stop_words={"the", "on"}).fit(TEXTS)
    feature.save(tmp_path / "texts.npz")
    with np.load(tmp_path / "texts.npz", allow_pickle=False) as stored:
        assert json.loads(stored["feature"].tobytes())["feature"] == feature.name
    loaded = bt.features.load(tmp_path / "texts.npz")
    assert loaded.vocabulary_.tolist() == feature.vocabulary_.tolist()
    assert set(loaded.stop_words) == {"the", "on"}
    new = [*TEXTS, "a cat on the moon", ""]
    np.testing.assert_array_equal(loaded.transform(new), feature.transform(new))


def test_a_feature_that_was_not_fitted_is_not_saved(feature, tmp_path):
    with pytest.raises(bt.NotFittedError, match=r"call fit\(\) before save\(\)"):
        feature.save(tmp_path / "texts.npz")


def test_damaged_arrays_are_refused(feature, tmp_path):
    path = tmp_path / "texts.npz"
    feature.fit(TEXTS).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["learned.vocabulary_"] = arrays["learned.vocabulary_"][:3]
    np.savez(path, **arrays)
    with pytest.raises(
        bt.FileError, match=r"texts\.npz: not a readable feature \(arrays for 3 and"
    ):
        bt.features.load(path)
    arrays["learned.vocabulary_"] = np.arange(3)
    np.savez(path, **arrays)
    with pytest.raises(bt.FileError, match="must be a list of stems"):
        bt.features.load(path)


def test_a_collection_keeps_its_text_feature(feature, tmp_path):
    pytest.importorskip("duckdb")
    texts = two_subjects()
    rows = feature.fit(texts).transform(texts)
    hasher = LSH(n_bits=16).fit(rows)
    with bt.store.create(tmp_path / "t.bittern", hasher=hasher, features=feature) as made:
        made.add(texts, metadata={"text": texts})
    with bt.store.open(tmp_path / "t.bittern", read_only=True) as opened:
        assert opened.recipe.names() == {"hasher": "lsh", "features": feature.name}
        ids, distances = opened.search([texts[7]], k=1)[0]
    assert distances[0] == 0 and hasher.encode(rows[ids]) == hasher.encode(rows[7:8])


def test_shared_words_are_those_that_tell_texts_apart():
    texts = ["The cats sat", "the cat ran", "the dogs ran", "the dog and two geese", "the sea"]
    rows, words = shared_words(texts, "test")
    # "the" is in all five; "sat", "two", "geese", "and" and "sea" are in one.
    assert words == ["cats", "dogs", "ran"]
    expected = [[1, 0, 0], [1, 0, 1], [0, 1, 1], [0, 1, 0], [0, 0, 0]]
    assert rows.toarray().astype(int).tolist() == expected
    with pytest.raises(bt.InputError, match="test: learns from words that texts share"):
        shared_words(["the sea", "the sky"], "test")
