"""Threads that hold locks for tasks of asyncio.

A handle of a lock belongs to a thread, and a thread that waits for one lock cannot release another.
So an acquire borrows a thread of its own, which stays with the hold until the release. Threads that
are given back are used again, and end when nobody has borrowed them for a while.

Each thread that waits costs memory and a slot, and each waiter of a domain looks for dead holders
among all slots. So at most MOST_WAITING threads of a process wait at a time. What more tasks want
is attempted in turn by one thread, a poller, which stands in no queue; whenever a thread has ended
its wait, the task that has waited longest at the poller gets one.

A task can go away at any moment that it waits: it is cancelled, or its coroutine is closed, or its
loop. What a thread does is therefore ended by the thread itself, whether the task is there or not.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Deque, List, Optional, Sequence, Set, Tuple

from . import _core

if TYPE_CHECKING:
    from ._locks import Named
    from ._way import Way

    _Parts = List[Tuple[Named, bool]]  # locks, and whether as a reader

# How long a thread that nobody borrows keeps its slot.
IDLE_SECONDS = 5.0
# How many threads of a process wait for locks at a time.
MOST_WAITING = 32
# How many locks one poller holds: a thread can hold 32, and an attempt needs some of them.
_MOST_HELD = 24
# A poller's rest between two rounds of attempts, which take a twentieth of its time at most.
_LEAST_REST = 0.005
_REST_BY_WORK = 19


class Worker:
    """One thread that does what it is given, in order. What it holds when it ends is freed as after
    a death."""

    def __init__(self) -> None:
        self.held = 0
        self._jobs: queue.SimpleQueue[Optional[Callable[[], object]]] = queue.SimpleQueue()
        # A daemon: the process can end while it waits.
        self._thread = threading.Thread(target=self._run, name="lockflight", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if _leave(_idle, self):
                    return
                continue
            if job is None:
                return
            job()
            del job

    def post(self, job: Callable[[], object]) -> None:
        """`job` raises nothing."""
        self._jobs.put(job)

    def end(self) -> None:
        """After the jobs that it has."""
        self._jobs.put(None)

    def await_end(self, until: float) -> None:
        self._thread.join(max(0.0, until - time.monotonic()))

    def post_end(self, end: Callable[[], object]) -> None:
        """What ends a hold. The process does not end in the middle of it, as of a death."""
        _ending.add(end)

        def job() -> None:
            end()
            _ending.discard(end)

        self.post(job)

    def post_give(self, give: Callable[[], Optional[BaseException]]) -> Reply:
        """The outcome is the error that `give` returns."""
        reply = Reply()
        self.post_end(lambda: reply.send(None, give()))
        return reply

    async def call(self, call: Callable[[], Any]) -> Any:
        """What `call` returns in the thread. It is done also if the task goes away meanwhile."""
        reply = Reply()
        self.post(lambda: reply.send(*_outcome(call)))
        result, error = await reply.outcome()
        if error is not None:
            raise error
        return result

    def holds(self, locks: int) -> None:
        """In its thread: so many more for a task."""
        self.held += locks

    def is_free(self, locks: int) -> None:
        """In its thread: it holds so many less."""
        self.held -= locks
        if self.held == 0:
            _idle.append(self)


def _outcome(call: Callable[[], Any]) -> Tuple[Any, Optional[BaseException]]:
    try:
        return call(), None
    except BaseException as error:  # it is raised in the task
        return None, error


class Reply:
    """What a thread sends to the task that waits for it, if the task is still there."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[Tuple[Any, Optional[BaseException]]] = (
            self._loop.create_future()
        )

    def send(self, result: Any, error: Optional[BaseException]) -> bool:
        """Returns false if the loop is closed."""

        def deliver() -> None:
            if not self._future.done():
                self._future.set_result((result, error))

        try:
            self._loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            return False
        return True

    async def outcome(self) -> Tuple[Any, Optional[BaseException]]:
        return await self._future


def _gone() -> asyncio.CancelledError:
    return asyncio.CancelledError("the task that called __aenter__ has ended")


class Once:
    """Something of which one thread is the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def is_first(self) -> bool:
        return self._lock.acquire(blocking=False)


class Acquire:
    """An acquire for a task. It ends with a worker that holds and belongs to the task, or with one
    that is free. Of several locks, one worker holds all."""

    def __init__(
        self, way: Way, parts: _Parts, until: Optional[float], loss_numbers: Sequence[int]
    ) -> None:
        self._way, self._parts, self._until = way, parts, until
        self._loss_numbers = loss_numbers
        self.alike = tuple((id(lock._tasks), shared) for lock, shared in parts)
        self.size = len(parts)
        self.refused_by: List[_Poller] = []  # those that hold one of the locks for another task
        self._cancellation = _core.Cancellation()
        self._decided = Once()  # whether the thread or the task has come to an end
        self._dropped = Once()
        self._got = False
        self._reply = Reply()
        self.worker: Optional[Worker] = None
        self.is_over = False  # the task has gone away
        self.is_done = False  # the worker holds, and the task knows

    async def finish(self, may_poll: bool) -> None:
        """Until the worker holds. Without `may_poll` the wait is always in a thread of its own, for
        locks of which an attempt takes long."""
        if not may_poll or _take_seat():
            self.wait_in_thread(has_seat=may_poll)
        else:
            _attempt_in_turn(self)
        try:
            _, error = await self._reply.outcome()
        except BaseException:
            self.give_up()
            raise
        if self.is_over:
            error = _gone()
        if error is not None:
            raise error
        self.is_done = True

    def give_up(self) -> None:
        """The task wants it no more, whether it waits or has it. In any thread."""
        if self.is_over:
            return
        self.is_over = True
        self._cancellation.cancel()
        self._reply.send(None, _gone())  # for another task that waits for it
        if not self._decided.is_first():  # the thread has the result, or has failed
            assert self.worker is not None
            self.worker.post_end(self._drop)

    @property
    def is_late(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def wait_in_thread(self, has_seat: bool) -> None:
        if self.is_over:  # at a poller
            return _give_seat() if has_seat else None
        worker = self.worker = borrow()
        worker.post(lambda: self._acquire(worker, has_seat))

    # In the thread of the worker:

    def _acquire(self, worker: Worker, has_seat: bool) -> None:
        left = -1 if self._until is None else max(self._until - time.monotonic(), 0)
        got, error = _outcome(lambda: self._way._acquire_unless(self._cancellation, left, self._loss_numbers))
        if has_seat:
            _give_seat()
        self._decide(bool(got), error)

    def attempt(self, poller: _Poller) -> Optional[bool]:
        """Whether it is at an end. Then the poller holds for the task, or serves nobody. None: the
        poller holds one of the locks for another task, so that another thread has to try."""
        if self.is_over:
            return True
        got, error = _outcome(lambda: self._way._attempt(self._loss_numbers))
        if error is None and isinstance(got, str) and self.is_late:
            late = got
            found, error = _outcome(lambda: self._way._not_acquired(late))
            error = error or found
        if error is None and got is not True:
            return None if got is None else False
        self.worker = poller
        self._decide(error is None, error)
        return True

    def _decide(self, got: bool, error: Optional[BaseException]) -> None:
        assert self.worker is not None
        self._got = got
        if got:
            self.worker.holds(self.size)
        if not self._decided.is_first() or not self._reply.send(None, error):
            self._drop()  # nobody waits for it
        elif error is not None and self._dropped.is_first():
            self.worker.is_free(0)

    def _drop(self) -> None:
        if not self._dropped.is_first():
            return
        assert self.worker is not None
        if self._got:
            give(self.worker, self._parts)
        else:
            self.worker.is_free(0)


class _Poller(Worker):
    """A thread that attempts what several tasks want, and holds for them what it gets."""

    def __init__(self) -> None:
        self._is_retired = False  # nobody gives it more
        self._pending: Deque[Acquire] = collections.deque()
        super().__init__()

    def is_free(self, locks: int) -> None:
        self.held -= locks

    def add(self, acquires: Deque[Acquire]) -> None:
        self.post(lambda: self._pending.extend(acquires))

    # In its thread:

    def _run(self) -> None:
        rest, last_round = _LEAST_REST, 0.0
        while True:
            busy = bool(self._pending) and self.held < _MOST_HELD
            try:
                self._do(rest if busy else IDLE_SECONDS)
            except queue.Empty:
                if not self._pending and self.held == 0:
                    if self._is_retired or _leave(_pollers, self):
                        return
            now = time.monotonic()
            if not self._pending or now < last_round + rest:
                continue
            if self.held >= _MOST_HELD:
                self._is_retired = self._is_retired or _leave(_pollers, self)
                _pass_on(self._pending, besides=[self])
                self._pending = collections.deque()
                continue
            self._attempt_all()
            last_round = time.monotonic()
            rest = max(_LEAST_REST, _REST_BY_WORK * (last_round - now))

    def _do(self, patience: float) -> None:
        job = self._jobs.get(timeout=patience)
        while job is not None:
            job()
            job = None if self._jobs.empty() else self._jobs.get()

    def seat_some(self) -> None:
        while self._pending and _take_seat():
            self._pending.popleft().wait_in_thread(has_seat=True)

    def _attempt_all(self) -> None:
        self.seat_some()
        left: Deque[Acquire] = collections.deque()
        failed = set()  # what one could not have, no other one can
        for each in self._pending:
            has_room = self.held == 0 or self.held + each.size <= _MOST_HELD
            if has_room and (each.alike not in failed or each.is_over or each.is_late):
                is_at_end = each.attempt(self)
                if is_at_end is None:
                    each.refused_by.append(self)
                    _pass_on(collections.deque([each]), besides=each.refused_by)
                    continue
                if is_at_end:
                    continue
                failed.add(each.alike)
            left.append(each)
        self._pending = left


def give(worker: Worker, parts: _Parts, as_death: bool = False) -> Optional[BaseException]:
    """In the thread of the worker, which does not hold them any more then, whatever went wrong."""
    first: Optional[BaseException] = None
    for lock, shared in reversed(parts):
        error: Optional[BaseException] = None
        if not as_death:
            _, error = _outcome(lambda: lock._leave(shared))
        if as_death or error is not None:
            lock._abandon()
        first = first or error
    worker.is_free(len(parts))
    return first


async def call_aside(call: Callable[[], Any]) -> Any:
    """What `call` returns in a thread, which may take long."""
    worker = borrow()

    def job() -> Any:
        try:
            return call()
        finally:
            worker.is_free(0)

    return await worker.call(job)


# All threads use it, also a garbage collection in the middle of any of these functions: so there is
# no lock, and each change is one call.
_idle: List[Worker] = []
_pollers: List[_Poller] = []  # those that can be given more
_seats: List[None] = [None] * MOST_WAITING  # one for each thread that may begin to wait
_ending: Set[Callable[[], object]] = set()  # what ends holds, and is not done yet


def borrow() -> Worker:
    try:
        return _idle.pop()
    except IndexError:
        return Worker()


def _leave(among: List[Any], worker: Worker) -> bool:
    """False if somebody has borrowed it."""
    try:
        among.remove(worker)
    except ValueError:
        return False
    return True


def _take_seat() -> bool:
    try:
        _seats.pop()
    except IndexError:
        return False
    return True


def _give_seat() -> None:
    _seats.append(None)
    for poller in list(_pollers):
        poller.post(poller.seat_some)


def _attempt_in_turn(acquire: Acquire) -> None:
    _pass_on(collections.deque([acquire]), besides=[])


def _pass_on(acquires: Deque[Acquire], besides: List[_Poller]) -> None:
    for poller in list(_pollers):
        if poller not in besides and _leave(_pollers, poller):
            break
    else:
        poller = _Poller()
    poller.add(acquires)
    _pollers.append(poller)


def _after_fork() -> None:
    """A child has none of the threads."""
    _idle.clear()
    _pollers.clear()
    _seats[:] = [None] * MOST_WAITING
    _ending.clear()


def _at_exit() -> None:
    """Lets holds end that are ending, and threads that hold nothing give their slots back: else they
    would count as deaths."""
    until = time.monotonic() + 1
    while _ending and time.monotonic() < until:
        time.sleep(0.001)
    ended: List[Worker] = []
    while _idle:
        ended.append(borrow())
        ended[-1].end()
    for each in ended:
        each.await_end(until)


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork)
