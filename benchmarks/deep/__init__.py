"""The experiments of quality_deep.py, one file each."""
