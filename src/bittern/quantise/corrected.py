"""Quantisers with centres and correction bytes, if these pay on training rows."""

from __future__ import annotations

from abc import abstractmethod
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, Float64Array, check_count
from bittern.errors import InputError
from bittern.quantise import correction
from bittern.quantise.base import Expanded, Quantiser, Queries, squared_float32
from bittern.quantise.correction import N_BYTES, POWERS, SHARES
from bittern.quantise.stored import Bytes

N_CENTRES = 256
N_TRIAL_QUERIES, N_TRIAL_ITEMS = 500, 6000
FEWEST = 100  # items of a trial that are held out
N_CLUSTERED = 20_000  # rows from which the centres are learned


class CorrectedQuantiser(Quantiser):
    """A quantiser of residuals; an item may have bytes for its centre and for a correction.

    ``centres`` is True, False or "auto", and ``correction`` the number of its bytes, 0, 1 or 2
    (True means 2), or "auto".  Automatic is the combination with the best recall of the ten nearest
    on training rows that were not learned from, up to 500 as queries and 6,000 as database; then
    all training rows are learned from.  γ and β of the correction (see
    :mod:`~bittern.quantise.correction`) are chosen so, too, unless the method fixes them.
    """

    n_bytes: int
    centres: Any
    correction: Any

    n_correction_: int  # bytes
    bounds_: Float64Array  # of the correction; empty without
    power_: float
    share_: float
    _space: Any  # what does not depend on the number of bytes; forgotten after training

    def _learn(self, X: Float32Array, draw: np.random.Generator) -> None:
        check_count(self.n_bytes, f"{self._title}: n_bytes")
        choices = self._choices(len(X))
        if len(choices) > 1:
            order = draw.permutation(len(X))
            chosen = self._best(choices, *_held_out(X, order), draw)
        else:
            chosen = choices[0]
        self._look(X, draw)
        residuals = self._centred(X, chosen.centres, draw)
        self._prepare(residuals, draw)
        self._allocate(self._room(chosen), draw)
        self._correct(residuals[:N_TRIAL_ITEMS], chosen)
        self._forget()

    def _choices(self, n_rows: int) -> list[_Choice]:
        """Every combination that leaves a byte for the code."""
        every = [
            _Choice(with_centres, n_more, power, share)
            for with_centres in self._centre_options(n_rows)
            for n_more in self._corrections()
            for power, share in (product(self._powers, self._shares) if n_more else [(0.0, 0.0)])
        ]
        possible = [choice for choice in every if self._room(choice) >= 1]
        if not possible:
            raise InputError(
                f"{self._title}: {self.n_bytes} bytes leave none for the code beside its centre "
                "and correction; give more, or leave these out."
            )
        return possible

    def _best(
        self,
        choices: list[_Choice],
        X: Float32Array,
        queries: Float32Array,
        items: Float32Array,
        draw: np.random.Generator,
    ) -> _Choice:
        """The choice with the best recall of items that are not learned from, if X does not."""
        trial = _Trial(queries, items, self.metric)
        self._look(X, draw)
        recalls = []
        for with_centres, alike in groupby(choices, key=lambda choice: choice.centres):
            residuals = self._centred(X, with_centres, draw)
            self._prepare(residuals, draw)
            for _, same in groupby(alike, key=lambda choice: choice.n_more):
                some = list(same)
                self._allocate(self._room(some[0]), draw)
                self._correct(residuals[:N_TRIAL_ITEMS], some[0])
                rows, asked = self._encoded(items), self._queries(queries)
                for choice in some:
                    self.power_, self.share_ = choice.power, choice.share
                    recalls.append(trial.recall(self, asked, self._expanded(rows)))
        return choices[int(np.argmax(recalls))]

    def _room(self, choice: _Choice) -> int:
        return self.n_bytes - int(choice.centres) - choice.n_more

    def _correct(self, residuals: Float32Array, choice: _Choice) -> None:
        """Learn what the bytes of correction can say."""
        self.n_correction_, self.power_, self.share_ = choice[1:]
        self.bounds_ = np.zeros((0, 2))
        if choice.n_more:
            found = self._measured(residuals, self._payload(residuals))
            self.bounds_ = correction.ranges(found, choice.n_more)

    def _look(self, X: Float32Array, draw: np.random.Generator) -> None:
        """Learn what depends on the rows alone, not on centres."""

    def _forget(self) -> None:
        """Forget what only training needs."""
        del self._space

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

    def _centre_options(self, n_rows: int) -> tuple[bool, ...]:
        if isinstance(self.centres, str) and self.centres == "auto":
            return (False, True) if n_rows >= 4 * N_CENTRES else (False,)
        if not isinstance(self.centres, bool | np.bool_):
            raise InputError(
                f"{self._title}: centres must be True, False or 'auto', got {self.centres!r}."
            )
        return (bool(self.centres),)

    def _corrections(self) -> tuple[int, ...]:
        """The numbers of bytes to try."""
        value = self.correction
        if isinstance(value, str) and value == "auto":
            return (0, 1, N_BYTES)
        if isinstance(value, bool | np.bool_):
            return (N_BYTES * int(value),)
        if isinstance(value, int | np.integer) and 0 <= value <= N_BYTES:
            return (int(value),)
        raise InputError(
            f"{self._title}: correction must be a number of bytes (0, 1 or 2), True, False or "
            f"'auto', got {value!r}."
        )

    def _centred(self, X: Float32Array, many: bool, draw: np.random.Generator) -> Float32Array:
        """Rows minus their centres, after learning these."""
        if many:
            self.centres_ = _cluster_centres(X, draw)
        else:
            self.centres_ = X.mean(axis=0, dtype=np.float64, keepdims=True).astype(np.float32)
        return np.asarray(X - self.centres_[self._nearest_centres(X)])

    def _measured(self, residuals: Float32Array, payload: Bytes) -> correction.Measured:
        """Length and angle of each residual."""
        return correction.measure(residuals, self._projected(residuals), self._values(payload))

    def _encoded(self, X: Float32Array) -> Bytes:
        rows = super()._encoded(X)
        if not self.n_correction_:
            return rows
        groups, payload = self._divided(rows)
        found = self._measured(X - self.centres_[groups], payload)
        more = correction.to_bytes(found, self.bounds_, self.n_correction_)
        return np.hstack([rows, more])

    def _expanded(self, rows: Bytes) -> Expanded:
        return self._scaled(rows)[0]

    def _scaled(self, rows: Bytes) -> tuple[Expanded, Float32Array]:
        """What rows of bytes say, and the scales by which their values were multiplied."""
        if not self.n_correction_:
            return super()._expanded(rows), np.ones(len(rows), np.float32)
        groups, payload = self._divided(rows[:, : -self.n_correction_])
        values = self._values(payload)
        own = squared_float32(values)
        found = correction.from_bytes(rows[:, -self.n_correction_ :], self.bounds_)
        scale = correction.scales(found, self.power_)
        values *= scale[:, None]
        residuals = correction.squared_residuals(found, own, self.share_)
        return Expanded(values, groups, self._lengths(values, groups, residuals)), scale


class _Choice(NamedTuple):
    """What the bytes of an item are spent on, and how it is scored."""

    centres: bool
    n_more: int  # bytes of correction
    power: float  # γ
    share: float  # β


def _held_out(
    X: Float32Array, order: NDArray[np.intp]
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Rows to learn from, queries and items; few rows have to be all of these."""
    n_queries = min(N_TRIAL_QUERIES, len(X) // 10)
    n_items = min(N_TRIAL_ITEMS, len(X) // 3)
    if n_items < FEWEST:
        return X, X[: max(1, len(X) // 5)], X
    queries, items, rest = np.split(order, [n_queries, n_queries + n_items])
    return X[np.sort(rest)], X[np.sort(queries)], X[np.sort(items)]


class _Trial:
    """Queries and a database, and which items are truly nearest."""

    def __init__(self, queries: Float32Array, items: Float32Array, metric: str) -> None:
        products = queries @ items.T
        gaps = -products if metric == "inner-product" else squared_float32(items) - 2 * products
        k = min(correction.RANKS, gaps.shape[1])
        self.true: NDArray[np.intp] = np.argpartition(gaps, k - 1, axis=1)[:, :k]

    def recall(self, quantiser: Quantiser, q: Queries, items: Expanded) -> float:
        """The recall of estimated distances."""
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
