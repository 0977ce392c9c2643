"""What the gradient-trained methods (TALR, DPSH, DTSH) share: parameters, networks, training."""
