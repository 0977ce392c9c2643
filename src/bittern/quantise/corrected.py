"""Quantisers with centres and correction bytes, if these pay on training rows."""

from __future__ import annotations

from abc import abstractmethod
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, check_count
from bittern.errors import InputError
from bittern.io.models import learned_attributes
from bittern.quantise import correction
from bittern.quantise.base import Expanded, Quantiser, squared_float32
from bittern.quantise.correction import N_BYTES, POWERS, SHARES
from bittern.quantise.stored import Bytes

N_CENTRES = 256
N_TRIAL_QUERIES, N_TRIAL_ITEMS = 200, 4000
N_CLUSTERED = 20_000  # rows from which the centres are learned


class CorrectedQuantiser(Quantiser):
    """A quantiser of residuals; an item may have one byte for its centre, and two of correction.

    ``centres`` and ``correction`` are True, False, or "auto": the combination with the best recall
    of the ten nearest on training rows, where 200 rows are queries and up to 4,000 others the
    database.  γ and β of the correction (see :mod:`~bittern.quantise.correction`) are chosen so,
    too, unless the method fixes them.
    """

    n_bytes: int
    centres: Any
    correction: Any

    bounds_: Float64Array  # of the correction; empty without
    power_: float
    share_: float
    _space: Any  # what does not depend on the number of bytes; forgotten after training

    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        check_count(self.n_bytes, f"{self._title}: n_bytes")
        trial = _Trial(X, self.metric, draw)
        best, model = -1.0, dict[str, Any]()
        for with_centres in self._options("centres", len(X) >= 4 * N_CENTRES):
            residuals = self._centred(X, with_centres, draw)
            self._prepare(residuals, draw)
            for corrected in self._options("correction", True):
                room = self.n_bytes - int(with_centres) - N_BYTES * int(corrected)
                if room < 1:
                    continue
                self._allocate(room, draw)
                found = self._calibrate(residuals, corrected, trial)
                if found > best:
                    best, model = found, learned_attributes(self)
        if not model:
            raise InputError(
                f"{self._title}: {self.n_bytes} bytes leave none for the code beside its centre "
                "and correction; give more, or leave these out."
            )
        del self._space
        for name, value in model.items():
            setattr(self, name, value)

    @abstractmethod
    def _prepare(self, residuals: Float32Array, draw: np.random.Generator) -> None:
        """Learn what does not depend on the number of bytes, and keep it in ``_space``."""

    @abstractmethod
    def _allocate(self, n_bytes: int, draw: np.random.Generator) -> None:
        """Learn how the code uses its bytes."""

    @property
    def _powers(self) -> tuple[float, ...]:
        """The values of γ to try."""
        return POWERS

    @property
    def _shares(self) -> tuple[float, ...]:
        """The values of β to try."""
        return SHARES

    def _options(self, name: str, possible: bool) -> tuple[bool, ...]:
        value = getattr(self, name)
        if value == "auto":
            return (False, True) if possible else (False,)
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{self._title}: {name} must be True, False or 'auto', got {value!r}.")
        return (bool(value),)

    def _centred(self, X: Float32Array, many: bool, draw: np.random.Generator) -> Float32Array:
        """Rows minus their centres, after learning these."""
        if many:
            self.centres_ = _cluster_centres(X, draw)
        else:
            self.centres_ = X.mean(axis=0, dtype=np.float64, keepdims=True).astype(np.float32)
        return np.asarray(X - self.centres_[self._nearest_centres(X)])

    def _calibrate(self, residuals: Float32Array, corrected: bool, trial: _Trial) -> float:
        """Choose γ and β on the trial; returns the recall."""
        self.bounds_, self.power_, self.share_ = np.zeros((0, 2)), 0.0, 0.0
        if not corrected:
            return trial.recall(self, self._expanded(self._encoded(trial.items)))
        some = residuals[: len(trial.items)]
        self.bounds_ = correction.ranges(self._measured(some, self._payload(some)))
        rows = self._encoded(trial.items)
        best, choice = -1.0, (0.0, 0.0)
        for power, share in product(self._powers, self._shares):
            self.power_, self.share_ = power, share
            found = trial.recall(self, self._expanded(rows))
            if found > best:
                best, choice = found, (power, share)
        self.power_, self.share_ = choice
        return best

    def _measured(self, residuals: Float32Array, payload: Bytes) -> correction.Measured:
        """Length and angle of each residual."""
        return correction.measure(residuals, self._projected(residuals), self._values(payload))

    def _encoded(self, X: Float32Array) -> Bytes:
        rows = super()._encoded(X)
        if not len(self.bounds_):
            return rows
        groups, payload = self._divided(rows)
        found = self._measured(X - self.centres_[groups], payload)
        return np.hstack([rows, correction.to_bytes(found, self.bounds_)])

    def _expanded(self, rows: Bytes) -> Expanded:
        if not len(self.bounds_):
            return super()._expanded(rows)
        groups, payload = self._divided(rows[:, :-N_BYTES])
        values = self._values(payload)
        own = squared_float32(values)
        found = correction.from_bytes(rows[:, -N_BYTES:], self.bounds_)
        scale = correction.scales(found, own, self.power_)
        values *= scale[:, None]
        residuals = correction.squared_residuals(found, self.share_)
        return Expanded(values, groups, self._lengths(values, groups, residuals))


class _Trial:
    """Training rows as queries and as database, and which items are truly nearest."""

    def __init__(self, X: Float32Array, metric: str, draw: np.random.Generator) -> None:
        order = draw.permutation(len(X))
        n_queries = min(N_TRIAL_QUERIES, max(1, len(X) // 5))
        self.queries = X[np.sort(order[:n_queries])]
        self.items = X[np.sort(order[n_queries : n_queries + N_TRIAL_ITEMS])]
        if not len(self.items):
            self.items = self.queries
        products = self.queries @ self.items.T
        gaps = (
            -products if metric == "inner-product" else squared_float32(self.items) - 2 * products
        )
        k = min(correction.RANKS, gaps.shape[1])
        self.true: NDArray[np.intp] = np.argpartition(gaps, k - 1, axis=1)[:, :k]

    def recall(self, quantiser: Quantiser, items: Expanded) -> float:
        """The recall of estimated distances."""
        q = quantiser._queries(self.queries)
        products = q.vectors @ items.vectors.T
        products += q.to_centres[:, items.groups]
        found = quantiser._distance(products, q.lengths[:, None], items.lengths)
        return correction.recall(found, self.true)


def _cluster_centres(X: Float32Array, draw: np.random.Generator) -> Float32Array:
    from sklearn.cluster import MiniBatchKMeans

    some = X[np.sort(draw.permutation(len(X))[:N_CLUSTERED])]
    seed = int(draw.integers(1 << 31))
    means = MiniBatchKMeans(N_CENTRES, batch_size=2048, n_init=1, max_iter=20, random_state=seed)
    return np.asarray(means.fit(some).cluster_centers_, np.float32)
