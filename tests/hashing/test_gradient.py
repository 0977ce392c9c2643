"""Training by gradients: resuming, stopping, validation, networks, images."""

import pickle
import sys
from dataclasses import fields

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import bittern as bt
from bittern.hashing import DPSH, DTSH, TALR
from bittern.hashing.deep.hasher import GradientHasher
from bittern.hashing.deep.images import shifted_and_mirrored
from bittern.hashing.deep.layers import Dropout
from bittern.hashing.deep.training import Trainer, Validation, draw_batches
from bittern.hashing.objectives import ap_loss
from bittern.networks import SmallNet


def blobs(n=150, dim=8, n_classes=3, random_state=0):
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, n_classes, n)
    return rng.standard_normal((n, dim)) + 1.5 * rng.standard_normal((n_classes, dim))[y], y


X, Y = blobs()
QUICK = dict(n_bits=8, n_epochs=6, batch_size=50, learning_rate=0.02)


def ap(hasher, X=X, y=Y):
    codes = hasher.encode(X)
    truth = bt.Relevance.from_classes(y, y).excluding(np.arange(len(y)))
    return bt.evaluate(codes, codes, truth, ["ap"])["ap"].mean


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (
            TALR,
            {
                "objective": "ndcg",
                "alpha": (1.0, 2.0),
                "n_bins": 4,
                "delta": 2,
                "eta": 0.1,
                "form": "integral",
                "mean": "geometric",
            },
        ),
        (DPSH, {"eta": 0.5, "pairs": "all"}),
        (DTSH, {"eta": 0.5, "margin": 2.0}),
    ],
)
def test_the_methods_share_their_parameters_and_add_their_own(kind, own):
    shared = {"network": "mlp", "n_epochs": 10, "dropout": 0.25, "random_state": 3}
    hasher = kind(16, **shared, **own)
    assert hasher.get_params().items() >= {"n_bits": 16, **shared, **own}.items()
    assert vars(hasher) == hasher.get_params(), "the constructor stores its parameters, no more"
    common = set(kind().get_params()) - set(own)
    assert common == {f.name for f in fields(GradientHasher) if f.init}
    assert clone(hasher).get_params() == hasher.get_params()
    assert hasher.set_params(n_bits=8, hidden=4).get_params()["hidden"] == 4
    with pytest.raises(TypeError):
        kind(16, "mlp")
    with pytest.raises(TypeError):
        kind(depth=3)


def test_parameters_are_chosen_by_grid_search():
    search = GridSearchCV(TALR(**QUICK), {"n_epochs": [1, 6], "dropout": [0.1]}, scoring=ap, cv=2)
    search.fit(X, Y)
    assert search.best_params_ == {"dropout": 0.1, "n_epochs": 6}


@pytest.mark.parametrize("kind", [TALR, DPSH, DTSH])
@pytest.mark.parametrize("network", ["linear", "mlp", "kernel"])
def test_training_lowers_the_loss_and_raises_ap_on_other_rows(kind, network):
    rows, labels = blobs(400)
    hasher = kind(**QUICK | {"n_epochs": 20}, network=network).fit(rows[:200], labels[:200])
    assert hasher.losses_[-1] < hasher.losses_[0]
    assert len(hasher.losses_) == hasher.best_epoch_ == 20
    assert ap(hasher, rows[200:], labels[200:]) > ap(
        bt.hashing.LSH(8).fit(rows[:200]), rows[200:], labels[200:]
    )


def test_logits_in_numpy_are_those_of_the_network():
    for network in ("linear", "mlp", "kernel"):
        hasher = TALR(**QUICK, network=network).fit(X, Y)
        net = hasher._build(X[:1], pretrained=False)
        net.load_state_dict({k: torch.from_numpy(v) for k, v in hasher.state_.items()})
        wanted = net.eval()(hasher._network_input(X)).detach().numpy()
        np.testing.assert_allclose(hasher.logits(X), wanted, atol=1e-5)
        np.testing.assert_array_equal(hasher.logits(X) > 0, hasher.transform(X))


@pytest.mark.parametrize("network", ["linear", "kernel"])
def test_one_layer_may_start_as_itq(network):
    still = TALR(**QUICK | {"n_epochs": 1, "learning_rate": 1e-12}, network=network, start="itq")
    still.fit(X, Y)
    rows = still._scaled(X)
    assert still.encode(X) == bt.hashing.ITQ(8).fit(rows).encode(rows)
    np.testing.assert_allclose(still.logits(X).std(axis=0), 1, atol=1e-4)


def test_a_training_that_was_interrupted_goes_on_to_the_same_result(tmp_path, monkeypatch):
    whole = TALR(**QUICK, validation=0.2).fit(X, Y)
    path = tmp_path / "state.pt"
    epoch = Trainer._epoch

    def stop_in_the_fourth(self, bar):
        if self.progress.epoch == 3:
            raise KeyboardInterrupt
        epoch(self, bar)

    monkeypatch.setattr(Trainer, "_epoch", stop_in_the_fourth)
    hasher = TALR(**QUICK, validation=0.2, checkpoint=path)
    with pytest.warns(UserWarning, match=r"stopped early.* Call fit\(\) again with checkpoint="):
        hasher.fit(X, Y)
    assert hasher.stopped_early_ and len(hasher.losses_) == 3
    assert len(hasher.encode(X)) == len(X)
    monkeypatch.undo()
    hasher.fit(X, Y)
    assert not hasher.stopped_early_
    np.testing.assert_array_equal(hasher.losses_, whole.losses_)
    np.testing.assert_array_equal(hasher.scores_, whole.scores_)
    assert hasher.encode(X) == whole.encode(X)
    assert [p.name for p in tmp_path.iterdir()] == ["state.pt"]


def test_a_finished_checkpoint_is_not_trained_again(tmp_path, monkeypatch):
    first = TALR(**QUICK, checkpoint=tmp_path / "state.pt").fit(X, Y)
    monkeypatch.setattr(Trainer, "_epoch", lambda *_: pytest.fail("was trained again"))
    again = TALR(**QUICK, checkpoint=tmp_path / "state.pt").fit(X, Y)
    assert again.encode(X) == first.encode(X)
    again.save(tmp_path / "model.npz")
    assert bt.hashing.load(tmp_path / "model.npz").encode(X) == first.encode(X)


@pytest.mark.parametrize(
    ("parameters", "rows"), [({"n_bits": 9}, X), ({"dropout": 0.1}, X), ({}, X + 1e-9)]
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path, parameters, rows):
    TALR(**QUICK, checkpoint=tmp_path / "state.pt").fit(X, Y)
    with pytest.raises(bt.FileError, match="is a checkpoint of another training"):
        TALR(**QUICK | parameters, checkpoint=tmp_path / "state.pt").fit(rows, Y)


@pytest.mark.parametrize("damage", [b"", b"nothing of the kind", None])
def test_a_damaged_checkpoint_is_refused_in_one_sentence(tmp_path, damage):
    path = tmp_path / "state.pt"
    TALR(**QUICK, checkpoint=path).fit(X, Y)
    path.write_bytes(path.read_bytes()[:-200] if damage is None else damage)
    with pytest.raises(bt.FileError, match=r"state\.pt"):
        TALR(**QUICK, checkpoint=path).fit(X, Y)


def test_ctrl_c_before_the_first_epoch_leaves_no_model(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_step", stop)
    hasher = TALR(**QUICK)
    with pytest.raises(KeyboardInterrupt, match="a model; not fitted"):
        hasher.fit(X, Y)
    with pytest.raises(bt.NotFittedError):
        hasher.encode(X)


def test_a_loss_that_is_not_a_number_stops_with_a_sentence():
    hasher = DPSH(**QUICK | {"learning_rate": 1e30})
    with pytest.raises(bt.InputError, match=r"^DPSH: the loss became \w+ in epoch \d; lower learn"):
        hasher.fit(X, Y)


def test_training_does_not_touch_the_global_random_numbers():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    TALR(**QUICK).fit(X, Y)
    assert torch.equal(torch.rand(3), expected)


def test_random_states_differ_and_none_is_random():
    codes = [TALR(**QUICK, random_state=r).fit(X, Y).encode(X) for r in (0, 0, 1, None, None)]
    assert codes[0] == codes[1]
    assert codes[0] != codes[2] and codes[3] != codes[4]


def test_the_epoch_that_is_best_on_held_out_rows_is_kept(monkeypatch):
    planned = iter([0.1, 0.5, 0.3, 0.4, 0.2, 0.2])
    states = []

    def score(self, network):
        states.append(network.hash.weight.detach().clone().numpy())
        return next(planned)

    monkeypatch.setattr(Validation, "score", score)
    hasher = TALR(**QUICK, validation=0.2, patience=3).fit(X, Y)
    assert hasher.best_epoch_ == 2
    assert hasher.scores_.tolist() == [0.1, 0.5, 0.3, 0.4, 0.2], "stopped after three worse ones"
    np.testing.assert_array_equal(hasher.state_["hash.weight"], states[1])


def test_held_out_rows_are_not_learned_from():
    # Their values do not matter to the network, only to the score.
    hasher = TALR(**QUICK | {"n_epochs": 1}, validation=0.3).fit(X, Y)
    rng = hasher._generator()
    rng.integers(2**62)
    held_out = rng.permutation(len(X))[: int(0.3 * len(X))]
    spoilt = X.copy()
    spoilt[held_out] = 100 * np.random.default_rng(1).standard_normal((len(held_out), 8))
    other = TALR(**QUICK | {"n_epochs": 1}, validation=0.3).fit(spoilt, Y)
    np.testing.assert_array_equal(other.state_["hash.weight"], hasher.state_["hash.weight"])
    assert other.scores_[0] != hasher.scores_[0]


def test_the_score_is_the_exact_metric_of_the_held_out_rows_among_themselves():
    hasher = TALR(**QUICK, validation=0.4).fit(X, Y)
    rng = hasher._generator()
    rng.integers(2**62)
    held_out = np.sort(rng.permutation(len(X))[: int(0.4 * len(X))])
    assert hasher.scores_.max() == pytest.approx(ap(hasher, X[held_out], Y[held_out]))


def test_validation_rows_without_anything_relevant_are_refused():
    with pytest.raises(bt.InputError, match="nothing is relevant among the 15 rows held out"):
        TALR(**QUICK, validation=0.1).fit(X, np.arange(len(X)))


def test_ndcg_learns_from_graded_gains():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, (300, 2)) @ rng.standard_normal((2, 6))
    truth = bt.Relevance.from_thresholds(rows, rows, [0.5, 0.2], [1, 5])
    hasher = TALR(**QUICK | {"n_epochs": 30}, objective="ndcg", validation=0.2).fit(rows, truth)
    before = TALR(**QUICK | {"n_epochs": 1, "learning_rate": 1e-9}, objective="ndcg")
    codes = [h.fit(rows, truth).encode(rows) for h in (hasher, before)]
    values = [bt.evaluate(c, c, truth, ["ndcg"])["ndcg"].mean for c in codes]
    assert values[0] > values[1] + 0.02


def test_few_rows_get_more_epochs_by_default(monkeypatch):
    monkeypatch.setattr(Trainer, "_step", lambda *_: 0.0)  # the steps are only counted
    assert len(TALR(4).fit(X, Y).losses_) == 500, "one batch, of 100 rows, an epoch"
    rows, labels = blobs(2000, dim=2)
    assert len(TALR(2, batch_size=100).fit(rows, labels).losses_) == 50
    assert len(TALR(4, n_epochs=3).fit(X, Y).losses_) == 3


def test_batches_have_as_many_rows_of_each_class():
    labels = np.repeat([0, 1, 2], [100, 50, 10])
    rng = np.random.default_rng(0)
    batches = list(draw_batches(labels, len(labels), 30, 5, rng))
    assert len(batches) == 5
    for rows in batches:
        assert np.bincount(labels[rows], minlength=3).tolist() == [10, 10, 10]
    seen = np.concatenate(batches)
    assert len(np.unique(seen[labels[seen] == 0])) == 50, "none twice before all have come"


def test_batches_of_many_classes_have_some_of_them_with_five_rows_each():
    labels = np.repeat(np.arange(100), 6)
    (rows,) = draw_batches(labels, 600, 50, 1, np.random.default_rng(0))
    counts = np.bincount(labels[rows])
    assert set(counts[counts > 0]) == {5} and (counts > 0).sum() == 10


def test_batches_without_classes_are_all_rows_in_some_order():
    batches = list(draw_batches(None, 40, 20, 2, np.random.default_rng(0)))
    assert np.sort(np.concatenate(batches)).tolist() == list(range(40))


def striped_images(n=48, side=16, random_state=0):
    """Stripes across or along, in colour."""
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, 2, n)
    wave = 60 * np.sin(np.arange(side) * 1.5 + rng.uniform(0, 6, (n, 1)))
    images = np.where(y[:, None, None] == 1, wave[:, None, :], wave[:, :, None])[..., None]
    return (images + 128 + rng.normal(0, 10, (n, side, side, 3))).clip(0, 255).astype(np.uint8), y


IMAGES, KINDS = striped_images()
ON_IMAGES = dict(n_bits=8, n_epochs=3, batch_size=24, network="small")


def test_images_are_learned_end_to_end():
    hasher = TALR(**ON_IMAGES | {"n_epochs": 8}, learning_rate=0.01, trunk_rate=1.0)
    hasher.fit(IMAGES, KINDS)
    others, kinds = striped_images(random_state=1)
    assert ap(hasher, others, kinds) > 0.9


def test_images_may_be_grey_and_their_model_saved(tmp_path):
    grey = IMAGES[..., 0]
    hasher = TALR(**ON_IMAGES, augment=1).fit(grey, KINDS)
    hasher.save(tmp_path / "model.npz")
    again = bt.hashing.load(tmp_path / "model.npz")
    assert again.encode(grey) == hasher.encode(grey)
    assert pickle.loads(pickle.dumps(hasher)).encode(grey) == hasher.encode(grey)
    np.testing.assert_array_equal(hasher.encode(grey[3:5]).words, hasher.encode(grey).words[3:5])


def test_frozen_stages_stay_and_are_computed_once():
    torch.manual_seed(0)
    trunk = SmallNet()
    hasher = TALR(**ON_IMAGES | {"network": trunk}, frozen=2, augment=1).fit(IMAGES, KINDS)
    before = {f"trunk.{k}": v.numpy() for k, v in trunk.state_dict().items()}
    for name, value in hasher.state_.items():
        if name.startswith(("trunk.stages.0", "trunk.stages.1")):
            np.testing.assert_array_equal(value, before[name])
    moved = [k for k in before if k.startswith("trunk.stages.2") and k.endswith("weight")]
    assert any((hasher.state_[k] != before[k]).any() for k in moved)


def test_the_trunk_has_its_own_learning_rate():
    torch.manual_seed(0)
    trunk = SmallNet().fold()
    still = TALR(**ON_IMAGES | {"network": trunk}, trunk_rate=0.0, weight_decay=0.0)
    still.fit(IMAGES, KINDS)
    for name, value in trunk.state_dict().items():
        np.testing.assert_array_equal(still.state_[f"trunk.{name}"], value.numpy())


def test_any_module_may_be_the_network():
    module = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Tanh())
    before = module[0].weight.detach().clone()
    hasher = TALR(**QUICK, network=module).fit(X, Y)
    assert torch.equal(module[0].weight, before), "the user's module is not trained itself"
    assert ap(hasher) > ap(TALR(**QUICK | {"n_epochs": 1}, network=module).fit(X, Y)) - 0.05
    with pytest.raises(bt.InputError, match=r"^TALR: network of type Sequential cannot be saved"):
        hasher.save("model.npz")
    assert pickle.loads(pickle.dumps(hasher)).encode(X) == hasher.encode(X)


def test_variants_are_shifted_and_mirrored_images():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (1, 16, 16, 3), dtype=np.uint8)
    found = set()
    for _ in range(1000):
        variant = shifted_and_mirrored(image, rng)[0]
        for mirrored in (False, True):
            whole = np.pad(image[0], ((2, 2), (2, 2), (0, 0)), mode="reflect")
            for dy in range(5):
                for dx in range(5):
                    crop = whole[dy : dy + 16, dx : dx + 16]
                    if (variant == (crop[:, ::-1] if mirrored else crop)).all():
                        found.add((mirrored, dy, dx))
    assert len(found) == 50, "all shifts by up to two pixels, mirrored or not, and nothing else"


def test_dropout_zeroes_a_share_and_keeps_the_mean():
    dropout = Dropout(0.3)  # 77 of 256
    x = torch.ones(501, 1003, requires_grad=True)
    dropped = dropout(x)
    dropped.sum().backward()
    assert (dropped == 0).double().mean().item() == pytest.approx(77 / 256, abs=0.003)
    assert dropped.max().item() == pytest.approx(256 / 179)
    assert (dropped == 0).double().mean(dim=0).max() < 0.4, "no column is special"
    torch.testing.assert_close(x.grad, dropped.detach())
    assert not torch.equal(dropped, dropout(x)) and dropout.eval()(x) is x
    assert Dropout(0.999)(x).mean().item() == pytest.approx(1, abs=0.05), "never drops all"


def test_bins_as_a_share_of_the_bits():
    whole, share = (TALR(**QUICK | {"n_bins": n}).fit(X, Y) for n in (QUICK["n_bits"] // 2, 0.5))
    np.testing.assert_array_equal(whole.logits(X), share.logits(X))
    assert not np.array_equal(whole.logits(X), TALR(**QUICK).fit(X, Y).logits(X))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"network": "resnet"}, "network must be one of 'linear', 'mlp', 'kernel', 'small'"),
        ({"network": 3}, "network must be one of"),
        ({"objective": "map"}, "objective must be one of 'ap', 'ndcg', got 'map'"),
        ({"form": "exact"}, "form must be one of"),
        ({"mean": "harmonic"}, "mean must be one of 'arithmetic', 'geometric'"),
        ({"alpha": 3.0}, "alpha must be two numbers"),
        ({"alpha": (0, 1)}, "alpha must be above 0"),
        ({"n_bins": 0}, "n_bins must be"),
        ({"n_bins": 1.5}, "n_bins must be a whole number, or a share of the bits"),
        ({"dropout": 1.0}, "dropout must be less than 1"),
        ({"validation": -0.1}, "validation must be at least 0"),
        ({"patience": 3}, "patience needs a share of rows for validation"),
        ({"batch_size": 1}, "batch_size must be"),
        ({"n_epochs": 0}, "n_epochs must be"),
        ({"learning_rate": 0}, "learning_rate must be above 0"),
        ({"weight_decay": -1}, "weight_decay must be at least 0"),
        ({"hidden": 0}, "hidden must be"),
        ({"start": "pca"}, "start must be one of 'random', 'itq', got 'pca'"),
        ({"start": "itq", "network": "mlp"}, "start='itq' is for one layer"),
        ({"network": "vgg-f"}, "this network needs images"),
        ({"checkpoint": "nowhere/x.pt"}, "is in a folder that does not exist"),
        ({"checkpoint": "x.pt", "random_state": None}, "a checkpoint needs a random_state"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(parameters, says):
    with pytest.raises(bt.InputError) as caught:
        TALR(**QUICK | parameters).fit(X, Y)
    assert str(caught.value).startswith("TALR: ") and says in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "parameters", "says"),
    [
        (IMAGES[:0], {}, "needs at least one row"),
        (IMAGES[..., :2], {}, "with 1 or 3 channels, got shape"),
        (IMAGES / 255, {}, "images must have values 0 … 255, got 0"),
        (np.full((48, 16, 16), np.nan), {}, "contains NaN"),
        (IMAGES, {"frozen": 9}, "frozen must be at most 3, got 9"),
        (IMAGES, {"network": "alexnet"}, "would start with random weights; pass the published"),
        (np.array([["a"] * 3] * 48), {}, "needs an array of numbers"),
    ],
)
def test_bad_images_are_refused_in_one_sentence(rows, parameters, says):
    with pytest.raises(bt.InputError) as caught:
        TALR(**ON_IMAGES | parameters).fit(rows, KINDS[: len(rows)])
    assert str(caught.value).startswith("TALR: ") and says in str(caught.value)


def test_images_of_another_size_are_refused():
    hasher = TALR(**ON_IMAGES).fit(IMAGES, KINDS)
    with pytest.raises(bt.InputError, match=r"trained on inputs of shape \(16, 16, 3\), got \(8,"):
        hasher.encode(IMAGES[:, :8])


def test_objectives_and_backbones_are_there_when_asked_for():
    assert "ap" in bt.hashing.objectives.OBJECTIVES
    assert "small" in bt.hashing.backbones.BACKBONES
    with pytest.raises(AttributeError, match="has no attribute 'networkz'"):
        _ = bt.hashing.networkz


def test_without_pytorch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(bt.MissingExtraError, match=r"^TALR: needs PyTorch; pip install 'bittern\["):
        TALR(**QUICK).fit(X, Y)
    with pytest.raises(bt.MissingExtraError, match=r"^bt\.hashing\.objectives: needs PyTorch"):
        bt.hashing.__getattr__("objectives")


METHODS = (TALR, DPSH, DTSH)


@pytest.mark.parametrize("kind", METHODS)
def test_curves_follow_training_and_held_out_rows(kind):
    others = blobs(random_state=1)
    hasher = kind(**QUICK | {"learning_rate": 0.005}, network="mlp").fit(X, Y, held_out=others)
    assert set(hasher.curves_) == {
        f"{rows}_{which}" for rows in ("train", "held_out") for which in ("relaxed", "exact")
    }
    assert all(len(values) == 6 for values in hasher.curves_.values())
    # All rows are followed, since there are fewer than 500, and by the network that encodes.
    assert hasher.curves_["train_exact"][-1] == pytest.approx(ap(hasher))
    assert hasher.curves_["held_out_exact"][-1] == pytest.approx(ap(hasher, *others))
    assert hasher.curves_["train_exact"][-1] > hasher.curves_["train_exact"][0]


def test_the_relaxed_curve_is_one_minus_the_loss_at_the_steepness_of_that_epoch():
    hasher = TALR(**QUICK, alpha=(1.0, 3.0)).fit(X, Y)
    logits, gains = (
        torch.from_numpy(hasher.logits(X)),
        torch.from_numpy((Y[:, None] == Y).astype(int)),
    )
    want = 1 - ap_loss(logits, gains, alpha=3.0).item()
    assert hasher.curves_["train_relaxed"][-1] == pytest.approx(want, abs=1e-5)


def test_followed_rows_change_nothing():
    alone = TALR(**QUICK).fit(X, Y)
    followed = TALR(**QUICK).fit(X, Y, held_out=blobs(random_state=1))
    np.testing.assert_array_equal(alone.state_["hash.weight"], followed.state_["hash.weight"])
    assert "held_out_exact" not in alone.curves_


def test_held_out_rows_are_checked():
    with pytest.raises(bt.InputError, match="held_out must be a tuple of rows and targets"):
        TALR(**QUICK).fit(X, Y, held_out=X)
    with pytest.raises(bt.InputError, match="held_out: y must have one entry for each row"):
        TALR(**QUICK).fit(X, Y, held_out=(X[:5], Y[:4]))
    with pytest.raises(bt.InputError, match=r"3 .*8"):
        TALR(**QUICK).fit(X, Y, held_out=(X[:, :3], Y))


@pytest.mark.parametrize(("size", "epochs"), [(50, 4), (25, 2), (150, 12)])
def test_steps_are_turned_into_whole_epochs(size, epochs):
    hasher = TALR(4, batch_size=size, n_steps=12).fit(X, Y)  # 150 rows
    assert len(hasher.losses_) == epochs


@pytest.mark.parametrize(
    "parameters",
    [
        {"optimiser": "sgd", "learning_rate": 0.5},
        {"schedule": "constant"},
        {"balanced": False},
        {"precision": "bfloat16", "network": "mlp"},
    ],
)
def test_every_way_to_train_learns(parameters):
    untrained = ap(TALR(**QUICK | {"learning_rate": 1e-9}).fit(X, Y))
    assert ap(TALR(**QUICK | parameters).fit(X, Y)) > untrained + 0.05


def test_averaging_gives_the_mean_of_the_last_weights(monkeypatch):
    seen = []
    step = Trainer._step

    def record(self, *arguments):
        value = step(self, *arguments)
        seen.append(self.network.hash.weight.detach().numpy().copy())
        return value

    monkeypatch.setattr(Trainer, "_step", record)
    hasher = TALR(**QUICK, averaging=0.5).fit(X, Y)
    assert len(seen) == 18
    np.testing.assert_allclose(hasher.state_["hash.weight"], np.mean(seen[9:], axis=0), atol=1e-6)


def test_a_training_with_averaging_resumes_to_the_same_result(tmp_path, monkeypatch):
    parameters = QUICK | {"averaging": 0.8}
    whole = TALR(**parameters).fit(X, Y)
    epoch, n_done = Trainer._epoch, []

    def stop_after_four(self, bar):
        if len(n_done) == 4:
            raise KeyboardInterrupt
        n_done.append(None)
        return epoch(self, bar)

    monkeypatch.setattr(Trainer, "_epoch", stop_after_four)
    path = tmp_path / "state.pt"
    with pytest.warns(UserWarning, match="stopped early"):
        TALR(**parameters, checkpoint=path).fit(X, Y)
    monkeypatch.setattr(Trainer, "_epoch", epoch)
    resumed = TALR(**parameters, checkpoint=path).fit(X, Y)
    np.testing.assert_array_equal(whole.state_["hash.weight"], resumed.state_["hash.weight"])
    assert resumed.curves_["train_exact"].tolist() == whole.curves_["train_exact"].tolist()


def long_tail(n_classes, n_rows=3000, dim=24):
    """Classes in some dimensions, larger noise in the others; some classes have few rows."""
    rng = np.random.default_rng(n_classes)
    share = 1 / np.arange(1, n_classes + 1) ** 0.7
    y = rng.choice(n_classes, n_rows, p=share / share.sum())
    y[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes  # at least two rows of each
    centres = rng.standard_normal((n_classes, dim))
    rows = centres[y] + 0.3 * rng.standard_normal((n_rows, dim))
    return np.hstack([rows, 2 * rng.standard_normal((n_rows, dim))]), y


def retrieval_ap(hasher, rows, y):
    """AP of every fourth row against the others, which the hasher is fitted on."""
    query = np.arange(len(y)) % 4 == 0
    hasher.fit(rows[~query], y[~query])
    truth = bt.Relevance.from_classes(y[query], y[~query])
    codes = hasher.encode(rows[query]), hasher.encode(rows[~query])
    return bt.evaluate_codes(*codes, truth, ["ap"])["ap"].mean


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("n_classes", [2, 101, 1000])
def test_no_method_collapses_with_few_or_many_classes_and_long_tails(kind, n_classes):
    rows, y = long_tail(n_classes, n_rows=600 if n_classes == 2 else 3000)
    training = dict(n_epochs=12, batch_size=150, network="mlp", hidden=128, learning_rate=0.003)
    learned = retrieval_ap(kind(24, dropout=0.1, **training), rows, y)
    assert learned > 1.2 * retrieval_ap(bt.hashing.LSH(24, random_state=0), rows, y)


def test_dpsh_with_all_pairs_alike_is_worse_with_many_classes():
    rows, y = long_tail(101)
    training = dict(n_epochs=12, batch_size=150, network="mlp", hidden=128, learning_rate=0.003)
    balanced, alike = (
        retrieval_ap(DPSH(12, dropout=0.1, pairs=pairs, **training), rows, y)
        for pairs in ("balanced", "all")
    )
    assert balanced > 1.5 * alike


def test_bfloat16_cache_and_mirror(tmp_path):
    images, y = striped_images()
    shared = dict(n_bits=6, network="small", n_epochs=2, batch_size=16, frozen=1, augment=1)
    single = TALR(**shared).fit(images, y)
    half = TALR(**shared, precision="bfloat16", cache=tmp_path).fit(images, y)
    again = TALR(**shared, precision="bfloat16", cache=tmp_path).fit(images, y)
    close = half.logits(images) - single.logits(images)
    assert 0 < np.abs(close).max() < 0.5 * np.abs(single.logits(images)).max()
    np.testing.assert_array_equal(half.logits(images), again.logits(images))
    uncached = TALR(**shared, precision="bfloat16").fit(images, y)
    np.testing.assert_allclose(uncached.logits(images), half.logits(images), atol=0.02)
    assert len(list(tmp_path.rglob("*.npz"))) == 2, (
        "of the training images, and of the encoded ones"
    )
    both = TALR(**shared, mirror=True).fit(images, y)
    mean = (single.logits(images) + single.logits(images[:, :, ::-1])) / 2
    np.testing.assert_allclose(both.logits(images), mean, atol=1e-5)


def test_a_cache_of_other_images_is_not_used(tmp_path):
    images, y = striped_images()
    shared = dict(n_bits=6, network="small", n_epochs=1, batch_size=16, frozen=1)
    TALR(**shared, cache=tmp_path).fit(images, y)
    other = TALR(**shared, cache=tmp_path).fit(255 - images, y)
    alone = TALR(**shared).fit(255 - images, y)
    np.testing.assert_array_equal(other.state_["hash.weight"], alone.state_["hash.weight"])


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"optimiser": "adam"}, "optimiser must be"),
        ({"schedule": "linear"}, "schedule must be"),
        ({"averaging": 1.0}, "averaging must be less than 1"),
        ({"delta": 0}, "delta must be"),
        ({"n_steps": 5}, "give n_epochs or n_steps, not both"),
        ({"eta": -1}, "eta must be"),
        ({"mirror": True}, "mirror is for the package's image networks"),
        ({"precision": "half"}, "precision must be"),
    ],
)
def test_new_parameters_are_checked(parameters, says):
    with pytest.raises(bt.InputError, match=says):
        TALR(**QUICK, **parameters).fit(X, Y)
