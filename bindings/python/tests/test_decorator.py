"""Locks as decorators, and the errors when a hold crosses threads or forks."""

import asyncio
import functools
import os
import threading

import pytest

from conftest import in_child, in_thread
from lockflight import DomainError, Mutex, NotAcquired, Semaphore, SharedMutex, all_of


def test_each_call_holds_the_lock(domain):
    mutex = Mutex("a", domain=domain)

    @mutex
    def add(one, other=2):
        """Adds."""
        assert mutex.held
        return one + other

    assert add(1) == 3 and add(1, other=4) == 5
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert not mutex.held

    @mutex
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not mutex.locked()


def test_a_method(domain):
    class Counter:
        value = 0

        @Mutex("a", domain=domain)
        def add(self):
            self.value += 1
            return self.value

    counter = Counter()
    assert [counter.add(), counter.add()] == [1, 2]


def test_other_locks(domain):
    gpu, shared = Semaphore("gpu", 2, domain=domain), SharedMutex("s", domain=domain)
    both = all_of("a", "b", domain=domain)

    @gpu
    @shared.shared()
    @both
    def work():
        return gpu.unit, shared.locked(), both.held

    assert work() == (0, True, True)
    assert not (gpu.held or shared.locked() or both.held)

    @Mutex("a", domain=domain).within(0.05)
    def late():
        return 1

    assert late() == 1
    holder = Mutex("a", domain=domain)
    assert in_thread(holder.acquire)  # the thread has ended: as after a death
    assert late() == 1
    with holder, pytest.raises((NotAcquired, DomainError)):
        late()


def test_coroutines(domain):
    inside, most = 0, 0

    @Mutex("a", domain=domain)
    async def work():
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.001)
        inside -= 1

    async def main():
        await asyncio.gather(*(work() for _ in range(5)))

    asyncio.run(main())
    assert most == 1


def test_what_is_refused(domain):
    mutex = Mutex("a", domain=domain)

    def numbers():
        yield 1

    async def numbers_later():
        yield 1

    class Numbers:
        def __call__(self):
            yield 1

    for late in (numbers, numbers_later, Numbers(), functools.partial(numbers)):
        with pytest.raises(TypeError, match="whose body runs after the call: a generator"):
            mutex(late)
    for other in (7, Numbers, staticmethod(len), property(len)):
        with pytest.raises(TypeError, match="accepted: a function or an async function"):
            mutex(other)

    @mutex
    def again():
        again()

    with pytest.raises(DomainError) as error:
        again()
    assert error.value.reason == "held" and not mutex.held


def test_a_function_that_returns_what_runs_later_is_refused(domain):
    mutex = Mutex("a", domain=domain)

    async def work():
        pass

    for late in (lambda: (n for n in (1,)), lambda: work()):
        with pytest.raises(TypeError, match="whose body runs after the call"):
            mutex(late)()
        assert not mutex.locked()


def test_an_object_with_an_async_call_is_one_coroutine_function(domain):
    mutex = Mutex("a", domain=domain)

    class Work:
        async def __call__(self):
            return mutex.locked()

    assert asyncio.run(mutex(Work())())
    assert not mutex.locked()


@pytest.mark.parametrize("make", [Mutex, lambda name, domain: Semaphore(name, 2, domain)])
def test_a_release_by_another_thread_says_so(domain, make):
    lock = make("a", domain=domain)

    def release():
        with pytest.raises(DomainError) as error:
            lock.release()
        return error.value.reason, str(error.value)

    with lock:
        reason, text = in_thread(release)
        assert reason == "not_held"
        assert "'a', which another thread of this process holds (accepted: the thread that" in text
        assert lock.held
    reason, text = release()
    assert reason == "not_held" and text.endswith("'a', which this thread does not hold")


def test_a_release_in_a_program_of_one_thread_blames_no_other_thread(domain):
    lock, same = (SharedMutex("a", domain=domain) for _ in range(2))
    with lock:
        with pytest.raises(DomainError, match=r"holds alone \(accepted: release\)"):
            lock.release_shared()
        with pytest.raises(DomainError, match="this thread holds by another object of that name"):
            same.release()
    with lock.shared(), pytest.raises(DomainError, match=r"as a reader \(accepted: release_shared\)"):
        lock.release()


def test_a_release_of_what_another_process_holds_names_it(domain):
    mutex = Mutex("a", domain=domain)
    held, end = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end[1])  # else its read would not end with the parent
        with mutex:
            os.write(held[1], b"1")
            os.read(end[0], 1)
        os._exit(0)
    os.read(held[0], 1)
    with pytest.raises(DomainError, match=f"does not hold, but process {child}$"):
        mutex.release()
    os.close(end[1])
    os.waitpid(child, 0)


def test_a_release_by_a_child_says_so(domain):
    mutex = Mutex("a", domain=domain)

    def body():
        for _ in range(2):
            try:
                mutex.release()
                return 1
            except DomainError as error:
                if "the parent of this process held when it forked" not in str(error):
                    return 2
                if error.reason != "not_held":
                    return 3
        return 0

    with mutex:
        assert in_child(body) == 0
        assert mutex.held and os.getpid() == mutex.users()[0].pid
