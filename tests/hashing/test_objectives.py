"""The relaxed objectives against the exact tie-aware metrics, and their gradients."""

import numpy as np
import pytest
import torch

import bittern as bt
from bittern.hashing.objectives import (
    FORMS,
    MEANS,
    OBJECTIVES,
    _li,
    ap_loss,
    dpsh_loss,
    dtsh_loss,
    ndcg_loss,
    relaxed_ap,
    relaxed_dcg,
    relaxed_distances,
    relaxed_ndcg,
    soft_counts,
)

N_BITS = 8


def batch(m=14, n_bits=N_BITS, n_classes=3, random_state=0, graded=False):
    rng = np.random.default_rng(random_state)
    logits = torch.from_numpy(rng.standard_normal((m, n_bits)))
    if graded:
        gains = rng.integers(0, 4, (m, m))
        gains = np.minimum(gains, gains.T)
    else:
        labels = rng.integers(0, n_classes, m)
        gains = (labels[:, None] == labels).astype(np.int64)
    return logits, torch.from_numpy(gains)


def exact(logits, gains, metric):
    """The tie-aware metric of each row against the others, by the evaluator."""
    codes = bt.Codes.from_bits(logits.numpy() > 0)
    truth = bt.Relevance.from_matrix(gains.numpy()).excluding(np.arange(len(codes)))
    return bt.evaluate(codes, codes, truth, [metric])[metric].per_query


def dense_counts(distances, levels, n_levels, n_bits, n_bins):
    """Eq. 14 written out: every pair meets every bin."""
    width = n_bits / n_bins
    centres = torch.arange(n_bins + 1, dtype=distances.dtype) * width
    pulses = torch.relu(1 - (distances[:, :, None] - centres).abs() / width)
    return torch.stack([(pulses * (levels == v)[:, :, None]).sum(1) for v in range(n_levels)], 1)


@pytest.mark.parametrize("n_bins", [1, 3, 8, 20])
def test_soft_counts_are_those_of_the_pulses_and_so_are_their_gradients(n_bins):
    logits, gains = batch(graded=True)
    slope = torch.from_numpy(np.random.default_rng(1).standard_normal((14, 4, n_bins + 1)))
    found = []
    for count in (soft_counts, dense_counts):
        distances = relaxed_distances(logits, 1.0).requires_grad_()
        counts = count(distances, gains, 4, N_BITS, n_bins)
        (counts * slope).sum().backward()
        found.append((counts.detach(), distances.grad))
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[0][0].sum(dim=(1, 2)), torch.full((14,), 14.0).double())


def test_soft_counts_of_bits_are_the_tie_profile():
    logits, gains = batch(graded=True)
    truth = bt.Relevance.from_matrix(gains.numpy())
    codes = bt.Codes.from_bits(logits.numpy() > 0)
    profile = bt.TieProfile.from_codes(codes, codes, truth)
    counts = soft_counts(relaxed_distances(logits.sign(), 1e6), gains, 4, N_BITS)
    np.testing.assert_allclose(counts.sum(dim=1), profile.total, atol=1e-9)
    np.testing.assert_allclose(counts[:, 1:].sum(dim=1), profile.relevant, atol=1e-9)


def test_pairs_at_the_ends_of_the_range_count_once():
    distances = torch.tensor([[0.0, 8.0, 4.0]])
    counts = soft_counts(distances, torch.zeros((1, 3), dtype=torch.long), 1, 8, 4)
    assert counts[0, 0].tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["ap", "ndcg"])
@pytest.mark.parametrize("mean", MEANS)
def test_gradients_of_the_relaxed_metrics(name, form, mean):
    logits, gains = batch(m=9, n_bits=5, graded=name == "ndcg")
    options = dict(alpha=0.7, form=form, mean=mean)
    for n_bins in (5, 3):
        torch.autograd.gradcheck(
            lambda u, n=n_bins: OBJECTIVES[name](u, gains, n_bins=n, **options),
            logits.requires_grad_(),
        )


@pytest.mark.parametrize("name", ["ap", "ndcg"])
def test_the_geometric_mean_of_exact_values(name):
    logits, gains = batch(graded=name == "ndcg")
    gains[3] = gains[:, 3] = 0  # a query without relevant rows
    codes = bt.Codes.from_bits(logits.numpy() > 0)
    truth = bt.Relevance.from_matrix(gains.numpy()).excluding(np.arange(len(gains)))
    exact = bt.evaluate(codes, codes, truth, [name])[name].per_query
    options = dict(alpha=1e6, form="midpoint", mean="geometric")
    found = torch.exp(-OBJECTIVES[name](logits.sign(), gains, **options)).item()
    assert np.isnan(exact).sum() == 1
    assert found == pytest.approx(np.exp(np.nanmean(np.log(exact))), rel=0.02)


@pytest.mark.parametrize("name", ["dpsh", "dtsh"])
def test_gradients_of_the_likelihoods(name):
    logits, gains = batch(m=7, n_bits=5, graded=True)
    torch.autograd.gradcheck(lambda u: OBJECTIVES[name](u, gains), logits.requires_grad_())


def crowd(random_state=0, m=400, n_bits=6, graded=False):
    """Few bits and many rows: ties are large, as they are in hashing."""
    return batch(m, n_bits, n_classes=4, random_state=random_state, graded=graded)


@pytest.mark.parametrize("random_state", range(3))
@pytest.mark.parametrize(
    ("form", "error"), [("simplified", 5e-3), ("midpoint", 1e-3), ("integral", 0.06)]
)
def test_with_saturated_codes_ap_is_nearly_the_exact_one(form, error, random_state):
    logits, gains = crowd(random_state)
    relaxed = 1 - ap_loss(logits.sign(), gains, alpha=1e6, form=form).item()
    assert relaxed == pytest.approx(exact(logits, gains, "ap").mean(), abs=error)


@pytest.mark.parametrize("random_state", range(3))
@pytest.mark.parametrize(
    ("form", "error"), [("simplified", 0.03), ("midpoint", 1e-3), ("integral", 0.06)]
)
def test_with_saturated_codes_ndcg_is_nearly_the_exact_one(form, error, random_state):
    logits, gains = crowd(random_state, graded=True)
    relaxed = 1 - ndcg_loss(logits.sign(), gains, alpha=1e6, form=form).item()
    ndcg = exact(logits, gains, "ndcg").mean()
    assert relaxed == pytest.approx(ndcg, abs=error)
    if form == "simplified":
        assert relaxed < ndcg, "the discount is convex: in the middle it is below its mean"


def test_the_integral_is_below_by_no_more_than_its_stated_error():
    # Of a tie from rank a to rank b, the sum of 1/t exceeds ln(b/a) by 1/b to 1/a.
    logits, gains = crowd()
    counts = soft_counts(relaxed_distances(logits.sign(), 1e6), gains, 2, 6).round()
    relevant, total = counts[:, 1], counts.sum(dim=1)
    up_to = total.cumsum(1)
    first, last = up_to - total + 1, up_to
    rho = (relevant - 1).clamp(min=0) / (total - 1).clamp(min=1)
    found = relevant.cumsum(1) - relevant
    weight = relevant / total.clamp(min=1) * (found + 1 - rho * first)
    ends = torch.stack((weight / last.clamp(min=1), weight / first))
    n_relevant = relevant.sum(1)
    least, most = ends.min(0).values.sum(1) / n_relevant, ends.max(0).values.sum(1) / n_relevant
    codes = bt.Codes.from_bits(logits.numpy() > 0)
    profile = bt.TieProfile.from_codes(codes, codes, bt.Relevance.from_matrix(gains.numpy()))
    ap = torch.from_numpy(bt.evaluate(profile, ["ap"])["ap"].per_query)
    missing = ap - relaxed_ap(relevant, total, "integral")
    assert ((missing >= least - 1e-9) & (missing <= most + 1e-9)).all()
    assert missing.mean() > 0


def test_a_ranking_of_single_items_is_met_by_the_simplified_form_and_the_midpoint():
    relevant = torch.tensor([[1.0, 0, 1, 0, 0, 1]], dtype=torch.float64)
    ap = (1 + 2 / 3 + 3 / 6) / 3
    assert relaxed_ap(relevant, torch.ones_like(relevant)).item() == pytest.approx(ap)
    midpoint = relaxed_ap(relevant, torch.ones_like(relevant), "midpoint").item()
    assert midpoint == pytest.approx(ap, abs=0.04)


def test_the_logarithmic_integral_is_that_of_mpmath_and_its_slope_one_over_the_logarithm():
    x = torch.tensor([1.2, 1.4513692348833810, 2, 10, 1000], dtype=torch.float64)
    known = [-0.9337872, 0, 1.0451637801, 6.1655995047, 177.6096579]
    np.testing.assert_allclose(_li(x), known, rtol=1e-6, atol=1e-9)
    torch.autograd.gradcheck(_li, x.requires_grad_())


def test_large_gains_do_not_overflow():
    counts = torch.zeros((1, 2, 3))
    counts[0, 1, 0], counts[0, 0, 2] = 1, 5
    value = relaxed_ndcg(counts, torch.tensor([0, 500]))
    assert value.item() == pytest.approx(1)


def test_dcg_of_one_tie_is_the_mean_over_its_orders():
    counts = torch.tensor([[[3.0], [2.0]]], dtype=torch.float64)
    discounts = 1 / np.log2(np.arange(1, 6) + 1)
    wanted = 2 / 5 * discounts.sum()
    worth = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert relaxed_dcg(counts, worth, "midpoint").item() == pytest.approx(wanted, rel=3e-2)


def test_rows_with_nothing_relevant_are_left_out_of_the_mean():
    logits, gains = batch()
    gains[0] = gains[:, 0] = 0
    for loss in (ap_loss, ndcg_loss):
        some = loss(logits, gains).item()
        assert 0 < some < 1
        assert loss(logits, torch.zeros_like(gains)).item() == 1
    values = relaxed_ap(torch.zeros(1, 3), torch.ones(1, 3))
    assert torch.isnan(values).all()


def test_undefined_rows_give_no_gradient_and_no_nan():
    logits, gains = batch()
    logits.requires_grad_()
    for name in OBJECTIVES:
        (slope,) = torch.autograd.grad(OBJECTIVES[name](logits, torch.zeros_like(gains)), logits)
        assert torch.isfinite(slope).all()


def test_the_diagonal_is_not_looked_at():
    logits, gains = batch(graded=True)
    other = gains.clone().fill_diagonal_(3)
    for name in OBJECTIVES:
        assert OBJECTIVES[name](logits, gains) == OBJECTIVES[name](logits, other)


@pytest.mark.parametrize("pairs", ["balanced", "all"])
def test_dpsh_written_out(pairs):
    logits, gains = batch(m=6)
    u, loss = logits.numpy(), {True: [], False: []}
    for i in range(6):
        for j in range(6):
            if i != j:
                theta, similar = u[i] @ u[j] / 2, (gains[i, j] > 0).item()
                loss[similar].append(np.log1p(np.exp(theta)) - similar * theta)
    drawn = np.mean((np.sign(u) - u) ** 2)
    assert len(loss[True]) != len(loss[False]), "else both weigh the same"
    mean = np.mean(loss[True] + loss[False])
    if pairs == "balanced":
        mean = (np.mean(loss[True]) + np.mean(loss[False])) / 2
    value = dpsh_loss(logits, gains, eta=0.3, pairs=pairs).item()
    assert value == pytest.approx(mean + 0.3 * drawn)


def test_dpsh_of_one_kind_of_pairs_only_is_their_mean():
    logits, gains = batch(m=6)
    for only in (torch.zeros_like(gains), torch.ones_like(gains)):
        both = [dpsh_loss(logits, only, pairs=pairs).item() for pairs in ("balanced", "all")]
        assert both[0] == pytest.approx(both[1])
    assert dpsh_loss(logits[:1], gains[:1, :1], eta=0).item() == 0


@pytest.mark.parametrize("delta", [1, 2, 3])
def test_soft_counts_are_triangles_of_half_width_delta(delta):
    # Equation 14 written out, away from the ends, where no bin is missing; and 1 item in all.
    n_bits = 12
    distances = torch.tensor([[4.0, 5.25, 6.9]], dtype=torch.float64)
    levels = torch.tensor([[0, 1, 1]])
    counts = soft_counts(distances, levels, 2, n_bits, delta=delta)[0]
    for level in (0, 1):
        for d in range(n_bits + 1):
            apart = (distances[levels == level] - d).abs().tolist()
            want = sum(max(0, 1 - x / delta) for x in apart) / delta
            assert counts[level, d].item() == pytest.approx(want)
    assert counts.sum().item() == pytest.approx(3)


def test_wide_soft_counts_keep_every_item_at_the_ends_and_have_gradients():
    distances = torch.tensor([[0.0, 0.3, 7.9, 8.0]], dtype=torch.float64, requires_grad=True)
    levels = torch.zeros(1, 4, dtype=torch.long)
    assert soft_counts(distances, levels, 1, 8, delta=3).sum().item() == pytest.approx(4)
    inner = torch.tensor([[1.2, 2.6, 5.5]], dtype=torch.float64, requires_grad=True)

    def weighted(x):
        counts = soft_counts(x, levels[:, :3], 1, 8, delta=3)
        return (counts * torch.arange(9) ** 2).sum()

    assert torch.autograd.gradcheck(weighted, inner)


def test_dtsh_written_out():
    logits, gains = batch(m=6, graded=True)
    u, loss = logits.numpy(), []
    theta = u @ u.T / 2
    for q in range(6):
        for p in range(6):
            for n in range(6):
                if len({q, p, n}) == 3 and gains[q, p] > gains[q, n]:
                    loss.append(np.log1p(np.exp(-(theta[q, p] - theta[q, n] - N_BITS / 2))))
    drawn = np.mean((np.sign(u) - u) ** 2)
    assert dtsh_loss(logits, gains, eta=0.3).item() == pytest.approx(np.mean(loss) + 0.3 * drawn)


def test_bad_options_are_refused_in_one_sentence():
    logits, gains = batch()
    with pytest.raises(bt.InputError, match=r"^objective: form must be one of 'simplified'"):
        ap_loss(logits, gains, form="exact")
    with pytest.raises(bt.InputError, match=r"^objective: n_bins must be"):
        ap_loss(logits, gains, n_bins=0)
    with pytest.raises(bt.UnknownNameError, match="no objective is called 'map'"):
        OBJECTIVES["map"]
