"""Short binary codes: made, searched, and honestly evaluated.

>>> import bittern as bt
>>> queries = bt.Codes.from_bits([[0, 0, 1]])
>>> database = bt.Codes.from_bits([[0, 0, 1], [0, 1, 1], [1, 1, 0]])
>>> relevance = bt.Relevance.from_classes([7], [7, 7, 3])
>>> bt.evaluate(queries, database, relevance, ["ap"])["ap"].mean
1.0
"""

import lazy_loader

from bittern import moved

__version__ = "0.1.0"

# The public names are listed in __init__.pyi, and there alone; each loads when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
moved.keep_old_names()
