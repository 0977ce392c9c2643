"""Image networks: one contract, and each against its definition written out plainly."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from scipy.io import savemat

import bittern as bt
from bittern.extras import LITE0_WEIGHTS
from bittern.networks import (
    BACKBONES,
    VGGF,
    AlexNet,
    EfficientNetLite0,
    SmallNet,
    efficientnet,
)
from bittern.networks.base import resized
from bittern.networks.convolution import NormalisedConvolution, _ConvolveAndClip
from bittern.networks.matconvnet import read_matconvnet

CHAINS = {"vgg-f": VGGF, "alexnet": AlexNet}
GROUPS = {"vgg-f": (1, 1, 1, 1, 1), "alexnet": (1, 2, 1, 2, 2)}
WIDTHS = (4, 6, 8, 6, 4, 9, 7)  # in place of 64, 256, … 4096


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


# MatConvNet's files, written small.


def content(name, rng, layout="new", average="image"):
    """What a MatConvNet file of narrow layers holds, as savemat wants it."""
    layers, n_in = [], 3
    shapes = [(11, 4, 0), (5, 1, 2), (3, 1, 1), (3, 1, 1), (3, 1, 1), (6, 1, 0), (1, 1, 0)]
    for number, ((side, stride, pad), n_out) in enumerate(zip(shapes, WIDTHS, strict=True), 1):
        groups = GROUPS[name][number - 1] if number < 6 else 1
        scale = (2 / (side * side * n_in / groups)) ** 0.5
        filters = scale * rng.standard_normal((side, side, n_in // groups, n_out))
        biases = rng.standard_normal((1, n_out))
        layers.append(conv(f"conv{number}", filters, biases, stride, pad, layout))
        layers.append({"name": f"relu{number}", "type": "relu"})
        if number < 3:
            kind = "lrn" if layout == "new" else "normalize"
            layers.append({"name": f"norm{number}", "type": kind, "param": LRN[name]})
        if number in (1, 2, 5):
            layers.append({"name": f"pool{number}", "type": "pool", "pad": [0, 1, 0, 1]})
        if number == 6:
            layers.append({"name": "dropout6", "type": "dropout", "rate": 0.5})
        n_in = n_out
    layers.append({"name": "prob", "type": "softmax"})
    side = CHAINS[name].side
    mean = rng.random((side, side, 3)) * 255 if average == "image" else np.array([[99, 98, 97]])
    about = {"averageImage": mean.astype(np.float32), "interpolation": "bicubic"}
    meta = {"meta": {"normalization": about}} if layout == "new" else {"normalization": about}
    return {"layers": cells(layers), **meta}


LRN = {"vgg-f": [5, 2, 1e-2, 0.75], "alexnet": [5, 1, 2e-3, 0.75]}  # α larger, to be seen


def conv(name, filters, biases, stride, pad, layout):
    filters, biases = filters.astype(np.float32), biases.astype(np.float32)
    weights = (
        {"weights": cells([filters, biases])}
        if layout == "new"
        else {"filters": filters, "biases": biases}
    )
    return {"name": name, "type": "conv", **weights, "stride": [stride] * 2, "pad": [pad] * 4}


def cells(values):
    row = np.empty((1, len(values)), dtype=object)
    row[0, :] = values
    return row


def chain_file(folder, name, **options):
    path = Path(folder) / f"{name}.mat"
    savemat(path, content(name, np.random.default_rng(7), **options))
    return path


def build(name, folder):
    """The network of that name, small enough for a test, in double precision.

    A random network of fifty layers makes much of rounding.
    """
    if name in CHAINS:
        return CHAINS[name](chain_file(folder, name)).double().eval()
    net = SmallNet(width=3) if name == "small" else EfficientNetLite0(pretrained=False, size=16)
    return shaken(net)


@torch.no_grad()
def shaken(net):
    """Batch normalisations as after some training, so that folding them is no empty step."""
    net.double().train()
    norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.weight.uniform_(1, 2)
        norm.bias.normal_()
        norm.momentum = 1.0
    net(random_images(8, 32, 32))
    for norm in norms:
        norm.running_mean.mul_(1.1)
    return net.eval()


def random_images(n=3, height=33, width=30, colours=3):
    return torch.randint(0, 256, (n, colours, height, width)).float()


@pytest.fixture(scope="module", params=BACKBONES)
def built(request, tmp_path_factory):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build(request.param, tmp_path_factory.mktemp("weights"))


@pytest.fixture
def net(built):
    return copy.deepcopy(built)


# What every network promises.


@torch.no_grad()
def test_a_row_of_features_for_each_image(net):
    features = net(random_images(4))
    assert features.shape == (4, net.n_features)
    assert features.dtype == torch.float64
    assert net.float()(random_images(4)).dtype == torch.float32
    assert torch.isfinite(features).all()
    assert (features[0] - features[1]).abs().max() > 1e-3  # they look at the images


@torch.no_grad()
def test_the_features_of_an_image_do_not_depend_on_others(net):
    images = random_images(5)
    torch.testing.assert_close(net(images)[1:3], net(images[1:3]))


@torch.no_grad()
def test_early_and_late_are_the_whole_wherever_it_is_cut(net):
    images = random_images()
    whole = net(images)
    assert len(net.stages) > 2
    seen = set()
    for k in range(len(net.stages) + 1):
        between = net.early(images, k)
        kept = torch.from_numpy(between.numpy().copy(order="C"))  # as from a file
        torch.testing.assert_close(net.late(kept, k), whole)
        seen.add(tuple(between.shape))
    assert len(seen) > 2


@torch.no_grad()
def test_grey_images_are_images_of_three_equal_colours(net):
    grey = random_images(colours=1)
    torch.testing.assert_close(net(grey), net(grey.repeat(1, 3, 1, 1)))


@torch.no_grad()
def test_bytes_are_as_good_as_floats(net):
    images = random_images()
    assert torch.equal(net(images.to(torch.uint8)), net(images))


@torch.no_grad()
def test_a_folded_network_gives_the_same_and_has_no_normalisations(net):
    images = random_images()
    before = net(images)
    folded = net.fold()
    assert type(folded) is type(net)
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in folded.modules())
    torch.testing.assert_close(folded(images), before)
    torch.testing.assert_close(folded.fold()(images), before)
    assert torch.equal(net(images), before)  # the first is as it was
    torch.testing.assert_close(folded.late(folded.early(images, 2), 2), before)


@pytest.mark.parametrize("is_folded", [False, True])
def test_every_weight_gets_a_gradient(net, is_folded):
    net = net.fold() if is_folded else net.train()
    net(random_images(6)).square().mean().backward()
    for name, weight in net.named_parameters():
        assert weight.grad is not None and torch.isfinite(weight.grad).all(), name
        if name.endswith("weight"):
            assert weight.grad.any(), name


def test_frozen_stages_get_none(net):
    with torch.no_grad():
        between = net.early(random_images(), 2)
    net.late(between.half(), 2).sum().backward()
    assert all(w.grad is None for w in net.stages[:2].parameters())
    assert all(w.grad is not None for w in net.stages[2:].parameters())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda net: net(torch.zeros(3, 32, 32)), r"images must be \(n, 3, h, w\) or"),
        (lambda net: net(torch.zeros(1, 2, 32, 32)), r"got shape \(1, 2, 32, 32\)"),
        (lambda net: net(np.zeros((1, 3, 32, 32))), "images must be a Tensor, got ndarray"),
        (lambda net: net.early(random_images(), 99), "k must be between 0 and"),
        (lambda net: net.late(random_images(), -1), "k must be between 0 and"),
    ],
)
def test_bad_images_are_refused_in_one_sentence(net, call, says):
    with pytest.raises(bt.InputError, match=f"{type(net).__name__}: .*{says}"):
        call(net)


@torch.no_grad()
def test_a_folded_network_s_weights_can_be_kept(net, tmp_path):
    images, folded = random_images(), net.fold()
    torch.save(folded.state_dict(), tmp_path / "weights.pt")
    other = net.fold()
    for weight in other.parameters():
        weight.zero_()
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert torch.equal(other(images), folded(images))


def test_the_table():
    assert list(BACKBONES) == ["small", "efficientnet-lite0", "vgg-f", "alexnet"]
    with pytest.raises(bt.UnknownNameError, match=r"no backbone is called 'vggf'.*'vgg-f'"):
        BACKBONES["vggf"]


# Sizes.


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 128), (90, 90, 40), (20, 70, 50)])
def test_images_are_resized_as_pillow_does_it(height, width, size):
    images = random_images(2, height, width)
    images[0, :, :9] = 255.0  # an edge, at which bicubic curves overshoot
    pixels = images.byte().permute(0, 2, 3, 1).numpy()
    expected = [
        Image.fromarray(one).resize((size, size), Image.Resampling.BICUBIC) for one in pixels
    ]
    found = resized(images, size).permute(0, 2, 3, 1).numpy().astype(int)
    assert np.abs(found - np.stack(expected)).max() <= 2
    assert np.abs(found - np.stack(expected)).mean() < 0.01


def test_images_of_the_right_size_are_left_as_they_are():
    images = torch.rand(1, 3, 12, 12)
    assert resized(images, 12) is images
    assert resized(images, None) is images


def test_gradients_pass_to_images_that_are_not_resized():
    images = torch.full((2, 3, 16, 16), 100.0, requires_grad=True)
    SmallNet(width=2).eval()(images).sum().backward()
    assert images.grad.any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: SmallNet(size=7), "SmallNet: size must be at least 8, got 7"),
        (lambda: SmallNet(size=32.5), "SmallNet: size must be a whole number"),
        (lambda: SmallNet(width=0), "SmallNet: width must be at least 1"),
        (lambda: SmallNet()(random_images(1, 28, 7)), "sides of at least 8 pixels, got shape"),
        (lambda: EfficientNetLite0(False, size=0), "EfficientNetLite0: size must be at least 1"),
    ],
)
def test_bad_sizes_are_refused_in_one_sentence(call, says):
    with pytest.raises(bt.InputError, match=says):
        call()


def n_weights(net):
    return sum(weight.numel() for weight in net.parameters())


def test_published_sizes():
    with torch.device("meta"):
        nets = [SmallNet(), EfficientNetLite0(pretrained=False), VGGF(), AlexNet()]
    assert [net.n_features for net in nets] == [256, 1280, 4096, 4096]
    small, *known = map(n_weights, nets)
    assert 300_000 < small < 500_000
    # EfficientNet-Lite0 has 4,652,008 and AlexNet 60,965,224 with their classifiers.
    assert known == [
        4_652_008 - 1281 * 1000,
        (363 + 1) * 64 + (1600 + 1) * 256 + 3 * (2304 + 1) * 256 + (9216 + 1 + 4096 + 1) * 4096,
        60_965_224 - 4097 * 1000,
    ]


# The convolution and its own gradients.


@pytest.mark.parametrize("most", [None, 1.0, float("inf")])
@pytest.mark.parametrize(
    ("n_in", "n_out", "kernel", "stride", "groups", "height", "width"),
    [
        (6, 8, 1, 1, 1, 5, 4),  # a matrix product
        (6, 8, 1, 2, 1, 5, 4),
        (6, 8, 1, 1, 2, 5, 4),
        (3, 8, 3, 2, 1, 9, 8),
        (6, 6, 3, 1, 6, 5, 5),
        (6, 6, 5, 1, 6, 7, 6),  # a wide depthwise kernel
        (6, 6, 5, 1, 6, 2, 1),
        (6, 6, 5, 2, 6, 8, 7),
        (6, 12, 7, 2, 6, 9, 9),
    ],
)
def test_gradients_are_torch_s_own(n_in, n_out, kernel, stride, groups, height, width, most):
    x = torch.randn(2, n_in, height, width, dtype=torch.double, requires_grad=True)
    weight = torch.randn(
        n_out, n_in // groups, kernel, kernel, dtype=torch.double, requires_grad=True
    )
    bias = torch.randn(n_out, dtype=torch.double, requires_grad=True)
    expected = F.conv2d(x, weight, bias, stride, kernel // 2, groups=groups)
    expected = expected if most is None else expected.clamp(0, most)
    found = _ConvolveAndClip.apply(x, weight, bias, stride, groups, most)
    torch.testing.assert_close(found, expected)
    assert found.shape[2:] == (-(-height // stride), -(-width // stride))
    up = torch.randn_like(found)
    pairs = zip(
        torch.autograd.grad(found, (x, weight, bias), up),
        torch.autograd.grad(expected, (x, weight, bias), up),
        strict=True,
    )
    for one, other in pairs:
        assert other.any()
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_only_the_gradients_that_are_wanted_are_found(kernel):
    unit = NormalisedConvolution(4, 4, kernel, groups=1 if kernel == 1 else 4)
    unit.fold_()
    x = torch.randn(2, 4, 6, 6)
    for wanted in (x, unit.conv.weight, unit.conv.bias):
        for one in (x, unit.conv.weight, unit.conv.bias):
            one.requires_grad_(one is wanted)
            one.grad = None
        unit(x).sum().backward()
        assert wanted.grad.any()


def test_a_cut_is_at_both_ends():
    unit = NormalisedConvolution(1, 1, 1, ceiling=6.0).eval()
    unit.conv.weight.data.fill_(1.0)
    unit.norm.eps = 0.0
    values = torch.tensor([-2.0, 0.5, 5.0, 7.0]).view(1, 1, 2, 2)
    expected = torch.tensor([0.0, 0.5, 5.0, 6.0]).view(1, 1, 2, 2)
    torch.testing.assert_close(unit(values), expected)
    unit.fold_()
    torch.testing.assert_close(unit(values), expected)


# EfficientNet-Lite0.


def textbook_efficientnet(net, images):
    """The network in TensorFlow's way: upright images and kernels, padding at the far end."""

    def unit(x, one, most=6.0):
        weight, norm = one.conv.weight.flip(2, 3), one.norm
        kernel, stride = weight.shape[2], one.conv.stride[0]
        zeros = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in x.shape[2:]]
        (top, left), (rows, columns) = (n // 2 for n in zeros), zeros
        x = F.pad(x, (left, columns - left, top, rows - top))
        x = F.conv2d(x, weight, None, stride, groups=one.conv.groups)
        x = F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=1e-3)
        return x if most is None else x.clamp(0, most)

    stem, *stages, last = net.stages
    x = unit((images - 127) / 128, stem)
    for stage in stages:
        for block in stage:
            y = x if block.expand is None else unit(x, block.expand)
            y = unit(unit(y, block.depthwise), block.project, most=None)
            x = x + y if x.shape == y.shape else y
    return unit(x, last).mean(dim=(2, 3))


@torch.no_grad()
@pytest.mark.parametrize(("height", "width"), [(40, 24), (33, 47), (5, 1)])
def test_efficientnet_is_tensorflow_s_network(height, width):
    net = shaken(EfficientNetLite0(pretrained=False, size=None))
    images = random_images(2, height, width)
    expected = textbook_efficientnet(net, images.double())
    assert expected.std() > 0.1
    torch.testing.assert_close(net(images), expected)


def pattern(side):
    y, x = np.mgrid[:side, :side]
    colours = (3 * y + 5 * x) % 256, (y * x // 7) % 256, (255 - 2 * x + y) % 256
    return torch.from_numpy(np.stack(colours)[None].astype(np.float32))


# Features 7, 167, 327, … of the pattern, and the sum of all, by another implementation.
# fmt: off
REFERENCE = {
    96: ([5.307869, 0.068687, 6.0, 0.0, 0.15316, 0.014788, 0.0, 3.109306], 577.794864),
    75: ([2.764755, 0.004501, 5.590074, 0.0, 0.0, 0.259455, 0.0, 0.04539], 430.347024),
}
# fmt: on


@torch.no_grad()
@pytest.mark.parametrize("side", REFERENCE)
def test_pretrained_features_are_those_of_another_implementation(side):
    net = EfficientNetLite0(size=None).eval()
    some, total = REFERENCE[side]
    for one in (net, net.fold()):
        (features,) = one(pattern(side))
        np.testing.assert_allclose(features[7::160], some, atol=1e-4)
        assert features.sum().item() == pytest.approx(total, rel=1e-5)


def test_missing_weights_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, LITE0_WEIGHTS, None)
    with pytest.raises(bt.MissingExtraError, match=r"\(pretrained=True\): needs .*'bittern\["):
        EfficientNetLite0()
    EfficientNetLite0(pretrained=False)


def save_before_1_6(thing, path):
    torch.save(thing, path, _use_new_zipfile_serialization=False)


def test_other_weights_are_refused_in_one_sentence(monkeypatch, tmp_path):
    path = tmp_path / "weights.pth"
    monkeypatch.setattr(efficientnet, "weights_file", lambda title: path)
    for write in (
        lambda: path.write_bytes(b"nothing of the kind"),
        lambda: torch.save({"_conv_stem.weight": torch.zeros(32, 3, 3, 3)}, path),
        lambda: save_before_1_6({"_conv_stem.weight": torch.zeros(32, 3, 3, 3)}, path),
        lambda: save_before_1_6({"_conv_stem.weight": torch.zeros(2)}, path),
        lambda: save_before_1_6([1, 2], path),
    ):
        write()
        with pytest.raises(bt.FileError, match=rf"^{path}: not a readable "):
            EfficientNetLite0()


# VGG-F and AlexNet.


def textbook_chain(name, stored, images):
    """MatConvNet's way, on one image at a time of (height, width, colours)."""
    about = stored.get("meta", stored)["normalization"]
    x = images - about["averageImage"]
    for layer in stored["layers"][0]:
        if layer["type"] == "conv":
            filters, biases = (
                layer["weights"][0]
                if "weights" in layer
                else (
                    layer["filters"],
                    layer["biases"],
                )
            )
            x = convolved(x, filters, biases, layer["stride"][0], layer["pad"][0])
        elif layer["type"] == "relu":
            x = np.maximum(x, 0)
        elif layer["type"] in ("lrn", "normalize"):
            x = normalised(x, *layer["param"])
        elif layer["type"] == "pool":
            x = largest(x)
    return x.ravel()


def convolved(x, filters, biases, stride, pad):
    x = np.pad(x, ((pad, pad), (pad, pad), (0, 0)))
    side, _, n_in, n_out = filters.shape
    groups = x.shape[2] // n_in
    windows = np.lib.stride_tricks.sliding_window_view(x, (side, side), axis=(0, 1))
    windows = windows[::stride, ::stride]  # (height, width, channels, side, side)
    parts = []
    for group in range(groups):
        w = windows[:, :, group * n_in : (group + 1) * n_in]
        f = filters[..., group * n_out // groups : (group + 1) * n_out // groups]
        parts.append(np.einsum("yxcuv,uvco->yxo", w, f, optimize=True))
    return np.concatenate(parts, axis=2) + biases[0]


def normalised(x, n, kappa, alpha, beta):
    out = np.empty_like(x)
    for k in range(x.shape[2]):
        near = x[:, :, max(0, k - n // 2) : k + n // 2 + 1]
        out[:, :, k] = x[:, :, k] / (kappa + alpha * (near**2).sum(axis=2)) ** beta
    return out


def largest(x):
    """Of 3×3 places, two apart; the last window may hang over the edge."""
    n = -(-(x.shape[0] - 3) // 2) + 1
    return np.array(
        [
            [x[2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max(axis=(0, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


@torch.no_grad()
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("layout", "average"), [("new", "image"), ("old", "colour")])
def test_chains_are_matconvnet_s_networks(tmp_path, name, layout, average):
    stored = content(name, np.random.default_rng(1), layout, average)
    savemat(tmp_path / "network.mat", stored, do_compression=layout == "old")
    net = CHAINS[name](tmp_path / "network.mat")
    images = random_images(2, net.side, net.side)
    found = net(images).numpy()
    assert found.shape == (2, WIDTHS[-1]) and net.n_features == WIDTHS[-1]
    for image, features in zip(images, found, strict=True):
        expected = textbook_chain(name, stored, image.permute(1, 2, 0).double().numpy())
        assert expected.max() > 1
        np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-3)


def test_a_network_inside_a_variable_is_found(tmp_path):
    path = chain_file(tmp_path, "vgg-f")
    savemat(tmp_path / "inside.mat", {"net": content("vgg-f", np.random.default_rng(7))})
    for one, other in zip(
        read_matconvnet(path).layers, read_matconvnet(tmp_path / "inside.mat").layers, strict=True
    ):
        assert (one.name, one.kind, one.numbers) == (other.name, other.kind, other.numbers)
        np.testing.assert_array_equal(one.filters, other.filters)


def test_what_the_file_does_not_say_is_as_published(tmp_path):
    stored = content("vgg-f", np.random.default_rng(7))
    del stored["meta"], stored["layers"][0, 2]["param"]
    savemat(tmp_path / "short.mat", stored)
    net = VGGF(tmp_path / "short.mat")
    assert net.average.flatten().tolist() == pytest.approx([123.68, 116.779, 103.939])
    first, second = (m for m in net.modules() if isinstance(m, torch.nn.LocalResponseNorm))
    assert (first.size, first.k, first.alpha, first.beta) == (5, 2.0, 5e-4, 0.75)
    assert second.alpha == pytest.approx(5 * LRN["vgg-f"][2])


def changed(change, name="vgg-f"):
    stored = content(name, np.random.default_rng(7))
    change(stored, stored["layers"][0])
    return stored


def swap(stored, layers):
    layers[2], layers[3] = layers[3], layers[2]


def drop(stored, layers):
    stored["layers"] = stored["layers"][:, :9]


def kernel(stored, layers):
    layers[4]["weights"][0, 0] = np.zeros((3, 3, 4, 6))


def biases(stored, layers):
    layers[4]["weights"][0, 1] = np.zeros((1, 5))


def stride(stored, layers):
    layers[0]["stride"] = [2, 2]


def infinite(stored, layers):
    layers[0]["weights"][0, 0][0, 0, 0, 0] = np.nan


def no_weights(stored, layers):
    del layers[0]["weights"]


def window(stored, layers):
    layers[2]["param"] = [4, 2, 1e-4, 0.75]


def mean(stored, layers):
    stored["meta"]["normalization"]["averageImage"] = np.zeros((9, 9, 3))


def colours(stored, layers):
    stored["meta"]["normalization"]["averageImage"] = np.zeros((9, 9))


def no_list(stored, layers):
    stored["layers"] = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (swap, r"not a readable VGG-F network \(layer 3 should be lrn but is pool\)"),
        (drop, r"not a readable VGG-F network \(layer 10 should be relu but is missing\)"),
        (kernel, r"conv2 has filters of \[3, 3, 4\], not \[5, 5, 4\]"),
        (biases, "conv2 has 6 filters and 5 biases"),
        (stride, r"conv1 has stride \[2.0, 2.0\], not 4"),
        (infinite, "the values of 'conv1' must be finite numbers"),
        (no_weights, "the values of 'conv1' must be finite numbers"),
        (window, r"a normalisation has the numbers \[4.0, 2.0"),
        (mean, r"the average image has shape \(9, 9, 3\)"),
        (colours, "averageImage must have three colours"),
        (no_list, "has no list 'layers'"),
    ],
)
def test_files_of_other_networks_are_refused_in_one_sentence(tmp_path, change, says):
    path = tmp_path / "other.mat"
    savemat(path, changed(change))
    with pytest.raises(bt.FileError, match=says) as refused:
        VGGF(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_network_s_file_is_not_the_other_s(tmp_path):
    with pytest.raises(bt.FileError, match=r"AlexNet network \(conv2 has filters of \[5, 5, 4\]"):
        AlexNet(chain_file(tmp_path, "vgg-f"))
    with pytest.raises(bt.FileError, match=r"VGG-F network \(conv2 has filters of \[5, 5, 2\]"):
        VGGF(chain_file(tmp_path, "alexnet"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        (b"", "is not a MATLAB 5 file"),
        (b"x" * 999, "is not a MATLAB 5 file"),
    ],
)
def test_what_is_no_such_file_is_refused_in_one_sentence(tmp_path, content, says):
    path = tmp_path / "network.mat"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(bt.FileError, match=says):
        VGGF(path)


@pytest.mark.parametrize("do_compression", [False, True])
def test_damage_is_refused_or_harmless_and_never_more(tmp_path, do_compression):
    path = tmp_path / "network.mat"
    savemat(
        path,
        content("vgg-f", np.random.default_rng(7), average="colour"),
        do_compression=do_compression,
    )
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for length in (130, 140, 200, 1000, len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:length])
        with pytest.raises(bt.FileError):
            VGGF(path)
    n_refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for position in rng.integers(128, len(whole), 20):
            damaged[position] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            VGGF(path)
        except bt.FileError:
            n_refused += 1
    assert n_refused > 0
