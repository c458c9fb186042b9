"""Locks of asyncio's tasks."""

import asyncio
import gc
import math
import os
import threading
import time
from contextlib import AsyncExitStack

import pytest

from conftest import until, until_waits
from lockflight import Domain, DomainError, Mutex, Semaphore, SharedMutex, _workers


def workers():
    return [thread for thread in threading.enumerate() if thread.name == "lockflight"]


class Held:
    """A lock that another thread holds for as long as the block lasts."""

    def __init__(self, mutex):
        self._mutex, self._holds, self._ends = mutex, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self):
        with self._mutex:
            self._holds.set()
            self._ends.wait()

    def __enter__(self):
        self._thread.start()
        self._holds.wait()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()


@pytest.fixture(autouse=True, params=["in threads", "at the poller"])
def waits(request, monkeypatch):
    """Where tasks wait: with few of them each in a thread, and with no seats all at the poller."""
    if request.param == "at the poller":
        monkeypatch.setattr(_workers, "_seats", [])
        monkeypatch.setattr(_workers, "_give_seat", lambda: None)
    yield request.param
    until(lambda: len(_workers._seats) == (_workers.MOST_WAITING if request.param == "in threads" else 0))


@pytest.fixture
def short_idle(monkeypatch):
    """Threads that nobody borrows end soon."""
    monkeypatch.setattr(_workers, "IDLE_SECONDS", 0.05)
    while _workers._idle:  # those of other tests
        _workers._idle.pop().end()
    for poller in list(_workers._pollers):
        poller.post(lambda: None)  # it begins to be idle anew
    until(lambda: not workers())


def test_tasks_exclude_each_other(domain):
    mutex = Mutex("a", domain=domain)
    inside = []

    async def one(n):
        for _ in range(10):
            async with mutex:
                inside.append(n)
                await asyncio.sleep(0)
                assert inside.pop() == n

    async def all_of_them():
        await asyncio.gather(*(one(n) for n in range(8)))

    asyncio.run(all_of_them())
    assert not mutex.locked()
    with mutex:
        assert not mutex.owner_died


def test_a_wait_lets_other_tasks_run(domain):
    mutex, other = Mutex("a", domain=domain), Mutex("b", domain=domain)

    async def ticks():
        n = 0
        for _ in range(20):
            async with other:
                await asyncio.sleep(0.002)
                n += 1
        mutex.release()
        return n

    async def wants():
        async with mutex:
            assert await mutex.token_async() > 0
            assert not await mutex.owner_died_async()
            assert await mutex.valid_for_async() == math.inf
            assert not await mutex.lost_async()

    async def both():
        mutex.acquire()  # in the thread of the loop
        return await asyncio.gather(ticks(), wants())

    assert asyncio.run(both())[0] == 20


def test_a_cancelled_wait_leaves_nothing(domain):
    mutex = Mutex("a", domain=domain)

    async def body():
        mutex.acquire()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(mutex.__aenter__(), 0.05)
        mutex.release()
        async with mutex:
            pass

    asyncio.run(body())
    until(lambda: not mutex.locked())
    with mutex:
        assert not mutex.owner_died


def test_cancellation_at_any_moment(domain):
    mutex = Mutex("a", domain=domain)

    cancelled = []

    async def takes():
        async with mutex:
            await asyncio.sleep(0)

    async def body():
        for i in range(60):
            tasks = [asyncio.ensure_future(takes()) for _ in range(3)]
            await asyncio.sleep(i * 2e-5)
            for task in tasks[:2]:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert ends[2] is None
            for end in ends[:2]:
                assert end is None or isinstance(end, asyncio.CancelledError), end
                cancelled.append(end is not None)

    asyncio.run(body())
    assert any(cancelled)
    assert mutex.acquire(timeout=10) and not mutex.owner_died
    mutex.release()


def test_many_cancelled_acquires_leave_no_thread_and_no_slot(domain, short_idle):
    lock, one = SharedMutex("a", domain=domain), Domain(domain)
    cancelled = []

    async def gives_up(block):
        try:
            async with block:
                pass
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    # The system ends a thread a moment after Python has forgotten it.
    def only_the_first_slots_are_left():
        one.sweep()
        return len(one.participants()) == slots

    async def body():
        for _ in range(20):
            waits = [
                asyncio.wait_for(gives_up(lock if i % 2 else lock.shared()), 0.005)
                for i in range(100)
            ]
            for result in await asyncio.gather(*waits, return_exceptions=True):
                assert isinstance(result, asyncio.TimeoutError)

    with Held(lock):
        with Mutex("b", domain=one):  # so that this thread has a slot
            slots = len(one.participants())
        asyncio.run(body())
        until(lambda: not workers())
        until(only_the_first_slots_are_left)
        (holder,) = [use for state in one.locks() for use in state.uses]
        assert holder.what == "holds"
    assert len(cancelled) == 2000
    assert lock.acquire(timeout=10) and not lock.owner_died
    lock.release()


def test_a_cancelled_wait_ends_soon(domain, waits):
    if waits == "at the poller":
        pytest.skip("no thread waits")
    mutex = Mutex("a", domain=domain)

    async def body():
        wait = asyncio.ensure_future(mutex.__aenter__())
        while not any(use.what == "waits" for use in mutex.domain.locks()[0].uses):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        wait.cancel()
        start = time.monotonic()
        while any(use.what == "waits" for use in mutex.domain.locks()[0].uses):
            await asyncio.sleep(0.001)
        return time.monotonic() - start

    with Held(mutex):
        assert asyncio.run(body()) < 0.3


def test_idle_threads_end_and_give_back_their_slots(domain, short_idle):
    mutex = Mutex("a", domain=domain)

    async def body():
        async with mutex:
            pass

    asyncio.run(body())
    until(lambda: not workers() and not mutex.domain.participants())
    asyncio.run(body())  # with a new one
    assert len(workers()) == 1


def test_a_holder_is_not_idle(domain, short_idle):
    mutex = Mutex("a", domain=domain)

    async def body():
        async with mutex:
            await asyncio.sleep(0.3)
            assert len(workers()) == 1
            assert mutex.locked()
            assert not await mutex.owner_died_async()

    asyncio.run(body())


def test_a_coroutine_that_is_closed_while_it_waits(domain, waits):
    """Its thread is given back once, and two later tasks have a thread each."""
    if waits == "at the poller":
        pytest.skip("no thread waits")
    mutex, other = Mutex("a", domain=domain), Mutex("b", domain=domain)

    async def closes():
        wait = mutex.__aenter__()
        wait.send(None)
        await asyncio.get_running_loop().run_in_executor(None, until_waits, mutex)
        wait.close()

    async def two():
        async def hold(lock):
            async with lock:
                await asyncio.sleep(0.02)

        await asyncio.wait_for(
            asyncio.gather(*(hold(lock) for lock in (mutex, other) for _ in range(3))), 10
        )

    with Held(mutex):
        asyncio.run(closes())
    until(lambda: not mutex.locked())
    assert len(_workers._idle) == len(set(_workers._idle))
    asyncio.run(two())
    assert len(_workers._idle) == len(set(_workers._idle))
    with mutex:
        assert not mutex.owner_died


def test_a_coroutine_that_is_closed_when_it_has_the_lock(domain):
    mutex = Mutex("a", domain=domain)

    async def closes():
        wait = mutex.__aenter__()
        wait.send(None)
        while not mutex.locked():
            time.sleep(0.001)  # the loop does not run: the task is not told
        time.sleep(0.05)
        wait.close()
        gc.collect()

    asyncio.run(closes())
    assert mutex.acquire(timeout=10) and not mutex.owner_died
    mutex.release()


def test_a_coroutine_that_is_closed_while_it_waits_in_the_process(domain):
    mutex = Mutex("a", domain=domain)

    async def hold(ends):
        async with mutex:
            await ends.wait()

    async def body():
        ends = asyncio.Event()
        holder = asyncio.ensure_future(hold(ends))
        while not mutex.locked():
            await asyncio.sleep(0.001)
        waits = [mutex.__aenter__() for _ in range(3)]
        for wait in waits:
            wait.send(None)
        waits[1].close()
        ends.set()
        await holder
        waits[0].close()  # it was this one's turn
        waits[2].close()
        async with mutex:
            pass

    asyncio.run(asyncio.wait_for(body(), 10))


def test_a_loop_that_ends_under_an_acquire(domain, short_idle):
    mutex = Mutex("a", domain=domain)
    with Held(mutex):
        loop = asyncio.new_event_loop()
        wait = mutex.__aenter__()
        loop.call_soon(wait.send, None)
        loop.call_later(0.05, loop.stop)
        loop.run_forever()
        loop.close()
    until(lambda: not mutex.locked() and not workers())
    wait.close()
    with mutex:
        assert not mutex.owner_died


def test_a_release_that_is_cancelled_is_done(domain):
    mutex = Mutex("a", domain=domain)

    async def body():
        for i in range(30):
            await mutex.__aenter__()
            leave = mutex.__aexit__(None, None, None)
            leave.send(None)
            if i % 2:
                leave.close()
            else:
                with pytest.raises(asyncio.CancelledError):
                    leave.throw(asyncio.CancelledError())

    asyncio.run(asyncio.wait_for(body(), 20))
    assert mutex.acquire(timeout=10) and not mutex.owner_died
    mutex.release()


async def leaves(*blocks):
    """The exit status of a child that is forked in all of these blocks, and leaves them."""
    parent = os.getpid()
    try:
        async with AsyncExitStack() as within:
            for each in blocks:
                await within.enter_async_context(each)
            pid = os.fork()
            if pid != 0:
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os._exit(7)
    except BaseException:
        if os.getpid() == parent:
            raise
        os._exit(1)


def test_a_fork_leaves_a_block_of_its_parent(domain):
    mutex = Mutex("a", domain=domain)

    assert asyncio.run(leaves(mutex)) == 7
    with mutex:
        assert not mutex.owner_died


def test_a_task_of_a_forked_child(domain):
    mutex = Mutex("a", domain=domain)

    async def holds():
        async with mutex:
            return mutex.locked()

    assert asyncio.run(holds())
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if asyncio.run(asyncio.wait_for(holds(), 10)) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_readers_share(domain):
    lock = SharedMutex("a", domain=domain)

    async def read(barrier):
        async with lock.shared():
            barrier.append(1)
            while len(barrier) < 3:
                await asyncio.sleep(0.001)

    async def body():
        barrier = []
        await asyncio.wait_for(asyncio.gather(*(read(barrier) for _ in range(3))), 10)
        async with lock:
            assert lock.locked()

    asyncio.run(body())
    assert not lock.locked()


def test_misuse_is_refused(domain):
    mutex, same = Mutex("a", domain=domain), Mutex("a", domain=domain)

    async def body():
        async with mutex:
            for lock in (mutex, same):
                with pytest.raises(DomainError, match="holds already") as error:
                    await lock.__aenter__()
                assert error.value.reason == "held"
            with pytest.raises(DomainError, match="which a task of this process holds"):
                mutex.release()
            assert await mutex.still_valid_async()
        with pytest.raises(DomainError, match="does not hold") as error:
            await mutex.__aexit__(None, None, None)
        assert error.value.reason == "not_held"
        with pytest.raises(DomainError, match="not held by this task"):
            await mutex.mark_consistent_async()

    asyncio.run(body())


class Holders:
    """A process that holds many locks, until it is killed."""

    def __init__(self, domain, names):
        self._domain, self._names = domain, names

    def __enter__(self):
        ready, started = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            def hold(names):
                held = [Mutex(name, domain=self._domain) for name in names]
                for mutex in held:
                    mutex.acquire()
                os.write(started, b".")
                time.sleep(60)

            for i in range(0, len(self._names), 20):
                threading.Thread(target=hold, args=(self._names[i : i + 20],)).start()
            time.sleep(60)
            os._exit(0)
        os.close(started)
        for _ in range(0, len(self._names), 20):
            assert os.read(ready, 1) == b"."
        os.close(ready)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def test_many_tasks_wait_in_few_threads_and_learn_of_deaths(domain, waits):
    names = [f"n{i}" for i in range(200)]
    got = []

    async def one(name, died):
        async with Mutex(name, domain=domain) as mutex:
            assert await mutex.owner_died_async() is died
            await mutex.mark_consistent_async()
            got.append(name)

    async def body():
        with Holders(domain, names):
            tasks = [asyncio.ensure_future(one(name, True)) for name in names]
            free = [asyncio.ensure_future(one(f"free{i}", False)) for i in range(50)]
            await asyncio.wait_for(asyncio.gather(*free), 10)
            await asyncio.sleep(0.3)
            count = len(workers()) - len(_workers._idle)  # which have held the free locks
            waiting = {use.slot for lock in Domain(domain).locks() for use in lock.uses
                       if use.what == "waits"}
        await asyncio.wait_for(asyncio.gather(*tasks), 20)
        return count, len(waiting)

    count, waiting = asyncio.run(body())
    assert len(got) == 250
    seats = _workers.MOST_WAITING if waits == "in threads" else 0
    assert seats <= waiting <= seats + 1  # a poller may be in the middle of an attempt
    assert count <= seats + 60


def test_many_tasks_of_one_semaphore(domain):
    semaphore = Semaphore("s", 3, domain=domain)
    inside, most = 0, 0

    async def one():
        nonlocal inside, most
        async with semaphore:
            inside += 1
            most = max(most, inside)
            assert 0 <= await semaphore.unit_async() < 3
            inside -= 1

    async def body():
        await asyncio.wait_for(asyncio.gather(*(one() for _ in range(150))), 100)

    asyncio.run(body())
    assert most <= 3 and not semaphore.locked()


def test_a_reentrant_lock_of_tasks(domain):
    mutex = Mutex("a", domain=domain, reentrant=True)
    order = []

    async def twice(n):
        async with mutex:
            async with mutex:
                order.append(n)
                await asyncio.sleep(0.001)
            order.append(n)
            assert mutex.locked()

    async def body():
        await asyncio.gather(*(twice(n) for n in range(10)))

    asyncio.run(body())
    assert order == [n for n in range(10) for _ in range(2)]
    assert not mutex.locked()


def test_a_fork_leaves_reentrant_blocks_of_its_parent(domain):
    mutex = Mutex("a", domain=domain, reentrant=True)

    assert asyncio.run(leaves(mutex, mutex)) == 7
    assert not mutex.locked()
