"""Holds of asyncio's tasks.

Tasks of one loop that want a lock alone wait for each other here, in order: so a process needs one
thread for all of them, and one slot of the domain.
"""

from __future__ import annotations

import asyncio
import collections
import os
import threading
from typing import Any, Deque, Dict, Tuple
import weakref

from . import _core, _workers

_Loop = Any


class _Gate:
    """Tasks of one loop pass it one at a time."""

    def __init__(self) -> None:
        self.is_free = True
        self._waiters: "Deque[asyncio.Future[None]]" = collections.deque()

    async def enter(self) -> None:
        if self.is_free:
            self.is_free = False
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave()  # it was this task's turn
            elif turn in self._waiters:
                self._waiters.remove(turn)
            raise

    def leave(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if turn.done():
                continue
            try:
                turn.set_result(None)
            except RuntimeError:  # the loop is closed
                continue
            return
        self.is_free = True


def _error(reason: str, text: str) -> _core.DomainError:
    error = _core.DomainError(text)
    error.reason = reason
    return error


def _task() -> Any:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


def _is_alone(lock: _workers.Held, shared: bool) -> bool:
    """Whether tasks of one process wait for each other: readers, and holders of units, do not."""
    return not shared and not isinstance(lock, _core.Units)


class TaskHolds:
    """The threads that hold one lock for tasks. All Mutex objects of a name share it."""

    def __init__(self, may_poll: bool) -> None:
        self._may_poll = may_poll
        self._holders: Dict[Tuple[Any, bool], _workers.Worker] = {}
        self._again: Dict[Any, int] = {}  # by task: acquires of a reentrant lock beside the first
        self._gates: Dict[_Loop, _Gate] = {}
        self._of_parent = 0

    async def acquire(self, lock: _workers.Held, shared: bool, reentrant: bool) -> None:
        """Raises DomainError with the reason "held" if the task holds the lock, unless it holds it
        alone and the lock is reentrant."""
        task = _task()
        if reentrant and not shared and (task, False) in self._holders:
            self._again[task] = self._again.get(task, 0) + 1
            return
        if (task, True) in self._holders or (task, False) in self._holders:
            raise _error("held", f"acquire of {lock!r}, which this task holds already")
        if not _is_alone(lock, shared):
            self._holders[task, shared] = await _workers.acquire(lock, shared, self, self._may_poll)
            return
        loop = asyncio.get_running_loop()
        gate = self._gates.setdefault(loop, _Gate())
        try:
            await gate.enter()
        except BaseException:
            self._forget_if_free(loop, gate)
            raise
        try:
            self._holders[task, shared] = await _workers.acquire(lock, shared, self, self._may_poll)
        except BaseException:
            self._leave_gate(loop)
            raise

    async def release(self, lock: _workers.Held, shared: bool) -> None:
        task = _task()
        if not shared and task in self._again:
            self._again[task] -= 1
            if self._again[task] == 0:
                del self._again[task]
            return
        worker = self._holders.pop((task, shared), None)
        if worker is None:
            if self._of_parent > 0:
                self._of_parent -= 1
                return
            raise _error("not_held", f"release of {lock!r}, which this task does not hold")
        loop = asyncio.get_running_loop()
        try:
            error = await worker.call(lambda: _workers.release(worker, lock, shared))
        finally:
            if _is_alone(lock, shared):
                self._leave_gate(loop)
        if error is not None:
            raise error

    def after_fork(self) -> None:
        """The child holds nothing, but may leave blocks in which its parent holds."""
        self._of_parent += len(self._holders) + sum(self._again.values())
        self._again.clear()
        self._holders.clear()
        self._gates.clear()

    def _leave_gate(self, loop: _Loop) -> None:
        gate = self._gates[loop]
        gate.leave()
        self._forget_if_free(loop, gate)

    def _forget_if_free(self, loop: _Loop, gate: _Gate) -> None:
        """A loop that is no more is not to be kept for its gate."""
        if gate.is_free and self._gates.get(loop) is gate:
            del self._gates[loop]

    def worker(self, lock: _workers.Held) -> _workers.Worker:
        """The thread that holds for the current task."""
        task = _task()
        worker = self._holders.get((task, False)) or self._holders.get((task, True))
        if worker is None:
            raise _error("not_held", f"{lock!r} is not held by this task")
        return worker


_known: "weakref.WeakValueDictionary[Tuple[str, str], TaskHolds]" = weakref.WeakValueDictionary()
# Held while a name is looked up in _known, whose setdefault is several steps. It is reentrant,
# because a garbage collection in the middle may run a finalizer that makes a lock object.
_finding = threading.RLock()


def holds_of(path: str, name: str, may_poll: bool) -> TaskHolds:
    """Of the lock of that name in the domain whose file is there. `may_poll` is false in the domain
    of a cluster, where an attempt asks other hosts."""
    with _finding:
        return _known.setdefault((path, name), TaskHolds(may_poll))


def _after_fork() -> None:
    global _finding
    _finding = threading.RLock()  # another thread of the parent may have held it
    for each in list(_known.values()):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)
