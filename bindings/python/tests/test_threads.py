"""Threads that use the same objects at the same time. Without the interpreter's lock, in a
free-threaded Python, nothing but lockflight protects what they count."""

import asyncio
import gc
import subprocess
import sys
import sysconfig
import threading
import time
import weakref

import pytest

import lockflight
from conftest import in_child
from lockflight import DomainError, Mutex, Semaphore, SharedMutex, all_of

THREADS = 4
ROUNDS = 400


def run_threads(body, threads=THREADS):
    """Runs `body(number)` in so many threads, which begin together, and raises what one raised."""
    begin, errors = threading.Barrier(threads), []

    def run(number):
        try:
            begin.wait()
            body(number)
        except BaseException as error:
            errors.append(error)
            begin.abort()

    all_threads = [threading.Thread(target=run, args=(each,)) for each in range(threads)]
    for each in all_threads:
        each.start()
    for each in all_threads:
        each.join()
    if errors:
        raise errors[0]


@pytest.fixture
def switching():
    """An interpreter that has a lock gives it to another thread after a microsecond."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Counter:
    """What is lost if two threads are in add() at once."""

    def __init__(self):
        self.value, self.copy = 0, 0

    def add(self):
        value = self.value
        assert self.copy == value
        self.value = value + 1
        self.copy = value + 1


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python is not free-threaded"
)
def test_the_interpreter_does_not_take_its_lock_again():
    # An extension module that does not say that it needs none makes the interpreter take it.
    says = "import sys, lockflight; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-W", "error", "-c", says], check=True)


def test_no_update_is_lost(domain):
    mutex = Mutex("a", domain=domain, reentrant=True)
    counter = Counter()

    @mutex
    def add():
        counter.add()

    def body(number):
        ways = (mutex, mutex.within(60), all_of(mutex))
        for each in range(ROUNDS):
            with ways[(number + each) % len(ways)]:
                counter.add()
            add()
            assert mutex.acquire() and mutex.acquire(timeout=60)
            counter.add()
            mutex.release()
            counter.add()
            assert mutex.held and mutex.token > 0
            mutex.release()
            assert not mutex.held

    run_threads(body)
    assert counter.value == 4 * ROUNDS * THREADS


def test_readers_see_whole_updates(domain):
    mutex = SharedMutex("a", domain=domain)
    counter = Counter()

    def body(number):
        for each in range(ROUNDS):
            if (number + each) % 4 == 0:
                with mutex:
                    counter.add()
            else:
                with mutex.shared():
                    assert counter.value == counter.copy

    run_threads(body)
    assert counter.value == THREADS * ROUNDS // 4


def test_each_unit_has_one_holder(domain):
    semaphore = Semaphore("a", 3, domain=domain)
    counters = [Counter() for _ in range(3)]

    def body(_):
        for _ in range(ROUNDS):
            with semaphore:
                counters[semaphore.unit].add()

    run_threads(body, threads=6)
    assert sum(each.value for each in counters) == 6 * ROUNDS


def test_objects_that_come_and_go(domain):
    """Threads make and drop objects of one name, and collect each other's garbage."""
    counter = Counter()
    last = [None]

    def body(number):
        for each in range(ROUNDS // 4):
            mutex = Mutex("a", domain=domain)
            cycle = [mutex]
            cycle.append(cycle)
            other, last[0] = last[0], mutex  # the thread that made an object may not drop it
            with mutex:
                counter.add()
            if other is not None:
                with other:
                    counter.add()
            if each % 20 == number:
                gc.collect()

    run_threads(body)
    assert counter.value == 2 * THREADS * (ROUNDS // 4) - 1


def test_errors_stay_in_their_thread(domain):
    mutex = Mutex("a", domain=domain)

    def body(_):
        for _ in range(ROUNDS // 4):
            with pytest.raises(DomainError) as error:
                mutex.release()
            assert error.value.reason == "not_held"
            with mutex:
                with pytest.raises(DomainError) as error:
                    mutex.acquire()
                assert error.value.reason == "held"
            with pytest.raises(ValueError):
                mutex.acquire(timeout=-2)

    run_threads(body)


class SlowReference(weakref.KeyedRef):
    """What a WeakValueDictionary makes between finding nothing and noting what it was given."""

    def __new__(cls, *arguments):
        time.sleep(0.01)
        return super().__new__(cls, *arguments)


def test_locks_of_one_name_share_their_tasks(domain, monkeypatch):
    """Else a task would wait for itself, with another object of the name, and not be told so."""
    lockflight.Domain(domain)
    monkeypatch.setattr(weakref, "KeyedRef", SlowReference)
    for name in range(5):
        made = [None] * THREADS

        def body(number):
            made[number] = Mutex(f"lock {name}", domain=domain)

        run_threads(body)
        assert len({id(each._tasks) for each in made}) == 1


def test_loops_in_several_threads(domain, switching):
    mutex, semaphore = SharedMutex("a", domain=domain), Semaphore("b", 2, domain=domain)
    counter, counters = Counter(), [Counter(), Counter()]
    added, cancelled = [], []

    async def work(number):
        async with mutex:
            counter.add()
        async with mutex.shared():
            assert counter.value == counter.copy
        async with semaphore:
            counters[await semaphore.unit_async()].add()
        added.append(number)

    async def work_until_cancelled(number):
        task = asyncio.ensure_future(work(number))
        await asyncio.sleep(0.0005 * (number % 5))
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            cancelled.append(number)

    async def everything():
        calls = [work(each) if each % 2 else work_until_cancelled(each) for each in range(24)]
        await asyncio.gather(*calls)

    run_threads(lambda _: asyncio.run(everything()))
    assert len(added) + len(cancelled) == 24 * THREADS
    assert len(added) >= 12 * THREADS and counter.value >= len(added)
    assert mutex.acquire(timeout=60) and semaphore.acquire(timeout=60)
    mutex.release()
    semaphore.release()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_in_the_middle(domain):
    mutex = Mutex("a", domain=domain)
    counter, is_over = Counter(), threading.Event()

    def use():
        with mutex:
            return 0

    def body(number):
        if number == 0:
            try:
                for _ in range(20):
                    assert in_child(use) == 0
            finally:
                is_over.set()
            return
        while not is_over.is_set():
            with Mutex("a", domain=domain):
                counter.add()

    run_threads(body)
    assert counter.value > 0
