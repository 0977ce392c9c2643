"""The views of the explorer as plain functions, against definitions written out here."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from explored import DIM, N_BITS, N, blobs, contents_of, item, make_rows, uploads_of

import bittern as bt
from bittern.errors import FileError, InputError
from bittern.progress import Bar, listening
from bittern.store.decisions import Decisions
from bittern.web.explorer import codes, compare, duplicates, plane, quality
from bittern.web.explorer import search as searching
from bittern.web.explorer.asking import Asked, asked, question_of
from bittern.web.explorer.jobs import Jobs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explored")


@pytest.fixture(scope="module")
def contents(folder):
    return contents_of(make_rows(folder), blobs()[0])


@pytest.fixture(scope="module")
def uploads(contents):
    return uploads_of(contents)


def distances(contents, code):
    """By the definition, from one code to all."""
    return (contents.codes.to_bits() != code.to_bits()[0]).sum(axis=1)


def ids_of(items):
    return [one["id"] for one in items]


def test_a_band_has_all_items_at_one_distance_and_their_counts_are_the_histogram(contents, uploads):
    found = searching.search(contents, item(7), uploads, radius=N_BITS)
    apart = distances(contents, contents.code_of(7))
    apart[7] = -1  # the query itself is not a result
    assert found["histogram"] == [int((apart == d).sum()) for d in range(N_BITS + 1)]
    assert found["n_items"] == found["n_within"] == N - 1
    for band in found["bands"]:
        there = np.flatnonzero(apart == band["distance"]).tolist()
        assert band["count"] == len(there)
        assert ids_of(band["items"]) == there[: searching.PER_BAND]
        more = searching.band(contents, item(7), uploads, band["distance"], len(band["items"]))
        assert ids_of(more["items"]) == there[searching.PER_BAND :]


def test_the_first_radius_is_the_smallest_with_enough_items(contents, uploads):
    found = searching.search(contents, item(7), uploads)
    reached = np.cumsum(found["histogram"])
    assert reached[found["radius"]] >= searching.ENOUGH
    assert found["radius"] == 0 or reached[found["radius"] - 1] < searching.ENOUGH


def test_a_filter_leaves_items_out_of_bands_and_counts(contents, uploads):
    query = item(7, where="label = 'a' AND number < 60")
    found = searching.search(contents, query, uploads, radius=N_BITS)
    labels = blobs()[1]
    allowed = [i for i in range(60) if labels[i] == 0 and i != 7]
    assert sorted(i for band in found["bands"] for i in ids_of(band["items"])) == allowed
    assert found["n_items"] == len(allowed)
    with pytest.raises(InputError, match="where"):
        searching.search(contents, item(7, where="nobody > 1"), uploads)


def test_a_code_finds_what_its_item_finds_and_the_item_itself(contents, uploads):
    shown = contents.tiles([7])[0]
    found = searching.search(contents, Asked(code=shown["code"]), uploads, radius=0)
    zero = found["bands"][0]
    assert 7 in ids_of(zero["items"]) and zero["distance"] == 0
    assert found["n_items"] == N


def test_vectors_rank_the_items_within_the_radius_again(contents, uploads):
    found = searching.search(contents, item(7), uploads, radius=6, rank="vectors")
    vectors = blobs()[0].astype(np.float64)
    real = np.linalg.norm(vectors - vectors[7], axis=1)
    near = np.flatnonzero(distances(contents, contents.code_of(7)) <= 6)
    expected = sorted((i for i in near.tolist() if i != 7), key=lambda i: (real[i], i))
    assert ids_of(found["ranked"]["items"]) == expected[: searching.SHOWN_RERANKED]
    values = [one["value"] for one in found["ranked"]["items"]]
    np.testing.assert_allclose(values, real[expected[: len(values)]], rtol=1e-6)


def test_the_real_valued_query_ranks_by_the_weights_of_differing_bits(contents, uploads):
    found = searching.search(contents, item(7), uploads, radius=6, rank="real")
    logits = contents.source.recipe.hasher.logits(blobs()[0][7:8])[0]
    bits = contents.codes.to_bits()
    for one in found["ranked"]["items"]:
        expected = np.abs(logits)[bits[one["id"]] != (logits > 0)].sum()
        assert one["value"] == pytest.approx(expected, rel=1e-5)
    said = searching.search(contents, Asked(code="0" * 4), uploads, radius=9, rank="real")
    assert "no vector" in said["ranked"]["error"]


def test_examples_rank_by_likeness_and_are_not_results(contents, uploads):
    found = searching.search(contents, Asked(like=(0, 3), unlike=(1,)), uploads)
    values = [band["distance"] for band in found["bands"]]
    assert values == sorted(values, reverse=True) and len(set(values)) == len(values)
    listed = [i for band in found["bands"] for i in ids_of(band["items"])]
    assert len(listed) == len(set(listed)) == N - 3 and not {0, 1, 3} & set(listed)
    assert ids_of(found["query"]["like"]) == [0, 3]
    alone = searching.search(contents, Asked(like=(0, 3)), uploads)
    assert alone["query"]["unlike"] == [] and alone["n_items"] == N - 2


def test_bad_addresses_get_a_sentence(contents, uploads):
    with pytest.raises(InputError, match="no item has the id 999"):
        searching.search(contents, item(999), uploads)
    with pytest.raises(InputError, match="choose an item"):
        question_of(contents, Asked(), uploads)
    with pytest.raises(InputError, match="whole numbers"):
        asked(like="1,two")
    with pytest.raises(InputError, match="whole numbers"):
        asked(like="1,²")
    assert asked(like="1, 2,", unlike="", where="").like == (1, 2)


def test_tiles_are_plain_texts_whatever_the_metadata_say(contents):
    shown = contents.tiles([5])[0]
    assert shown["title"] == "<b>5</b>" and shown["label"] == "c"
    assert shown["src"] is None and shown["details"]["number"] == "5"


def test_two_sides_mark_what_only_one_of_them_has(contents, uploads, folder):
    other = contents_of(make_rows(folder, 12, "other"))
    sides = compare.sides_of(contents, uploads, (other, uploads_of(other)), None)
    found = compare.compare(sides, item(7))
    near = []
    for side, one in zip(sides, found["sides"], strict=True):
        apart = distances(side.contents, side.contents.code_of(7))
        order = sorted(set(range(N)) - {7}, key=lambda i: apart[i])
        last = apart[order[compare.NEAREST - 1]]
        near.append({i for i in order if apart[i] <= last})
        assert one["n_within"] == len(near[-1])
    assert found["n_common"] == len(near[0] & near[1])
    for one, mine, theirs in zip(found["sides"], near, reversed(near), strict=True):
        assert one["n_only"] == len(mine - theirs)
        for band in one["bands"]:
            for tile in band["items"]:
                assert tile["marked"] == (tile["id"] in mine - theirs)


def test_two_lengths_compare_the_first_bits(contents, uploads):
    sides = compare.sides_of(contents, uploads, None, 5)
    found = compare.compare(sides, item(7, where="number < 50"))
    bits = contents.codes.to_bits()[:, :5]
    apart = (bits != bits[7]).sum(axis=1)[:50]
    assert found["sides"][1]["histogram"] == np.bincount(np.delete(apart, 7), minlength=6).tolist()
    with pytest.raises(InputError, match="--against"):
        compare.sides_of(contents, uploads, None, None)
    with pytest.raises(InputError, match="bits"):
        compare.sides_of(contents, uploads, None, 17)


def leave_one_out(contents):
    labels = blobs()[1]
    truth = bt.Relevance.from_classes(labels, labels).excluding(np.arange(N))
    return bt.TieProfile.from_codes(contents.codes, contents.codes, truth)


def test_average_precision_and_its_spread_are_those_of_the_library(contents, uploads):
    scores = bt.evaluate(leave_one_out(contents), ["ap", "ap:pessimistic", "ap:optimistic"])
    found = compare.compare(compare.sides_of(contents, uploads, None, 8), item(7))
    one = found["sides"][0]["score"]
    for name, metric in (("ap", "ap"), ("low", "ap:pessimistic"), ("high", "ap:optimistic")):
        assert one[name] == pytest.approx(scores[metric].per_query[7])
    said = quality.summary(contents)
    assert said["mean"] == pytest.approx(scores["ap"].mean) and said["n_queries"] == N
    assert said["low"] < said["mean"] < said["high"]
    assert sum(said["histogram"]) == N


def test_the_worst_queries_come_first_with_their_neighbours(contents):
    ap = bt.evaluate(leave_one_out(contents), ["ap"])["ap"].per_query
    found = quality.queries(contents, 0.0, 1.0, None, 2, 3)
    assert ids_of([one["query"] for one in found["queries"]]) == np.argsort(ap)[2:5].tolist()
    first = found["queries"][0]
    apart = distances(contents, contents.code_of(first["query"]["id"]))
    assert [one["distance"] for one in first["items"]] == sorted(
        np.delete(apart, first["query"]["id"]).tolist()
    )[: quality.NEAREST]
    labels = blobs()[1]
    for one in first["items"]:
        assert one["marked"] == (labels[one["id"]] == labels[first["query"]["id"]])
    some = quality.queries(contents, 0.4, 0.5, 1, 0, 50)
    inside = (ap >= 0.4) & (ap < 0.5) & (labels == 1)
    assert some["n_queries"] == inside.sum()


def test_confusions_are_expected_shares_of_the_ten_nearest(contents):
    labels = blobs()[1]
    expected = np.zeros((N, 3))
    for q in range(N):
        apart = distances(contents, contents.code_of(q)).astype(float)
        apart[q] = np.inf
        left = quality.CUTOFF
        for d in range(N_BITS + 1):
            tied = np.flatnonzero(apart == d)
            taken = min(left, len(tied))
            left -= taken
            for i in tied:
                expected[q, labels[i]] += taken / len(tied)
    found = quality.confusion(contents)
    for c in range(3):
        want = expected[labels == c].mean(axis=0) / quality.CUTOFF
        np.testing.assert_allclose(found["shares"][c], want, atol=1e-4)
    worst = quality.confused(contents, 0, 1)
    of_a = np.flatnonzero(labels == 0)
    assert worst["queries"][0]["share"] == pytest.approx(expected[of_a, 1].max() / quality.CUTOFF)
    assert all(one["label"] == "b" for one in worst["queries"][0]["items"])


def test_one_query_has_precision_and_recall_by_radius_and_its_ground_truth(contents):
    found = quality.query(contents, 7, 3)
    labels = blobs()[1]
    apart = distances(contents, contents.code_of(7))
    others = np.arange(N) != 7
    good = others & (labels == labels[7])
    for radius in range(N_BITS + 1):
        inside = others & (apart <= radius)
        hits = (inside & good).sum()
        assert found["recall"][radius] == pytest.approx(hits / good.sum(), abs=1e-6)
        if inside.any():
            assert found["precision"][radius] == pytest.approx(hits / inside.sum(), abs=1e-6)
    assert found["n_relevant"] == good.sum()
    truth = found["truth"]
    assert [one["distance"] for one in truth] == sorted(apart[good].tolist())[: len(truth)]
    assert found["chart"].startswith("<svg") and len(found["bands"][-1]["items"])


def test_bits_are_balanced_and_correlated_as_numpy_says(contents):
    found = codes.bits(contents)
    bits = contents.codes.to_bits().astype(float)
    np.testing.assert_allclose(found["balance"], bits.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(found["correlation"], np.corrcoef(bits.T), atol=1e-3)


def test_buckets_are_counted_and_the_fullest_listed(contents):
    found = codes.buckets(contents)
    sizes = Counter(map(bytes, contents.codes.to_packed()))
    assert found["n_buckets"] == len(sizes)
    assert found["n_alone"] == sum(size == 1 for size in sizes.values())
    for one in found["sizes"]:
        assert one["count"] == sum(one["from"] <= size <= one["to"] for size in sizes.values())
    most = [size for _, size in sizes.most_common(codes.LARGEST)]
    assert [one["count"] for one in found["largest"]] == most
    first = found["largest"][0]
    assert sizes[bytes.fromhex(first["code"])] == first["count"]
    shares = np.array(list(sizes.values())) / N
    assert found["entropy"] == pytest.approx(-(shares * np.log2(shares)).sum())


def test_what_turns_a_bit_on_is_ordered_by_the_distance_from_the_threshold(contents):
    found = codes.bit(contents, 3)
    logits = contents.source.recipe.hasher.logits(blobs()[0])[:, 3]
    order = np.argsort(logits, kind="stable")
    off = [i for i in order if logits[i] <= 0]
    on = [i for i in order if logits[i] > 0]
    assert ids_of(found["off_near"]) == off[::-1][: codes.EXAMPLES]
    assert ids_of(found["on_near"]) == on[: codes.EXAMPLES]
    assert found["source"] == "stored vectors" and found["n_measured"] == N
    assert found["share"] == pytest.approx(contents.codes.to_bits()[:, 3].mean())
    labels, is_on = blobs()[1], contents.codes.to_bits()[:, 3]
    expected = {"abc"[c]: is_on[labels == c].mean() for c in range(3)}
    assert {one["name"]: one["share"] for one in found["classes"]} == pytest.approx(expected)
    with pytest.raises(InputError, match="0 to 15"):
        codes.bit(contents, 16)


def test_without_vectors_a_bit_shows_items_at_random(folder):
    bare = contents_of(make_rows(folder, name="bare"))
    found = codes.bit(bare, 2)
    bits = bare.codes.to_bits()[:, 2]
    assert "drawn at random" in found["note"]
    assert all(bits[one["id"]] for one in found["on_far"])
    assert not any(bits[one["id"]] for one in found["off_far"])


def read_points(content):
    n = int(np.frombuffer(content, "<f8", 1)[0])
    ids = np.frombuffer(content, "<f8", n, 8)
    x, y = np.frombuffer(content, "<f4", 2 * n, 8 + 8 * n).reshape(2, n)
    return ids, x, y, np.frombuffer(content, "<i4", n, 8 + 16 * n)


def test_the_map_has_the_first_two_principal_components(contents):
    ids, x, y, classes = read_points(plane.points(contents, None))
    bits = contents.codes.to_bits().astype(float)
    left, scale, _ = np.linalg.svd(bits - bits.mean(axis=0), full_matrices=False)
    for found, k in ((x, 0), (y, 1)):
        want = left[:, k] * scale[k]
        np.testing.assert_allclose(np.abs(found @ want), np.abs(want @ want), rtol=1e-4)
    assert ids.tolist() == list(range(N)) and classes.tolist() == blobs()[1].tolist()
    said = plane.about(contents, None)
    share = scale[0] ** 2 / (scale**2).sum()
    assert said["n_points"] == N and f"{share:.0%}" in said["axes"][0]


def test_the_map_may_have_coordinates_of_the_metadata(contents):
    _, x, y, _ = read_points(plane.points(contents, ("wide", "number")))
    np.testing.assert_allclose(x, blobs()[0][:, 0], rtol=1e-6)
    assert y.tolist() == list(range(N))
    with pytest.raises(InputError, match="not a column of numbers"):
        plane.points(contents, ("label", "number"))


def test_groups_and_pairs_are_those_of_the_library(contents):
    for radius in range(3):
        found = duplicates.groups(contents, radius, "complete", n=1000)
        expected = bt.index.groups_within(contents.codes, radius)
        assert sorted(sorted(ids_of(g["items"])) for g in found["groups"]) == sorted(
            sorted(rows.tolist()) for rows in expected
        )
        assert found["n_superfluous"] == sum(len(rows) - 1 for rows in expected)
    bits = contents.codes.to_bits()
    apart = Counter(int((bits[i] != bits[j]).sum()) for i, j in combinations(range(N), 2))
    assert found["pairs"] == [apart[d] for d in range(found["reach"] + 1)]
    sizes = [group["count"] for group in found["groups"]]
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(InputError, match="radius"):
        duplicates.groups(contents, found["reach"] + 1, "complete")
    with pytest.raises(InputError, match="link"):
        duplicates.groups(contents, 1, "loose")


def test_decisions_last_beside_the_collection_and_are_exported(folder):
    path = make_rows(folder, name="decided")
    with bt.store.open(path, read_only=True) as collection:
        decisions = Decisions(collection)
        assert decisions.read() == {}
        decisions.change({3: "keep", 4: "reject"})
        assert decisions.change({4: None, 9: "reject"}) == {3: "keep", 9: "reject"}
        assert Decisions(collection).read() == {3: "keep", 9: "reject"}
        rows = decisions.to_csv().splitlines()
        assert rows == ["id,decision,name,file", "3,keep,<b>3</b>,", "9,reject,<b>9</b>,"]
        with pytest.raises(InputError, match="keep or reject"):
            decisions.change({3: "perhaps"})
        with pytest.raises(InputError, match="no item has the id 999"):
            decisions.change({999: "keep"})
        decisions.path.write_text('{"format": "other"}')
        with pytest.raises(FileError, match="not a file of decisions"):
            decisions.read()


def test_a_job_tells_how_far_its_bars_have_come_until_it_ends():
    jobs, seen = Jobs(), []

    def work():
        with Bar("rows") as bar:
            bar(3, 10)
            seen.append(jobs.progress("me"))
        return "done"

    assert jobs.run("me", work) == "done"
    assert seen == [{"what": "rows", "done": 3, "total": 10}]
    assert jobs.progress("me") == {}
    with listening(lambda *said: seen.append(said)), Bar("more") as bar:
        bar(1, 2)
    assert seen[-1] == ("more", 1, 2)


def test_an_empty_collection_has_empty_views(folder):
    with bt.store.create(folder / "empty.bittern", DIM):
        pass
    empty = contents_of(folder / "empty.bittern")
    assert searching.search(empty, Asked(code="00"), uploads_of(empty))["n_items"] == 0
    assert codes.bits(empty)["n_items"] == codes.buckets(empty)["n_buckets"] == 0
    assert plane.about(empty, None)["n_points"] == 0
    assert duplicates.groups(empty, None, "complete")["n_groups"] == 0
    with pytest.raises(InputError, match="no classes"):
        quality.summary(empty)
    assert json.dumps(codes.buckets(empty))
