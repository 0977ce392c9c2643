import threading
import time

import pytest

from bittern.errors import InputError
from bittern.parallel import available_threads, run_blocks


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
    both = threading.Barrier(2, timeout=10)  # one thread alone would break it
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


def test_threads_are_counted_or_taken_as_asked():
    assert available_threads(3) == 3
    assert available_threads() >= 1
    with pytest.raises(InputError, match="n_threads must be at least 1, got 0"):
        available_threads(0)
