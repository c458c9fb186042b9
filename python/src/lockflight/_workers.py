"""Threads that hold locks for tasks of asyncio.

A handle of a lock belongs to a thread, and a thread that waits for one lock cannot release another.
So an acquire borrows a thread of its own, which stays with the hold until the release. Threads that
are given back are used again, and end when nobody has borrowed them for a while.

A task can go away at any moment that it waits: it is cancelled, or its coroutine is closed, or its
loop. What a thread does is therefore ended by the thread itself, whether the task is there or not.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from typing import Any, Callable, List, Optional, Union

from . import _core

Held = Union[_core.Lock, _core.Units]

# How long a thread that nobody borrows keeps its slot.
IDLE_SECONDS = 5.0


class Worker:
    """One thread that does what it is given, in order. What it holds when it ends is freed as after
    a death."""

    def __init__(self) -> None:
        self._jobs: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        # A daemon: the process can end while it waits.
        threading.Thread(target=self._run, name="lockflight", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if _leave_idle(self):
                    return
                continue
            if job is None:
                return
            job()
            del job

    def post(self, job: Callable[[], None]) -> None:
        """`job` raises nothing."""
        self._jobs.put(job)

    def end(self) -> None:
        """After the jobs that it has."""
        self._jobs.put(None)

    async def call(self, call: Callable[[], Any]) -> Any:
        """What `call` returns in the thread. It is done also if the task goes away meanwhile."""
        reply = _Reply()
        self.post(lambda: reply.send(*_outcome(call)))
        return await reply.receive()


def _outcome(call: Callable[[], Any]) -> "tuple[Any, Optional[BaseException]]":
    try:
        return call(), None
    except BaseException as error:  # it is raised in the task
        return None, error


class _Reply:
    """What a thread sends to the task that waits for it, if the task is still there."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: "asyncio.Future[tuple[Any, Optional[BaseException]]]" = (
            self._loop.create_future()
        )

    def send(self, result: Any, error: Optional[BaseException]) -> bool:
        """False if the loop is closed."""

        def deliver() -> None:
            if not self._future.done():
                self._future.set_result((result, error))

        try:
            self._loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            return False
        return True

    async def receive(self) -> Any:
        result, error = await self._future
        if error is not None:
            raise error
        return result


class _Once:
    """Something of which one thread is the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def is_first(self) -> bool:
        return self._lock.acquire(blocking=False)


class _Acquire:
    """An acquire by a worker. It ends with a worker that holds and belongs to the task, or with one
    that is idle."""

    def __init__(self, lock: Held, shared: bool) -> None:
        self._lock, self._shared = lock, shared
        self._cancellation = _core.Cancellation()
        self._decided = _Once()  # whether the thread or the task has come to an end
        self._dropped = _Once()
        self._got = False
        self._reply = _Reply()
        self._worker = borrow()

    async def finish(self) -> Worker:
        self._worker.post(self._acquire)
        try:
            await self._reply.receive()
        except BaseException:
            self._cancellation.cancel()
            if not self._decided.is_first():  # the thread has the result, or has failed
                self._worker.post(self._drop)
            raise
        return self._worker

    # In the thread of the worker:

    def _acquire(self) -> None:
        lock = self._lock
        acquire = lock.acquire_unless
        if self._shared and isinstance(lock, _core.Lock):
            acquire = lock.acquire_shared_unless
        got, error = _outcome(lambda: acquire(self._cancellation))
        self._got = bool(got)
        if not self._decided.is_first() or not self._reply.send(None, error):
            self._drop()  # nobody waits for it

    def _drop(self) -> None:
        if not self._dropped.is_first():
            return
        if self._got:
            release(self._worker, self._lock, self._shared)
        else:
            give_back(self._worker)


async def acquire(lock: Held, shared: bool) -> Worker:
    """A worker that holds the lock."""
    return await _Acquire(lock, shared).finish()


def release(worker: Worker, lock: Held, shared: bool) -> Optional[BaseException]:
    """In the thread of the worker, which is idle then. After an error it ends: nobody borrows a
    thread that may hold a lock."""
    give = lock.release_shared if shared and isinstance(lock, _core.Lock) else lock.release
    _, error = _outcome(give)
    if error is None:
        give_back(worker)
    else:
        worker.end()
    return error


# All threads use it, also a garbage collection in the middle of any of these functions: so there is
# no lock, and each change is one call.
_idle: List[Worker] = []


def borrow() -> Worker:
    try:
        return _idle.pop()
    except IndexError:
        return Worker()


def give_back(worker: Worker) -> None:
    _idle.append(worker)


def _leave_idle(worker: Worker) -> bool:
    """False if somebody has borrowed it."""
    try:
        _idle.remove(worker)
    except ValueError:
        return False
    return True


# A fork's child has none of the threads.
os.register_at_fork(after_in_child=_idle.clear)
