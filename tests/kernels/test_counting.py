"""The counting kernels against their twins in NumPy, and the twins against counting by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import count_reference as reference

from bittern.kernels import count, registers
from bittern.kernels.count import avx2, avx512, portable

# Codes of one word go through either branch of each module.
RANGES = {"portable": portable.count_ranges, "words": portable.count_ranges_of_words}
if registers.has_avx2():
    RANGES |= {"avx2": avx2.count_ranges}
if registers.counts_bits_of_registers():
    RANGES |= {"avx512": avx512.count_ranges}
LONGEST = {"avx2": 256, "avx512": 64}  # codes of a kernel, in bits


def random_words(rng, n, n_bits):
    """Packed random codes with zero padding."""
    bits = np.zeros((n, -(-n_bits // 64) * 64), bool)
    bits[:, :n_bits] = rng.random((n, n_bits)) < rng.choice([0.1, 0.5])
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def planes_of(words):
    return np.ascontiguousarray(words.T)


def range_kernels_for(n_bits):
    """Every kernel that counts by ranges and takes codes of this length, on this processor."""
    return [RANGES[name] for name in RANGES if n_bits <= LONGEST.get(name, n_bits)]


def category_kernels_for(n_bits):
    """Every kernel that counts by category, alike."""
    is_short = n_bits <= 64
    vector = [avx2.count_categories] if is_short and registers.has_avx2() else []
    return [*vector, portable.count_categories, count_categories_of_words]


def count_categories_of_words(queries, planes, categories, starts, *rest):
    """The kernel for long codes with the arguments of the others."""
    portable.count_categories_of_words(queries, planes, categories, *rest)


def assert_same(kernel, twin, arguments, shape, before):
    """Both add the same to counts that are not zero before; and something was added."""
    ours, theirs = np.full(shape, before, np.uint32), np.full(shape, before, np.uint32)
    kernel(*arguments, ours)
    twin(*arguments, theirs)
    np.testing.assert_array_equal(ours, theirs)
    return ours.astype(np.int64) - before


def slow_distance(a, b):
    """Differing bits of two codes, as Python integers."""
    return sum((int(x) ^ int(y)).bit_count() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("n_bits", [1, 64, 65, 200])
def test_the_twin_of_count_ranges_counts_by_hand(n_bits):
    rng = np.random.default_rng(n_bits)
    queries, database = random_words(rng, 3, n_bits), random_words(rng, 10, n_bits)
    starts, stops = np.array([0, 4, 7]), np.array([3, 4, 10])
    counts = np.zeros((3, 2, n_bits + 1), np.uint32)
    reference.count_ranges(queries, planes_of(database), starts, stops, counts)
    by_hand = np.zeros_like(counts)
    for q in range(3):
        for i in range(10):
            by_hand[q, int(starts[q] <= i < stops[q]), slow_distance(queries[q], database[i])] += 1
    np.testing.assert_array_equal(counts, by_hand)


def random_categories(rng, n, n_queries, n_categories, n_levels):
    """Categories of items, ascending, where each begins, and tags; the highest level occurs."""
    categories = np.sort(rng.integers(0, n_categories, n)).astype(np.uint32)
    starts = np.searchsorted(categories, np.arange(n_categories + 1))
    tags = n_levels - 1
    query_masks, masks = random_words(rng, n_queries, tags), random_words(rng, n_categories, tags)
    query_masks[0] = masks[categories[n // 2]] = np.uint64(2**tags - 1)
    return categories, starts, query_masks, planes_of(masks), n_levels > 2


@pytest.mark.parametrize("first", range(1, 301, 50))
def test_count_ranges_equals_its_twin_at_every_length(first):
    for n_bits in range(first, first + 50):
        rng = np.random.default_rng(n_bits)
        n_queries, n = 1 + n_bits % 9, 40
        queries, database = random_words(rng, n_queries, n_bits), random_words(rng, n, n_bits)
        bounds = np.sort(rng.integers(0, n + 1, (2, n_queries)), axis=0)
        bounds[:, 0] = 10, 25
        for kernel in range_kernels_for(n_bits):
            added = assert_same(
                kernel,
                reference.count_ranges,
                (queries, planes_of(database), *bounds),
                (n_queries, 2, n_bits + 1),
                before=n_bits % 3,
            )
            assert added.sum() == n_queries * n  # not vacuous: every pair was counted
            assert added[:, 1].sum() == (bounds[1] - bounds[0]).sum()


@pytest.mark.parametrize("first", range(1, 301, 50))
def test_count_categories_equals_its_twin_at_every_length(first):
    for n_bits in range(first, first + 50):
        rng = np.random.default_rng(n_bits)
        n_queries, n, n_levels = 1 + n_bits % 9, 40, 2 + n_bits % 4
        queries, database = random_words(rng, n_queries, n_bits), random_words(rng, n, n_bits)
        for kernel in category_kernels_for(n_bits):
            added = assert_same(
                kernel,
                reference.count_categories,
                (queries, planes_of(database), *random_categories(rng, n, n_queries, 6, n_levels)),
                (n_queries, n_levels, n_bits + 1),
                before=n_bits % 3,
            )
            assert added.sum() == n_queries * n
            assert added[0, -1].any()


@given(
    st.integers(1, 9),
    st.integers(1, 700),
    st.integers(1, 12),
    st.integers(2, 6),
    st.sampled_from([1, 12, 63, 64, 65, 128, 200]),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=150)
def test_any_categories_and_levels(n_queries, n, n_categories, n_levels, n_bits, random_state):
    rng = np.random.default_rng(random_state)
    queries, database = random_words(rng, n_queries, n_bits), random_words(rng, n, n_bits)
    arguments = random_categories(rng, n, n_queries, n_categories, n_levels)
    for kernel in category_kernels_for(n_bits):
        added = assert_same(
            kernel,
            reference.count_categories,
            (queries, planes_of(database), *arguments),
            (n_queries, n_levels, n_bits + 1),
            before=2,
        )
        assert (added.sum(axis=(1, 2)) == n).all()


ranges = st.sampled_from(["empty", "whole", "left", "right", "middle", "empty at the end"])


def range_of(kind, n):
    a, b = n // 3, 2 * n // 3
    return {
        "empty": (0, 0),
        "whole": (0, n),
        "left": (0, a),
        "right": (b, n),
        "middle": (a, b),
        "empty at the end": (n, n),
    }[kind]


@given(
    st.lists(ranges, min_size=1, max_size=9),
    st.sampled_from([1, 12, 63, 64, 65, 128, 200]),
    st.integers(1, 700),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=150)
def test_ranges_may_differ_or_agree_within_a_quad(kinds, n_bits, n, random_state):
    # Queries with one range go together, three or four of them; others are moved one by one.  700
    # items are more than a block of long codes and several tiles.
    rng = np.random.default_rng(random_state)
    queries, database = random_words(rng, len(kinds), n_bits), random_words(rng, n, n_bits)
    bounds = np.array([range_of(kind, n) for kind in kinds], np.int64)
    starts, stops = map(np.ascontiguousarray, bounds.T)
    arguments = queries, planes_of(database), starts, stops
    for kernel in range_kernels_for(n_bits):
        added = assert_same(
            kernel,
            reference.count_ranges,
            arguments,
            (len(kinds), 2, n_bits + 1),
            before=2,
        )
        assert added.sum() == len(kinds) * n


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("n_queries", range(1, 10))
def test_equal_ranges_with_any_number_of_queries(name, n_queries):
    rng = np.random.default_rng(n_queries)
    queries, database = random_words(rng, n_queries, 64), random_words(rng, 30, 64)
    starts, stops = np.full(n_queries, 5), np.full(n_queries, 17)
    added = assert_same(
        RANGES[name],
        reference.count_ranges,
        (queries, planes_of(database), starts, stops),
        (n_queries, 2, 65),
        before=1,
    )
    assert added[:, 1].sum() == n_queries * 12


@pytest.mark.parametrize(("n_bits", "n"), [(128, 20_000), (65, 16_385), (4096, 600), (64, 40_000)])
def test_more_items_than_a_tile_holds(n_bits, n):
    rng = np.random.default_rng(n)
    queries, database = random_words(rng, 5, n_bits), random_words(rng, n, n_bits)
    starts, stops = np.array([0, n - 5, 100, n, n // 2]), np.array([n, n, n - 100, n, n // 2 + 1])
    categories, begins, tags, masks, graded = random_categories(rng, n, 5, 3, 3)
    tags[2] = 0
    planes = planes_of(database)
    for kernel in range_kernels_for(n_bits):
        added = assert_same(
            kernel,
            reference.count_ranges,
            (queries, planes, starts, stops),
            (5, 2, n_bits + 1),
            before=0,
        )
        assert added[:, 1].sum(axis=1).tolist() == (stops - starts).tolist()
    for kernel in category_kernels_for(n_bits):
        added = assert_same(
            kernel,
            reference.count_categories,
            (queries, planes, categories, begins, tags, masks, graded),
            (5, 3, n_bits + 1),
            before=0,
        )
        assert added[2, 0].sum() == n


@pytest.mark.parametrize("name", RANGES)
def test_more_equal_items_than_a_short_counter_holds(name):
    # Runs of equal items, longer than 16 bits count, inside and outside of ranges that differ.
    rng = np.random.default_rng(6)
    queries, some = random_words(rng, 4, 64), random_words(rng, 3, 64)
    some[0] = queries[0]  # its distance is the first counter of all
    lengths = np.array([140_001, 66_000, 65_537])
    planes = planes_of(np.repeat(some, lengths, axis=0))
    starts, stops = np.array([0, 70_000, 141_000, 0]), np.array([66_000, 141_000, 141_000, 271_538])
    counts, expected = np.zeros((4, 2, 65), np.uint32), np.zeros((4, 2, 65), np.uint32)
    RANGES[name](queries, planes, starts, stops, counts)
    ends = np.cumsum(lengths)
    for q in range(4):
        for item, first, last in zip(some, ends - lengths, ends, strict=True):
            inside = max(0, min(last, stops[q]) - max(first, starts[q]))
            d = slow_distance(queries[q], item)
            expected[q, :, d] += np.array([last - first - inside, inside], np.uint32)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("n_bits", [1, 64, 65, 130])
@pytest.mark.parametrize("value", [False, True])
def test_the_nearest_and_the_farthest_distance_have_a_place(n_bits, value):
    queries = planes_of(random_words(np.random.default_rng(0), 5, n_bits)).T.copy() * 0
    bits = np.zeros((1, -(-n_bits // 64) * 64), bool)
    bits[:, :n_bits] = value
    item = np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    planes = planes_of(np.repeat(item, 11, axis=0))
    for kernel in range_kernels_for(n_bits):
        counts = np.zeros((5, 2, n_bits + 1), np.uint32)
        kernel(queries, planes, np.full(5, 2), np.full(5, 5), counts)
        assert counts[:, :, n_bits if value else 0].tolist() == [[8, 3]] * 5
        assert counts.sum() == 55


@pytest.mark.parametrize("n_bits", [64, 128, 255, 256])
def test_items_at_every_distance_up_to_the_complement(n_bits):
    # Vector kernels cannot tell the greatest distances apart and must notice them.
    rng = np.random.default_rng(n_bits)
    queries = random_words(rng, 6, n_bits)
    flips = np.tri(n_bits + 1, -(-n_bits // 64) * 64, -1, dtype=bool)
    flips = np.packbits(flips, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    database = np.concatenate([queries[:1] ^ flips, random_words(rng, 300, n_bits)])
    starts, stops = np.full(6, 0), np.full(6, n_bits + 1)
    categories, begins, tags, masks, graded = random_categories(rng, len(database), 6, 5, 3)
    for kernel in range_kernels_for(n_bits):
        added = assert_same(
            kernel,
            reference.count_ranges,
            (queries, planes_of(database), starts, stops),
            (6, 2, n_bits + 1),
            before=0,
        )
        assert (added[0, 1] == 1).all()
    for kernel in category_kernels_for(n_bits):
        assert_same(
            kernel,
            reference.count_categories,
            (queries, planes_of(database), categories, begins, tags, masks, graded),
            (6, 3, n_bits + 1),
            before=0,
        )


def test_many_tags_are_shared_alike(monkeypatch):
    rng = np.random.default_rng(3)
    queries, database = random_words(rng, 11, 30), random_words(rng, 500, 30)
    categories, starts, *_ = random_categories(rng, 500, 11, 20, 3)
    tags, masks = random_words(rng, 11, 300), planes_of(random_words(rng, 20, 300))
    arguments = queries, planes_of(database), categories, starts, tags, masks, True
    shape = (11, 301, 31)
    for most in (0, 1 << 25):
        if registers.has_avx2():
            monkeypatch.setattr(avx2, "MOST_TAGS", most)
        for kernel in category_kernels_for(30):
            assert_same(kernel, reference.count_categories, arguments, shape, 1)


def test_a_processor_without_avx2_gets_the_portable_kernels(monkeypatch):
    monkeypatch.setattr(registers.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(registers, "processor_has", lambda feature: True)
    assert count.kernels_for(4, most_words=4) is avx2
    assert count.kernels_for(5, most_words=4) is portable
    assert count.range_kernels_for(1) is avx512
    assert count.range_kernels_for(2) is avx2
    monkeypatch.setattr(registers.config, "CPU_NAME", "generic")
    assert not registers.has_avx2()
    assert count.range_kernels_for(1) is portable
    assert count.kernels_for(1, most_words=4) is portable
    monkeypatch.setattr(registers.config, "CPU_NAME", None)
    monkeypatch.setattr(registers.platform, "machine", lambda: "aarch64")
    assert not registers.has_avx2()


@pytest.mark.parametrize("n_words", [1, 3, 5])
def test_the_public_kernels_choose_and_count(n_words):
    rng = np.random.default_rng(n_words)
    queries, database = random_words(rng, 4, 64 * n_words), random_words(rng, 300, 64 * n_words)
    shape = 4, 2, 64 * n_words + 1
    bounds = np.array([0, 7, 100, 300]), np.array([300, 9, 200, 300])
    arguments = queries, planes_of(database), *bounds
    added = assert_same(count.count_ranges, reference.count_ranges, arguments, shape, before=1)
    assert added.sum() == 4 * 300
    arguments = queries, planes_of(database), *random_categories(rng, 300, 4, 6, 2)
    twin = reference.count_categories
    assert assert_same(count.count_categories, twin, arguments, shape, before=1).sum() == 4 * 300


@pytest.mark.parametrize("name", RANGES)
def test_no_items_add_nothing(name):
    queries = random_words(np.random.default_rng(0), 5, 64)
    counts = np.full((5, 2, 65), 3, np.uint32)
    nothing = np.zeros(5, np.int64)
    RANGES[name](queries, np.zeros((1, 0), np.uint64), nothing, nothing, counts)
    assert (counts == 3).all()


@pytest.mark.parametrize("n_bits", [1, 12, 64, 65, 130, 300])
def test_move_listed_equals_its_twin(n_bits):
    rng = np.random.default_rng(n_bits)
    queries, database = random_words(rng, 7, n_bits), random_words(rng, 30, n_bits)
    sizes = np.array([0, 3, 30, 1, 0, 5, 0])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    items = np.concatenate([np.sort(rng.choice(30, size, replace=False)) for size in sizes])
    levels = rng.integers(1, 4, len(items)).astype(np.uint16)
    added = assert_same(
        portable.move_listed,
        reference.move_listed,
        (queries, database, offsets, items, levels),
        (7, 4, n_bits + 1),
        before=100,
    )
    assert added.sum() == 0  # moved, not made
    assert (-added[:, 0].sum(axis=1)).tolist() == sizes.tolist()
    assert np.bincount(levels, minlength=4)[1:].tolist() == added[:, 1:].sum(axis=(0, 2)).tolist()


@pytest.mark.parametrize("n_bits", [1, 12, 64, 65, 130, 300])
def test_remove_listed_equals_its_twin(n_bits):
    rng = np.random.default_rng(n_bits)
    queries, database = random_words(rng, 5, n_bits), random_words(rng, 30, n_bits)
    items, levels = np.array([3, -1, 29, 0, -1]), np.array([0, 1, 1, 2, 0])
    added = assert_same(
        portable.remove_listed,
        reference.remove_listed,
        (queries, database, items, levels),
        (5, 3, n_bits + 1),
        before=7,
    )
    assert added.sum(axis=2).tolist() == [[-1, 0, 0], [0, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0]]


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("n_tags", [1, 5, 64, 65, 200])
def test_shared_tags_equals_its_twin_and_counting_by_hand(n_tags, graded):
    rng = np.random.default_rng(n_tags)
    query_masks, masks = random_words(rng, 6, n_tags), random_words(rng, 9, n_tags)
    query_masks[0], masks[0] = 0, masks[1]
    query_masks[1, 0] |= np.uint64(1)
    masks[2, 0] |= np.uint64(1)
    levels, twin = np.full((6, 9), 77, np.uint16), np.full((6, 9), 77, np.uint16)
    portable.shared_tags(query_masks, planes_of(masks), graded, levels)
    reference.shared_tags(query_masks, planes_of(masks), graded, twin)
    for q in range(6):
        for c in range(9):
            words = zip(query_masks[q], masks[c], strict=True)
            shared = sum((int(a) & int(b)).bit_count() for a, b in words)
            assert levels[q, c] == twin[q, c] == (shared if graded else shared > 0)
    assert levels[1:].any()
