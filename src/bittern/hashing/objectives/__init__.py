"""What gradient-trained hashers minimise: functions of logits and affinities, in PyTorch.

Each takes ``logits`` (M, b), of which the signs will be the bits, and ``gains`` (M, M), whole
numbers that say how relevant one row of the batch is to another (the diagonal is not looked at),
and gives one number, smaller for better codes.
"""

from __future__ import annotations

from bittern.hashing.objectives.ap import ap_loss
from bittern.hashing.objectives.counts import Objective, soft_counts
from bittern.hashing.objectives.dpsh import dpsh_loss
from bittern.hashing.objectives.dtsh import dtsh_loss
from bittern.hashing.objectives.ndcg import ndcg_loss
from bittern.registry import Registry

#: Every objective by its name.
OBJECTIVES: Registry[Objective] = Registry(
    "objective", {"ap": ap_loss, "ndcg": ndcg_loss, "dpsh": dpsh_loss, "dtsh": dtsh_loss}
)

__all__ = [
    "OBJECTIVES",
    "Objective",
    "ap_loss",
    "dpsh_loss",
    "dtsh_loss",
    "ndcg_loss",
    "soft_counts",
]
