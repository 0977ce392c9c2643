"""CM-TALR and DCMH: their losses written out, and the training of two networks."""

import pickle
import sys
from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.base import clone

import bittern as bt
from bittern.hashing.crossmodal import CMTALR, DCMH
from bittern.hashing.deep.training import PairInputs, Trainer, VectorInputs
from bittern.hashing.objectives import ap_loss, dcmh_loss, ndcg_loss, quantisation


def logits(n_images=7, n_texts=7, n_bits=4, random_state=0):
    """Logits of images and of texts, and gains of texts by images."""
    rng = np.random.default_rng(random_state)
    u, v = (torch.from_numpy(rng.standard_normal((n, n_bits))) for n in (n_images, n_texts))
    return u, v, torch.from_numpy(rng.integers(0, 4, (n_texts, n_images)))


def pulses(u, v, alpha, n_bins):
    """How much each image counts in each bin of each text: eq. 14, all pairs and all bins."""
    u, v = np.tanh(alpha * u.numpy() / 2), np.tanh(alpha * v.numpy() / 2)
    n_bits = u.shape[1]
    counts = np.zeros((len(v), len(u), n_bins + 1))
    for q in range(len(v)):
        for i in range(len(u)):
            distance = sum((1 - u[i, k] * v[q, k]) / 2 for k in range(n_bits))
            for d in range(n_bins + 1):
                counts[q, i, d] = max(0, 1 - abs(distance * n_bins / n_bits - d))
    return counts


@pytest.mark.parametrize("n_bins", [2, 4])
def test_the_ap_of_texts_among_images_written_out(n_bins):
    u, v, gains = logits(5, 8)
    gains[3] = 0  # nothing is relevant to this text: it is left out
    values = []
    for counts, relevant in zip(pulses(u, v, 1.3, n_bins), gains.numpy() > 0, strict=True):
        before = found_before = ap = 0.0
        for d in range(n_bins + 1):
            c, r = counts[:, d].sum(), counts[relevant, d].sum()
            ap += r * (2 * found_before + r + 1) / (2 * before + c + 1)
            before, found_before = before + c, found_before + r
        values += [ap / relevant.sum()] if relevant.any() else []
    assert len(values) == 7
    loss = ap_loss(v, gains, others=u, alpha=1.3, n_bins=n_bins)
    assert loss.item() == pytest.approx(1 - np.mean(values))


def test_the_ndcg_of_texts_among_images_written_out():
    u, v, gains = logits(5, 8)
    values = []
    for counts, levels in zip(pulses(u, v, 0.8, 4), gains.numpy(), strict=True):
        worth, before, dcg = 2.0**levels - 1, 0.0, 0.0
        for d in range(5):
            c = counts[:, d].sum()
            dcg += worth @ counts[:, d] / np.log2((2 * before + c + 1) / 2 + 1)
            before += c
        best = np.sort(worth)[::-1] @ (1 / np.log2(np.arange(len(worth)) + 2))
        values += [dcg / best] if best else []
    assert ndcg_loss(v, gains, others=u, alpha=0.8).item() == pytest.approx(1 - np.mean(values))


def expected_ap(distances, relevant):
    """Mean AP over all orders of the items that no distance contradicts."""
    values = []
    for order in map(list, permutations(range(len(distances)))):
        if (np.diff(distances[order]) >= 0).all():
            hits = relevant[order]
            values.append((hits.cumsum() / np.arange(1, len(hits) + 1))[hits].mean())
    return np.mean(values)


@pytest.mark.parametrize(("form", "error"), [("simplified", 0.02), ("midpoint", 0.02)])
def test_with_saturated_codes_ap_is_the_mean_over_all_orders_of_tied_items(form, error):
    u, v, gains = logits(6, 40, n_bits=3)
    gains = (gains > 1).long()
    gains[:, 0] = 1  # something is relevant to every text
    apart = (u.numpy()[None] > 0) != (v.numpy()[:, None] > 0)
    pairs = zip(apart.sum(axis=-1), gains.numpy() > 0, strict=True)
    wanted = np.mean([expected_ap(*pair) for pair in pairs])
    codes = [bt.Codes.from_bits(x.numpy() > 0) for x in (v, u)]
    exact = bt.evaluate(*codes, bt.Relevance.from_matrix(gains.numpy()), ["ap"])["ap"].mean
    assert exact == pytest.approx(wanted)
    loss = ap_loss(v, gains, others=u, alpha=1e6, form=form).item()
    assert loss == pytest.approx(1 - wanted, abs=error)


def test_without_ties_the_loss_is_exact():
    # One text, and images at distances 0, 1, 2, 3.
    v, u = torch.full((1, 3), 9.0), torch.from_numpy(9.0 * (2 * np.tri(4, 3, -1)[::-1].copy() - 1))
    gains = torch.tensor([[0, 1, 0, 1]])
    loss = ap_loss(v, gains, others=u.float(), alpha=1e6)
    assert loss.item() == pytest.approx(1 - (1 / 2 + 2 / 4) / 2)


@pytest.mark.parametrize("loss", [ap_loss, ndcg_loss])
def test_gradients_for_both_modalities(loss):
    u, v, gains = logits(5, 6)
    torch.autograd.gradcheck(
        lambda u, v: loss(v, gains, others=u, alpha=0.7), (u.requires_grad_(), v.requires_grad_())
    )
    torch.autograd.gradcheck(
        lambda u, v: dcmh_loss(u, v, gains), (u.requires_grad_(), v.requires_grad_())
    )


@pytest.mark.parametrize("pairs", ["balanced", "all"])
def test_dcmh_written_out(pairs):
    u, v, gains = logits(5, 8)  # three texts have no image
    f, g, s = u.numpy(), v.numpy(), gains.numpy() > 0
    found = {True: [], False: []}
    for i in range(8):
        for j in range(5):
            theta = g[i] @ f[j] / 2
            found[bool(s[i, j])].append(np.log1p(np.exp(theta)) - s[i, j] * theta)
    assert len(found[True]) != len(found[False]), "else both weigh the same"
    mean = np.mean(found[True] + found[False])
    if pairs == "balanced":
        mean = (np.mean(found[True]) + np.mean(found[False])) / 2
    signs = np.sign(f + g[:5])
    apart = np.mean((signs - f) ** 2) + np.mean((signs - g[:5]) ** 2)
    balance = np.mean(f.mean(axis=0) ** 2) + np.mean(g[:5].mean(axis=0) ** 2)
    value = dcmh_loss(u, v, gains, gamma=0.3, eta=0.7, pairs=pairs).item()
    assert value == pytest.approx(mean + 0.3 * apart + 0.7 * balance)


def test_cm_talr_adds_both_directions_and_the_terms_within():
    u, v, gains = logits(7, 9)  # two texts are single words
    hasher = CMTALR(4, alpha=(1, 3), within=0.5, eta=0.1)
    square = gains[:7]
    across = ap_loss(u, square, others=v[:7], alpha=2) + ap_loss(v, gains, others=u, alpha=2)
    within = ap_loss(u, square, alpha=2) + ap_loss(v[:7], square, alpha=2)
    pull = quantisation(u) + quantisation(v)
    wanted = (across + 0.5 * within + 0.1 * pull) / 2
    assert hasher._loss((u, v), gains, 0.5).item() == pytest.approx(wanted.item())
    graded = CMTALR(4, objective="ndcg", alpha=(1, 1))
    wanted = ndcg_loss(u, square, others=v[:7]) + ndcg_loss(v, gains, others=u)
    assert graded._loss((u, v), gains, 0.5).item() == pytest.approx(wanted.item() / 2)


def pairs(n=150, n_classes=3, random_state=0):
    rng = np.random.default_rng(7)
    centres = 1.5 * rng.standard_normal((n_classes, 8)), 1.5 * rng.standard_normal((n_classes, 5))
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, n_classes, n)
    images, texts = (rng.standard_normal((n, c.shape[1])) + c[y] for c in centres)
    return images, texts, y


IMAGES, TEXTS, Y = pairs()
OTHERS = pairs(random_state=1)
QUICK = dict(n_bits=8, network="linear", n_epochs=6, batch_size=50, learning_rate=0.02, dropout=0.1)


def ap(hasher, images=IMAGES, texts=TEXTS, y=Y):
    """The mean of both directions; an item's own pair counts."""
    codes = hasher.encode(images=images), hasher.encode(texts=texts)
    truth = bt.Relevance.from_classes(y, y)
    values = [bt.evaluate(*c, truth, ["ap"])["ap"].mean for c in (codes, codes[::-1])]
    return np.mean(values)


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((CMTALR, network) for network in ("linear", "mlp", "kernel", ("mlp", "linear"))),
        *((DCMH, network) for network in ("linear", "mlp")),
    ],
)
def test_training_raises_ap_on_other_pairs(kind, network):
    start = kind(**QUICK | {"network": network, "n_epochs": 1, "learning_rate": 1e-9})
    hasher = kind(**QUICK | {"network": network, "n_epochs": 12}, hidden=64)
    assert (
        ap(hasher.fit(IMAGES, TEXTS, Y), *OTHERS) > ap(start.fit(IMAGES, TEXTS, Y), *OTHERS) + 0.1
    )
    assert hasher.losses_[-1] < hasher.losses_[0]


def test_parameters_are_those_of_talr_and_may_differ_between_modalities():
    own = {"objective", "alpha", "n_bins", "delta", "eta", "form", "mean"}
    shared = set(bt.hashing.TALR().get_params()) - {"start"}
    assert set(CMTALR().get_params()) == shared | {"noise", "within"}
    assert set(DCMH().get_params()) == shared - own | {"noise", "gamma", "eta", "pairs"}
    options = dict(network=("mlp", "kernel"), hidden=(16, 9), n_anchors=30, noise=(0.1, 0))
    hasher = CMTALR(**QUICK | options | {"learning_rate": (0.02, 0.03)})
    assert clone(hasher).get_params() == hasher.get_params()
    hasher.fit(IMAGES, TEXTS, Y)
    assert hasher.image_hasher_.state_["trunk.1.weight"].shape == (16, 8)
    assert hasher.text_hasher_.state_["hash.weight"].shape == (8, 30)
    assert hasher.image_hasher_.learning_rate == 0.02
    assert hasher.text_hasher_.learning_rate == 0.03
    assert hasher.text_hasher_.encode(TEXTS) == hasher.encode(texts=TEXTS)


def test_noise_varies_the_inputs_of_training_only():
    rows = torch.zeros(2000, 5)
    inputs = PairInputs(VectorInputs(rows, 0.5), VectorInputs(rows), words=torch.ones(3, 5))
    images, texts = inputs.draw(np.arange(2000), np.random.default_rng(0))
    assert images.std().item() == pytest.approx(0.5, abs=0.02) and len(texts) == 2003
    assert not texts[:2000].any() and texts[2000:].all()
    assert not any(part.any() for part in inputs.plain(np.arange(3)))


def test_a_saved_model_encodes_without_pytorch(tmp_path, monkeypatch):
    hasher = CMTALR(**QUICK | {"network": ("mlp", "kernel")}).fit(IMAGES, TEXTS, Y)
    hasher.save(tmp_path / "model.npz")
    monkeypatch.setitem(sys.modules, "torch", None)
    again = bt.hashing.load(tmp_path / "model.npz")
    assert again.encode(images=IMAGES) == hasher.encode(images=IMAGES)
    assert again.encode(texts=TEXTS) == hasher.encode(texts=TEXTS)
    assert again.get_params()["network"] == ("mlp", "kernel")
    with pytest.raises(bt.MissingExtraError, match=r"^CMTALR: needs PyTorch; pip install"):
        again.fit(IMAGES, TEXTS, Y)


def test_labels_and_their_relevance_train_alike():
    options = QUICK | {"balanced": False}
    labels = CMTALR(**options).fit(IMAGES, TEXTS, Y)
    relevance = CMTALR(**options).fit(IMAGES, TEXTS, bt.Relevance.from_classes(Y, Y))
    assert labels.losses_.tolist() == relevance.losses_.tolist()
    assert labels.encode(texts=TEXTS) == relevance.encode(texts=TEXTS)


def test_the_own_pair_is_relevant_even_if_nothing_else_is():
    gains = np.zeros((150, 150), int)
    gains[0, 1] = 2
    hasher = CMTALR(**QUICK)
    hasher.fit(IMAGES, TEXTS, bt.Relevance.from_matrix(gains))
    assert hasher.losses_[-1] < hasher.losses_[0] < 1
    targets = bt.hashing.Targets.of(bt.Relevance.from_matrix(gains), 150, "test")
    found = hasher._batch_targets(targets, 0)(np.array([0, 1, 5]))
    assert found.tolist() == [[1, 2, 0], [0, 1, 0], [0, 0, 1]]


def test_graded_gains_are_learned_from():
    rng = np.random.default_rng(0)
    tags = rng.random((200, 6)) < 0.35
    images, texts = tags @ rng.standard_normal((6, 8)), tags[:, :5] + 0.0
    truth = bt.Relevance.from_tags(tags, tags, graded=True)

    def ndcg(hasher):
        hasher.fit(images, texts, tags)
        codes = hasher.encode(images=images), hasher.encode(texts=texts)
        return bt.evaluate(*codes, truth, ["ndcg"])["ndcg"].mean

    trained = ndcg(CMTALR(**QUICK | {"n_epochs": 12}, objective="ndcg"))
    assert trained > ndcg(CMTALR(**QUICK | {"learning_rate": 1e-9})) + 0.05


def test_curves_follow_pairs_in_both_directions():
    hasher = CMTALR(**QUICK, alpha=(1, 3)).fit(IMAGES, TEXTS, Y, held_out=OTHERS)
    assert len(hasher.curves_) == 4 and all(len(v) == 6 for v in hasher.curves_.values())
    assert hasher.curves_["train_exact"][-1] == pytest.approx(ap(hasher))
    assert hasher.curves_["held_out_exact"][-1] == pytest.approx(ap(hasher, *OTHERS))
    u, v = hasher.image_hasher_.logits(IMAGES), hasher.text_hasher_.logits(TEXTS)
    gains = torch.from_numpy((Y[:, None] == Y).astype(int))
    loss = hasher._loss((torch.from_numpy(u), torch.from_numpy(v)), gains, 1.0).item()
    assert hasher.curves_["train_relaxed"][-1] == pytest.approx(1 - loss, abs=1e-5)
    alone = CMTALR(**QUICK, alpha=(1, 3)).fit(IMAGES, TEXTS, Y)
    assert alone.encode(texts=TEXTS) == hasher.encode(texts=TEXTS), "followed pairs change nothing"


def test_validation_keeps_the_best_epoch():
    hasher = CMTALR(**QUICK, validation=0.4, patience=3).fit(IMAGES, TEXTS, Y)
    rng = hasher._generator()
    rng.integers(2**62)
    rows = np.sort(rng.permutation(150)[:60])
    assert hasher.scores_.max() == pytest.approx(ap(hasher, IMAGES[rows], TEXTS[rows], Y[rows]))
    assert hasher.scores_.argmax() == hasher.best_epoch_ - 1


def test_a_training_that_was_interrupted_goes_on_to_the_same_result(tmp_path, monkeypatch):
    options = QUICK | {"network": "mlp", "hidden": 16, "noise": 0.3, "averaging": 0.5}
    whole = CMTALR(**options).fit(IMAGES, TEXTS, Y)
    epoch = Trainer._epoch

    def stop_in_the_fourth(self, bar):
        if self.progress.epoch == 3:
            raise KeyboardInterrupt
        epoch(self, bar)

    monkeypatch.setattr(Trainer, "_epoch", stop_in_the_fourth)
    hasher = CMTALR(**options, checkpoint=tmp_path / "state.pt")
    with pytest.warns(UserWarning, match=r"stopped early.* Call fit\(\) again with checkpoint="):
        hasher.fit(IMAGES, TEXTS, Y)
    assert len(hasher.losses_) == 3 and len(hasher.encode(texts=TEXTS)) == 150
    monkeypatch.undo()
    hasher.fit(IMAGES, TEXTS, Y)
    assert hasher.losses_.tolist() == whole.losses_.tolist()
    assert hasher.encode(images=IMAGES) == whole.encode(images=IMAGES)
    for images, texts in ((IMAGES + 1e-9, TEXTS), (IMAGES, TEXTS + 1e-9)):
        with pytest.raises(bt.FileError, match="is a checkpoint of another training"):
            hasher.fit(images, texts, Y)


def tagged(n=300, n_tags=8):
    """Images are noisy sums over their tags; so are texts, which are averages."""
    rng = np.random.default_rng(0)
    tags = rng.random((n, n_tags)) < 0.3
    words = rng.standard_normal((n_tags, 6))
    images = tags @ rng.standard_normal((n_tags, 10)) + 0.3 * rng.standard_normal((n, 10))
    return images, tags @ words / np.maximum(tags.sum(axis=1), 1)[:, None], tags, words


def test_single_words_are_further_queries():
    images, texts, tags, words = tagged()
    truth = bt.Relevance.from_matrix(tags[150:].T.astype(int))
    values = []
    for given in (None, words):
        hasher = CMTALR(**QUICK | {"network": "mlp", "n_epochs": 12}, hidden=64)
        hasher.fit(images[:150], texts[:150], tags[:150], words=given)
        codes = hasher.encode(texts=words), hasher.encode(images=images[150:])
        values.append(bt.evaluate(*codes, truth, ["ap"])["ap"].mean)
    assert values[1] > values[0]


def long_tail(n_classes, n):
    rng = np.random.default_rng(n_classes)
    share = 1 / np.arange(1, n_classes + 1) ** 0.7
    y = rng.choice(n_classes, n, p=share / share.sum())
    y[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes  # at least two pairs of each
    return *(
        np.hstack([rng.standard_normal((n_classes, d))[y], rng.standard_normal((n, d))])
        + 0.3 * rng.standard_normal((n, 2 * d))
        for d in (16, 12)
    ), y


@pytest.mark.parametrize(
    ("kind", "n_classes", "n"),
    [(DCMH, 2, 300), (DCMH, 101, 900), (DCMH, 1000, 2000), (CMTALR, 1000, 2000)],
)
def test_nothing_collapses_with_few_or_many_classes_and_long_tails(kind, n_classes, n):
    images, texts, y = long_tail(n_classes, n)
    training = dict(batch_size=150, network="mlp", hidden=64, learning_rate=0.01, dropout=0.1)
    learned = kind(16, n_epochs=6, **training).fit(images, texts, y)
    start = kind(16, n_epochs=1, **training | {"learning_rate": 1e-9}).fit(images, texts, y)
    rows = slice(None, None, max(1, n // 500))
    some = images[rows], texts[rows], y[rows]
    assert ap(learned, *some) > 1.3 * ap(start, *some)
    for codes in (learned.transform(images=images), learned.transform(texts=texts)):
        assert 0.02 < codes.mean() < 0.98, "the bits are not constant"


def striped(n=48, side=16, random_state=0):
    """Images with stripes across or along, and words for either."""
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, 2, n)
    wave = 60 * np.sin(np.arange(side) * 1.5 + rng.uniform(0, 6, (n, 1)))
    images = np.where(y[:, None, None] == 1, wave[:, None, :], wave[:, :, None])[..., None]
    images = (images + 128 + rng.normal(0, 10, (n, side, side, 3))).clip(0, 255).astype(np.uint8)
    return images, rng.poisson(np.array([[3, 1, 1], [1, 1, 3]])[y]).astype(float), y


def test_images_are_learned_end_to_end_beside_vectors_of_texts(tmp_path):
    images, texts, y = striped()
    options = dict(n_bits=8, n_epochs=6, batch_size=24, learning_rate=0.01, trunk_rate=1.0)
    hasher = CMTALR(**options, network=("small", "mlp"), hidden=32, augment=1, mirror=True)
    hasher.fit(images, texts, y, held_out=striped(random_state=1))
    others = striped(random_state=2)
    assert ap(hasher, *others) > 0.75
    hasher.save(tmp_path / "model.npz")
    again = bt.hashing.load(tmp_path / "model.npz")
    assert again.encode(images=images) == hasher.encode(images=images)
    assert again.encode(texts=texts) == hasher.encode(texts=texts)
    assert pickle.loads(pickle.dumps(hasher)).encode(images=images) == hasher.encode(images=images)
    with pytest.raises(bt.InputError, match=r"^CMTALR: images: was trained on inputs of shape"):
        again.encode(images=images.reshape(48, 8, 32, 3))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"network": ("mlp", "small")}, "texts: network='small' is for images; texts need 'lin"),
        ({"network": ("mlp",) * 3}, "network must be one value, or two for images and texts"),
        ({"network": ("mlp", "resnet")}, "texts: network must be one of 'linear', 'mlp'"),
        ({"dropout": (0.1, 1.0)}, "texts: dropout must be less than 1"),
        ({"hidden": (0, 9)}, "images: hidden must be"),
        ({"noise": -1}, "images: noise must be at least 0"),
        ({"within": -1}, "within must be at least 0"),
        ({"objective": "map"}, "objective must be one of 'ap', 'ndcg'"),
        ({"alpha": 2.0}, "alpha must be two numbers"),
        ({"learning_rate": (0.1, 0)}, "texts: learning_rate must be above 0"),
        ({"patience": 3}, "patience needs a share of rows"),
        ({"network": ("small", "mlp")}, "images: this network needs images"),
        ({"mirror": True}, "images: mirror is for the package's image networks"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(parameters, says):
    with pytest.raises(bt.InputError) as caught:
        CMTALR(**QUICK | parameters).fit(IMAGES, TEXTS, Y)
    assert str(caught.value).startswith("CMTALR: ") and says in str(caught.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"held_out": (IMAGES, Y)}, "held_out must be a tuple of images, texts and targets"),
        ({"held_out": (IMAGES, TEXTS[:9], Y)}, "held_out must have a text for each image"),
        ({"held_out": (IMAGES, TEXTS, Y[:9])}, "held_out: y must have one entry for each row"),
        ({"held_out": (IMAGES, IMAGES, Y)}, "texts must have the 5 columns"),
        ({"words": TEXTS[:3]}, "words are for tags as y"),
        ({"y": np.eye(3)[Y], "words": TEXTS[:2]}, "words must be a text for each of the 3 tags"),
    ],
)
def test_bad_words_and_held_out_pairs_are_refused_in_one_sentence(given, says):
    with pytest.raises(bt.InputError) as caught:
        CMTALR(**QUICK).fit(IMAGES, TEXTS, **{"y": Y} | given)
    assert str(caught.value).startswith("CMTALR: ") and says in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"gamma": -1}, "gamma must be"),
        ({"eta": -1}, "eta must"),
        ({"pairs": "some"}, "pairs must"),
    ],
)
def test_the_parameters_of_dcmh_are_checked(parameters, says):
    with pytest.raises(bt.InputError, match=f"^DCMH: {says}"):
        DCMH(**QUICK | parameters).fit(IMAGES, TEXTS, Y)
