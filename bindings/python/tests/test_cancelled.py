"""Tasks of asyncio that are cancelled at each moment at which they wait, and holds whose task is
another one than it seems. Moments are counted in steps of the task, and not in time."""

import asyncio
import functools
import gc
import threading
import time

import pytest

from conftest import Elsewhere, until
from lockflight import DomainError, Mutex, NotAcquired, Semaphore, SharedMutex, all_of


class Locks:
    """Of a domain."""

    def __init__(self, domain):
        self.a, self.b = SharedMutex("a", domain=domain), SharedMutex("b", domain=domain)
        self.again = Mutex("again", domain=domain, reentrant=True)
        self.gpu = Semaphore("gpu", 2, domain=domain)
        self.all = (self.a, self.b, self.again, self.gpu)

    def check_that_nothing_is_held(self):
        until(lambda: not any(lock.users() for lock in self.all))
        for lock in self.all:
            with lock:
                assert not lock.owner_died


FORMS = {
    "mutex": lambda of: of.a,
    "shared": lambda of: of.a.shared(),
    "semaphore": lambda of: of.gpu,
    "within": lambda of: of.a.within(60),
    "shared within": lambda of: of.a.within(60).shared(),
    "reentrant": lambda of: of.again,
    "all_of": lambda of: all_of(of.b, of.a.shared(), of.gpu, of.again),
    "all_of within": lambda of: all_of(of.a, of.b).within(60),
}


class CancelledAt:
    """Runs a coroutine in its task, and cancels the task at some moments: (step, whether what the
    step waits for is there already)."""

    def __init__(self, body, moments):
        self._body, self._moments, self.steps = body, moments, 0

    def __await__(self):
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        go_on = functools.partial(self._body.send, None)
        while True:
            try:
                awaited = go_on()
            except StopIteration as end:
                return end.value
            self.steps += 1
            for step, is_there in self._moments:
                if step == self.steps and is_there and awaited is not None:
                    awaited.add_done_callback(lambda _: task.cancel())
                elif step == self.steps:
                    loop.call_soon(task.cancel)
            try:
                value = yield awaited
            except BaseException as error:
                go_on = functools.partial(self._body.throw, error)
            else:
                go_on = functools.partial(self._body.send, value)


async def use(way, twice):
    async with way:
        if twice:
            async with way:
                await asyncio.sleep(0)


async def run(way, rival, twice, moments):
    """How many steps it took. The rival holds first, and leaves when the other one waits."""
    stepped, held, waits = CancelledAt(use(way, twice), moments), asyncio.Event(), asyncio.Event()

    async def main():
        await held.wait()
        asyncio.get_running_loop().call_later(0.001, waits.set)
        await stepped

    async def hold():
        async with rival:
            held.set()
            await waits.wait()

    if rival is None:
        held.set()
    tasks = [asyncio.ensure_future(main())] + ([asyncio.ensure_future(hold())] if rival else [])
    ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert isinstance(ends[0], (asyncio.CancelledError, type(None))), ends[0]
    assert ends[-1] is None or len(ends) == 1, ends[-1]
    return stepped.steps


@pytest.mark.parametrize("rival", ["free", "a rival holds"])
@pytest.mark.parametrize("form", FORMS)
def test_cancelled_at_each_step(domain, form, rival):
    locks = Locks(domain)
    way, twice = FORMS[form](locks), form == "reentrant"
    by = None if rival == "free" else all_of(locks.a, locks.b, locks.again)

    async def body():
        steps = await run(way, by, twice, [])
        assert steps >= 2
        singles = [(step, is_there) for step in range(1, steps + 1) for is_there in (False, True)]
        for one in singles:
            await run(way, by, twice, [one])
            locks.check_that_nothing_is_held()
            for other in singles:
                if other >= one and other[0] <= one[0] + 3:
                    await run(way, by, twice, [one, other])
                    locks.check_that_nothing_is_held()

    asyncio.run(body())


def test_a_helper_task_acquires_for_the_task_that_calls(domain):
    mutex = Mutex("a", domain=domain)

    async def body():
        for how in (asyncio.ensure_future, lambda enter: asyncio.wait_for(enter, 10)):
            assert await how(mutex.__aenter__()) is mutex
            await asyncio.sleep(0.01)
            assert mutex.locked() and await mutex.token_async() > 0
            await how(mutex.__aexit__(None, None, None))
            assert not mutex.locked()
        with pytest.raises(asyncio.TimeoutError), Elsewhere(mutex):
            await asyncio.wait_for(mutex.__aenter__(), 0.05)

    asyncio.run(body())
    with mutex:
        assert not mutex.owner_died


def test_a_thread_has_its_loop_acquire_and_release(domain):
    mutex, loop = Mutex("a", domain=domain), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    for _ in range(3):
        asyncio.run_coroutine_threadsafe(mutex.__aenter__(), loop).result(10)
        assert mutex.locked()
        asyncio.run_coroutine_threadsafe(mutex.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    with mutex:
        assert not mutex.owner_died


def test_a_helper_whose_task_ends_while_it_waits(domain):
    mutex = Mutex("a", domain=domain)

    async def begins():
        return asyncio.ensure_future(mutex.__aenter__())

    async def body():
        async with mutex:  # one helper waits for its turn among tasks, and one for a thread
            helper = await asyncio.ensure_future(begins())
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(helper, 10)
        with Elsewhere(mutex):
            helper = await asyncio.ensure_future(begins())
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(helper, 10)

    asyncio.run(body())
    until(lambda: not mutex.users())
    with mutex:
        assert not mutex.owner_died


WAYS = [
    lambda domain: Mutex("a", domain=domain),
    lambda domain: SharedMutex("a", domain=domain).within(5),
    lambda domain: all_of("a", "b", domain=domain),
]


@pytest.mark.parametrize("make", WAYS)
def test_the_end_of_a_task_is_a_death(domain, make):
    mutex = Mutex("a", domain=domain)

    async def body():
        await asyncio.ensure_future(holds())
        async with mutex:  # though the loop runs
            assert await mutex.owner_died_async()
            await mutex.mark_consistent_async()

    async def holds():
        await make(domain).__aenter__()
        assert mutex.locked()

    asyncio.run(body())
    until(lambda: not all(lock.users() for lock in (mutex, Mutex("b", domain=domain))))
    with mutex:
        assert not mutex.owner_died


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_task_that_is_dropped_with_its_loop(domain):
    mutex = Mutex("a", domain=domain)

    async def holds():
        async with mutex:
            await asyncio.get_running_loop().create_future()

    loop = asyncio.new_event_loop()
    task = loop.create_task(holds())
    while not mutex.locked():
        loop.run_until_complete(asyncio.sleep(0.001))
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.set_exception_handler(lambda *_: None)  # "Task was destroyed but it is pending"
    loop.close()
    del task, loop
    gc.collect()
    until(lambda: not mutex.users())
    with mutex:
        pass


def test_within_for_tasks(domain):
    mutex, gpu = SharedMutex("a", domain=domain), Semaphore("gpu", 1, domain=domain)

    async def is_late(way):
        start = time.monotonic()
        with pytest.raises(NotAcquired, match="was not free in 0.05 s: held by") as error:
            async with way.within(0.05):
                raise AssertionError("it is held")
        assert 0.04 < time.monotonic() - start < 5
        return error.value.name

    async def at_once(way):
        with pytest.raises(NotAcquired):
            async with way.within(0):
                raise AssertionError("it is held")
        return "a"

    @mutex.within(5)
    async def alone():
        return mutex.locked()

    async def body():
        ways = [mutex, mutex.shared(), all_of("0", mutex, domain=domain)]
        with Elsewhere(mutex):
            calls = [is_late(way) for way in ways] + [at_once(way) for way in ways]
            assert await asyncio.gather(*calls) == ["a"] * 6
        async with mutex:  # another task of this loop holds
            calls = [is_late(way) for way in ways] + [at_once(way) for way in ways]
            assert await asyncio.gather(*map(asyncio.ensure_future, calls)) == ["a"] * 6
        async with gpu:
            assert await asyncio.ensure_future(is_late(gpu)) == "gpu"
        async with mutex.within(5) as entered, mutex.within(0.01).within(5):
            raise AssertionError("the task holds it already")

    with pytest.raises(DomainError, match="holds already"):
        asyncio.run(body())
    assert asyncio.run(alone())
    assert not mutex.users() and not gpu.users()
    with mutex:
        assert not mutex.owner_died


def test_an_exception_in_the_block_and_in_the_release(domain):
    a, b = Mutex("a", domain=domain), Mutex("b", domain=domain)

    async def body():
        with pytest.raises(DomainError) as error:
            async with all_of(a, b):
                await a.__aexit__(None, None, None)
                raise KeyError
        assert error.value.reason == "not_held" and isinstance(error.value.__context__, KeyError)
        assert not a.locked() and not b.locked()

    asyncio.run(body())
