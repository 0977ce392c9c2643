"""Features turn images and texts into vectors; each file is one family.

>>> import numpy as np, bittern as bt
>>> grey = np.full((1, 32, 48), 128, np.uint8)
>>> bt.features.FEATURES["rgb-moments"]().fit(grey).transform(grey).shape
(1, 12)

The public names are listed in __init__.pyi.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
