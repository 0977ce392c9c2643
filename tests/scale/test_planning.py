"""The cost model: its arithmetic by hand, and the fit of its constants."""

import numpy as np
import pytest

import bittern as bt
from bittern.scale import Costs, Measurement

COSTS = Costs(pair=1e-9, item=1e-7, task=0.5, cell=1e-6, adding=1e-7, message=2e-3, byte=1e-8)


def test_worked_example_on_one_core():
    found = bt.scale.plan(10_000_000, 64, 100, shard_size=1_000_000, costs=COSTS)
    # 10⁹ pairs are 1 s, 10⁷ items 1 s, 10 tasks 5 s; 10 × 100 × 65 × 2 cells are .13 s.
    assert found.processor_seconds == pytest.approx(7.13)
    assert found.seconds == pytest.approx(7.13)
    assert found.n_shards == 10
    assert found.driver_seconds == pytest.approx(0.013)  # a tenth of the cells' time
    assert found.transfer == 0  # nothing leaves the machine
    assert found.disk == 160_000_000  # 8 bytes of code and 8 of label


def test_worked_example_on_a_cluster():
    found = bt.scale.plan(10_000_000, 128, 100, 2, cores=2, shard_size=1_000_000, costs=COSTS)
    # Codes of two words: 2 s of pairs, 1.5 s of items (24 bytes for 16), 5 s of tasks, and cells,
    # nine tenths of whose time are in the tasks.  Ten tasks on four cores are three waves.
    cells = 10 * 100 * 129 * 2
    of_tasks = 8.5 + cells * 9e-7
    assert found.seconds == pytest.approx(0.3 * of_tasks)
    assert found.transfer == 4 * cells
    assert found.driver_seconds == pytest.approx(cells * 1e-7 + 10 * 2e-3 + 4 * cells * 1e-8)
    assert found.processor_seconds == pytest.approx(of_tasks + found.driver_seconds)


def test_profiles_that_wait_for_their_neighbour_take_memory():
    few, many = (bt.scale.plan(10**9, 64, 1000, machines, costs=COSTS) for machines in (1, 101))
    assert many.driver_memory - few.driver_memory == 100 * 8 * 1000 * 65 * 2
    two = bt.scale.plan(2, 64, 1000, 100, shard_size=1, costs=COSTS)
    assert two.driver_memory < few.driver_memory  # no more than there are shards


def test_adding_up_is_the_limit_of_many_machines():
    few, many = (
        bt.scale.plan(10**9, 64, 10_000, machines, costs=COSTS) for machines in (5, 10_000)
    )
    assert many.seconds == many.driver_seconds < few.seconds


def test_costs_are_found_again_from_what_they_make():
    rng = np.random.default_rng(0)
    measured = []
    for n, size, queries in rng.integers(
        (10**5, 10**4, 10), (10**7, 10**6, 3000), (12, 3)
    ).tolist():
        seconds = bt.scale.plan(n, 64, queries, shard_size=size, costs=COSTS).processor_seconds
        measured.append(Measurement(n, 64, queries, min(size, n), seconds))
    found = Costs.fitted(measured, COSTS)
    for name in ("pair", "item", "task", "cell", "adding", "message", "byte"):
        assert getattr(found, name) == pytest.approx(getattr(COSTS, name), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bt.scale.plan(0, 64, 1), "n must be"),
        (lambda: bt.scale.plan(1, 0, 1), "n_bits"),
        (lambda: bt.scale.plan(1, 64, 1, machines=0), "machines"),
        (lambda: Costs.fitted([], COSTS), "at least 4 measurements, got 0"),
    ],
)
def test_wrong_calls_say_so(call, message):
    with pytest.raises(bt.InputError, match=message):
        call()


def test_the_command_says_how_long_and_how_much(run):
    code, printed, _ = run("shards", "plan", "1e9", "--queries", "1000", "--machines", "4")
    assert code == 0
    assert "1,000, on 4 cores" in printed
    assert "16 GB" in printed
    for wrong in ("1.5", "inf", "nan"):
        code, _, complaint = run("shards", "plan", wrong)
        assert code == 2
        assert "must be whole" in complaint
