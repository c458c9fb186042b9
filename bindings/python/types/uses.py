"""Uses of lockflight as type checkers see them. A line that ends with the word `wrong` in a comment is
one that they refuse; they refuse no other one, and the types that assert_type names are those that
they find. Nothing of this is run."""

import asyncio
from typing import Any, Callable, Coroutine, Optional, Tuple

from typing_extensions import assert_type

import lockflight
from lockflight import AllOf, Mutex, Semaphore, SharedMutex

mutex = Mutex("a", domain="jobs", on_owner_died="raise", reentrant=True)
shared = SharedMutex("b")
gpu = Semaphore("gpu", 3)
told = Mutex("c", loss="raise", on_loss=lambda of: print(of))
Semaphore("gpu", 3, loss=None, on_loss=print, max_hold=1.5)
pair = Semaphore("gpu", [0, 1, 3], take=2)
assert_type(pair.units_held, Tuple[int, ...])
assert_type(pair.take, int)
pair.domain.set_units("gpu", (0, 1))
assert_type(pair.domain.units_of("gpu"), Tuple[int, ...])
Mutex("c", loss=3)  # wrong
Mutex("c", on_loss="print")  # wrong

assert_type(mutex.acquire(), bool)
assert_type(mutex.acquire(timeout=5), bool)
assert_type(mutex.acquire(False), bool)
assert_type(mutex.token, int)
assert_type(gpu.unit, Optional[int])
assert_type(mutex.users(), lockflight.LockUsers)
assert_type(mutex.domain, lockflight.Domain)

with mutex as held:
    assert_type(held, Mutex)
with shared.within(5) as held_in_time:
    assert_type(held_in_time, SharedMutex)
with shared.shared() as read:
    assert_type(read, SharedMutex)
with shared.within(5).shared() as read_in_time:
    assert_type(read_in_time, SharedMutex)
with gpu.within(1).within(2) as of_gpu:
    assert_type(of_gpu, Semaphore)
with lockflight.all_of("x", mutex, shared.shared(), gpu) as several:
    assert_type(several, AllOf)


class Special(Mutex):
    pass


with Special("c").within(1) as special:
    assert_type(special, Special)


@mutex
def half(of: int, name: str = "") -> float:
    return of / 2


@shared.shared()
async def wait(seconds: float) -> str:
    async with shared as held:
        assert_type(held, SharedMutex)
    async with mutex.within(1) as in_time:
        assert_type(in_time, Mutex)
    assert_type(await mutex.token_async(), int)
    assert_type(await mutex.valid_for_async(), float)
    return str(seconds)


assert_type(half(3, name="three"), float)
coroutine: "Coroutine[Any, Any, str]" = wait(1)
function: "Callable[[float], Coroutine[Any, Any, str]]" = wait
asyncio.run(coroutine)

election = lockflight.Election("leader", value="here")
with election as leads:
    assert_type(leads, lockflight.Election)
    assert_type(leads.leader(), Optional[lockflight.Leader])
for leader in election.observe():
    assert_type(leader, Optional[lockflight.Leader])


@lockflight.once("work", per="1h")
def work(size: int) -> str:
    return str(size)


assert_type(work(3), str)

Mutex()  # wrong
Mutex(1)  # wrong
Mutex("a", kinds="flight")  # wrong
Semaphore("gpu")  # wrong
Semaphore("gpu", "3")  # wrong
Semaphore("gpu", ["3"])  # wrong
Semaphore("gpu", 3, take="2")  # wrong
mutex.shared()  # wrong
mutex.acquire(timeout="5")  # wrong
mutex.within()  # wrong
mutex.token = 3  # wrong
half("three")  # wrong
held.no_such_thing()  # wrong
lockflight.all_of(3)  # wrong
text: str = mutex.acquire()  # wrong
work("3")  # wrong
lockflight.once(3)  # wrong
lockflight.Election("a", "d", "value")  # wrong
