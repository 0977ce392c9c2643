"""Every file format once: written whole or not at all, checked before it is read."""
