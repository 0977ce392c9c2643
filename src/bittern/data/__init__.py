"""Datasets of the papers, read from their published files, and splits without leaks."""

from bittern.data.dataset import Dataset

__all__ = ["Dataset"]
