"""The loss of a hold reaches the program. On one machine a hold is lost when its domain is removed;
tests/names/agent/losses_test.py has what is so in a cluster."""

import asyncio
import math
import pickle
import sys
import threading
import time

import pytest

import lockflight
from conftest import in_child, in_thread, until


def lose(domain):
    lockflight.Domain.remove(domain, force=True)


def test_a_block_says_that_it_was_lost(domain):
    lock = lockflight.Mutex("a", domain, loss="raise")
    with pytest.raises(lockflight.LockLost, match="lock 'a': the hold was lost"):
        with lock:
            assert not lock.lost
            lose(domain)
    assert not lock.held
    assert lock.lost, "it stays so after the block"
    anew = lockflight.Mutex("a", domain, loss="raise")
    with anew:
        pass
    assert not anew.lost


def test_without_a_loss_nothing_is_said(domain):
    lock = lockflight.Mutex("a", domain, loss="raise", on_loss=lambda of: 1 / 0)
    with lock:
        with pytest.raises(lockflight.DomainError):
            lock.acquire()
    assert (lock.lost, lock.held) == (False, False)


def test_on_one_machine_a_loss_is_ignored_unless_asked_for(domain):
    lock = lockflight.Mutex("a", domain)
    with lock:
        lose(domain)
    with lockflight.Semaphore("b", 2, domain, loss="ignore"):
        lose(domain)


def test_an_exception_of_the_block_is_kept_as_the_context(domain):
    with pytest.raises(lockflight.LockLost) as raised:
        with lockflight.Mutex("a", domain, loss="raise"):
            lose(domain)
            raise KeyError("of the block")
    assert isinstance(raised.value.__context__, KeyError)


def test_a_release_does_not_raise(domain):
    lock = lockflight.Mutex("a", domain, loss="raise", on_loss=lambda of: None)
    lock.acquire()
    lose(domain)
    until(lambda: lock.lost)
    lock.release()
    assert lock.lost and not lock.held


@pytest.mark.parametrize("make", ["semaphore", "shared", "within", "all_of", "decorator"])
def test_every_way_says_it(domain, make):
    shared = lockflight.SharedMutex("a", domain, loss="raise")
    way = {
        "semaphore": lambda: lockflight.Semaphore("b", 2, domain, loss="raise"),
        "shared": shared.shared,
        "within": lambda: shared.within(5),
        "all_of": lambda: lockflight.all_of("c", shared, domain=domain),
        "decorator": lambda: shared,
    }[make]()
    with pytest.raises(lockflight.LockLost):
        if make == "decorator":
            way(lambda: lose(domain))()
        else:
            with way:
                lose(domain)
    assert not shared.held


def test_a_function_is_called_at_once(domain):
    calls = []

    def told(of):
        calls.append((of, threading.current_thread().name))

    lock = lockflight.Mutex("a", domain, on_loss=told)
    with lock:
        time.sleep(0.05)
        assert calls == []
        lose(domain)
        until(lambda: calls)
        assert lock.lost and lock.valid_for() == 0
    assert calls == [(lock, "lockflight-losses")]


def test_each_thread_that_holds_is_told(domain):
    calls = []
    gpu = lockflight.Semaphore("gpu", 3, domain, on_loss=calls.append)
    ready, done = threading.Barrier(4), threading.Event()

    def use():
        with gpu:
            ready.wait()
            done.wait()

    threads = [threading.Thread(target=use) for _ in range(3)]
    for each in threads:
        each.start()
    ready.wait()
    lose(domain)
    until(lambda: len(calls) == 3)
    done.set()
    for each in threads:
        each.join()


def test_a_function_that_raises_does_not_keep_others_from_being_told(domain, monkeypatch):
    calls, errors = [], []
    monkeypatch.setattr(threading, "excepthook", lambda of: errors.append(of.exc_type))
    one = lockflight.Mutex("a", domain, on_loss=lambda of: 1 / 0)
    two = lockflight.Mutex("b", domain, on_loss=calls.append)
    with one, two:
        lose(domain)
        until(lambda: calls and errors)
    assert errors == [ZeroDivisionError]


def test_a_function_that_exits_ends_nothing(domain, monkeypatch):
    def broken_hook(_):
        raise KeyError("of the hook")

    monkeypatch.setattr(threading, "excepthook", broken_hook)
    calls = []
    one = lockflight.Mutex("a", domain, on_loss=lambda of: sys.exit(3))
    two = lockflight.Mutex("b", domain, on_loss=calls.append)
    with one, two:
        lose(domain)
        until(lambda: calls)


def test_the_next_hold_is_not_told_of_the_last_one(domain):
    calls = []
    lock = lockflight.Mutex("a", domain, on_loss=calls.append)
    for _ in range(50):
        with lock:
            pass
    lose(domain)
    time.sleep(0.05)
    assert calls == []


def test_a_child_is_told_of_its_own_holds(domain):
    calls = []
    lock = lockflight.Mutex("a", domain, on_loss=calls.append)
    other = lockflight.Mutex("b", domain, on_loss=calls.append)

    def body():
        with other:
            lose(domain)
            until(lambda: calls)
        return 0 if calls == [other] else 1

    with lock:
        assert in_child(body) == 0
        until(lambda: calls)
    assert calls == [lock]


def test_a_lock_that_is_gone_is_not_told(domain):
    calls = []
    lock = lockflight.Mutex("a", domain, on_loss=calls.append)
    lock.acquire()
    in_thread(lambda: None)
    del lock
    lose(domain)
    time.sleep(0.05)
    assert calls == []


def test_it_is_pickled(domain):
    for lock in (
        lockflight.Mutex("a", domain, loss="raise", on_loss=print),
        lockflight.Semaphore("b", 2, domain, loss="raise", on_loss=print),
    ):
        copy = pickle.loads(pickle.dumps(lock))
        with pytest.raises(lockflight.LockLost):
            with copy:
                lose(domain)


def test_a_time_limit_is_a_loss(domain):
    calls = []
    with lockflight.Mutex("b", domain, max_hold=60) as long:
        [user] = long.users()
        assert 50 < user.ends_in <= 60 and user.note == ""
    lock = lockflight.Mutex("a", domain, max_hold=0.05, on_loss=calls.append)
    with pytest.raises(lockflight.LockLost):
        with lock:
            assert 0 < lock.valid_for() <= 0.05
            until(lambda: calls)
            assert lock.lost
            assert not in_thread(lambda: lockflight.Mutex("a", domain).acquire(False)), (
                "a time limit makes no two holders"
            )
    assert lock.lost
    with lockflight.Mutex("a", domain) as other:
        assert other.owner_died
        other.mark_consistent()
        assert other.valid_for() == math.inf
    with lock:
        pass
    assert len(calls) == 1


def test_a_time_limit_of_units_readers_and_several(domain):
    gpu = lockflight.Semaphore("gpu", 2, domain, max_hold=0.02)
    shared = lockflight.SharedMutex("s", domain, max_hold=0.02, loss="ignore")
    with pytest.raises(lockflight.LockLost):
        with gpu:
            until(lambda: gpu.lost)
    with shared.shared():
        until(lambda: shared.lost)
    with pytest.raises(lockflight.LockLost):
        with lockflight.all_of(gpu, shared):
            until(lambda: gpu.lost and shared.lost)


def test_a_time_limit_cancels_a_block(domain):
    async def body():
        lock = lockflight.Mutex("a", domain, max_hold=0.05)
        with pytest.raises(lockflight.LockLost):
            async with lock:
                await asyncio.sleep(20)

    asyncio.run(body())


def test_a_lock_with_a_time_limit_is_pickled(domain):
    lock = pickle.loads(pickle.dumps(lockflight.Mutex("a", domain, max_hold=60)))
    with lock:
        assert 50 < lock.valid_for() <= 60


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"max_hold": 0}, ValueError, "max_hold 0 (accepted: a number of seconds above 0"),
        ({"max_hold": -1.5}, ValueError, "max_hold -1.5 (accepted"),
        ({"max_hold": math.nan}, ValueError, "max_hold nan (accepted"),
        ({"max_hold": "1m"}, TypeError, "max_hold '1m' (accepted"),
        ({"max_hold": True}, TypeError, "max_hold True (accepted"),
        ({"loss": "tell"}, ValueError, "loss 'tell' (accepted: 'raise', 'ignore', or None"),
        ({"loss": True}, TypeError, "loss True (accepted: 'raise'"),
        ({"on_loss": asyncio.sleep}, TypeError, "(accepted: a function of the lock, or None)"),
        ({"on_loss": 3}, TypeError, "on_loss 3 (accepted: a function of the lock, or None)"),
    ],
)
def test_what_is_not_accepted(domain, arguments, error, text):
    for make in (
        lambda: lockflight.Mutex("a", domain, **arguments),
        lambda: lockflight.Semaphore("a", 2, domain, **arguments),
    ):
        with pytest.raises(error) as raised:
            make()
        assert text in str(raised.value)


# ---- tasks ----


def assert_not_cancelled():
    task = asyncio.current_task()
    assert not hasattr(task, "cancelling") or task.cancelling() == 0


@pytest.mark.skipif(not hasattr(asyncio, "timeout"), reason="asyncio.timeout is of 3.11")
def test_a_timeout_around_a_loss_is_none(domain):
    async def body():
        async with asyncio.timeout(30):
            with pytest.raises(lockflight.LockLost):
                async with lockflight.Mutex("a", domain, loss="raise"):
                    lose(domain)
                    await asyncio.sleep(20)
            assert_not_cancelled()
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                async with lockflight.Mutex("b", domain, loss="raise"):
                    await asyncio.sleep(20)
        assert_not_cancelled()

    asyncio.run(body())


def test_only_the_lock_that_is_lost_is_told(domain):
    async def body():
        calls = []
        kept = lockflight.Mutex("a", f"{domain}-kept", loss="raise", on_loss=calls.append)
        lost = lockflight.Mutex("b", domain, loss="ignore", on_loss=calls.append)
        async with lockflight.all_of(kept, lost):
            lose(domain)
            while not calls:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
        assert calls == [lost]
        assert_not_cancelled()

    try:
        asyncio.run(body())
    finally:
        lose(f"{domain}-kept")


def test_a_slow_function_does_not_delay_a_cancellation(domain):
    async def body():
        held = lockflight.Mutex("slow", domain, on_loss=lambda of: time.sleep(3))
        lock = lockflight.Mutex("a", domain, loss="raise")
        with held:
            begun = time.monotonic()
            with pytest.raises(lockflight.LockLost):
                async with lock:
                    lose(domain)
                    await asyncio.sleep(20)
            assert time.monotonic() - begun < 2.5
            assert await lock.lost_async()

    asyncio.run(body())


def test_nested_blocks_are_all_told(domain):
    async def body():
        ended = []
        with pytest.raises(lockflight.LockLost):
            async with lockflight.Mutex("a", domain, loss="raise"):
                try:
                    async with lockflight.Mutex("b", domain, loss="raise"):
                        lose(domain)
                        await asyncio.sleep(20)
                finally:
                    ended.append(1)
        assert ended == [1]
        assert_not_cancelled()
        await asyncio.sleep(0)

    asyncio.run(body())


def test_a_block_of_a_task_is_cancelled(domain):
    async def body():
        lock = lockflight.Mutex("a", domain, loss="raise")
        with pytest.raises(lockflight.LockLost):
            async with lock:
                lose(domain)
                await asyncio.sleep(20)
        assert_not_cancelled()
        await asyncio.sleep(0.01)

    begun = time.monotonic()
    asyncio.run(body())
    assert time.monotonic() - begun < 10


def test_a_block_of_a_task_that_does_not_wait_is_told_at_its_end(domain):
    async def body():
        with pytest.raises(lockflight.LockLost):
            async with lockflight.Mutex("a", domain, loss="raise"):
                lose(domain)
        for _ in range(3):
            await asyncio.sleep(0.01)

    asyncio.run(body())


def test_a_block_that_catches_the_cancellation_is_told_at_its_end(domain):
    async def body():
        with pytest.raises(lockflight.LockLost):
            async with lockflight.Mutex("a", domain, loss="raise"):
                lose(domain)
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(20)
        assert_not_cancelled()
        await asyncio.sleep(0.01)

    asyncio.run(body())


def test_a_cancellation_of_somebody_else_goes_on(domain):
    async def block():
        async with lockflight.Mutex("a", domain, loss="raise"):
            await asyncio.sleep(20)

    async def body():
        task = asyncio.ensure_future(block())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())


@pytest.mark.skipif(not hasattr(asyncio.Task, "uncancel"), reason="tasks do not count before 3.11")
def test_a_cancellation_beside_a_loss_goes_on(domain):
    async def block(told):
        async with lockflight.Mutex("a", domain, loss="raise", on_loss=told):
            lose(domain)
            await asyncio.sleep(20)

    async def body():
        task = None
        task = asyncio.ensure_future(block(lambda of: task.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())


def test_a_task_has_its_function_called_in_the_loop(domain):
    async def body():
        calls = []
        told = asyncio.Event()

        def note(of):
            calls.append((of, threading.current_thread()))
            told.set()

        lock = lockflight.Mutex("a", domain, on_loss=note)
        async with lock:
            lose(domain)
            await asyncio.wait_for(told.wait(), 10)
            assert await lock.lost_async()
        assert calls == [(lock, threading.current_thread())]

    asyncio.run(body())


def test_a_reentrant_block_is_told_at_its_outer_end(domain):
    async def body():
        lock = lockflight.Mutex("a", domain, reentrant=True, loss="raise")
        ended = []
        with pytest.raises(lockflight.LockLost):
            async with lock:
                try:
                    async with lock:
                        lose(domain)
                        await asyncio.sleep(20)
                finally:
                    ended.append(1)
        assert ended == [1]

    asyncio.run(body())


def test_all_of_is_cancelled_once(domain):
    async def body():
        locks = lockflight.all_of(
            lockflight.Mutex("a", domain, loss="raise"),
            lockflight.Semaphore("b", 2, domain, loss="raise"),
        )
        with pytest.raises(lockflight.LockLost):
            async with locks:
                lose(domain)
                await asyncio.sleep(20)
        await asyncio.sleep(0.01)

    asyncio.run(body())


def test_many_tasks_are_all_told(domain):
    """More of them than threads wait, so that a poller acquires for some."""

    async def block(number):
        try:
            async with lockflight.Semaphore("s", 100, domain, loss="raise"):
                await asyncio.sleep(20)
        except lockflight.LockLost:
            return number

    async def body():
        tasks = [asyncio.ensure_future(block(i)) for i in range(60)]
        semaphore = lockflight.Semaphore("s", 100, domain)
        while len([u for u in semaphore.users() if u.what == "holds"]) < 60:
            await asyncio.sleep(0.02)
        lose(domain)
        assert await asyncio.wait_for(asyncio.gather(*tasks), 15) == list(range(60))

    asyncio.run(body())
