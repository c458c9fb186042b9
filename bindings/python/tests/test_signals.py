"""Handlers of signals that raise: whatever moment they choose, no lock stays held."""

import random
import signal
import sys
import threading

import pytest

from lockflight import Mutex, Semaphore, SharedMutex, all_of

ROUNDS = 2000


class Tick(Exception):
    pass


@pytest.fixture
def ticks():
    """A function that has Tick raised once, some microseconds later."""

    def raise_tick(*_):
        raise Tick

    before = signal.signal(signal.SIGALRM, raise_tick)
    choose = random.Random(58)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-6, 1e-4))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


FORMS = {
    "mutex": lambda lock: lock,
    "within": lambda lock: lock.within(60),
    "shared": lambda lock: lock.shared(),
    "shared within": lambda lock: lock.shared().within(60),
    "all_of": lambda lock: all_of(lock, Semaphore("s", 2, lock.domain), "b", domain=lock.domain),
    "reentrant": lambda lock: Mutex("a", lock.domain, reentrant=True),
}


@pytest.mark.skipif(
    sys.version_info < (3, 10),
    reason="Python 3.9 runs handlers between a block and the call of __exit__",
)
@pytest.mark.parametrize("rivals", [0, 1])
@pytest.mark.parametrize("form", FORMS)
def test_an_exception_at_any_moment(domain, ticks, form, rivals):
    lock = SharedMutex("a", domain=domain)
    way, is_over = FORMS[form](lock), threading.Event()

    def hold_now_and_then():
        while not is_over.is_set():
            with lock:
                is_over.wait(2e-5)
            is_over.wait(2e-5)

    threads = [threading.Thread(target=hold_now_and_then, daemon=True) for _ in range(rivals)]
    for each in threads:
        each.start()
    try:
        for _ in range(ROUNDS // (1 + 4 * rivals)):
            try:
                ticks()
                while True:
                    with way:
                        if form == "reentrant":
                            with way:
                                pass
            except Tick:
                pass
            assert not (way if form == "reentrant" else lock).held
    finally:
        is_over.set()
        for each in threads:
            each.join(10)  # it waits for ever if the lock stays held
    assert [use for each in lock.domain.locks() for use in each.uses] == []
    with lock:
        assert not lock.owner_died


def test_exit_in_a_handler(domain):
    """The exception ends a wait for the second of two locks, and frees the first."""
    a, b = Mutex("a", domain=domain), Mutex("b", domain=domain)
    held, ends = threading.Event(), threading.Event()

    def hold():
        with b:
            held.set()
            ends.wait()

    def leave(*_):
        raise SystemExit(7)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    before = signal.signal(signal.SIGALRM, leave)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(SystemExit), all_of(a, b).within(60):
            raise AssertionError("it is held")
        assert a.users() == [] and len(b.users()) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        ends.set()
        thread.join()
