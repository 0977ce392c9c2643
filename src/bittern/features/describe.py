"""Features in words: all of them as a table, and what came of an extraction."""

from __future__ import annotations

from pathlib import Path

from bittern.errors import InputError
from bittern.features.extracted import Extracted

__all__ = ["list_features", "parse_names", "summarise"]

MOST_SHOWN = 5  # skipped images that are listed by name


def list_features() -> str:
    """Every feature, what it takes, and what it is, a line each."""
    from bittern.features import FEATURES

    width = max(map(len, FEATURES), default=0)
    return "\n".join(
        f"{name:<{width}}  {kind.takes:<8}  {(kind.__doc__ or '').strip().splitlines()[0]}"
        for name, kind in FEATURES.items()
    )


def parse_names(text: str) -> list[str]:
    """Names of features with commas between.

    >>> parse_names("hsv-global, gist")
    ['hsv-global', 'gist']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("features are named with commas between, like 'hsv-global,gist'.")
    return names


def summarise(found: Extracted, path: Path) -> str:
    """How many images and classes, how long the rows are, what was learned and skipped."""
    classes = f" of {len(found.class_names):,} classes" if found.class_names else ""
    lines = [f"{path}: {len(found):,} images{classes}"]
    width = max(map(len, found.features))
    lines += [f"  {name:<{width}}  {rows.shape[1]:,}" for name, rows in found.features.items()]
    if found.fitted_on:
        lines.append(f"Fitted on {len(found.fitted_on):,} of these images, drawn at random.")
    if found.skipped:
        lines.append(f"Skipped {len(found.skipped):,} image{'s' * (len(found.skipped) > 1)}:")
        lines += [f"  {reason}" for reason in list(found.skipped.values())[:MOST_SHOWN]]
        left = len(found.skipped) - MOST_SHOWN
        lines += [f"  and {left:,} more, listed in the file."] if left > 0 else []
    return "\n".join(lines)
