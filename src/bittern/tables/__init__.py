"""Evaluation of hash tables, K bits by L tables."""
