"""The parts of quality_evidence.py, one file each."""
