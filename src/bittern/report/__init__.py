"""Results as pictures; nothing is computed here that a number depends on."""
