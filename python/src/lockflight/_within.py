"""Holds for which a caller waits for a limited time, and what is said when that is over."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, List, Optional, Type

from ._decorator import Decorator


@dataclass(frozen=True)
class LockUser:
    """A process that holds a lock or waits for it. `pid` is that of its command if it is a
    `lockflight run`; `host` is empty on this host, and another one of a cluster otherwise; `since`
    is the time of time.monotonic() when it began. `what`, `unit` and `has_foreign_pid` are those of
    LockUse."""

    pid: int
    what: str
    since: float
    command: str
    host: str = ""
    unit: Optional[int] = None
    dead: bool = False
    stopped: bool = False
    has_foreign_pid: bool = False


class NotAcquired(TimeoutError):
    """A lock was not free in time. `name` is that of the lock, and `holders` are those that hold
    it, the longest first. `holder`, `command`, `since` and `host` are about the first of them;
    `holder` is None if nobody held it any more when that was read."""

    def __init__(self, text: str, name: str, holders: List[LockUser]) -> None:
        super().__init__(text)
        self.name = name
        self.holders = holders
        self.holder = holders[0] if holders else None
        self.command = self.holder.command if self.holder else ""
        self.since = self.holder.since if self.holder else 0.0
        self.host = self.holder.host if self.holder else ""

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.name, self.holders)


class Within(Decorator):
    """What `lock.within(seconds)` returns, for `with` and as a decorator of functions."""

    def __init__(self, lock: Any, seconds: float) -> None:
        self._lock, self._seconds = lock, seconds

    def __enter__(self) -> Any:
        if not self._lock.acquire(timeout=self._seconds):
            raise self._lock._not_acquired(self._seconds)
        return self._lock

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._lock.__exit__(kind, value, traceback)
