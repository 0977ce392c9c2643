import os
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from types import ModuleType

import pytest
from processes import seconds

from bittern.errors import BitternError, InputError
from bittern.parallel import (
    ProcessEndedError,
    Processes,
    _Worker,
    available_threads,
    run_blocks,
    run_tasks,
)


@pytest.mark.parametrize("n_threads", [1, 2, 5, None])
def test_every_block_is_worked_once_and_reported_once(n_threads):
    worked, reported = [], []
    run_blocks(worked.append, range(40), n_threads, reported.append)
    assert sorted(worked) == list(range(40))
    assert sorted(reported) == list(range(40))


def test_no_blocks_are_no_work():
    run_blocks(lambda block: pytest.fail("there is nothing to do"), [], 2)


def test_reports_come_in_the_thread_of_the_caller():
    threads = set()
    run_blocks(lambda _: None, range(9), 2, lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_a_report_comes_after_its_own_work():
    worked = set()

    def after(block):
        assert block in worked

    run_blocks(worked.add, range(40), 2, after)
    assert len(worked) == 40


def test_blocks_run_at_the_same_time_on_two_threads():
    both = threading.Barrier(2, timeout=seconds(10))  # one thread alone would break it
    run_blocks(lambda _: both.wait() and None, range(2), 2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_first_error_cancels_what_has_not_begun(n_threads):
    begun = []

    def work(block):
        begun.append(block)
        time.sleep(0.005)
        if block == 0:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_blocks(work, range(1000), n_threads)
    assert 0 < len(begun) < 100


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_in_a_report_cancels_what_has_not_begun(n_threads):
    begun = []

    def work(block):
        begun.append(block)
        time.sleep(0.005)

    def after(block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_blocks(work, range(1000), n_threads, after)
    assert 0 < len(begun) < 100


def test_an_interrupt_while_threads_begin_cancels_what_has_not_begun(monkeypatch):
    worked, begun = [], []
    submit = ThreadPoolExecutor.submit

    def interrupted(*given):
        begun.append(submit(*given))
        if len(begun) == 2:
            raise KeyboardInterrupt

    def work(block):
        worked.append(block)
        time.sleep(0.005)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_blocks(work, range(1000), 3)
    assert len(worked) < 500


def test_threads_are_counted_or_taken_as_asked():
    assert available_threads(3) == 3
    assert available_threads() >= 1
    with pytest.raises(InputError, match="n_threads must be at least 1, got 0"):
        available_threads(0)


def squarer():
    return square


def square(number):
    """Squares; some numbers are special."""
    if number == 2:
        os._exit(3)
    if number == 3:
        raise InputError("three is refused")
    if number == 4:
        raise Unsendable(1, 2)
    if number == 5:
        return available_threads(), os.environ["OMP_NUM_THREADS"], os.getpid()
    return number**2


class Unsendable(Exception):
    """What cannot be pickled: it takes more arguments than it keeps."""

    def __init__(self, one, two):
        super().__init__(one + two)


def failing():
    raise InputError("nothing to work with")


def exiting():
    os._exit(1)


@pytest.mark.slow  # each process imports NumPy
def test_a_process_that_dies_takes_only_its_task():
    outcomes = {o.task: o for o in run_tasks(squarer, range(8), 2, owner="test", threads=6)}
    assert len(outcomes) == 8
    assert [outcomes[n].result for n in (0, 1, 6, 7)] == [0, 1, 36, 49]
    assert isinstance(outcomes[2].error, ProcessEndedError)
    assert "exit code 3; use fewer jobs" in str(outcomes[2].error)
    assert (
        isinstance(outcomes[3].error, InputError) and str(outcomes[3].error) == "three is refused"
    )
    assert str(outcomes[4].error) == "Unsendable: 3"
    threads, blas_threads, pid = outcomes[5].result
    assert (threads, blas_threads) == (6, "1") and pid != os.getpid()


@pytest.mark.slow
def test_an_error_of_preparing_is_raised():
    with pytest.raises(InputError, match="nothing to work with"):
        list(run_tasks(failing, range(3), 2, owner="test"))
    with pytest.raises(
        BitternError, match=r"test: a process ended before its first task; .*call test\(\)"
    ):
        list(run_tasks(exiting, range(3), 2, owner="test"))


@pytest.mark.slow
def test_a_process_that_dies_idle_loses_nothing():
    worker = _Worker.start(squarer, "test", 1)
    assert worker.receive() is None and worker.is_ready
    worker.begin(7)
    assert worker.receive().result == 49
    worker.process.kill()
    assert worker.receive() is None and worker.is_gone
    worker.stop()


def writer():
    return slow_write


def slow_write(path):
    path.with_suffix(".begun").touch()
    while path.name == "b" and not path.with_name("c.begun").exists():
        time.sleep(0.01)
    time.sleep(1 if path.name == "c" else 0)
    path.write_text("done")


@pytest.mark.slow
@pytest.mark.parametrize("finish_begun", [False, True])
def test_tasks_that_have_begun_are_finished_if_asked(tmp_path, finish_begun):
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    outcomes = run_tasks(writer, paths, 1, owner="test", finish_begun=finish_begun)
    assert next(outcomes).task == paths[0]
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt)  # nothing has begun: the second is sent on the next step
    assert [path.exists() for path in paths] == [True, False, False]
    outcomes = run_tasks(writer, paths[1:], 2, owner="test", finish_begun=finish_begun)
    next(outcomes)
    outcomes.close()
    assert sum(path.exists() for path in paths[1:]) == (2 if finish_begun else 1)


@pytest.mark.slow  # each process imports NumPy
def test_what_a_process_cannot_import_is_said_in_a_sentence(monkeypatch):
    module = ModuleType("only_here")
    exec("def prepare(): return abs", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(BitternError, match=r"cannot load .*'only_here'.* in a module which can be"):
        list(run_tasks(module.prepare, [1], 1, owner="test"))


@pytest.mark.slow
def test_an_executor_of_processes_gives_results_and_errors():
    with Processes(2, owner="test") as pool:
        found = [pool.submit(square, number) for number in (0, 3, 6, 7, 5)]
        assert [found[n].result() for n in (0, 2, 3)] == [0, 36, 49]
        with pytest.raises(InputError, match="three is refused"):
            found[1].result()
        threads, blas_threads, pid = found[4].result()
    assert (threads, blas_threads) == (1, "1")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_a_process_that_dies_breaks_its_executor():
    with Processes(1, owner="test") as pool:
        lost, later = pool.submit(square, 2), pool.submit(square, 6)
        for one in (lost, later):
            with pytest.raises(BrokenExecutor, match="exit code 3"):
                one.result()


@pytest.mark.slow
def test_an_interrupt_ends_an_executor_of_processes(tmp_path):
    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt), Processes(1, owner="test") as pool:
        asleep, waiting = pool.submit(sleep_long, begun), pool.submit(square, 6)
        end = time.monotonic() + seconds(10)
        while not begun.exists() and time.monotonic() < end:
            time.sleep(0.01)
        before = time.monotonic()
        raise KeyboardInterrupt
    assert time.monotonic() - before < seconds(5)
    assert waiting.cancelled() and isinstance(asleep.exception(), BrokenExecutor)


def sleep_long(begun):
    begun.touch()
    time.sleep(600)
