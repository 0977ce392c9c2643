"""What quality costs: seconds and memory beside the main metric."""

from __future__ import annotations

from dataclasses import dataclass

from bittern.analysis.summary import keys_of, mean_of
from bittern.experiments.records import Records

__all__ = ["STAGES", "Cost", "costs"]

STAGES = ("tune", "fit", "encode", "evaluate")


@dataclass(frozen=True, slots=True)
class Cost:
    """Time and memory of a method at a length, with what they bought.

    ``seconds`` has the mean over runs of each stage, NaN where a method has no such stage;
    ``peak_memory`` is the largest of all runs, in bytes; ``mean`` is that of the main metric.
    """

    method: str
    n_bits: int | None  # None without codes
    seconds: dict[str, float]
    peak_memory: int
    mean: float


def costs(records: Records) -> tuple[Cost, ...]:
    """What each method at each length took, in the protocol's order."""
    return tuple(_cost(records, *key) for key in keys_of(records))


def _cost(records: Records, method: str, n_bits: int | None) -> Cost:
    found = records.of(method, n_bits)
    return Cost(
        method=method,
        n_bits=n_bits,
        seconds={
            stage: mean_of([r.seconds[stage] for r in found if stage in r.seconds])
            for stage in STAGES
        },
        peak_memory=max(record.peak_memory for record in found),
        mean=mean_of(records.over_runs(method, n_bits, records.protocol.main_metric)),
    )
