"""Central similarity quantisation: hash functions trained to reach a code given to each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from bittern.checks import PositionArray, check_number
from bittern.hashing.deep.hasher import GradientHasher
from bittern.hashing.targets import Targets

if TYPE_CHECKING:
    from torch import Tensor

DRAWS = 200  # of random centres, from which the best apart are taken


@dataclass(kw_only=True, eq=False, repr=False)
class CSQ(GradientHasher):
    r"""Central similarity quantisation: each class has a code, its centre, that its rows approach.

    This trains a classifier through the bits, so it shows what the network and the rows can give.
    Centres are rows of a Hadamard matrix and their complements where the length is a power of two
    and they suffice, otherwise random codes far apart (:func:`hash_centres`).  A row with several
    tags approaches the majority, bit by bit, of its tags' centres; if y is a Relevance, the rows
    that are relevant to it, of up to 256 random ones, take the place of tags.

    Minimises the binary cross-entropy of :math:`\sigma(2f)` with the bits of the centre, plus
    ``eta`` times the mean of :math:`(|\tanh f| - 1)^2` over the logits f.  The original smooths
    that last term by a logarithm of a hyperbolic cosine.
    :class:`~bittern.hashing.deep.hasher.GradientHasher` explains the other parameters, of the
    network and its training.

    Reference: [Yuan-2020].
    """

    eta: float = 1e-4

    name = "csq"

    def _batch_targets(self, targets: Targets, seed: int) -> Callable[[PositionArray], Tensor]:
        import torch

        centres = torch.from_numpy(_centres_of(targets, self.n_bits, np.random.default_rng(seed)))
        return lambda rows: centres[rows]

    def _loss(self, logits: Tensor, target: Tensor, t: float) -> Tensor:
        from torch.nn.functional import binary_cross_entropy_with_logits

        loss = binary_cross_entropy_with_logits(2 * logits, target.to(logits))
        return loss + self.eta * (logits.tanh().abs() - 1).square().mean()

    def _check_objective(self) -> None:
        check_number(self.eta, f"{self._title}: eta", least=0)


def hash_centres(n: int, n_bits: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Codes ``(n, n_bits)`` of n classes, far apart.

    If ``n_bits`` is a power of two and n at most twice that, these are random ones of the rows of a
    Hadamard matrix and their complements, half or all of the bits apart.  Otherwise they are the
    best of some random draws: the one whose nearest two codes differ in the most bits, and of these
    the one whose codes differ most on average.
    """
    if n_bits & (n_bits - 1) == 0 and n <= 2 * n_bits:
        rows = hadamard(n_bits) > 0
        return np.concatenate([rows, ~rows])[rng.permutation(2 * n_bits)[:n]]
    draws = (rng.random((n, n_bits)) < 0.5 for _ in range(DRAWS))
    return max(draws, key=_spread)


def _spread(codes: NDArray[np.bool_]) -> float:
    """The smallest distance between two codes, plus a share below 1 for the mean distance."""
    n, n_bits = codes.shape
    signs = np.where(codes, 1.0, -1.0)
    distances = ((n_bits - signs @ signs.T) / 2)[np.triu_indices(n, 1)]
    return float(distances.min(initial=n_bits) + distances.sum() / (n * n * n_bits))


def _centres_of(targets: Targets, n_bits: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The bits ``(n, n_bits)`` that each row approaches."""
    if targets.labels is not None:
        n_classes = int(targets.labels.max()) + 1
        return hash_centres(n_classes, n_bits, rng)[targets.labels]
    tags: NDArray[Any] = targets.indicators(rng) > 0
    signs = np.where(hash_centres(tags.shape[1], n_bits, rng), 1.0, -1.0)
    ties = np.where(rng.random(n_bits) < 0.5, 0.5, -0.5)  # decide where as many say yes as no
    return tags @ signs + ties > 0
