"""Which members of a class the reference shows."""

import re
from typing import Any

ADDED_BY_SCIKIT_LEARN = re.compile(r"set_\w+_request")


def skip(app: Any, what: str, name: str, of: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; None leaves the choice to Sphinx."""
    return True if ADDED_BY_SCIKIT_LEARN.fullmatch(name) else None


def setup(app: Any) -> dict[str, bool]:
    """Register the rule."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
