import csv
import json
from io import StringIO

import numpy as np
import pytest
from cases import profile_of

import bittern as bt
from bittern.errors import UnknownNameError

# AP 1, 3/4 with [1/2, 1] over orders, undefined, and 1/2 with one relevant item not retrieved.
CASES = [([[1], [0]], []), ([[1, 0]], []), ([[0, 0]], []), ([[1], [0]], [1])]
NAMES = ["ap", "ap:optimistic", "precision@r0", "auprc", "micro-recall@1"]


@pytest.fixture
def scores():
    return bt.evaluate(profile_of(*CASES), NAMES)


def random_profile(n_queries, random_state=0):
    rng = np.random.default_rng(random_state)
    truth = bt.Relevance.from_matrix(rng.integers(0, 2, (n_queries, 20)))
    return bt.TieProfile.from_distances(rng.integers(0, 5, (n_queries, 20)), truth)


def interval(profile, random_state=0, name="ap"):
    return bt.evaluate(profile, name, random_state=random_state)[name].interval


def strict_json(text):
    """Parse JSON as the standard has it, without NaN."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_mean_leaves_undefined_queries_out_and_counts_them(scores):
    # (1 + 3/4 + 1/2) / 3
    np.testing.assert_array_equal(scores["ap"].per_query, [1, 3 / 4, np.nan, 1 / 2])
    assert scores["ap"].mean == pytest.approx(3 / 4)
    assert scores["ap"].undefined == 1
    assert float(scores["ap"]) == scores["ap"].mean


def test_all_queries_undefined_have_an_undefined_mean():
    score = bt.evaluate(profile_of(([[0]], []), ([[0]], [])), "ap")["ap"]
    assert np.isnan(score.mean)
    assert np.isnan(score.interval).all()
    assert score.undefined == 2


def test_scores_are_found_by_name_in_the_order_asked(scores):
    assert list(scores) == NAMES
    assert len(scores) == len(NAMES)
    assert "ap" in scores
    assert "ndcg" not in scores
    assert scores[bt.MetricName("ap")] is scores["ap"]
    with pytest.raises(UnknownNameError, match=r"no score is called 'app'; did you mean 'ap'"):
        scores["app"]


def test_the_spread_is_the_worst_and_the_best_order(scores):
    # Worst (1 + 1/2 + 1/2) / 3, best (1 + 1 + 1/2) / 3.
    assert scores["ap"].spread == pytest.approx((2 / 3, 5 / 6))
    assert scores["ap:optimistic"].mean == pytest.approx(5 / 6)


def test_there_is_no_spread_where_the_order_is_given_or_does_not_matter(scores):
    assert scores["ap:optimistic"].spread is None
    assert scores["precision@r0"].spread is None
    assert scores["auprc"].spread is None


def test_a_micro_metric_at_a_cutoff_has_a_spread(scores):
    # 4 relevant in all; rank 1 holds 1 + (0 or 1) + 0 + 1 of them.
    assert scores["micro-recall@1"].mean == pytest.approx(2.5 / 4)
    assert scores["micro-recall@1"].spread == pytest.approx((2 / 4, 3 / 4))


def test_the_interval_is_the_same_for_the_same_random_state():
    assert interval(random_profile(40)) == interval(random_profile(40))
    assert interval(random_profile(40), 1) == interval(random_profile(40), 1)
    assert interval(random_profile(40), 0) != interval(random_profile(40), 1)


@pytest.mark.parametrize("name", ["ap", "ndcg@5", "micro-f1@r1", "auprc", "precision@r0"])
def test_the_interval_holds_the_mean(name):
    profile = random_profile(40)
    low, high = interval(profile, name=name)
    assert low < bt.evaluate(profile, name)[name].mean < high


def test_the_interval_shrinks_like_the_square_root_of_the_number_of_queries():
    (few_low, few_high), (low, high) = interval(random_profile(50)), interval(random_profile(5000))
    assert (few_high - few_low) / (high - low) == pytest.approx(10, rel=0.35)


def test_the_interval_is_near_that_of_the_normal_distribution():
    profile = random_profile(2000)
    values = bt.evaluate(profile, "ap")["ap"].per_query
    half = 1.96 * values.std() / np.sqrt(len(values))
    low, high = interval(profile)
    assert high - low == pytest.approx(2 * half, rel=0.1)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=half / 5)


def test_most_intervals_hold_the_true_mean():
    truth = bt.evaluate(random_profile(20_000, random_state=99), "ap")["ap"].mean
    inside = 0
    for random_state in range(40):
        low, high = interval(random_profile(100, random_state))
        inside += low <= truth <= high
    assert inside >= 34  # 38 in the mean


def test_undefined_queries_do_not_move_the_interval_to_zero():
    nothing = [([[0]], [])] * 20
    something = [([[1]], [])] * 20
    assert interval(profile_of(*nothing, *something)) == (1, 1)


def test_one_query_has_an_interval_of_its_own_value():
    assert interval(profile_of(CASES[1])) == (0.75, 0.75)


def test_json_is_valid_and_undefined_is_null(scores):
    rows = strict_json(scores.to_json())
    assert [row["metric"] for row in rows] == NAMES
    first = rows[0]
    assert first["mean"] == scores["ap"].mean
    assert first["interval"] == list(scores["ap"].interval)
    assert first["tie_spread"] == list(scores["ap"].spread)
    assert (first["undefined"], first["queries"]) == (1, 4)
    nothing = strict_json(bt.evaluate(profile_of(([[0]], [])), "ap").to_json(indent=2))
    assert nothing[0]["mean"] is None
    assert nothing[0]["interval"] == [None, None]


def test_csv_has_a_line_a_metric_with_every_digit(scores):
    rows = list(csv.DictReader(StringIO(scores.to_csv())))
    assert [row["metric"] for row in rows] == NAMES
    assert float(rows[0]["mean"]) == scores["ap"].mean
    assert (float(rows[0]["low"]), float(rows[0]["high"])) == scores["ap"].interval
    assert float(rows[0]["pessimistic"]) == scores["ap"].spread[0]
    assert rows[3]["optimistic"] == ""
    assert (rows[0]["undefined"], rows[0]["queries"]) == ("1", "4")
    nothing = list(csv.DictReader(StringIO(bt.evaluate(profile_of(([[0]], [])), "ap").to_csv())))
    assert nothing[0]["mean"] == ""


def test_latex_is_a_table_with_balanced_rows(scores):
    text = scores.to_latex()
    lines = text.splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrr}"
    assert lines[-1] == r"\end{tabular}"
    rows = [line for line in lines if line.endswith(r"\\")]
    assert len(rows) == len(NAMES) + 1
    assert all(row.count("&") == 4 for row in rows)
    assert r"95 \% interval" in rows[0]
    assert "0.7500" in rows[1]
    assert "[0.6667, 0.8333]" in rows[1]


def test_a_frame_has_a_row_a_metric(scores):
    pytest.importorskip("pandas")
    frame = scores.to_frame()
    assert list(frame.index) == NAMES
    assert frame.loc["ap", "mean"] == scores["ap"].mean
    assert (frame.loc["ap", "low"], frame.loc["ap", "high"]) == scores["ap"].interval
    assert frame.loc["ap", "optimistic"] == scores["ap"].spread[1]
    assert np.isnan(frame.loc["auprc", "optimistic"])
    assert frame.loc["ap", "undefined"] == 1


def test_printing_shows_the_mean_the_spread_and_what_was_left_out(scores):
    text = str(scores)
    assert repr(scores) == text
    ap = next(line for line in text.splitlines() if line.startswith("ap "))
    assert "0.7500" in ap
    assert "[0.6667, 0.8333]" in ap
    assert ap.rstrip().endswith("1")
    assert "4 queries." in text
    assert "1 with nothing relevant" in text
    lines = text.splitlines()
    assert len({len(line) for line in lines[: 2 + len(NAMES)]}) == 1  # the columns are aligned


def test_printing_an_undefined_mean_says_so():
    text = str(bt.evaluate(profile_of(([[0]], [])), "ap"))
    assert "undefined" in text.splitlines()[2]
    assert "nan" not in text


def test_per_query_columns_have_ids_and_leave_out_single_values(scores):
    columns = scores.per_query_columns()
    assert list(columns) == ["query", "ap", "ap:optimistic", "precision@r0"]
    np.testing.assert_array_equal(columns["query"], [0, 1, 2, 3])


def test_a_score_shows_its_name_and_mean(scores):
    assert repr(scores["ap"]) == "<ap = 0.7500, 1 undefined>"
