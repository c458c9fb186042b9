"""Threads that hold locks for tasks of asyncio.

A handle of a lock belongs to a thread, and a thread that waits for one lock cannot release another.
So an acquire borrows a thread of its own, which stays with the hold until the release. Threads that
are given back are used again.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from typing import Any, Callable, List, Optional, Tuple

_Job = Tuple[Callable[[], Any], Callable[[Any, Optional[BaseException]], None]]


class Worker:
    """One thread that does what it is given, in order."""

    def __init__(self) -> None:
        self._jobs: "queue.SimpleQueue[_Job]" = queue.SimpleQueue()
        # A daemon: what it holds when the process ends is freed as after a death.
        threading.Thread(target=self._run, name="lockflight", daemon=True).start()

    def _run(self) -> None:
        while True:
            call, done = self._jobs.get()
            result, error = None, None
            try:
                result = call()
            except BaseException as e:  # the caller is told of it
                error = e
            done(result, error)
            del call, done, result, error

    def post(
        self, call: Callable[[], Any], done: Callable[[Any, Optional[BaseException]], None]
    ) -> None:
        self._jobs.put((call, done))

    async def call(
        self, call: Callable[[], Any], abandoned: Callable[[Any, Optional[BaseException]], None]
    ) -> Any:
        """Runs `call` in the thread. If the task is cancelled meanwhile, `abandoned` gets the result
        when there is one, in this thread or in the worker's."""
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[Any]" = loop.create_future()
        # Either the task or the thread, whichever comes first, decides who gets the result.
        decided = threading.Lock()

        def deliver(result: Any, error: Optional[BaseException]) -> None:
            if future.cancelled():
                abandoned(result, error)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def done(result: Any, error: Optional[BaseException]) -> None:
            if not decided.acquire(blocking=False):
                abandoned(result, error)
                return
            try:
                loop.call_soon_threadsafe(deliver, result, error)
            except RuntimeError:  # the loop is closed
                abandoned(result, error)

        self.post(call, done)
        try:
            return await future
        except asyncio.CancelledError:
            if not decided.acquire(blocking=False) and future.done() and not future.cancelled():
                # The result was delivered before the cancellation.
                abandoned(None if future.exception() else future.result(), future.exception())
            raise


_idle: List[Worker] = []
_guard = threading.Lock()


def borrow() -> Worker:
    with _guard:
        return _idle.pop() if _idle else Worker()


def give_back(worker: Worker) -> None:
    with _guard:
        _idle.append(worker)


def _after_fork() -> None:
    """The child has none of the threads."""
    global _guard
    _idle.clear()
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
