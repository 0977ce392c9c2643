"""Readers: one file for each dataset, from its published files to a Dataset."""
