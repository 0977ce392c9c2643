"""Engines: what an index that someone else runs has found, compared with the exact answer."""

from bittern.engines.audit_record import Audit
from bittern.engines.auditing import audit
from bittern.engines.hit_files import read_hits
from bittern.engines.reported import ReportedDistances

__all__ = ["Audit", "ReportedDistances", "audit", "read_hits"]


def __dir__() -> list[str]:
    return sorted(__all__)
