"""Several locks at once: all of them or none.

An acquire takes the locks in the order of their domains and names, whatever the order in which they
were given. While it waits for one, it holds only locks that come before that one. So threads that
want overlapping sets do not wait for each other in a circle.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, List, Optional, Protocol, Tuple, Type

from ._decorator import Decorator


class Member(Protocol):
    """What can be one of several: a lock, a semaphore, or the shared side of a lock."""

    @property
    def _key(self) -> Tuple[str, str]: ...
    @property
    def held(self) -> bool: ...
    def _take(self, timeout: float) -> bool: ...
    def _give(self) -> None: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...


class AllOf(Decorator):
    """Locks that are acquired together: what `lockflight.all_of` returns, for `with`, `async with`
    and as a decorator."""

    def __init__(self, members: List[Member]) -> None:
        if not members:
            raise ValueError("all_of: no lock (accepted: one lock or more)")
        self._members = sorted(members, key=lambda each: each._key)
        for one, next_one in zip(self._members, self._members[1:]):
            if one._key == next_one._key:
                raise ValueError(
                    f"all_of: lock {one._key[1]!r} of one domain twice (accepted: each lock once)"
                )

    def acquire(self, blocking: bool = True, timeout: Optional[float] = -1) -> bool:
        """Waits for all of them, together at most `timeout` seconds unless that is -1. Whether they
        are held now; if not, none is. An exception leaves none of them held, too."""
        limit = -1.0 if timeout is None else timeout
        if not blocking and limit != -1:
            raise ValueError(f"timeout {timeout!r} (accepted: none with blocking=False)")
        until = time.monotonic() + limit if limit != -1 else None
        taken: List[Member] = []
        try:
            for each in self._members:
                left = limit if until is None else max(until - time.monotonic(), 0.0)
                if not each._take(left if blocking else 0):
                    break
                taken.append(each)
            else:
                return True
        except BaseException:
            self._give_back(taken)
            raise
        self._give_back(taken)
        return False

    def release(self) -> None:
        """Of all of them, by the thread that acquired; else DomainError."""
        self._give_back(list(self._members))

    @staticmethod
    def _give_back(taken: List[Member]) -> None:
        error: Optional[BaseException] = None
        for each in reversed(taken):
            try:
                each._give()
            except Exception as found:
                error = found
        if error is not None:
            raise error

    @property
    def held(self) -> bool:
        return all(each.held for each in self._members)

    def __enter__(self) -> "AllOf":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    async def __aenter__(self) -> "AllOf":
        taken: List[Member] = []
        try:
            for each in self._members:
                await each.__aenter__()
                taken.append(each)
        except BaseException:
            for each in reversed(taken):
                await each.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        for each in reversed(self._members):
            await each.__aexit__(kind, value, traceback)

    def __repr__(self) -> str:
        return f"lockflight.all_of({', '.join(map(repr, self._members))})"
