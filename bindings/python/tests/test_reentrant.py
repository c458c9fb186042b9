"""Mutex(…, reentrant=True) in threads and processes; test_asyncio.py has tasks."""

import os
import pickle
import threading

import pytest

from conftest import Elsewhere, in_child, in_thread, until_waits
from lockflight import DomainError, Mutex, SharedMutex, all_of


@pytest.fixture
def mutex(domain):
    return Mutex("a", domain=domain, reentrant=True)


def attempt(mutex):
    """In another thread, which frees what it gets."""

    def takes():
        got = mutex.acquire(blocking=False)
        if got:
            mutex.release()
        return got

    return in_thread(takes)


def test_the_last_release_frees_it(mutex):
    for times in (1, 2, 50):
        for _ in range(times):
            assert mutex.acquire() is True
        for _ in range(times):
            assert mutex.held and mutex.locked() and not attempt(mutex)
            mutex.release()
        assert not mutex.held and attempt(mutex)
        with pytest.raises(DomainError) as error:
            mutex.release()
        assert error.value.reason == "not_held"


def test_any_way_to_acquire(mutex):
    with mutex as first:
        token = mutex.token
        assert first is mutex
        assert mutex.acquire(blocking=False) and mutex.acquire(timeout=0.1)
        with mutex.within(1), all_of(mutex):
            assert not attempt(mutex)
        mutex.release()
        mutex.release()
        assert mutex.token == token and not attempt(mutex)
    assert attempt(mutex)

    @mutex
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    assert depth(20) == 20 and not mutex.held


def test_an_exception_inside(mutex):
    with pytest.raises(KeyError):
        with mutex:
            with mutex:
                raise KeyError
    assert attempt(mutex)


def test_another_thread_waits(mutex):
    got = []

    def takes():
        with mutex, mutex:
            got.append(1)

    with mutex:
        with mutex:
            thread = threading.Thread(target=takes)
            thread.start()
            until_waits(mutex)
        assert got == []
    thread.join()
    assert got == [1]


def test_another_object_of_the_name_is_not_the_same(mutex, domain):
    other = Mutex("a", domain=domain, reentrant=True)
    with mutex:
        with pytest.raises(DomainError) as error:
            other.acquire()
        assert error.value.reason == "held"
        with pytest.raises(DomainError):
            other.release()
        assert mutex.held
    with Mutex("a", domain=domain) as plain:
        with pytest.raises(DomainError):
            plain.acquire()


def test_what_another_thread_holds_is_not_released(mutex):
    with Elsewhere(mutex):
        with pytest.raises(DomainError, match="another thread of this process holds"):
            mutex.release()
        assert mutex.acquire(timeout=0.01) is False
    with mutex:
        pass


def test_readers_do_not_nest(domain):
    lock = SharedMutex("a", domain=domain, reentrant=True)
    with lock, lock:
        with pytest.raises(DomainError):
            lock.acquire_shared()
    with lock.shared():
        for acquire in (lock.acquire, lock.acquire_shared):
            with pytest.raises(DomainError) as error:
                acquire()
            assert error.value.reason == "held"
        assert lock.held
    assert not lock.held


def test_a_fork(mutex):
    def leaves():
        if mutex.held:
            return 1
        mutex.__exit__(None, None, None)
        mutex.__exit__(None, None, None)
        try:
            mutex.__exit__(None, None, None)
        except DomainError:
            return 0 if mutex.acquire(timeout=0.05) is False else 3
        return 2

    with mutex, mutex:
        assert in_child(leaves) == 0
        assert mutex.held
    assert attempt(mutex)


def test_a_death(mutex):
    def dies():
        mutex.acquire()
        mutex.acquire()
        os.kill(os.getpid(), 9)

    assert in_child(dies) == -9
    with mutex:
        assert mutex.owner_died
        with mutex:
            assert mutex.owner_died


def test_pickle_and_what_is_refused(mutex, domain):
    copy = pickle.loads(pickle.dumps(mutex))
    with copy, copy:
        assert not attempt(mutex)
    for wrong in (1, None, "yes"):
        with pytest.raises(TypeError, match="reentrant .* .accepted: True, False."):
            Mutex("a", domain=domain, reentrant=wrong)
