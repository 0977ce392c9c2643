"""View: the records of a page and how each method looks on it."""

from __future__ import annotations

from dataclasses import dataclass

from bittern.experiments import Records
from bittern.report.charts import Style, styles_of

__all__ = ["View"]


@dataclass(frozen=True, slots=True)
class View:
    """What every section is given."""

    records: Records
    coded: tuple[str, ...]  # methods with codes
    uncoded: tuple[str, ...]  # methods without, whose values are the same at every length
    styles: dict[str, Style]

    @staticmethod
    def of(records: Records) -> View:
        """The view of records; methods without codes look like a line to compare with.

        Where no method has codes, there is nothing to compare with: each has its own colour.
        """
        has_codes = {record.method for record in records if record.n_bits is not None}
        coded = tuple(method for method in records.methods if method in has_codes)
        uncoded = tuple(method for method in records.methods if method not in has_codes)
        return View(records, coded, uncoded, styles_of(records.methods, uncoded if coded else ()))

    @property
    def main_metric(self) -> str:
        """The metric by which methods are compared."""
        return self.records.protocol.main_metric

    @property
    def lengths(self) -> tuple[int | None, ...]:
        """The code lengths; one without a number where there are no codes."""
        return self.records.lengths or (None,)
