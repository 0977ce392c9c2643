"""The traps of other evaluators, each under its own name: the wrong value, and ours beside it."""

from itertools import permutations
from math import fsum, log2

import numpy as np
import pytest
import pytrec_eval

import bittern as bt
from bittern.errors import InputError


def profile_of(distances, gains):
    """Queries by items, both given."""
    return bt.TieProfile.from_distances(distances, bt.Relevance.from_matrix(gains))


def value(name, distances, gains):
    return bt.evaluate(profile_of([distances], [gains]), name)[name].mean


def strict_ap(gains):
    """Textbook AP of items in the order in which they stand."""
    hits = [rank for rank, gain in enumerate(gains, start=1) if gain]
    return sum(n / rank for n, rank in enumerate(hits, start=1)) / len(hits)


def write_files(folder, run, qrels):
    (folder / "run").write_text("".join(f"q Q0 {d} 0 {s!r} t\n" for d, s in run.items()))
    (folder / "qrels").write_text("".join(f"q 0 {d} {g}\n" for d, g in qrels.items()))
    return folder / "run", folder / "qrels"


def test_trap_01_the_order_of_insertion_does_not_change_the_ap_of_tied_items():
    orders = set(permutations([1, 0, 0]))
    wrong = {round(strict_ap(gains), 2) for gains in orders}
    assert wrong == {1.0, 0.5, 0.33}  # by a stable sort
    # (1 + 1/2 + 1/3) / 3
    ours = {value("ap", [5, 5, 5], gains) for gains in orders}
    assert len(ours) == 1
    assert ours.pop() == pytest.approx(11 / 18)


def test_trap_02_a_constant_scorer_does_not_look_perfect():
    gains = [1] + [0] * 9
    wrong = 1.0  # the relevant item was inserted first
    harmonic = fsum(1 / t for t in range(1, 11))
    assert value("rr", [0] * 10, gains) == pytest.approx(harmonic / 10) != wrong
    assert value("ap", [0] * 10, gains) == pytest.approx(harmonic / 10) != wrong
    assert value("precision@1", [0] * 10, gains) == pytest.approx(1 / 10) != wrong


def test_trap_03_a_database_stored_class_by_class_favours_no_class():
    labels = np.repeat([0, 1, 2], 10)
    wrong = [strict_ap(labels == c) for c in range(3)]  # a stable sort of a constant code
    assert wrong[0] == 1 > wrong[1] > wrong[2]
    same = bt.Codes.from_bits(np.zeros((33, 8), bool))
    truth = bt.Relevance.from_classes([0, 1, 2], labels)
    ours = bt.evaluate(same[:3], same[3:], truth, "ap")["ap"].per_query
    assert ours[0] == ours[1] == ours[2]
    assert wrong[2] < ours[0] < wrong[0]


def test_trap_04_a_tie_is_not_collapsed_into_one_threshold():
    wrong = 1 / 4  # precision where recall jumps to 1
    ours = value("ap", [2, 2, 2, 2], [0, 1, 0, 0])
    assert ours == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert round(ours, 3) == 0.521 != wrong


def class_sorted_codes(noise, random_state):
    """Ten classes, stored class by class, each with a 12-bit code; bits flip with some chance."""
    rng = np.random.default_rng(random_state)
    centres = rng.random((10, 12)) < 0.5
    labels, query_labels = np.repeat(np.arange(10), 100), np.repeat(np.arange(10), 5)
    queries, database = (
        bt.Codes.from_bits(centres[y] ^ (rng.random((len(y), 12)) < noise))
        for y in (query_labels, labels)
    )
    return queries, database, query_labels, labels


def test_trap_05_the_spread_of_ties_is_shown_because_it_exceeds_the_gaps_between_methods():
    means, spreads = [], []
    for noise in (0.19, 0.20):  # two methods, one a little better
        queries, database, query_labels, labels = class_sorted_codes(noise, random_state=0)
        truth = bt.Relevance.from_classes(query_labels, labels)
        score = bt.evaluate(queries, database, truth, "ap")["ap"]
        means.append(score.mean)
        spreads.append(score.spread)
        distance = (queries.to_bits()[:, None] != database.to_bits()).sum(axis=-1)
        order = np.argsort(distance, axis=1, kind="stable")
        pairs = zip(order, query_labels, strict=True)
        reported = np.mean([strict_ap(labels[row] == y) for row, y in pairs])
        worst, best = score.spread
        assert worst < reported < best
        assert worst < score.mean < best
        assert reported != pytest.approx(score.mean, abs=1e-4)  # an accident of storage
    gap = abs(means[0] - means[1])
    assert all(best - worst > 2 * gap > 0 for worst, best in spreads)


def test_trap_06_trec_eval_breaks_ties_by_document_id_descending_and_so_do_we_if_asked(tmp_path):
    run, qrels = {"a": 1.0, "b": 1.0, "c": 1.0}, {"c": 0, "a": 1}
    theirs = pytrec_eval.RelevanceEvaluator({"q": qrels}, {"map"}).evaluate({"q": run})["q"]["map"]
    scores = bt.evaluate(
        bt.TieProfile.from_trec(*write_files(tmp_path, run, qrels)), ["ap", "ap:trec"]
    )
    assert scores["ap:trec"].mean == pytest.approx(1 / 3) == theirs  # c, b, a
    wrong = 1.0  # a, b, c
    assert scores["ap:trec"].mean != wrong
    assert scores["ap"].mean == pytest.approx(11 / 18)  # and not unless asked


def test_trap_07_finding_more_does_not_lower_ap_at_k_unless_asked_for_by_name():
    # Both have two relevant items; the first ranking holds one of them among its first three.
    fewer, more = [1, 0, 0, 1], [1, 0, 1, 0]
    wrong = 1 / 1, (1 / 1 + 2 / 3) / 2
    assert wrong[0] > wrong[1]
    ours = [value("ap@3", [0, 1, 2, 3], gains) for gains in (fewer, more)]
    assert ours == pytest.approx([1 / 2, (1 + 2 / 3) / 2])
    named = [value("ap@3:retrieved", [0, 1, 2, 3], gains) for gains in (fewer, more)]
    assert named == pytest.approx(wrong)


def test_trap_08_one_convention_holds_whatever_the_ground_truth_is_made_of():
    labels, query_labels = np.array([0, 1, 0, 1, 0, 0]), np.array([0, 1])
    distances = np.array([[0, 1, 2, 3, 4, 5]] * 2)
    hot = np.eye(2, dtype=int)
    truths = [
        bt.Relevance.from_classes(query_labels, labels),
        bt.Relevance.from_tags(hot[query_labels], hot[labels]),
        bt.Relevance.from_matrix(query_labels[:, None] == labels),
        bt.Relevance.from_neighbours(hot[query_labels[:1]], hot[labels], 4),
    ]
    wrong = (1 + 2 / 3) / 2  # divided by the two that were found
    for truth in truths:
        profile = bt.TieProfile.from_distances(distances[: truth.n_queries], truth)
        ours = bt.evaluate(profile, "ap@3")["ap@3"].per_query[0]
        assert ours == pytest.approx((1 + 2 / 3) / 4) != wrong


def test_trap_09_no_cutoff_means_all_items_the_last_one_too():
    gains = [0, 0, 0, 1]
    wrong = 0.0  # gains[:-1] holds nothing relevant
    assert sum(gains[:-1]) == wrong
    assert value("ap", [0, 1, 2, 3], gains) == 1 / 4
    assert value("rr", [0, 1, 2, 3], gains) == 1 / 4
    assert value("ndcg", [0, 1, 2, 3], gains) == pytest.approx(1 / log2(5))
    with pytest.raises(InputError):
        value("ap@-1", [0, 1, 2, 3], gains)


def test_trap_10_a_hit_at_rank_one_counts():
    # Relevant at 1 and 3: precision 1 at recall 1/2, 2/3 at recall 1.
    gains, precision, recall = [1, 0, 1], [1, 1 / 2, 2 / 3], [1 / 2, 1 / 2, 1]
    wrong = sum(p * step for p, step in zip(precision[1:], np.diff(recall), strict=True))
    right = (1 + 2 / 3) / 2
    assert wrong == pytest.approx(1 / 3)
    for name in ("ap", "auprc"):
        assert value(name, [0, 1, 2], gains) == pytest.approx(right) != wrong
    # By trapezoids: 1 up to recall 1/2, then the mean of 1/2 and 2/3.
    trapezoids = 1 / 2 + (1 / 2 + 2 / 3) / 2 / 2
    assert value("auprc:trapezoid", [0, 1, 2], gains) == pytest.approx(trapezoids)
    assert value("auprc", [0], [1]) == value("auprc:trapezoid", [0], [1]) == 1


@pytest.mark.parametrize("place", [0, 1, 2])
def test_trap_11_a_query_with_nothing_relevant_is_left_out_and_counted_wherever_it_stands(place):
    gains = np.insert([[0, 1], [1, 0]], place, 0, axis=0)
    score = bt.evaluate(profile_of([[0, 1]] * 3, gains), "ap")["ap"]
    right, as_zero, as_one = 3 / 4, (1 / 2 + 1 + 0) / 3, (1 / 2 + 1 + 1) / 3
    assert score.mean == pytest.approx(right)
    assert score.mean not in (as_zero, as_one)
    assert np.isnan(score.per_query[place])
    assert score.undefined == 1


def test_trap_12_scores_below_zero_rank_like_any_others():
    similarity = -np.array([0, 1, 2, 3])  # minus a distance: nothing above zero
    wrong = 0.0
    ours = value("ap", -similarity, [1, 0, 1, 0])
    assert ours == pytest.approx((1 + 2 / 3) / 2) != wrong
    for shift in (-7, -3.5, 100):
        for name in ("ap", "ndcg", "auprc", "interpolated-ap"):
            moved = value(name, -similarity + shift, [1, 0, 1, 0])
            assert moved == pytest.approx(value(name, -similarity, [1, 0, 1, 0]))


@pytest.mark.parametrize("cutoff", [0, -1, -5])
def test_trap_13_cutoffs_of_zero_and_below_are_refused(cutoff):
    profile = profile_of([[0, 1]], [[1, 0]])
    with pytest.raises(InputError):
        bt.evaluate(profile, f"ap@{cutoff}")
    with pytest.raises(InputError):
        bt.evaluate(profile, bt.MetricName("precision", cutoff=cutoff))
    with pytest.raises(InputError):
        bt.evaluate(profile, f"precision@r{min(cutoff, -1)}")
    assert bt.evaluate(profile, "ap@1")["ap@1"].mean == 1


def test_trap_14_the_ideal_ranking_has_all_relevant_items_not_the_retrieved_ones():
    # One hit, at rank 1; three more relevant items were not retrieved.
    truth = bt.Relevance.from_matrix([[1, 1, 1, 1, 0]])
    profile = bt.TieProfile.from_hits([[0, 4]], [[0, 1]], truth)
    wrong = 1.0
    right = 1 / sum(1 / log2(t + 1) for t in range(1, 5))
    assert bt.evaluate(profile, "ndcg")["ndcg"].mean == pytest.approx(right) != wrong
    # At a cut-off the ideal is cut too: two of four fit into two ranks.
    at_two = 1 / (1 + 1 / log2(3))
    assert bt.evaluate(profile, "ndcg@2")["ndcg@2"].mean == pytest.approx(at_two) != wrong


def test_trap_15_recall_is_not_a_hit_rate():
    gains = [1, 0, 1, 1]
    wrong = 1.0  # something relevant was found
    assert value("recall@2", [0, 1, 2, 3], gains) == pytest.approx(1 / 3) != wrong
    assert value("recall@r1", [0, 1, 2, 3], gains) == pytest.approx(1 / 3) != wrong
    assert value("hit-rate@2", [0, 1, 2, 3], gains) == 1  # under its own name


def test_trap_16_a_search_cut_at_k_does_not_change_the_denominators():
    # Eight relevant of ten; the search returns three, all relevant.
    truth = bt.Relevance.from_matrix([[1] * 8 + [0] * 2])
    profile = bt.TieProfile.from_hits([[0, 1, 2]], [[0, 1, 2]], truth)
    names = ["recall@8", "precision@8", "ap@8", "r-precision", "recall@r9", "auprc"]
    scores = bt.evaluate(profile, names)
    assert scores["recall@8"].mean == pytest.approx(3 / 8)  # not 3/3
    assert scores["precision@8"].mean == pytest.approx(3 / 8)  # not 3/3: k is 8, not 3
    assert scores["ap@8"].mean == pytest.approx(3 / 8)
    assert scores["r-precision"].mean == pytest.approx(3 / 8)
    assert scores["recall@r9"].mean == pytest.approx(3 / 8)
    assert scores["auprc"].mean == pytest.approx(3 / 8)


def test_trap_17_the_curve_has_every_radius_up_to_the_code_length():
    # The farthest item differs in all bits, and is relevant.
    queries = bt.Codes.from_bits([[0, 0, 0, 0]])
    database = bt.Codes.from_bits([[0, 0, 0, 1], [1, 1, 1, 1]])
    truth = bt.Relevance.from_classes([1], [1, 1])
    curve = bt.pr_curve(bt.TieProfile.from_codes(queries, database, truth))
    np.testing.assert_array_equal(curve.radius, [0, 1, 2, 3, 4])
    assert curve.recall[-2] == 1 / 2  # where a loop that stops one short ends
    assert curve.recall[-1] == 1


def test_trap_18_a_constant_scorer_has_the_area_of_its_precision():
    gains = [1] + [0] * 9
    from_an_invented_point = (1 + 0.1) / 2 * 1  # from (0, 1) to (1, 0.1)
    from_the_first_point = 0.0  # no interval is left
    assert from_an_invented_point == pytest.approx(0.55)
    for name in ("auprc", "auprc:trapezoid"):
        ours = value(name, [3] * 10, gains)
        assert ours == pytest.approx(0.10)
        assert ours not in (pytest.approx(from_an_invented_point), from_the_first_point)


def test_trap_19_a_radius_includes_its_rim():
    distances, gains = [1, 2, 2, 3], [1, 1, 0, 1]
    strict = {"precision@r2": 1 / 1, "recall@r2": 1 / 3}
    right = {"precision@r2": 2 / 3, "recall@r2": 2 / 3, "recall@r3": 1, "recall@r1": 1 / 3}
    for name, wanted in right.items():
        assert value(name, distances, gains) == pytest.approx(wanted)
        assert value(name, np.array(distances, float), gains) == pytest.approx(wanted)
    for name, wrong in strict.items():
        assert value(name, distances, gains) != pytest.approx(wrong)
    # A ball of ground truth has a rim too: distances 1, 2 and 3 from the origin.
    ball = bt.Relevance.from_ball([[0.0]], [[1.0], [2.0], [3.0]], 2.0)
    assert ball.n_relevant.tolist() == [2]


def test_trap_20_an_empty_look_up_is_undefined_counted_and_said():
    # Three queries: nothing within 2; one of two relevant within 2; nothing relevant within 2.
    distances = [[3, 4, 5], [0, 2, 5], [1, 3, 4]]
    gains = [[1, 0, 0], [1, 0, 1], [0, 1, 0]]
    scores = bt.evaluate(profile_of(distances, gains), ["precision@r2", "precision@r2:empty-zero"])
    plain, zero = scores["precision@r2"], scores["precision@r2:empty-zero"]
    np.testing.assert_array_equal(plain.per_query, [np.nan, 1 / 2, 0])
    np.testing.assert_array_equal(zero.per_query, [0, 1 / 2, 0])
    assert (plain.mean, plain.undefined) == (1 / 4, 1)
    assert (zero.mean, zero.undefined) == (pytest.approx(1 / 6), 0)
    as_one = (1 + 1 / 2 + 0) / 3
    assert as_one not in (plain.mean, zero.mean)
    assert "1 found nothing within radius 2" in str(scores)


def test_trap_25_distances_a_billionth_apart_are_not_tied(tmp_path):
    near = np.array([1 + 1e-9, 1.0])
    assert near.astype(np.float32)[0] == near.astype(np.float32)[1]
    wrong = 3 / 4  # the expectation over a tie of two
    assert value("ap", near, [1, 0]) == 1 / 2 != wrong
    assert value("ap", -near, [1, 0]) == 1 != wrong
    # A run keeps double precision as well; trec_eval's single one only if asked for.
    files = write_files(tmp_path, {"a": 1 + 1e-9, "b": 1.0}, {"a": 1})
    scores = bt.evaluate(bt.TieProfile.from_trec(*files), ["ap", "ap:trec"])
    assert scores["ap"].mean == 1
    assert scores["ap:trec"].mean == 1 / 2


@pytest.mark.parametrize("n_bits", [127, 128, 129, 255, 256, 257, 512])
def test_trap_25_distances_of_long_codes_do_not_wrap_round(n_bits):
    # Opposite codes: in eight bits 128 would be -128, or 256 would be 0, and so the nearest.
    query = np.zeros((1, n_bits), bool)
    database = np.stack([~query[0], query[0] | (np.arange(n_bits) < 2)])
    truth = bt.Relevance.from_classes([1], [0, 1])
    codes = bt.Codes.from_bits(query), bt.Codes.from_bits(database)
    wrong = 1 / 2  # the opposite code first
    assert bt.evaluate(*codes, truth, "ap")["ap"].mean == 1 != wrong
    profile = bt.TieProfile.from_codes(*codes, truth)
    assert profile.total[0, n_bits] == profile.total[0, 2] == 1
