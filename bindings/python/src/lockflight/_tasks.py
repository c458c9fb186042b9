"""Holds of asyncio's tasks.

A hold belongs to the task that has called `__aenter__`, whichever task runs what that returns. If
that task ends, or its loop is dropped with it, while it holds, the lock is free as after a death.

Tasks of one loop that want a lock alone wait for each other here, in order: so a process needs one
thread for all of them, and one slot of the domain.
"""

from __future__ import annotations

import asyncio
import collections
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Tuple
import weakref

from . import _core, _losses, _workers

if TYPE_CHECKING:
    from ._locks import Named
    from ._way import Way

_Loop = Any
_Task = Any  # None: nobody, such as a thread that has its loop run what __aenter__ returns


class _Gate:
    """One task of a loop has passed it; the others wait for it in order. While none has passed it
    there is no gate."""

    def __init__(self, gates: Dict[_Loop, _Gate]) -> None:
        self._loop, self._gates = asyncio.get_running_loop(), gates
        self._waiters: Deque[asyncio.Future[bool]] = collections.deque()
        gates[self._loop] = self

    async def wait(self, until: Optional[float]) -> bool:
        """True at this task's turn; false if it is too late."""
        turn: asyncio.Future[bool] = self._loop.create_future()
        self._waiters.append(turn)
        timer = None
        if until is not None:
            timer = self._loop.call_later(until - time.monotonic(), _set, turn, False)
        try:
            return await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if turn in self._waiters:
                self._waiters.remove(turn)

    def leave(self) -> None:
        """In any thread."""
        if asyncio._get_running_loop() is self._loop:
            return self._let_next()
        try:
            self._loop.call_soon_threadsafe(self._let_next)
        except RuntimeError:  # the loop is closed: it is not to be kept for its gate
            self._gates.pop(self._loop, None)

    def _let_next(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(True)
                return
        self._gates.pop(self._loop, None)


def _set(turn: asyncio.Future[bool], value: bool) -> None:
    if not turn.done():
        turn.set_result(value)


def current() -> _Task:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


def _error(reason: str, text: str) -> _core.DomainError:
    error = _core.DomainError(text)
    error.reason = reason
    return error


class Hold:
    """What a task holds by one lock object, or is about to. It is noted before the acquire begins,
    so that whatever exception ends the task, a signal handler's too, ends the hold as well."""

    again = 0  # acquires of a reentrant lock beside the first
    gate: Optional[_Gate] = None
    owner: Any = None
    scope: Optional[Scope] = None

    def __init__(self, lock: Named, shared: bool, acquire: _workers.Acquire) -> None:
        self.lock, self.shared, self.acquire = lock, shared, acquire
        self._given = _workers.Once()

    @property
    def worker(self) -> _workers.Worker:
        """The thread that holds."""
        assert self.acquire.worker is not None
        return self.acquire.worker

    def give(self, as_death: bool = False) -> Optional[BaseException]:
        """In the thread of the worker. The first time only: later the thread serves others."""
        if not self._given.is_first():
            return None
        return _workers.give(self.worker, [(self.lock, self.shared)], as_death)

    def drop(self, as_death: bool) -> None:
        """In any thread."""
        if self.acquire.is_done:
            self.worker.post_end(lambda: self.give(as_death))
        else:
            self.acquire.give_up()
        if self.gate is not None:
            self.gate.leave()


class Scope:
    """Reports the loss of a hold to the task whose block this is: the lock's function is called in the
    loop, and the block is cancelled unless its end has begun."""

    _is_quick = True

    def __init__(self, lock: Named, task: _Task) -> None:
        self._lock, self._task = lock, task
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self.has_cancelled = False
        self.number = _losses.number_for(self)
        # Before Python 3.11 a task does not know how often it was cancelled.
        self.cancelled_before = task.cancelling() if hasattr(task, "cancelling") else 0

    @staticmethod
    def for_lock(lock: Named, task: _Task) -> Optional[Scope]:
        """None if there is nothing to report."""
        reports = lock._raises_on_loss or lock._on_loss is not None
        return Scope(lock, task) if reports else None

    def _on_hold_lost(self) -> None:
        """In the thread of losses."""
        try:
            self._loop.call_soon_threadsafe(self._tell)
        except RuntimeError:  # the loop is closed
            pass

    def _tell(self) -> None:
        if self._is_over:
            return
        if self._task is not None and self._lock._raises_on_loss:
            self.has_cancelled = True
            self._task.cancel(f"{self._lock!r} is lost")
        try:
            self._lock._on_hold_lost()
        except Exception as error:
            told = {"message": f"on_loss of {self._lock!r}", "exception": error}
            self._loop.call_exception_handler(told)

    def end(self) -> None:
        """The end of the block has begun. From here on the task is not cancelled."""
        self._is_over = True


def take_back_cancellations(holds: List[Hold], task: _Task) -> Optional[bool]:
    """After the scopes have ended. None: no hold had the task cancelled. Else whether somebody else
    has cancelled it as well, so that it has to end; before Python 3.11 nobody knows."""
    cancelled = [hold.scope for hold in holds if hold.scope and hold.scope.has_cancelled]
    if not cancelled:
        return None
    if not hasattr(task, "uncancel"):
        return False
    left = [task.uncancel() for _ in cancelled][-1]
    return bool(left > min(scope.cancelled_before for scope in cancelled))


class TaskHolds:
    """What tasks of this process hold of one name. All lock objects of the name share it."""

    def __init__(self, may_poll: bool) -> None:
        self.may_poll = may_poll
        self._holds: Dict[int, List[Hold]] = {}  # by the identity of the task
        self._gates: Dict[_Loop, _Gate] = {}
        self._of_parent = 0
        self._lost: weakref.WeakSet[Any] = weakref.WeakSet()  # tasks whose last hold was lost

    def of(self, task: _Task) -> List[Hold]:
        return [hold for hold in self._holds.get(id(task), []) if hold.acquire.is_done]

    def is_held(self) -> bool:
        return any(hold.acquire.is_done for holds in self._holds.values() for hold in holds)

    def was_lost(self, task: _Task) -> bool:
        """The last hold of a task that holds no more."""
        return task is not None and task in self._lost

    def hold_of(self, lock: Named) -> Hold:
        """That of the current task."""
        holds = self.of(current())
        if holds:
            return holds[-1]
        raise _error("not_held", f"{lock!r} is not held by this task")

    async def pass_gate(self, until: Optional[float]) -> Optional[_Gate]:
        """None: it is too late."""
        gate = self._gates.get(asyncio.get_running_loop())
        if gate is None:
            return _Gate(self._gates)
        return gate if await gate.wait(until) else None

    def begin(self, task: _Task, hold: Hold) -> None:
        key = id(task)
        self._holds.setdefault(key, []).append(hold)
        if task is None:
            return
        self._lost.discard(task)
        # A task that its loop never runs to an end is only dropped some time.
        hold.owner = weakref.ref(task, lambda _: self._abandon(key))
        task.add_done_callback(self._task_ended)

    def end(self, task: _Task, hold: Hold) -> None:
        """The hold belongs to nobody from now on."""
        holds = self._holds.get(id(task), [])
        if hold in holds:
            holds.remove(hold)
            hold.owner = None
        if not holds and task is not None:
            self._holds.pop(id(task), None)
            task.remove_done_callback(self._task_ended)

    def _task_ended(self, task: _Task) -> None:
        self._abandon(id(task))

    def _abandon(self, key: int) -> None:
        for hold in self._holds.pop(key, []):
            hold.drop(as_death=True)

    def leaves_hold_of_parent(self) -> bool:
        if self._of_parent == 0:
            return False
        self._of_parent -= 1
        return True

    def after_fork(self) -> None:
        """The child holds nothing, but may leave blocks in which its parent holds."""
        for holds in self._holds.values():
            self._of_parent += sum(1 + hold.again for hold in holds if hold.acquire.is_done)
        self._holds.clear()
        self._gates.clear()


async def enter(way: Way, task: _Task) -> Any:
    """Raises DomainError with the reason "held" if the task holds one of the locks, unless it holds
    it alone by the same object, which is reentrant."""
    until = None if way._seconds is None else time.monotonic() + way._seconds
    wanted: List[Tuple[Named, bool]] = []
    again: List[Hold] = []
    for lock, shared in way._parts:
        held = lock._tasks.of(task) if task is not None else []
        if not held:
            wanted.append((lock, shared))
        elif lock._reentrant and held[-1].lock is lock and not (shared or held[-1].shared):
            again.append(held[-1])
        else:
            raise _error("held", f"acquire of {lock!r}, which this task holds already")
    if wanted:
        await _acquire(way._only(wanted) if again else way, wanted, task, until)
    for hold in again:
        hold.again += 1
    return way._entered


async def _acquire(
    way: Way, parts: List[Tuple[Named, bool]], task: _Task, until: Optional[float]
) -> None:
    scopes = [Scope.for_lock(lock, task) for lock, _ in parts]
    numbers = [scope.number if scope is not None else 0 for scope in scopes]
    acquire = _workers.Acquire(way, parts, until, numbers)
    holds = [Hold(lock, shared, acquire) for lock, shared in parts]
    for hold, scope in zip(holds, scopes):
        hold.scope = scope
    try:
        for hold in holds:
            hold.lock._tasks.begin(task, hold)
        for hold in holds:
            if hold.lock._excludes and not hold.shared:
                hold.gate = await hold.lock._tasks.pass_gate(until)
                if hold.gate is None:
                    name = hold.lock.name
                    raise await _workers.call_aside(lambda: way._not_acquired(name))
        # A candidate waits where others see its priority.
        may_poll = all(lock._tasks.may_poll and not lock._priority for lock, _ in parts)
        await acquire.finish(may_poll)
    except BaseException as error:
        for hold in holds:
            if hold.scope is not None:
                hold.scope.end()
            hold.drop(as_death=False)
            hold.lock._tasks.end(task, hold)
        # The lock may have been lost before the task knew that it has it.
        is_cancelled = take_back_cancellations(holds, task)
        if is_cancelled is False and isinstance(error, asyncio.CancelledError):
            lost = next(hold.lock for hold in holds if hold.scope and hold.scope.has_cancelled)
            raise _core.LockLost(f"lock {lost.name!r}: it was lost as soon as it was held") from None
        raise


async def leave(way: Way, task: _Task) -> None:
    """Releases all that the task holds of them, and then raises what was wrong first. All of it is
    on its way before the first await, and is done whatever ends this call."""
    error: Optional[BaseException] = None
    replies: List[_workers.Reply] = []
    holds: List[Hold] = []
    ended: List[Hold] = []
    for lock, shared in way._parts:
        for hold in reversed(lock._tasks.of(task)):
            if hold.lock is lock and hold.shared == shared:
                holds.append(hold)
                break
        else:
            if not lock._tasks.leaves_hold_of_parent():
                text = f"release of {lock!r}, which this task does not hold"
                error = error or _error("not_held", text)
    for hold in reversed(holds):
        if hold.again > 0:
            hold.again -= 1
            continue
        if hold.scope is not None:
            hold.scope.end()
        replies.append(hold.worker.post_give(hold.give))
        hold.lock._tasks.end(task, hold)
        ended.append(hold)
    is_cancelled = take_back_cancellations(ended, task)
    try:
        for hold, reply in zip(ended, replies):
            _, found = await reply.outcome()
            error = error or found
            if isinstance(found, _core.LockLost) and task is not None:
                hold.lock._tasks._lost.add(task)
    finally:
        for hold in holds:
            if hold.gate is not None and hold not in hold.lock._tasks.of(task):
                hold.gate.leave()
    if is_cancelled:
        raise asyncio.CancelledError()
    if error is not None:
        raise error


_known: weakref.WeakValueDictionary[Tuple[str, str], TaskHolds] = weakref.WeakValueDictionary()
# Held while a name is looked up in _known, whose setdefault is several steps. It is reentrant,
# because a garbage collection in the middle may run a finalizer that makes a lock object.
_finding = threading.RLock()


def holds_of(path: str, name: str, may_poll: bool) -> TaskHolds:
    """Of the lock of that name in the domain whose file is there. `may_poll` is false in the domain
    of a cluster, where an attempt asks other hosts."""
    with _finding:
        return _known.setdefault((path, name), TaskHolds(may_poll))


def is_held_by_a_task(path: str, name: str) -> bool:
    """Whether a task of this process holds it; the release of another thread asks."""
    known = _known.get((path, name))
    return known is not None and known.is_held()


def _after_fork() -> None:
    global _finding
    _finding = threading.RLock()  # another thread of the parent may have held it
    for each in list(_known.values()):
        each.after_fork()


os.register_at_fork(after_in_child=_after_fork)
