"""Sphinx's settings.  ``scripts/docs`` calls Sphinx; the pages come from ``assemble.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bittern

project = "Bittern"
author = "The Bittern developers"
version = release = bittern.__version__
copyright = "The Bittern developers; Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml", "citations", "members"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
highlight_language = "none"  # a block says its language, or is plain text
smartquotes = False
exclude_patterns = ["files"]

autodoc_mock_imports = ["torch"]  # the reference needs no extra
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Names of types that are clearer than what they stand for.
NAMED_TYPES = (
    "ArrayLike",
    "DTypeLike",
    "BitOrder",
    "Float32Array",
    "Float64Array",
    "PositionArray",
)
autodoc_type_aliases = {name: name for name in NAMED_TYPES}
maximum_signature_line_length = 80
add_module_names = False

html_theme = "furo"
html_title = "Bittern"
html_static_path = ["_static"]
html_css_files = ["bittern.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
