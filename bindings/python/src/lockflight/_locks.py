"""Named locks and semaphores."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _core, _losses
from ._checked import (
    checked_flag,
    checked_function,
    checked_lock,
    checked_loss,
    checked_max_hold,
    checked_on_owner_died,
    checked_text,
    checked_units,
    checked_whole,
)
from ._domains import Domain, LockUsers, domain_of, users_of
from ._tasks import TaskHolds, current, holds_of
from ._way import Acquired, AllOf, Block, Way

_Shared = TypeVar("_Shared", bound="SharedMutex")
_OnLoss = Optional[Callable[[Any], object]]


class Named(Acquired):
    """What locks and semaphores have in common: names, and the calls of tasks that hold them."""

    _recipe: Tuple[Any, ...]
    _tasks: TaskHolds
    _reentrant = False
    _shares = False  # it has readers
    _excludes = True  # a holder that is no reader excludes all others
    _is_quick = False  # on_loss may take long
    _priority = 0  # of a candidate of an election

    def _make(
        self,
        kind: str = "",
        parameters: str = "",
        units: int = 0,
        take: int = 0,
        numbers: Sequence[int] = (),
        on_owner_died: str = "tell",
        loss: Optional[str] = None,
        on_loss: _OnLoss = None,
        max_hold: Optional[float] = None,
    ) -> None:
        domain, name = self.domain, self.name
        self._tasks = holds_of(domain.path, name, may_poll=not domain.name.startswith("etcd:"))
        raises = on_owner_died == "raise"
        self._raises_on_loss = checked_loss(loss, domain.name, max_hold) == "raise"
        self._on_loss = on_loss
        loss_number = 0 if on_loss is None else _losses.number_for(self)
        super().__init__(
            domain._core,
            name,
            kind,
            parameters,
            units,
            take,
            numbers,
            raises,
            self._reentrant,
            self._shares,
            self._raises_on_loss,
            loss_number,
            0.0 if max_hold is None else float(max_hold),
            self._priority,
        )

    def _on_hold_lost(self) -> None:
        """Called when a hold of a thread is lost."""
        if self._on_loss is not None:
            self._on_loss(self)

    @property
    def name(self) -> str:
        """The name of the lock in its domain."""
        return str(self._recipe[0])

    @property
    def domain(self) -> Domain:
        """The domain of the lock."""
        found: Domain = self._recipe[1]
        return found

    @property
    def _key(self) -> Tuple[str, str]:
        return self.domain.path, self.name

    @property
    def _parts(self) -> Sequence[Tuple[Named, bool]]:
        return ((self, False),)

    def users(self) -> LockUsers:
        """Who holds the lock and then who waits for it, each the longest first; in the domain of a
        cluster on all hosts. If nobody is known, `users().silence` says whether some hosts did not
        answer."""
        return users_of(self.domain, self.name)

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
        """lost for a task that holds the lock, and after a block that raised LockLost."""
        if not self._tasks.of(current()):
            return self._tasks.was_lost(current())
        return bool(await self._for_task("lost"))

    async def _for_task(self, what: str) -> Any:
        hold = self._tasks.hold_of(self)

        def call() -> Any:
            found = getattr(hold.lock, what)
            return found() if callable(found) else found

        return await hold.worker.call(call)


class Mutex(Named):
    """A lock with one holder at a time, known to all processes by `domain` and `name`.

    `kind` and `parameters` choose among the locks that `lockflight locks` lists. All who use a name
    agree, else ValueError; `lockflight run` and SharedMutex use the default. With
    on_owner_died="tell" an acquire after a death succeeds, and `owner_died` is true until a holder
    calls mark_consistent(). With "raise" such an acquire raises OwnerDied, and does not hold the
    lock. An acquire by the holder raises DomainError, also with another object of that name; with
    reentrant=True a thread or task that holds the lock exclusively by this object acquires it again
    at once, as with threading.RLock, and the lock is free after as many releases. As a decorator,
    `@Mutex("report")`, it is held by each call of a function or a coroutine function.

    In the domain of a cluster a holder is alone until a deadline, which its host's agent moves on
    as long as it reaches the cluster: valid_for() says how far ahead it is, and `lost` whether it
    is past. A hold may also be lost because its domain is removed or overwritten.

    With loss="raise" the end of a `with` in which the lock was lost raises LockLost, and the next
    holder is told of a death, since the block may have been left in the middle; an `async with` is
    cancelled as soon as the lock is lost, and then raises LockLost. That is the default in the
    domain of a cluster and with `max_hold`. With loss="ignore", the default elsewhere, neither
    happens.

    With `max_hold` each hold ends after that many seconds, as if it were lost; `lockflight break`
    ends any hold in the same way. The lock is free only when it is released, so that there are
    never two holders.

    `on_loss` is called with this object when a hold of a thread or task is lost: for a thread on
    another one, which it should not keep for long and which holds nothing itself, and for a task in
    its loop. In the domain of a
    cluster that is at least a tenth of the time to live before another host can hold the lock.
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
        loss: Optional[str] = None,
        on_loss: _OnLoss = None,
        max_hold: Optional[float] = None,
    ) -> None:
        """Makes the object, and opens or makes the domain; the lock is not acquired."""
        self._recipe = (
            checked_lock(name),
            domain_of(domain),
            checked_text("kind", kind, "a lock that `lockflight locks` lists"),
            checked_text("parameters", parameters, "such as 'local_budget=16,barge=2'"),
            checked_on_owner_died(on_owner_died),
            checked_flag("reentrant", reentrant),
            loss,
            checked_function("on_loss", on_loss),
            checked_max_hold(max_hold),
        )
        self._reentrant = reentrant
        self._make(
            kind=kind,
            parameters=parameters,
            on_owner_died=on_owner_died,
            loss=loss,
            on_loss=on_loss,
            max_hold=max_hold,
        )

    def __repr__(self) -> str:
        return f"lockflight.{type(self).__name__}({self.name!r}, domain={self.domain.name!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _remake, (type(self), *self._recipe)


def _remake(
    cls: Type[Mutex],
    name: str,
    domain: Domain,
    kind: str,
    parameters: str,
    on_owner_died: str,
    reentrant: bool,
    loss: Optional[str],
    on_loss: _OnLoss,
    max_hold: Optional[float],
) -> Mutex:
    return cls(
        name,
        domain,
        kind=kind,
        parameters=parameters,
        on_owner_died=on_owner_died,
        reentrant=reentrant,
        loss=loss,
        on_loss=on_loss,
        max_hold=max_hold,
    )


class SharedMutex(Mutex):
    """A lock with one writer or any number of readers at a time: `with lock:` writes, and
    `with lock.shared():` reads. Each reader of asyncio takes a slot of the domain."""

    _shares = True

    def shared(self: _Shared) -> Block[_Shared]:
        """`with lock.shared():` holds the lock as a reader."""
        return Block(self, shared=True)


_MOST_TAKEN = 31  # a thread holds 32 locks at most


class Semaphore(Named):
    """At most `units` holders at a time, known to all processes by `domain` and `name`. Each holder
    has a unit of its own, `unit`, from 0 to units - 1:

        with lockflight.Semaphore("gpu", 3, domain="jobs") as gpu:
            compute_on(gpu.unit)

    Waiters get units in the order in which they came. If a holder dies, its unit becomes free, and
    `owner_died` is true for the next holder of this unit, as with Mutex; `token` grows with each
    holder of a unit. With `take=2` each holder has two units, `units_held`, all of them or none:
    a waiter that is next collects the units that become free, and nobody else is served meanwhile,
    so that small requests do not delay a large one. With a list such as [0, 1, 3] the units have
    these numbers, 0 to 61. A thread holds units once at most by the object, and so does a task of asyncio,
    each of which takes a slot of the domain. All who use a name agree about `units`, else
    ValueError, which names both; a Mutex of that name is refused in the same way. `lockflight run
    --units 3 gpu -- COMMAND` takes a unit of the same semaphore. In the domain of a cluster the
    units are those of all hosts. `loss`, `on_loss` and `max_hold` are those of Mutex.
    """

    _excludes = False

    def __init__(
        self,
        name: str,
        units: Union[int, Sequence[int]],
        domain: Union[str, Domain] = "default",
        *,
        take: int = 1,
        on_owner_died: str = "tell",
        loss: Optional[str] = None,
        on_loss: _OnLoss = None,
        max_hold: Optional[float] = None,
    ) -> None:
        """Makes the object, and opens or makes the domain; no unit is acquired."""
        count, numbers = checked_units(units)
        most = min(count, _MOST_TAKEN)
        if not 1 <= checked_whole("take", take, f"1 to {most}") <= most:
            raise ValueError(f"take {take!r} of {count} units (accepted: 1 to {most})")
        self._recipe = (
            checked_lock(name),
            domain_of(domain),
            count if not numbers else tuple(numbers),
            checked_on_owner_died(on_owner_died),
            loss,
            checked_function("on_loss", on_loss),
            checked_max_hold(max_hold),
            take,
        )
        self._make(
            units=count,
            take=take,
            numbers=numbers,
            on_owner_died=on_owner_died,
            loss=loss,
            on_loss=on_loss,
            max_hold=max_hold,
        )

    @property
    def units(self) -> int:
        """How many units it was made with."""
        units = self._recipe[2]
        return units if isinstance(units, int) else len(units)

    @property
    def take(self) -> int:
        """How many units a holder has."""
        return int(self._recipe[-1])

    async def unit_async(self) -> int:
        """unit for a task that holds one."""
        return int(await self._for_task("unit"))

    async def units_held_async(self) -> Tuple[int, ...]:
        """units_held for a task that holds some."""
        return tuple(await self._for_task("units_held"))

    def __repr__(self) -> str:
        units = self._recipe[2]
        shown = units if isinstance(units, int) else list(units)
        take = "" if self.take == 1 else f", take={self.take}"
        return f"lockflight.Semaphore({self.name!r}, {shown}, domain={self.domain.name!r}{take})"

    def __reduce__(self) -> Tuple[Any, ...]:
        name, domain, units, *others = self._recipe
        return _remake_semaphore, (type(self), name, units, domain, *others)


def _remake_semaphore(
    cls: Type[Semaphore],
    name: str,
    units: Union[int, Sequence[int]],
    domain: Domain,
    on_owner_died: str,
    loss: Optional[str],
    on_loss: _OnLoss,
    max_hold: Optional[float],
    take: int = 1,
) -> Semaphore:
    return cls(
        name,
        units,
        domain,
        take=take,
        on_owner_died=on_owner_died,
        loss=loss,
        on_loss=on_loss,
        max_hold=max_hold,
    )


def all_of(
    *locks: Union[str, Mutex, Semaphore, Block[Any]], domain: Union[str, Domain] = "default"
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
    members: List[Way] = []
    for each in locks:
        if isinstance(each, str):
            members.append(Mutex(each, domain))
        elif isinstance(each, Named) or (isinstance(each, Block) and each._is_reader_of_one):
            members.append(each)
        else:
            raise TypeError(
                f"all_of: {each!r} (accepted: names, Mutex, SharedMutex, its shared(), Semaphore)"
            )
    return AllOf(members)
