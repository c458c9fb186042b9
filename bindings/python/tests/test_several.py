"""all_of: several locks at once, all of them or none."""

import asyncio
import pickle
import random
import threading
import time

import pytest

from conftest import Elsewhere, in_child, in_thread
from lockflight import DomainError, Mutex, Semaphore, SharedMutex, all_of


def is_free(name, domain):
    def ask():
        lock = SharedMutex(name, domain=domain)
        found = lock.acquire(blocking=False)
        if found:
            lock.release()
        return found

    return in_thread(ask)


def test_all_are_held(domain):
    both = all_of("b", "a", domain=domain)
    assert not both.held
    with both as entered:
        assert entered is both and both.held
        assert not is_free("a", domain) and not is_free("b", domain)
    assert is_free("a", domain) and is_free("b", domain)
    with pytest.raises(DomainError) as error:
        both.release()
    assert error.value.reason == "not_held"


def test_all_or_none(domain):
    both = all_of("a", "b", domain=domain)
    with Elsewhere(Mutex("b", domain=domain)):
        start = time.monotonic()
        assert both.acquire(timeout=0.1) is False
        assert 0.09 < time.monotonic() - start < 2
        assert both.acquire(blocking=False) is False
        assert is_free("a", domain) and not both.held
    assert both.acquire(timeout=5)
    both.release()


def test_an_exception_holds_none(domain):
    with Mutex("b", domain=domain):
        with pytest.raises(DomainError) as error:
            all_of("a", "b", domain=domain).acquire()
        assert error.value.reason == "held"
        assert is_free("a", domain)


def test_readers_and_semaphores(domain):
    index, gpu = SharedMutex("index", domain=domain), Semaphore("gpu", 2, domain=domain)
    with Elsewhere(index.shared()), all_of(gpu, index.shared()):
        assert gpu.unit == 0
        assert not is_free("index", domain)
    assert gpu.unit is None and is_free("index", domain)


def test_what_is_refused(domain):
    with pytest.raises(ValueError, match="lock 'a' of one domain twice .accepted: each lock once"):
        all_of("a", Mutex("a", domain=domain), domain=domain)
    with pytest.raises(ValueError, match="one lock or more"):
        all_of()
    with pytest.raises(TypeError, match="all_of: 7 .accepted: names, Mutex"):
        all_of("a", 7, domain=domain)
    with pytest.raises(ValueError, match="accepted: none with blocking=False"):
        all_of("a", domain=domain).acquire(blocking=False, timeout=1)


def test_threads_with_overlapping_sets(domain):
    def work(seed):
        choose = random.Random(seed)
        for _ in range(50):
            with all_of(*choose.sample(list("abcd"), 2), domain=domain):
                pass

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_tasks_with_overlapping_sets(domain):
    async def work(*names):
        for _ in range(10):
            async with all_of(*names, domain=domain):
                await asyncio.sleep(0)

    async def main():
        await asyncio.gather(work("a", "b"), work("b", "a"), work("c", "b"))

    asyncio.run(main())
    assert is_free("a", domain) and is_free("b", domain)


def test_a_child_of_a_fork_releases_nothing(domain):
    a, gpu = SharedMutex("a", domain=domain), Semaphore("gpu", 2, domain=domain)
    several = all_of(a.shared(), "b", gpu, domain=domain)
    for way in (several, a.shared(), a.within(5), gpu.within(5)):

        def leave():
            if way.held:
                return 2
            way.__exit__(None, None, None)
            with pytest.raises(DomainError, match="not held|hold"):
                way.__exit__(None, None, None)  # it was in one block
            return 0

        with way:
            assert in_child(leave) == 0
            assert way.held
        assert not a.locked()


def test_a_task_that_holds_one_of_them_by_a_reentrant_lock(domain):
    again, b = Mutex("again", domain=domain, reentrant=True), Mutex("b", domain=domain)

    async def body():
        async with again:
            async with all_of(b, again).within(5):
                assert b.locked() and again.locked()
                with pytest.raises(DomainError, match="holds already"):
                    await all_of("0", b, domain=domain).__aenter__()
            assert again.locked() and not b.locked()
        assert not again.locked()

    asyncio.run(body())
    assert is_free("0", domain) and is_free("b", domain) and is_free("again", domain)


def test_ways_are_passed_on_and_shown(domain):
    a = SharedMutex("a", domain=domain)
    both = all_of(a, "b", domain=domain)
    for way in (a.shared(), a.within(5), a.shared().within(5), a.within(5).shared(), both):
        copy = pickle.loads(pickle.dumps(way))
        assert repr(copy) == repr(way)
        with copy:
            assert a.locked()
    assert repr(a.within(5).shared()) == repr(a) + ".within(5).shared()"
    with pytest.raises(TypeError, match="accepted: that of a SharedMutex"):
        Mutex("a", domain=domain).within(5).shared()
    with pytest.raises(TypeError, match="all_of: .* .accepted: names, Mutex"):
        all_of(a.within(5))
    with pytest.raises(TypeError, match="seconds 'soon' .accepted: 0 to 9e9 seconds"):
        a.within("soon")
    with pytest.raises(TypeError, match="acquire_shared of Semaphore 'gpu' .accepted: .* SharedMutex"):
        Semaphore("gpu", 2, domain=domain).acquire_shared()
