"""Analysis to text, Markdown, LaTeX, CSV, one self-contained page, and figures.

Nothing is computed here: every number comes from :mod:`bittern.analysis`.  Every function takes
an ``Analysis``, or ``Records``, which it analyses.  The public names are listed in __init__.pyi.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
