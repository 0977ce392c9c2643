"""Parameters, networks and training of the gradient-trained methods (TALR, DPSH, DTSH)."""
