"""Pictures and texts to vectors: one file for each family of features."""
