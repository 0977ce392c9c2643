"""The grid of hash-table settings, and its analogy to a threshold on the ranking."""

import numpy as np
import pytest
from by_hand import EXCLUDED, N_DATABASE
from slow_tables import buckets_of, look_up
from slow_tables import segments as consecutive
from table_cases import GROUND_TRUTHS, crowded

import bittern as bt
from bittern import InputError
from bittern.index import Tables
from bittern.tables import compare_with_ranking

K_GRID, L_GRID = [1, 4, 5, 16], [1, 2, 3, 8]


def assert_equals_each_profile(surface, codes, relevance, **setting):
    """Every possible cell against the look-up of that setting; the others are marked."""
    n_possible = 0
    for k, width in enumerate(surface.bits_per_table.tolist()):
        for j, n_tables in enumerate(surface.n_tables.tolist()):
            cell = (slice(None), k, j)
            if not surface.is_possible[k, j]:
                for counts in (surface.true_positives, surface.false_negatives, surface.examined):
                    assert (counts[cell] == -1).all()
                assert np.isnan([surface.precision[k, j], surface.recall[k, j]]).all()
                assert surface.n_empty[k, j] == -1
                continue
            n_possible += 1
            one = bt.table_profile(
                *codes, relevance, n_tables=n_tables, bits_per_table=width, **setting
            )
            assert surface.tables(width, n_tables) == one.tables
            np.testing.assert_array_equal(surface.true_positives[cell], one.true_positives)
            np.testing.assert_array_equal(surface.false_positives[cell], one.false_positives)
            np.testing.assert_array_equal(surface.false_negatives[cell], one.false_negatives)
            np.testing.assert_array_equal(surface.examined[cell], one.examined)
            assert surface.n_empty[k, j] == one.is_empty.sum()
            micro = one.micro_precision(), one.micro_recall(), one.micro_f_beta(2.0)
            ours = surface.precision[k, j], surface.recall[k, j], surface.f_beta(2.0)[k, j]
            assert ours == pytest.approx(micro, nan_ok=True)
    return n_possible


@pytest.mark.parametrize("kind", GROUND_TRUTHS)
@pytest.mark.parametrize("segments", ["consecutive", "random"])
def test_every_cell_is_the_profile_of_its_setting(kind, segments):
    codes = crowded(16, 0)
    relevance = GROUND_TRUTHS[kind]().excluding(EXCLUDED)
    setting = {"segments": segments, "random_state": 3}
    surface = bt.table_surface(*codes, relevance, bits_per_table=K_GRID, n_tables=L_GRID, **setting)
    n_possible = assert_equals_each_profile(surface, codes, relevance, **setting)
    assert n_possible == (16 if segments == "random" else 4 + 3 + 3 + 1)


@pytest.mark.parametrize("n_bits", [40, 130])
def test_it_holds_for_probes_long_keys_and_long_codes(n_bits):
    codes = crowded(n_bits, 0)
    relevance = GROUND_TRUTHS["classes"]()
    setting = {"segments": "random", "probe": 1}
    surface = bt.table_surface(
        *codes, relevance, bits_per_table=[3, 33], n_tables=[2, 5], **setting
    )
    assert assert_equals_each_profile(surface, codes, relevance, **setting) == 4


def test_a_cell_is_what_dictionaries_and_sets_count():
    queries, database = crowded(16, 0)
    relevance = GROUND_TRUTHS["classes"]()
    surface = bt.table_surface(queries, database, relevance, bits_per_table=[4], n_tables=[3])
    tables = [buckets_of(database.to_bits(), chosen) for chosen in consecutive(3, 4)]
    same = relevance.block(slice(0, 9)) > 0
    for q, query in enumerate(queries.to_bits()):
        found, n_read, _ = look_up(query, tables, consecutive(3, 4))
        n_hits = sum(same[q, item] for item in found)
        assert surface.true_positives[q, 0, 0] == n_hits
        assert surface.false_positives[q, 0, 0] == len(found) - n_hits
        assert surface.examined[q, 0, 0] == n_read
    assert surface.true_positives.any()


def test_parts_blocks_and_threads_change_nothing(monkeypatch):
    codes = crowded(16, 0)
    relevance = GROUND_TRUTHS["matrix"]().excluding(EXCLUDED)
    grid = {"bits_per_table": K_GRID, "n_tables": L_GRID}
    whole = bt.table_surface(*codes, relevance, **grid, n_threads=1)
    monkeypatch.setattr("bittern.tables.surface.PART", 13)
    monkeypatch.setattr("bittern.tables.surface.PAIRS", 26)
    done = []
    divided = bt.table_surface(
        *codes, relevance, **grid, n_threads=2, progress=lambda *d: done.append(d)
    )
    for name in ("true_positives", "false_positives", "examined"):
        np.testing.assert_array_equal(getattr(divided, name), getattr(whole, name))
    assert done[-1] == (9 * N_DATABASE, 9 * N_DATABASE)


def test_surfaces_of_shards_add_up():
    queries, database = crowded(16, 0)
    relevance = GROUND_TRUTHS["tags"]().excluding(EXCLUDED)
    grid = {"bits_per_table": K_GRID, "n_tables": L_GRID}
    whole = bt.table_surface(queries, database, relevance, **grid)
    shards = [
        bt.table_surface(queries, database[a:b], relevance.shard(a, b), **grid)
        for a, b in ((0, 20), (20, N_DATABASE))
    ]
    total = shards[0] + shards[1]
    for name in ("true_positives", "false_positives", "false_negatives", "examined", "n_relevant"):
        np.testing.assert_array_equal(getattr(total, name), getattr(whole, name))
    with pytest.raises(InputError, match="same queries and grid"):
        whole + bt.table_surface(queries, database, relevance, bits_per_table=[4], n_tables=[1])


def test_more_tables_retrieve_more_and_longer_keys_less():
    codes = crowded(24, 0)
    relevance = GROUND_TRUTHS["classes"]()
    surface = bt.table_surface(
        *codes, relevance, bits_per_table=[2, 4, 8], n_tables=range(1, 9), segments="random"
    )
    retrieved = surface.true_positives + surface.false_positives
    assert (np.diff(retrieved, axis=2) >= 0).all()
    assert (np.diff(retrieved, axis=1) <= 0).all()  # random tables are nested in K
    assert (np.diff(surface.retrieved, axis=1) > 0).any()


FIGURE_3_5 = ["110111", "110011", "100011", "010011", "011000"]  # at distances 0, 1, 2, 2, 5


def test_each_threshold_of_figure_3_5_is_a_setting():
    bits = np.array([[int(bit) for bit in code] for code in FIGURE_3_5])
    query, database = bt.Codes.from_bits(bits[:1]), bt.Codes.from_bits(bits)
    relevance = bt.Relevance.from_classes([1], [1, 1, 1, 0, 0])
    profile = bt.TieProfile.from_codes(query, database, relevance)
    found = {}
    for width, n_tables in ((6, 1), (3, 2), (2, 3), (1, 6)):
        surface = bt.table_surface(
            query, database, relevance, bits_per_table=[width], n_tables=[n_tables]
        )
        comparison = compare_with_ranking(surface, profile)
        (radius,), (certain,) = comparison.radius.tolist()[0], comparison.certain_radius.tolist()[0]
        assert certain == n_tables - 1
        found[width, n_tables] = int(surface.retrieved[0, 0]), radius
        # Here the tables retrieve exactly what the threshold does.
        assert surface.precision[0, 0] == comparison.precision[0, 0]
        assert surface.recall[0, 0] == comparison.recall[0, 0]
    assert found == {(6, 1): (1, 0), (3, 2): (2, 1), (2, 3): (4, 2), (1, 6): (5, 5)}


@pytest.mark.parametrize("segments", ["consecutive", "random"])
@pytest.mark.parametrize("probe", [0, 1])
def test_a_setting_lies_between_two_radii(segments, probe):
    rng = np.random.default_rng(4)
    queries, database = (bt.Codes.from_bits(rng.random((n, 16)) < 0.8) for n in (30, 400))
    relevance = bt.Relevance.from_classes(rng.integers(0, 3, 30), rng.integers(0, 3, 400))
    profile = bt.TieProfile.from_codes(queries, database, relevance)
    surface = bt.table_surface(
        queries,
        database,
        relevance,
        bits_per_table=[1, 2, 4, 8, 16],
        n_tables=[1, 2, 4, 8, 16],
        segments=segments,
        probe=probe,
    )
    comparison = compare_with_ranking(surface, profile)
    within = np.cumsum(profile.total, axis=1)
    for k, j in np.argwhere(surface.is_possible):
        counts = surface.true_positives[:, k, j] + surface.false_positives[:, k, j]
        assert (counts >= within[:, comparison.certain_radius[k, j]]).all()
        assert (counts <= within[:, comparison.farthest[k, j]]).all()
        radius = comparison.radius[k, j]
        assert within[:, radius].sum() >= counts.sum()
        assert radius == 0 or within[:, radius - 1].sum() < counts.sum()
    # Few bits and many tables are a large radius, many bits and few tables a small one.
    assert comparison.radius[0, -1] > comparison.radius[-1, 0] + 3
    assert (comparison.radius[~surface.is_possible] == -1).all()


def test_the_certain_radius_of_segments_is_the_largest_that_is():
    tables = Tables.choose("test", 12, 3, 4, probe=1)
    assert tables.certain_radius == 5
    differing = np.zeros(12, bool)
    differing[[0, 1, 4, 5, 8, 9]] = True  # two bits of every segment: distance 6, no collision
    query, database = bt.Codes.from_bits(np.zeros((1, 12))), bt.Codes.from_bits([differing])
    relevance = bt.Relevance.from_classes([0], [0])
    setting = {"n_tables": 3, "bits_per_table": 4, "probe": 1}
    assert bt.table_profile(query, database, relevance, **setting).retrieved.tolist() == [0]


def test_the_certain_radius_of_random_tables_is_never_too_large():
    larger = 0
    for random_state in range(20):
        tables = Tables.choose("test", 9, 5, 3, "random", 1, random_state)
        everything = (np.arange(512)[:, None] >> np.arange(9)) & 1  # as differences from zero
        missed = [(everything[:, chosen].sum(axis=1) > 1) for chosen in tables.bits]
        distances = everything.sum(axis=1)[np.logical_and.reduce(missed)]
        assert tables.certain_radius < distances.min()
        larger += tables.certain_radius > tables.probe
    assert larger  # probing alone gives the rest


def test_a_comparison_needs_one_and_the_same_search():
    codes = crowded(16, 0)
    relevance = GROUND_TRUTHS["classes"]()
    surface = bt.table_surface(*codes, relevance, bits_per_table=[4], n_tables=[1])
    other = bt.TieProfile.from_codes(*crowded(17, 0), relevance)
    with pytest.raises(InputError, match="the same queries, database and ground truth"):
        compare_with_ranking(surface, other)


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        (([], [1]), "bits_per_table must be one or more whole numbers"),
        (([4], [0, 1]), "n_tables must be one or more whole numbers of at least 1"),
        (([2.5], [1]), "bits_per_table must be one or more whole numbers"),
        (([17], [1]), "bits_per_table must be between 1 and 16, got 17"),
    ],
)
def test_grids_that_cannot_be_are_refused(grid, says):
    with pytest.raises(InputError, match=says):
        bt.table_surface(
            *crowded(16, 0),
            GROUND_TRUTHS["classes"](),
            bits_per_table=grid[0],
            n_tables=grid[1],
        )


def test_a_surface_knows_only_its_own_settings():
    surface = bt.table_surface(
        *crowded(16, 0), GROUND_TRUTHS["classes"](), bits_per_table=[4], n_tables=[8]
    )
    assert surface.tables(4, 3).n_tables == 3
    with pytest.raises(InputError, match=r"K must be one of \[4\], got 5"):
        surface.tables(5, 1)
    with pytest.raises(InputError, match="L must be between 1 and 4, got 5"):
        surface.tables(4, 5)
