"""Small codes and ground truths for the evaluation of hash tables."""

import by_hand
import numpy as np
from by_hand import N_DATABASE, N_QUERIES

from bittern import Codes

NAMES = ("classes", "tags", "graded tags", "matrix", "nothing", "thresholds")
GROUND_TRUTHS = {name: by_hand.GROUND_TRUTHS[name] for name in NAMES}


def crowded(n_bits, random_state):
    """Queries and database whose bits are mostly one, so that buckets fill; read-only."""
    rng = np.random.default_rng(random_state)
    codes = [Codes.from_bits(rng.random((n, n_bits)) < 0.85) for n in (N_QUERIES, N_DATABASE)]
    for part in codes:
        part.words.flags.writeable = False
    return codes
