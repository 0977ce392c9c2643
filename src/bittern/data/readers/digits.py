"""The 1,797 handwritten digits that come with scikit-learn; needs no files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bittern.data.dataset import Dataset, DatasetSpec


def load(folder: Path | None = None) -> Dataset:
    """Rows of 64 grey levels (0 to 16) of 8 × 8 images; ``folder`` is ignored."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset(
        name="digits",
        modalities={"pixels": digits.data.astype(np.float32)},
        labels=digits.target.astype(np.int64),
        class_names=tuple(str(name) for name in digits.target_names),
        citation=SPEC.citation,
        licence=SPEC.licence,
        notes=("read from scikit-learn, which includes the test part of UCI's set",),
    )


SPEC = DatasetSpec(
    name="digits",
    title="Digits: 1,797 handwritten digits of 8 × 8 pixels",
    load=load,
    layout="no files: they come with scikit-learn",
    citation="Alpaydin-Kaynak-1998",
    licence="CC BY 4.0, UCI Machine Learning Repository",
    needs_files=False,
)
