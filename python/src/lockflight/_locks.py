"""Named locks and semaphores."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Type, Union

from . import _core
from ._checked import (
    checked_flag,
    checked_lock,
    checked_on_owner_died,
    checked_text,
    checked_whole,
)
from ._decorator import Decorator
from ._domains import Domain, domain_of, shown
from ._several import AllOf, Member
from ._tasks import TaskHolds, holds_of
from ._within import LockUser, NotAcquired, Within
from ._workers import Held


def _holds_of(lock: "_Named") -> TaskHolds:
    domain = lock.domain
    return holds_of(domain.path, lock.name, may_poll=not domain.name.startswith("etcd:"))


class _Named(Decorator):
    """What locks and semaphores have in common: names, and the calls of tasks that hold them."""

    _recipe: "Tuple[Any, ...]"
    _tasks: TaskHolds
    _reentrant = False
    acquire: Any
    __exit__: Any

    @property
    def name(self) -> str:
        return str(self._recipe[0])

    @property
    def domain(self) -> Domain:
        found: Domain = self._recipe[1]
        return found

    def within(self, seconds: float) -> Within:
        """`with lock.within(5):` waits for at most 5 seconds and then raises NotAcquired, which is
        a TimeoutError and says who holds the lock."""
        return Within(self, seconds)

    def users(self) -> "List[LockUser]":
        """Who holds the lock and then who waits for it, each the longest first; in the domain of a
        cluster on all hosts."""
        now = time.monotonic()
        return [
            LockUser(pid, what, now - seconds, shown(command), shown(host), unit, dead, stopped, foreign)
            for pid, what, seconds, command, host, unit, dead, stopped, foreign in (
                self.domain._core.uses_of(self.name)
            )
        ]

    def _not_acquired(self, seconds: float) -> NotAcquired:
        holders = [each for each in self.users() if each.what != "waits"]
        text = f"lock {self.name!r} was not free in {seconds:g} s"
        if holders:
            first, others = holders[0], len(holders) - 1
            where = f" on {first.host}" if first.host else ""
            namespace = " in another PID namespace" if first.has_foreign_pid else ""
            text += f": held by {first.command}{where} (pid {first.pid}{namespace})"
            if others:
                text += f" and {others} other{'s' if others > 1 else ''}"
            text += f" for {time.monotonic() - first.since:.1f} s"
        return NotAcquired(text, self.name, holders)

    @property
    def _held(self) -> Held:
        """Itself, as the class in C++ that it is as well."""
        assert isinstance(self, (_core.Lock, _core.Units))
        return self

    # For all_of:

    @property
    def _key(self) -> "Tuple[str, str]":
        return self.domain.path, self.name

    def _take(self, timeout: float) -> bool:
        return bool(self.acquire(timeout=timeout))

    def _give(self) -> None:
        # As at the end of a `with` block, which a fork may have left with nothing to release.
        self.__exit__(None, None, None)

    async def __aenter__(self) -> Any:
        await self._tasks.acquire(self._held, False, self._reentrant)
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self._tasks.release(self._held, False)

    async def owner_died_async(self) -> bool:
        """owner_died for a task that holds the lock."""
        return bool(await self._for_task("owner_died"))

    async def mark_consistent_async(self) -> None:
        """mark_consistent for a task that holds the lock."""
        await self._for_task("mark_consistent")

    async def token_async(self) -> int:
        """token for a task that holds the lock."""
        return int(await self._for_task("token"))

    async def still_valid_async(self) -> bool:
        """still_valid for a task that holds the lock."""
        return bool(await self._for_task("still_valid"))

    async def valid_for_async(self) -> float:
        """valid_for for a task that holds the lock."""
        return float(await self._for_task("valid_for"))

    async def lost_async(self) -> bool:
        """lost for a task that holds the lock."""
        return bool(await self._for_task("lost"))

    async def _for_task(self, what: str) -> Any:
        def call() -> Any:
            found = getattr(self, what)
            return found() if callable(found) else found

        return await self._tasks.worker(self._held).call(call)


def _with_one_base(of: type, mixin: type) -> Any:
    """A subclass of the class in C++ that has what the mixin has: a class of nanobind 2, which is
    that of Python 3.9, has one base."""
    members: "Dict[str, Any]" = {}
    for each in reversed(mixin.__mro__[:-1]):
        members.update(vars(each))
    for name in ("__dict__", "__weakref__", "__doc__"):
        members.pop(name, None)
    return type(of)("_Named" + of.__name__, (of,), members)


if TYPE_CHECKING:

    class _NamedLock(_Named, _core.Lock): ...

    class _NamedUnits(_Named, _core.Units): ...

else:
    _NamedLock = _with_one_base(_core.Lock, _Named)
    _NamedUnits = _with_one_base(_core.Units, _Named)


class Mutex(_NamedLock):
    """A lock with one holder at a time, known to all processes by `domain` and `name`.

    `kind` and `parameters` choose among the locks that `lockflight locks` lists. All who use a name
    agree, else ValueError; `lockflight run` and SharedMutex use the default. With
    on_owner_died="tell" an acquire after a death succeeds, and `owner_died` is true until a holder
    calls mark_consistent(). With "raise" such an acquire raises OwnerDied, and does not hold the
    lock. An acquire by the holder raises DomainError, also with another object of that name; with
    reentrant=True a thread or task that holds the lock exclusively by this object acquires it again
    at once, as with threading.RLock, and the lock is free after as many releases. As a decorator, `@Mutex("report")`, it is held by each call of a function or a
    coroutine function.

    In the domain of a cluster a holder is alone until a deadline, which its host's agent moves on
    as long as it reaches the cluster: valid_for() says how far ahead it is, and `lost` whether it
    is past. Nothing is called when it comes, since the library has no threads of its own: ask
    before each step that must not be done twice. A task of asyncio can wait for it:

        while (left := await lock.valid_for_async()) > 2:
            await asyncio.sleep(min(left - 2, 1))
    """

    def __init__(
        self,
        name: str,
        domain: Union[str, Domain] = "default",
        *,
        kind: str = _core.default_kind,
        parameters: str = "",
        on_owner_died: str = "tell",
        reentrant: bool = False,
    ) -> None:
        self._recipe = (
            checked_lock(name),
            domain_of(domain),
            checked_text("kind", kind, "a lock that `lockflight locks` lists"),
            checked_text("parameters", parameters, "such as 'local_budget=16,barge=2'"),
            checked_on_owner_died(on_owner_died),
            checked_flag("reentrant", reentrant),
        )
        self._reentrant = reentrant
        self._tasks = _holds_of(self)
        super().__init__(
            self.domain._core, self.name, kind, parameters, on_owner_died == "raise", reentrant
        )

    def __repr__(self) -> str:
        return f"lockflight.{type(self).__name__}({self.name!r}, domain={self.domain.name!r})"

    def __reduce__(self) -> "Tuple[Any, ...]":
        return _remake, (type(self), *self._recipe)


def _remake(
    cls: Type[Mutex],
    name: str,
    domain: Domain,
    kind: str,
    parameters: str,
    on_owner_died: str,
    reentrant: bool,
) -> Mutex:
    return cls(
        name,
        domain,
        kind=kind,
        parameters=parameters,
        on_owner_died=on_owner_died,
        reentrant=reentrant,
    )


class _Shared(Decorator):
    """What SharedMutex.shared() returns: for `with`, `async with` and as a decorator."""

    def __init__(self, lock: "SharedMutex") -> None:
        self._lock = lock

    @property
    def held(self) -> bool:
        return self._lock.held

    @property
    def _key(self) -> "Tuple[str, str]":
        return self._lock._key

    def _take(self, timeout: float) -> bool:
        return self._lock.acquire_shared(timeout=timeout)

    def _give(self) -> None:
        self._lock._exit_shared()

    def __enter__(self) -> "SharedMutex":
        self._lock.acquire_shared()
        return self._lock

    def __exit__(self, *_: object) -> None:
        self._lock._exit_shared()

    async def __aenter__(self) -> "SharedMutex":
        await self._lock._tasks.acquire(self._lock, True, False)
        return self._lock

    async def __aexit__(self, *_: object) -> None:
        await self._lock._tasks.release(self._lock, True)


class SharedMutex(Mutex):
    """A lock with one writer or any number of readers at a time: `with lock:` writes, and
    `with lock.shared():` reads. Each reader of asyncio takes a slot of the domain."""

    def shared(self) -> _Shared:
        return _Shared(self)


_UNITS = "1 to 1024"


class Semaphore(_NamedUnits):
    """At most `units` holders at a time, known to all processes by `domain` and `name`. Each holder
    has a unit of its own, `unit`, from 0 to units - 1:

        with lockflight.Semaphore("gpu", 3, domain="jobs") as gpu:
            compute_on(gpu.unit)

    Waiters get units in the order in which they came. If a holder dies, its unit becomes free, and
    `owner_died` is true for the next holder of this unit, as with Mutex; `token` grows with each
    holder of a unit. A thread holds one unit at most by the object, and so does a task of asyncio,
    each of which takes a slot of the domain. All who use a name agree about `units`, else
    ValueError, which names both; a Mutex of that name is refused in the same way. `lockflight run
    --slots 3 gpu -- COMMAND` takes a unit of the same semaphore. In the domain of a cluster the
    units are those of all hosts.
    """

    def __init__(
        self,
        name: str,
        units: int,
        domain: Union[str, Domain] = "default",
        *,
        on_owner_died: str = "tell",
    ) -> None:
        if not 1 <= checked_whole("units", units, _UNITS) <= 1024:
            raise ValueError(f"units {units!r} (accepted: {_UNITS})")
        self._recipe = (
            checked_lock(name),
            domain_of(domain),
            units,
            checked_on_owner_died(on_owner_died),
        )
        self._tasks = _holds_of(self)
        super().__init__(
            self._recipe[1]._core, self._recipe[0], units, self._recipe[3] == "raise"
        )

    @property
    def units(self) -> int:
        return int(self._recipe[2])

    async def unit_async(self) -> int:
        """unit for a task that holds one."""
        return int(await self._for_task("unit"))

    def __repr__(self) -> str:
        return f"lockflight.Semaphore({self.name!r}, {self.units}, domain={self.domain.name!r})"

    def __reduce__(self) -> "Tuple[Any, ...]":
        name, domain, units, on_owner_died = self._recipe
        return _remake_semaphore, (type(self), name, units, domain, on_owner_died)


def _remake_semaphore(
    cls: Type[Semaphore], name: str, units: int, domain: Domain, on_owner_died: str
) -> Semaphore:
    return cls(name, units, domain, on_owner_died=on_owner_died)


def all_of(
    *locks: Union[str, Mutex, Semaphore, _Shared], domain: Union[str, Domain] = "default"
) -> AllOf:
    """Several locks at once, for `with` and `async with`: all of them or none.

        with lockflight.all_of("index", "data", domain="jobs"):
            ...
        with lockflight.all_of(index.shared(), data):
            ...

    A name is that of a Mutex of `domain`. The order does not matter: the locks are taken in the
    order of their domains and names, so that overlapping sets do not deadlock. Raises ValueError if
    a lock is there twice. `acquire(timeout=5)` of the result waits 5 seconds at most for all
    together, and holds none of them if it returns False.
    """
    members: List[Member] = []
    for each in locks:
        if isinstance(each, str):
            members.append(Mutex(each, domain))
        elif isinstance(each, (Mutex, Semaphore, _Shared)):
            members.append(each)
        else:
            raise TypeError(
                f"all_of: {each!r} (accepted: names, Mutex, SharedMutex, its shared(), Semaphore)"
            )
    return AllOf(members)
