"""Readers: each module turns the published files of one dataset into a Dataset."""
