"""Semaphore: at most N holders of a name, in threads, processes and tasks."""

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time

import pytest

import lockflight
from conftest import in_child, in_thread, until_waits
from lockflight import DomainError, Mutex, OwnerDied, Semaphore


def test_each_holder_has_a_unit(domain):
    first, second, third = (Semaphore("s", 2, domain=domain) for _ in range(3))
    assert first.units == 2 and first.unit is None and not first.held and not first.locked()
    with first as entered:
        assert entered is first and first.unit == 0 and first.held and first.token > 0
        assert second.acquire() and second.unit == 1
        assert third.locked()
        assert in_thread(lambda: third.acquire(blocking=False)) is False
        start = time.monotonic()
        assert in_thread(lambda: third.acquire(timeout=0.1)) is False
        assert 0.09 < time.monotonic() - start < 2
        second.release()
        assert third.acquire(timeout=5) and third.unit == 1
        third.release()
    assert first.unit is None and first.still_valid()


def test_a_time_limit_behind_another_that_waits(domain):
    """The one in front waits until the test is over: a limit that was its limit would not end."""
    holder, waiter, other = (Semaphore("s", 1, domain=domain) for _ in range(3))
    with holder:
        front = threading.Thread(target=lambda: waiter.acquire() and waiter.release())
        front.start()
        until_waits(holder)
        assert in_thread(lambda: other.acquire(timeout=0.1)) is False
    front.join()


def test_threads_of_one_object(domain):
    s = Semaphore("s", 3, domain=domain)
    inside, most, lock = 0, 0, threading.Lock()
    units = []

    def work():
        nonlocal inside, most
        for _ in range(30):
            with s:
                with lock:
                    inside += 1
                    most = max(most, inside)
                    units.append(s.unit)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= 3 and len(units) == 150 and set(units) <= {0, 1, 2}


def test_what_is_refused(domain):
    s = Semaphore("s", 2, domain=domain)
    with s:
        for wrong in (lambda: Semaphore("s", 3, domain=domain), lambda: Mutex("s", domain=domain)):
            with pytest.raises(ValueError, match="'s' is a semaphore of 2 units .made by process"):
                wrong()
        with pytest.raises(DomainError) as error:
            s.acquire()
        assert error.value.reason == "held"
    with pytest.raises(DomainError) as error:
        s.release()
    assert error.value.reason == "not_held"
    for units in (0, -1, 1025, 2**40):
        with pytest.raises(ValueError, match="accepted: 1 to 1024"):
            Semaphore("t", units, domain=domain)
    for units in ("2", 2.0, True, None):
        with pytest.raises(TypeError, match="accepted: 1 to 1024"):
            Semaphore("t", units, domain=domain)
    with pytest.raises(ValueError, match="accepted: 'tell', 'raise'"):
        Semaphore("t", 2, domain=domain, on_owner_died="x")


@pytest.mark.parametrize("how", ["tell", "raise"])
def test_a_killed_holder(domain, how):
    def body():
        Semaphore("s", 1, domain=domain).acquire()
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(body) == -signal.SIGKILL
    s = Semaphore("s", 1, domain=domain, on_owner_died=how)
    if how == "raise":
        with pytest.raises(OwnerDied, match="'s'"):
            s.acquire()
        assert not s.held
    s = Semaphore("s", 1, domain=domain)
    with s:
        assert s.owner_died
        s.mark_consistent()
        assert not s.owner_died


def test_what_the_domain_says(domain):
    s = Semaphore("s", 2, domain=domain)
    with s:
        (lock,) = s.domain.locks()
        assert (lock.name, lock.kind, lock.units) == ("s", "semaphore", 2)
        (use,) = lock.uses
        assert (use.pid, use.what, use.unit) == (os.getpid(), "holds", 0)
        assert "lock 's' (semaphore of 2)" in s.domain.show()
        assert "holds unit 0" in s.domain.show()
    assert s.domain.forget("s") and s.domain.locks() == []


def use_in_another_process(s, results):
    with s:
        results.send((s.name, s.units, s.unit))


def test_it_goes_to_other_processes(domain):
    s = Semaphore("s", 2, domain=domain)
    copy = pickle.loads(pickle.dumps(s))
    assert (copy.name, copy.units, copy.domain.name) == ("s", 2, domain)
    with s:
        for method in ("spawn", "fork"):
            context = multiprocessing.get_context(method)
            here, there = context.Pipe(duplex=False)
            child = context.Process(target=use_in_another_process, args=(s, there))
            child.start()
            assert here.poll(60), (method, child.exitcode, s.domain.show())
            assert here.recv() == ("s", 2, 1)
            child.join()
    assert repr(s) == f"lockflight.Semaphore('s', 2, domain='{domain}')"


def test_a_child_does_not_release_what_its_parent_holds(domain):
    s = Semaphore("s", 1, domain=domain)
    with s:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if not s.held and s.unit is None else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert s.held and in_thread(lambda: s.acquire(blocking=False)) is False


def test_a_wait_is_interrupted_by_a_signal(domain):
    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    holder = Semaphore("s", 1, domain=domain)
    ready, done = threading.Event(), threading.Event()

    def hold():
        with holder:
            ready.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Rang):
            Semaphore("s", 1, domain=domain).acquire()
    finally:
        signal.signal(signal.SIGALRM, before)
        done.set()
        thread.join()


def test_tasks(domain):
    s = Semaphore("s", 2, domain=domain)
    inside, most = 0, 0

    async def work():
        nonlocal inside, most
        for _ in range(5):
            async with s:
                assert await s.unit_async() in (0, 1)
                assert await s.token_async() > 0
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                while most < 2 and time.monotonic() < until:  # another task is on its way
                    await asyncio.sleep(0.001)
                inside -= 1

    async def main():
        await asyncio.gather(*(work() for _ in range(4)))

    until = time.monotonic() + 30
    asyncio.run(main())
    assert most == 2 and not s.locked()


def test_a_task_that_is_cancelled_leaves_the_queue(domain):
    s = Semaphore("s", 1, domain=domain)

    async def wait():
        async with s:
            raise AssertionError("nobody released it")

    async def main():
        async with s:
            waiter = asyncio.create_task(wait())
            await asyncio.get_running_loop().run_in_executor(None, until_waits, s)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            until = time.monotonic() + 10
            while any(u.what == "waits" for lock in s.domain.locks() for u in lock.uses):
                assert time.monotonic() < until
                await asyncio.sleep(0.002)

    asyncio.run(main())
    assert lockflight.Semaphore("s", 1, domain=domain).acquire(blocking=False)


def test_several_units(domain):
    s = Semaphore("s", 4, domain=domain, take=2)
    other = Semaphore("s", 4, domain=domain, take=2)
    rest = Semaphore("s", 4, domain=domain)
    assert (s.units, s.take, s.units_held) == (4, 2, ())
    with s:
        assert (s.unit, s.units_held) == (0, (0, 1))
        (use,) = s.domain.locks()[0].uses
        assert (use.unit, use.units_held) == (0, (0, 1))
        assert "holds units 0, 1" in s.domain.show()
        with rest:
            assert rest.unit == 2
            assert in_thread(lambda: other.acquire(timeout=0.02)) is False
            with pytest.raises(DomainError, match="hold 3 of its 4 units, and this one takes 2"):
                other.acquire()
        assert in_thread(lambda: other.acquire(blocking=False) and other.units_held) == (2, 3)
    assert (s.unit, s.units_held) == (None, ())
    copy = pickle.loads(pickle.dumps(s))
    assert repr(copy) == repr(s) == f"lockflight.Semaphore('s', 4, domain='{domain}', take=2)"
    assert copy.take == 2


def test_units_by_number(domain):
    s = Semaphore("s", [0, 3, 5], domain=domain, take=2)
    assert s.units == 3 and repr(s) == f"lockflight.Semaphore('s', [0, 3, 5], domain='{domain}', take=2)"
    with pickle.loads(pickle.dumps(s)) as held:
        assert held.units_held == (0, 3)
        (user,) = s.users()
        assert (user.unit, user.units_held) == (0, (0, 3))
        assert not s.locked()
    with pytest.raises(ValueError, match="is a semaphore of the units 0, 3 and 5"):
        Semaphore("s", 3, domain=domain)
    for wrong in ([], [1, 1], [0, 62], (-1,)):
        with pytest.raises(ValueError, match="accepted: 1 to 1024, or a list of different numbers"):
            Semaphore("t", wrong, domain=domain)
    for wrong in ([0.5], ["1"], [True], {1, 2}):
        with pytest.raises(TypeError, match="accepted: 1 to 1024, or a list"):
            Semaphore("t", wrong, domain=domain)
    for take in (0, 4, 2**40):
        with pytest.raises(ValueError, match="accepted: 1 to 3"):
            Semaphore("t", [1, 2, 3], domain=domain, take=take)
    with pytest.raises(ValueError, match="accepted: 1 to 31"):
        Semaphore("t", 40, domain=domain, take=32)


def test_units_are_set_while_they_are_used(domain):
    s = Semaphore("s", 2, domain=domain)
    assert s.domain.units_of("s") == ()
    with s:
        s.domain.set_units("s", [1, 4])
        assert s.held and s.unit == 0
        assert s.domain.units_of("s") == (1, 4)
        other = Semaphore("s", 9, domain=domain, take=2)
        assert in_thread(lambda: other.acquire() and other.units_held) == (1, 4)
    s.domain.set_units("s", 1)
    with pytest.raises(ValueError, match="take 2 of 1 unit, to which it was set"):
        other.acquire()
    with pytest.raises(ValueError, match="accepted: 1 to 1024"):
        s.domain.set_units("s", 0)


def test_a_task_has_several_units(domain):
    s = Semaphore("s", 3, domain=domain, take=2)

    async def main():
        async with s:
            assert await s.unit_async() == 0
            assert await s.units_held_async() == (0, 1)

    asyncio.run(main())
