"""ONNX graphs of image networks: the features of PyTorch, up to rounding, and its resizing."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_onnx_files import run

import bittern as bt
from bittern.io.onnx_graph import OnnxGraph, Port
from bittern.networks import AlexNet, EfficientNetLite0, SmallNet
from bittern.networks.alexnet import LayerShape
from bittern.networks.onnx_layers import onnx_resized

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (30, 18, 14, 3)).astype(np.uint8)
LABELS = np.arange(30) % 3


class TinyAlexNet(AlexNet):
    """Its layers with few channels."""

    side = 99
    shapes = (
        LayerShape(6, 11, stride=4),
        LayerShape(8, 5, padding=2, groups=2),
        LayerShape(6, 3, padding=1),
        LayerShape(6, 3, padding=1, groups=2),
        LayerShape(4, 3, padding=1, groups=2),
        LayerShape(10, 2),
        LayerShape(7, 1),
    )


class AsRows(torch.nn.Module):
    """A network of the user's."""

    def forward(self, images):
        """The pixels in rows."""
        return images.flatten(1).float()


def features_by_graph(network, images, path):
    """The features of images ``(n, c, h, w)``, by ONNX Runtime."""
    graph = OnnxGraph()
    found = network.fold().onnx_features(graph, "images", images.shape[2:])
    port = Port("images", np.uint8, ("n", *images.shape[1:]))
    outputs = {found: Port("features", np.float32, ("n", network.n_features))}
    path.write_bytes(graph.content("features", [port], outputs))
    return run(path, images)["features"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: SmallNet(width=4),
        lambda: SmallNet(width=4, size=16),
        lambda: EfficientNetLite0(pretrained=False, size=32),
        TinyAlexNet,
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_features_are_those_of_torch(make, channels, tmp_path):
    torch.manual_seed(0)
    network = make().eval()
    images = RNG.integers(0, 256, (3, channels, 24, 40)).astype(np.uint8)
    with torch.inference_mode():
        expected = network(torch.from_numpy(images)).numpy()
    found = features_by_graph(network, images, tmp_path / "network.onnx")
    assert expected.std() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("height", "width", "size"), [(32, 32, 90), (100, 60, 32), (33, 40, 40), (9, 300, 64)]
)
def test_images_are_resized_exactly_as_torch_does(height, width, size, tmp_path):
    images = RNG.integers(0, 256, (2, 3, height, width)).astype(np.uint8)
    graph = OnnxGraph()
    resized = graph.cast(onnx_resized(graph, "images", (height, width), size), np.uint8)
    port = Port("images", np.uint8, ("n", 3, height, width))
    outputs = {resized: Port("resized", np.uint8, ("n", 3, size, size))}
    (tmp_path / "resize.onnx").write_bytes(graph.content("resize", [port], outputs))
    found = run(tmp_path / "resize.onnx", images)["resized"]
    sides = (size, size)
    expected = F.interpolate(torch.from_numpy(images), sides, mode="bicubic", antialias=True)
    np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize(
    "options", [{}, {"image_size": 24}, {"mirror": True}, {"frozen": 1}], ids=str
)
@pytest.mark.parametrize("grey", [False, True])
def test_pixels_become_the_bytes_of_encode(options, grey, tmp_path):
    images = IMAGES[..., 0] if grey else IMAGES
    hasher = bt.hashing.DPSH(n_bits=12, network="small", n_epochs=1, batch_size=15, **options)
    hasher.fit(images, LABELS)
    hasher.to_onnx(tmp_path / "model.onnx", logits=True)
    found = run(tmp_path / "model.onnx", images)
    expected = hasher.logits(images)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found["logits"], expected, rtol=0, atol=1e-5 * size)
    sure = np.abs(expected) > 1e-5 * size
    assert sure.mean() > 0.99
    bits = np.unpackbits(found["codes"], axis=1, count=12).astype(bool)
    np.testing.assert_array_equal(bits[sure], hasher.encode(images).to_bits()[sure])


def test_a_pair_of_networks_has_a_graph_for_images(tmp_path):
    texts = RNG.standard_normal((30, 6))
    hasher = bt.hashing.crossmodal.CMTALR(
        n_bits=8, network=("small", "mlp"), hidden=8, n_epochs=1, batch_size=15
    ).fit(IMAGES, texts, LABELS)
    for side, rows in {"images": IMAGES, "texts": texts.astype(np.float32)}.items():
        hasher.to_onnx(tmp_path / "model.onnx", side)
        found = run(tmp_path / "model.onnx", rows)["codes"]
        apart = np.unpackbits(found ^ hasher.encode(**{side: rows}).to_packed())
        assert apart.mean() < 0.01


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"network": AsRows()}, "its network is a module of your own; torch.onnx can"),
        ({"network": "small", "precision": "bfloat16"}, "its image network computes in bfloat16"),
    ],
)
def test_other_networks_are_refused(options, reason, tmp_path):
    hasher = bt.hashing.DPSH(n_bits=4, n_epochs=1, batch_size=15, **options).fit(IMAGES, LABELS)
    with pytest.raises(bt.InputError, match=f"DPSH: has no ONNX graph, because {reason}"):
        hasher.to_onnx(tmp_path / "model.onnx")
