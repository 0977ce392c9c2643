"""The same writes and the same questions to two collections, whose answers must agree."""

from contextlib import contextmanager

import numpy as np
from places import new_place, random_codes

import bittern as bt

N_BITS = 10  # few, so that nearly every hit is tied
CODES = random_codes(400, N_BITS)
QUERIES = random_codes(5, N_BITS, random_state=1)


def fill(collection):
    """The same writes, whatever the store."""
    labels = ["cat", "dog", None, "cow"] * 100
    collection.add(CODES[:300], metadata={"label": labels[:300], "n": np.arange(300)})
    collection.add(CODES[300:], ids=np.arange(1099, 999, -1), metadata={"label": labels[300:]})
    collection.upsert(CODES[7:9], [5, 6], metadata=[{"label": "cat"}, {}])
    collection.delete(where="label = 'dog' AND n < 50")
    collection.delete([20, 1050])


@contextmanager
def filled_pair(store, folder):
    """A collection on a server and one in a file, after the same writes."""
    with (
        bt.store.create(new_place(store, folder), N_BITS) as served,
        bt.store.create(new_place("file", folder), N_BITS) as embedded,
    ):
        fill(served)
        fill(embedded)
        yield served, embedded


CONDITIONS = (None, "label = 'cat'", "NOT label = 'cat'", "n BETWEEN 3 AND 250 OR id > 1000")


def check_same(served, embedded, conditions=CONDITIONS):
    """Every answer of the one is that of the other, ties and the last tie too."""
    assert len(served) == len(embedded) > 300
    for where in conditions:
        for k in (1, 4, 60, 1000):
            hits = served.search(QUERIES, k, where=where)
            assert hits.to_lists() == embedded.search(QUERIES, k, where=where).to_lists()
        for radius in (0, 3, N_BITS):
            hits = served.within(QUERIES, radius, where=where)
            assert hits.to_lists() == embedded.within(QUERIES, radius, where=where).to_lists()
            assert radius == 0 or hits.sizes.all()
    ids = served.search(QUERIES, 30).ids[0]
    assert served.get(ids).metadata == embedded.get(ids).metadata
    assert served.get(ids).codes == embedded.get(ids).codes
