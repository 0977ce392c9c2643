"""Hashers as quantisers: the published score, what the two bytes add, and kind refusals."""

import numpy as np
import pytest

import bittern as bt
from bittern.errors import InputError, UnknownNameError
from bittern.quantise import Asymmetric


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    return (rng.standard_normal((1500, 24)) * np.geomspace(3, 0.3, 24)).astype(np.float32)


def recall(quantiser, rows):
    items, queries = rows[:1200], rows[1200:]
    true = np.argsort(np.square(queries[:, None] - items).sum(axis=2), axis=1)[:, :10]
    found = np.argsort(quantiser.distances(queries, quantiser.encode(items)), axis=1)[:, :10]
    return (found[:, :, None] == true[:, None]).any(axis=2).mean()


@pytest.mark.parametrize("hasher", [bt.hashing.ITQ(16), bt.hashing.LSH(16), bt.hashing.KLSH(16)])
def test_without_correction_the_order_is_that_of_the_published_score(hasher, rows):
    quantiser = Asymmetric(hasher, correction=False).fit(rows[:1200])
    fitted = quantiser.hasher_
    bits = 2.0 * fitted.transform(rows[:100]) - 1
    scores = -fitted.logits(rows[1200:1220]) @ bits.T
    found = quantiser.distances(rows[1200:1220], quantiser.encode(rows[:100]))
    for mine, theirs in zip(found, scores, strict=True):
        assert np.corrcoef(mine, theirs)[0, 1] > 0.9999
    assert quantiser.n_bytes_ == 2


def test_two_bytes_of_correction_find_more(rows):
    hasher = bt.hashing.ITQ(24)
    plain = recall(Asymmetric(hasher, correction=False).fit(rows[:1200]), rows)
    corrected = recall(Asymmetric(hasher, correction=True).fit(rows[:1200]), rows)
    assert corrected > plain + 0.05


def test_a_name_gets_as_many_bits_as_fit(rows):
    quantiser = Asymmetric("itq", n_bytes=4, correction=True).fit(rows)
    assert quantiser.hasher_.n_bits == 16 and quantiser.n_bytes_ == 4


def test_what_cannot_be_scored_is_refused(rows):
    for hasher, words in [
        (bt.hashing.MHQ(8), "not the signs"),
        (bt.hashing.SDH(8), "labels"),
        (3, "name of one"),
        ("itk", "itq"),
    ]:
        with pytest.raises((InputError, UnknownNameError), match=words):
            Asymmetric(hasher, n_bytes=3).fit(rows)
    lsh = Asymmetric("lsh", n_bytes=3).fit(rows)
    with pytest.raises(InputError, match="decoded"):
        lsh.decode(lsh.encode(rows))
