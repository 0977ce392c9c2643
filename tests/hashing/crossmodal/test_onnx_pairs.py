"""ONNX graphs of cross-modal hash functions: one for each side."""

import numpy as np
import pytest
from test_crossmodal_contract import IMAGES, LABELS, QUICK, TEXTS, pairs, trained
from test_onnx_files import beside_thresholds, run

import bittern as bt
from bittern.hashing.crossmodal import CROSSMODAL

ROWS = {"images": IMAGES.astype(np.float32), "texts": TEXTS.astype(np.float32)}


@pytest.mark.filterwarnings("ignore:CVH. images of")
@pytest.mark.parametrize("side", ROWS)
@pytest.mark.parametrize("name", CROSSMODAL)
def test_a_graph_of_each_side_gives_the_bytes_of_encode(name, side, tmp_path):
    hasher = trained(name)
    rows = beside_thresholds(lambda some: hasher.transform(**{side: some}), ROWS[side])
    rows = np.concatenate([ROWS[side], rows])
    hasher.to_onnx(tmp_path / "model.onnx", side, logits=True)
    found = run(tmp_path / "model.onnx", rows)
    np.testing.assert_array_equal(found["codes"], hasher.encode(**{side: rows}).to_packed())
    expected = hasher.logits(**{side: rows})
    np.testing.assert_array_equal(found["logits"] > 0, expected > 0)
    np.testing.assert_allclose(
        found["logits"], expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max()
    )


@pytest.mark.parametrize("kind", [{"kernel": "rbf", "n_anchors": 20}, {"kernel": "linear"}])
def test_kernels_are_drawn_too(kind, tmp_path):
    hasher = CROSSMODAL["dlfh"](n_bits=8, **QUICK["dlfh"], **kind).fit(IMAGES, TEXTS, LABELS)
    images = pairs(4)[0].astype(np.float32)
    hasher.to_onnx(tmp_path / "model.onnx", "images")
    found = run(tmp_path / "model.onnx", images)["codes"]
    np.testing.assert_array_equal(found, hasher.encode(images=images).to_packed())


def test_an_unknown_side_is_refused(tmp_path):
    with pytest.raises(bt.InputError, match=r"CCAITQ: modality must be .*images.*, got 'vectors'"):
        trained("cca-itq").to_onnx(tmp_path / "model.onnx", "vectors")
    assert not list(tmp_path.iterdir())
