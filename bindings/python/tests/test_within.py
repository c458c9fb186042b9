"""within: a wait that ends with an exception, which says who holds the lock."""

import multiprocessing
import os
import pickle
import threading
import time

import pytest

from conftest import Elsewhere
from lockflight import Mutex, NotAcquired, Semaphore, SharedMutex, all_of


def test_a_free_lock(domain):
    mutex = Mutex("a", domain=domain)
    with mutex.within(1) as entered:
        assert entered is mutex and mutex.held
    assert not mutex.held and mutex.users() == []


def test_the_exception_says_who_holds(domain):
    before = time.monotonic()
    with Elsewhere(Mutex("a", domain=domain)):
        with pytest.raises(TimeoutError) as error, Mutex("a", domain=domain).within(0.1):
            raise AssertionError("it is held")
        found = error.value
        assert isinstance(found, NotAcquired)
        assert (found.name, found.holder.pid, found.host) == ("a", os.getpid(), "")
        assert found.command == found.holder.command != ""
        assert before - 0.1 < found.since <= time.monotonic()
        assert found.holder.what == "holds" and found.holder.unit is None
        assert f"'a' was not free in 0.1 s: held by {found.command} (pid {os.getpid()}) for " in str(
            found
        )
        copy = pickle.loads(pickle.dumps(found))
        assert (str(copy), copy.holder) == (str(found), found.holder)


def test_a_semaphore(domain):
    s = Semaphore("s", 2, domain=domain)
    with Elsewhere(s), Elsewhere(s):
        with pytest.raises(NotAcquired, match="and 1 other for") as error, s.within(0.05):
            raise AssertionError("all units are held")
        assert [each.unit for each in error.value.holders] in ([0, 1], [1, 0])
    with s.within(5):
        assert s.unit == 0


@pytest.mark.parametrize("seconds", [-1, -0.5, float("nan"), float("inf"), 1e10, 10**400, None, "5"])
def test_times_that_are_refused(domain, seconds):
    shared = SharedMutex("a", domain=domain)
    error = ValueError if isinstance(seconds, (int, float)) else TypeError
    for way in (shared, shared.shared(), shared.within(1), Semaphore("s", 2, domain), all_of(shared)):
        with pytest.raises(error, match=r"^seconds .* \(accepted: 0 to 9e9 seconds\)$"):
            way.within(seconds)


def wait_for(name, domain):
    with Mutex(name, domain=domain):
        pass


def test_users_are_holders_and_waiters(domain):
    mutex = Mutex("a", domain=domain)
    with mutex:
        child = multiprocessing.get_context("spawn").Process(target=wait_for, args=("a", domain))
        child.start()
        until = time.monotonic() + 20
        while len(mutex.users()) < 2:
            assert time.monotonic() < until
            time.sleep(0.005)
        holder, waiter = mutex.users()
        assert (holder.pid, holder.what) == (os.getpid(), "holds")
        assert (waiter.pid, waiter.what) == (child.pid, "waits")
    child.join()
