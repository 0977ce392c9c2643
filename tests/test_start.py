"""What starts quickly: small work by NumPy alone, commands that load little, and warm-up."""

import math
import os
import subprocess
import sys
from fnmatch import fnmatch

import numpy as np
import pytest
from processes import run_python

import bittern as bt
from bittern.cli import app
from bittern.features.catalogue import BUILT_IN, FEATURES, listed
from bittern.kernels import small, ties

HEAVY = ["numba", "sklearn", "scipy", "torch", "matplotlib", "pandas"]
METRICS = [
    "ap",
    "ap@7",
    "ap:optimistic",
    "ap:pessimistic",
    "precision@10",
    "recall@3",
    "r-precision",
]


def both(monkeypatch, work):
    """What NumPy alone gives, and what the kernels give."""
    results = []
    for spent in (-math.inf, math.inf):
        monkeypatch.setattr(small, "_spent", spent)
        results.append(work())
    return results


def random_truths(rng, n_queries, n_items):
    labels = rng.integers(0, 4, n_queries), rng.integers(0, 5, n_items)
    tags = rng.random((n_queries, 70)) < 0.05, rng.random((n_items, 70)) < 0.05
    gains = rng.integers(0, 4, (n_queries, n_items)) * (rng.random((n_queries, n_items)) < 0.1)
    return {
        "classes": bt.Relevance.from_classes(*labels),
        "tags": bt.Relevance.from_tags(*tags),
        "graded": bt.Relevance.from_tags(*tags, graded=True),
        "lists": bt.Relevance.from_matrix(gains),
    }


@pytest.mark.parametrize("kind", ["classes", "tags", "graded", "lists"])
@pytest.mark.parametrize("n_bits", [1, 64, 300])
def test_small_inputs_have_the_counts_and_metrics_of_the_kernels(monkeypatch, kind, n_bits):
    rng = np.random.default_rng(n_bits)
    queries, items = (bt.Codes.from_bits(rng.random((n, n_bits)) < 0.5) for n in (37, 501))
    truth = random_truths(rng, 37, 501)[kind]
    for one in (truth, truth.excluding(rng.integers(-1, 501, 37))):
        few, many = both(monkeypatch, lambda one=one: bt.TieProfile.from_codes(queries, items, one))
        np.testing.assert_array_equal(few.counts, many.counts)
        assert few.counts.dtype == many.counts.dtype and few.counts.strides == many.counts.strides
        assert few.counts.sum() == 37 * 501 - (0 if one is truth else (one.excluded >= 0).sum())
        own, theirs = both(monkeypatch, lambda p=many: bt.evaluate(p, METRICS))
        for name in METRICS:  # to the last bit
            np.testing.assert_array_equal(own[name].per_query, theirs[name].per_query)


def test_small_sums_over_ties_are_those_of_the_kernels_to_the_last_bit():
    rng = np.random.default_rng(0)
    total = rng.choice([0, 1, 2, 17, 300, 100_000], (200, 12))
    relevant = rng.binomial(total, rng.choice([0.0, 0.01, 0.5, 1.0], (200, 12)))
    cutoffs = rng.integers(1, total.sum(axis=1) + 5)
    cutoffs[::3] = np.iinfo(np.int64).max
    for name in ("sum_precisions", "count_found"):
        out = np.empty(200)
        getattr(ties, name)(total, relevant, cutoffs, out)
        np.testing.assert_array_equal(getattr(small, name)(total, relevant, cutoffs), out)
        assert out.max() > 1


@pytest.mark.parametrize("kind", [bt.FlatIndex, bt.MultiIndex])
@pytest.mark.parametrize("n_bits", [7, 130, 300])
def test_small_searches_find_what_the_kernels_find(monkeypatch, kind, n_bits):
    rng = np.random.default_rng(n_bits)
    index = kind(bt.Codes.from_bits(rng.random((300, n_bits)) < 0.5))
    index.remove([3, 77])
    queries = bt.Codes.from_bits(rng.random((20, n_bits)) < 0.5)
    for where in (None, np.arange(0, 300, 2)):
        for search in (
            lambda where=where: index.search(queries, 10, where=where),
            lambda where=where: index.search(queries, 1000, where=where),
            lambda where=where: index.within(queries, n_bits // 3, where=where),
            lambda where=where: index.within(queries, 0, where=where),
        ):
            few, many = both(monkeypatch, search)
            assert few.to_lists() == many.to_lists()
            assert few.ids.dtype == many.ids.dtype and few.distances.dtype == many.distances.dtype


def test_work_is_small_until_the_budget_is_spent(monkeypatch):
    monkeypatch.setattr(small, "_spent", 0.0)
    monkeypatch.setattr(small, "is_compiled", lambda kernels: kernels == small.TIES)
    assert small.is_small(0.6 * small.BUDGET, small.TIES)
    assert not small.is_small(0.6 * small.BUDGET, small.TIES)
    assert not small.is_small(0.0, small.TIES)  # the kernels are loaded now
    assert small.is_small(0.8 * small.FIRST_BUDGET, small.SCANS)  # these would be compiled first
    assert not small.is_small(0.8 * small.FIRST_BUDGET, small.SCANS)
    assert not small.is_small(0.0, small.COUNTING)
    monkeypatch.setattr(small, "_spent", 0.0)
    small.use_kernels()
    assert not small.is_small(0.0, small.SCANS)


def test_scans_replace_the_compiler_until_they_would_have_taken_longer(monkeypatch):
    monkeypatch.setattr(small, "_scanned", 0.0)
    monkeypatch.setattr(small, "is_compiled", lambda kernels: False)
    words = np.zeros((1000, 2), np.uint64)
    n_queries = int(0.6 * small.COMPILING / (words.size * small.SCANNED_WORD))
    assert small.is_scanned_sooner(n_queries, words)
    assert not small.is_scanned_sooner(n_queries, words)
    assert not small.is_scanned_sooner(1, words)  # the tables are there now
    monkeypatch.setattr(small, "_scanned", 0.0)
    monkeypatch.setattr(small, "is_compiled", lambda kernels: kernels == small.SEGMENTS)
    assert not small.is_scanned_sooner(1, words)


def test_a_first_search_scans_and_finds_what_the_tables_find(monkeypatch):
    monkeypatch.setattr("bittern.index.multi_index.FEWEST", 1)
    monkeypatch.setattr(small, "is_compiled", lambda kernels: False)
    rng = np.random.default_rng(0)
    index = bt.MultiIndex(bt.Codes.from_bits(rng.random((3000, 64)) < 0.5))
    queries = bt.Codes.from_bits(rng.random((30, 64)) < 0.5)
    found = []
    for scanned in (0.0, math.inf):
        monkeypatch.setattr(small, "_scanned", scanned)
        found.append((index.search(queries, 7).to_lists(), index.within(queries, 20).to_lists()))
        assert (index._tables is None) == (scanned == 0.0)
    assert found[0] == found[1] and any(found[0][1])


@pytest.mark.parametrize(
    ("kernels", "file"),
    [
        (small.TIES, "kernels_0f08/ties.count_found-64.py311.nbi"),
        (small.COUNTING, "count_0f08/avx2._count_ranges_of_three-122.py311.nbi"),
        (small.COUNTING, "count_0f08/portable.count_ranges-80.py311.nbi"),
        (small.SCANS, "kernels_0f08/scan_avx2.find_nearest-75.py311.nbi"),
        (small.SCANS, "kernels_0f08/scan.find_within-78.py311.nbi"),
        (small.SEGMENTS, "kernels_0f08/multi_index.find_nearest-75.py311.nbi"),
    ],
)
def test_compiled_code_is_found_where_numba_keeps_it(monkeypatch, tmp_path, kernels, file):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not small.is_compiled.__wrapped__(kernels)
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).touch()
    names = (small.TIES, small.COUNTING, small.SCANS, small.SEGMENTS)
    assert [one for one in names if small.is_compiled.__wrapped__(one)] == [kernels]


def test_the_kernels_are_called_what_numba_calls_their_files(monkeypatch):
    """The names are those of functions that exist."""
    from bittern.kernels import count, multi_index, scan, scan_avx2
    from bittern.kernels.count import avx2, portable

    for pattern, modules in {
        small.TIES: [ties],
        small.COUNTING: [avx2, portable],
        small.SCANS: [scan, scan_avx2],
        small.SEGMENTS: [multi_index],
    }.items():
        for module in modules:
            package = "" if module.__name__.count(".") == 2 else f"{count.__name__.split('.')[-1]}/"
            short = module.__name__.split(".")[-1]
            kernels = [name for name, it in vars(module).items() if hasattr(it, "signatures")]
            assert any(fnmatch(f"{package}{short}.{name}", pattern) for name in kernels)


LOADED = f"""
import sys
from bittern.cli import main
sys.argv = ["bittern", *sys.argv[1:]]
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
print("loaded:", *[name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["-V"], ["data", "list"], ["features", "list"]], ids=" ".join
)
def test_lists_load_no_heavy_library(words):
    printed = run_python(LOADED, *words)
    assert len(printed.splitlines()) > 1
    assert printed.endswith("\nloaded:")


def test_a_small_evaluation_loads_no_heavy_library(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("q", 30), ("d", 400)):
        labels = rng.integers(0, 3, n)
        np.savez(tmp_path / f"{name}.npz", codes=rng.random((n, 64)) < 0.5, labels=labels)
    printed = run_python(LOADED, "evaluate", tmp_path / "q.npz", tmp_path / "d.npz")
    assert "auprc" in printed and printed.endswith("\nloaded:")


def test_a_small_search_loads_no_heavy_library():
    script = f"""
    import sys, bittern as bt
    codes = bt.Codes.from_bits([[0, 0], [1, 1], [0, 1]])
    print(bt.MultiIndex(codes).search(codes[:1], 2).to_lists())
    print([name for name in {HEAVY} if name in sys.modules])
    """
    assert run_python(script) == "[[(0, 0), (2, 1)]]\n[]"


def test_the_first_page_of_the_explorer_loads_no_heavy_library(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((50, 4))
    hasher = bt.hashing.LSH(n_bits=8, random_state=0).fit(vectors)
    with bt.store.create(tmp_path / "rows.bittern", hasher=hasher) as made:
        made.add(vectors, metadata={"label": ["a"] * 50})
    script = f"""
    import sys
    from starlette.testclient import TestClient
    from bittern.cli.explore import opened
    with opened(sys.argv[1], hosts=("127.0.0.1",)) as app:
        client = TestClient(app, base_url="http://127.0.0.1")
        asked = "/search", "/view/info", "/items?size=24", "/view/search?item=3"
        print([client.get(one).status_code for one in asked])
    print([name for name in {HEAVY} if name in sys.modules])
    """
    printed = run_python(script, tmp_path / "rows.bittern")
    assert printed == "[200, 200, 200, 200]\n[]"


def test_the_list_of_commands_is_complete(run):
    code, printed, _ = run("--help")
    assert code == 0
    for info in app.registered_commands:
        name = info.name or info.callback.__name__
        assert f"\n  {name} " in printed
        assert " ".join(info.callback.__doc__.split())[:30] in " ".join(printed.split())
    for info in app.registered_groups:
        assert f"\n  {info.name} " in printed
    assert "..." not in printed.partition("Commands:")[2]  # no summary is cut


def test_the_list_of_features_says_what_the_classes_say():
    assert list(BUILT_IN) == [one.name for one in listed()] == list(FEATURES)
    for one in listed():
        kind = FEATURES[one.name]
        assert kind.name == one.name and kind.takes == one.takes
        assert one.summary == kind.__doc__.splitlines()[0]


WARM_UP = """
import sys
import numpy as np
from bittern.cli import main, warm_up
def one():
    from bittern.kernels import ties
    ties.count_found(np.ones((1, 2), int), np.ones((1, 2), int), np.ones(1, int), np.empty(1))
warm_up.STEPS = {part: [one] for part in warm_up.Part}
sys.argv = ["bittern", "warm-up"]
main()
"""


def test_warm_up_compiles_once_and_says_where(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def warm_up():
        command = [sys.executable, "-c", WARM_UP]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first, second = warm_up(), warm_up()
    assert first.startswith("Compiled 1 loop in ") and str(tmp_path) in first
    assert second.startswith("Everything is compiled already. ") and " MB in " in second


def test_warm_up_refuses_a_folder_that_cannot_be_written(run, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    code, _, complaint = run("warm-up")
    assert code == 2
    assert complaint.count("\n") == 1 and "set NUMBA_CACHE_DIR to a folder that can" in complaint


def test_compiled_code_that_is_damaged_is_named(run, monkeypatch, tmp_path):
    from numba.core.caching import IndexDataCacheFile

    (tmp_path / "kernel.nbi").write_bytes(b"\xdc" * 40)
    kept = IndexDataCacheFile(str(tmp_path), "kernel", 0)
    monkeypatch.setattr("bittern.io.kinds.describe", lambda _: kept.load("a key"))
    code, _, said = run("evaluate", tmp_path / "kernel.nbi", "--query-labels", "x")
    assert code == 2
    assert f"{tmp_path}: compiled code is damaged; delete this folder, and try again" in said


def test_kernels_that_cannot_be_kept_are_explained(run, monkeypatch):
    def refuse():
        raise RuntimeError("cannot cache function 'popcount': no locator available for file 'x'")

    monkeypatch.setattr("bittern.cli.warm_up._check_folder", refuse)
    code, _, complaint = run("warm-up")
    assert code == 2
    assert complaint.count("\n") == 1 and "NUMBA_CACHE_DIR" in complaint
