"""Ways to hold locks: what a Mutex, a Semaphore, their shared() and within(), and all_of have in
common. Each of them is for `with`, for `async with` and for a decorator. `with` is the work of
_core.Handle, of which nothing is in Python."""

from __future__ import annotations

import functools
import inspect
import time
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Coroutine,
    Generic,
    List,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)

from . import _core, _tasks
from ._domains import LockUser, users_of

if TYPE_CHECKING:
    from ._locks import Named

# A function keeps its own type, whatever its arguments and whether it is a coroutine function.
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Given = TypeVar("_Given", bound="Way")
_Self = TypeVar("_Self", bound="Acquired")


class NotAcquired(TimeoutError):
    """A lock was not free in time. `name` is that of the lock, and `holders` are those that hold
    it, the longest first. `holder`, `command`, `since` and `host` are about the first of them;
    `since` is the time of time.monotonic() when it began. `holder` is None if nobody held it any
    more when that was read."""

    def __init__(self, text: str, name: str, holders: List[LockUser]) -> None:
        super().__init__(text)
        self.name = name
        self.holders = holders
        self.holder = holders[0] if holders else None
        self.command = self.holder.command if self.holder else ""
        self.since = self.holder.since if self.holder else 0.0
        self.host = self.holder.host if self.holder else ""

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (str(self), self.name, self.holders)


class Way(_core.Handle):
    """One lock or several, how they are held, and how long `with` waits for them."""

    _seconds: Optional[float] = None

    @property
    def _parts(self) -> Sequence[Tuple[Named, bool]]:
        """The locks in the order in which they are acquired, and whether as a reader."""
        raise NotImplementedError

    @property
    def _entered(self) -> Way:
        """What `as` gets."""
        return self

    def _only(self, parts: List[Tuple[Named, bool]]) -> Way:
        """The same with less locks."""
        members = [Block(lock, shared=True) if shared else lock for lock, shared in parts]
        return Block(AllOf(members), seconds=self._seconds)

    def _not_acquired(self, name: str) -> NotAcquired:
        """Also called by the part in C++."""
        lock = next(each for each, _ in self._parts if each.name == name)
        # The time is over: a host of a cluster that does not answer at once is not waited for.
        users = users_of(lock.domain, name, seconds=0.12)
        holders = [each for each in users if each.what != "waits"]
        text = f"lock {name!r} was not free in {self._seconds or 0:g} s"
        if holders:
            first, others = holders[0], len(holders) - 1
            where = f" on {first.host}" if first.host else ""
            namespace = " in another PID namespace" if first.has_foreign_pid else ""
            text += f": held by {first.command}{where} (pid {first.pid}{namespace})"
            if others:
                text += f" and {others} other{'s' if others > 1 else ''}"
            text += f" for {time.monotonic() - first.since:.1f} s"
        elif users.silence:
            text += f": {users.silence}"
        return NotAcquired(text, name, holders)

    def __aenter__(self) -> Coroutine[Any, Any, Any]:
        """Acquires for the task that calls it, also if another one runs what it returns, such as
        that of asyncio.wait_for(lock.__aenter__(), 5). Tasks get the lock in the order in which
        they have asked."""
        return _tasks.enter(self, _tasks.current())

    def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> Coroutine[Any, Any, None]:
        """Releases what __aenter__ has acquired, for the task that calls it. Raises LockLost if the
        lock was lost meanwhile, unless it has loss='ignore'."""
        return _tasks.leave(self, _tasks.current())

    def __call__(self, function: _Function) -> _Function:
        """`@lock` before a function or a coroutine function: each call acquires the lock, and
        releases it at the end. A function that calls itself would wait for itself, which raises
        DomainError. Classes, generator functions and what is no function raise TypeError."""
        _check_decorated(function, self)
        if _is(inspect.iscoroutinefunction, function):

            @functools.wraps(function)
            async def call_async(*arguments: Any, **named: Any) -> Any:
                async with self:
                    return await function(*arguments, **named)

            return cast(_Function, call_async)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            with self:
                result = function(*arguments, **named)
            if isinstance(result, (CoroutineType, GeneratorType)):
                result.close()
            elif not isinstance(result, AsyncGeneratorType):
                return result
            raise _runs_later(function, self)

        return cast(_Function, call)


def _runs_later(function: Any, under: object) -> TypeError:
    return TypeError(
        f"{function!r} under {under!r}, whose body runs after the call: a generator, or a coroutine "
        "that a plain function returns (accepted: a function or an async function; a generator "
        "takes the lock inside)"
    )


def _is(what: Callable[[Any], bool], function: Any) -> bool:
    """Of a function, or of an object that is called as one."""
    return what(function) or what(getattr(type(function), "__call__", None))


def _check_decorated(function: Any, under: object) -> None:
    if inspect.isclass(function) or isinstance(function, staticmethod) or not callable(function):
        raise TypeError(
            f"{function!r} under {under!r} (accepted: a function or an async function, such as a "
            "method; below @staticmethod, @classmethod and @property)"
        )
    if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
        raise _runs_later(function, under)


class Acquired(Way):
    """What gives itself to `as`."""

    if TYPE_CHECKING:  # the work is that of _core.Handle, in C++

        def __enter__(self: _Self) -> _Self: ...

    def __aenter__(self: _Self) -> Coroutine[Any, Any, _Self]:
        return super().__aenter__()

    def within(self: _Self, seconds: float) -> Block[_Self]:
        """`with lock.within(5):` waits for at most 5 seconds and then raises NotAcquired, which is
        a TimeoutError and says who holds the lock."""
        return Block(self, seconds=_core.checked_seconds(seconds))


class Block(Way, Generic[_Given]):
    """What shared() and within() return: the way `of`, as a reader or with a limit. A block begins
    with what that way gives to `as`, the lock itself."""

    if TYPE_CHECKING:

        def __enter__(self) -> _Given: ...

    def __init__(
        self,
        of: Union[_Given, Block[_Given]],
        shared: bool = False,
        seconds: Optional[float] = None,
    ) -> None:
        """Made by shared() and within()."""
        self._of: Way = of
        self._shared = shared
        self._seconds = of._seconds if seconds is None else seconds
        super().__init__([of], shared, self._seconds)

    @property
    def _entered(self) -> Way:
        return self._of._entered if isinstance(self._of, Block) else self._of

    @property
    def _parts(self) -> Sequence[Tuple[Named, bool]]:
        return [(lock, shared or self._shared) for lock, shared in self._of._parts]

    @property
    def _is_reader_of_one(self) -> bool:
        """For all_of, whose members have no limits of their own."""
        return self._shared and self._seconds is None

    def __aenter__(self) -> Coroutine[Any, Any, _Given]:
        return super().__aenter__()

    def within(self, seconds: float) -> Block[_Given]:
        """Waits for at most that many seconds, in place of an earlier limit."""
        return Block(self, seconds=_core.checked_seconds(seconds))

    def shared(self) -> Block[_Given]:
        """Of a SharedMutex: `with lock.within(5).shared():`."""
        if not hasattr(self._entered, "shared"):
            raise TypeError(f"shared() of {self!r} (accepted: that of a SharedMutex)")
        return Block(self, shared=True)

    def __repr__(self) -> str:
        shared = ".shared()" if self._shared else ""
        return f"{self._of!r}{shared or f'.within({self._seconds!r})'}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return Block, (self._of, self._shared, None if self._shared else self._seconds)


class AllOf(Acquired):
    """Locks that are acquired together, all of them or none: what `lockflight.all_of` returns.

    An acquire takes the locks in the order of their domains and names, whatever the order in which
    they were given. While it waits for one, it holds only locks that come before that one. So
    threads that want overlapping sets do not wait for each other in a circle."""

    def __init__(self, members: Sequence[Way]) -> None:
        """Made by all_of()."""
        if not members:
            raise ValueError("all_of: no lock (accepted: one lock or more)")

        def key(of: Way) -> Tuple[str, str]:
            return of._parts[0][0]._key

        self._members = sorted(members, key=key)
        for one, next_one in zip(self._members, self._members[1:]):
            if key(one) == key(next_one):
                name = key(one)[1]
                raise ValueError(
                    f"all_of: lock {name!r} of one domain twice (accepted: each lock once)"
                )
        super().__init__(self._members, False, None)

    @property
    def _parts(self) -> Sequence[Tuple[Named, bool]]:
        return [part for each in self._members for part in each._parts]

    def __repr__(self) -> str:
        return f"lockflight.all_of({', '.join(map(repr, self._members))})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return AllOf, (self._members,)
