"""Several sources of evidence to one ranking."""
