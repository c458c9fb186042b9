"""Locks of asyncio's tasks."""

import asyncio
import time

import pytest

from lockflight import Mutex, SharedMutex


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
    until = time.monotonic() + 5
    while mutex.locked() and time.monotonic() < until:
        time.sleep(0.01)
    with mutex:
        assert not mutex.owner_died


def test_cancellation_at_any_moment(domain):
    mutex = Mutex("a", domain=domain)

    async def takes():
        async with mutex:
            await asyncio.sleep(0)

    async def body():
        for i in range(60):
            tasks = [asyncio.ensure_future(takes()) for _ in range(3)]
            await asyncio.sleep(i * 2e-5)
            for task in tasks[:2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(body())
    assert mutex.acquire(timeout=10) and not mutex.owner_died
    mutex.release()


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
    mutex = Mutex("a", domain=domain)

    async def body():
        async with mutex:
            with pytest.raises(RuntimeError, match="holds already"):
                await mutex.__aenter__()
        with pytest.raises(RuntimeError, match="does not hold"):
            await mutex.__aexit__(None, None, None)
        with pytest.raises(RuntimeError, match="not held by this task"):
            await mutex.mark_consistent_async()

    asyncio.run(body())
