"""Random directions, each cut at its median."""

import numpy as np

from bittern.hashing import CustomHasher


class MedianHasher(CustomHasher):
    """Bit k of x is 1 if x lies beyond the median of the training rows in a random direction.

    Half of the training rows have each bit set, wherever the mean of the rows lies.
    """

    name = "median"

    def __init__(self, n_bits=32, *, random_state=0):
        self.n_bits = n_bits
        self.random_state = random_state

    def learn(self, X, targets):
        """Draw the directions, and find the median in each."""
        rng = np.random.default_rng(self.random_state)
        directions = rng.standard_normal((X.shape[1], self.n_bits))
        return {"directions_": directions, "medians_": np.median(X @ directions, axis=0)}

    def bits(self, X):
        """On which side of each median the rows lie."""
        return X @ self.directions_ > self.medians_
