"""Learn the levels of the trellis again: ``python benchmarks/learn_trellis.py FILE.npy``.

The package reads them from ``src/bittern/quantise/trellis_levels.npy``.  Takes about two minutes.
"""

from __future__ import annotations

import sys

import numpy as np

from bittern.kernels.trellis import STATES
from bittern.quantise.trellis_levels import MOST_BITS, learn_levels


def main() -> None:
    """Learn, print the distortions, and write the file."""
    rows = [np.append(np.zeros(STATES), 1.0)]
    for n_bits in range(1, MOST_BITS + 1):
        levels, distortion = learn_levels(n_bits, n_rounds=150, n_rows=500)
        rows.append(np.append(levels, distortion))
        print(f"{n_bits} bits: distortion {distortion:.5f}, bound {4.0**-n_bits:.5f}")
    np.save(sys.argv[1], np.array(rows))


if __name__ == "__main__":
    main()
