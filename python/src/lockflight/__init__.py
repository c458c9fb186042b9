"""Named locks for processes of one machine that come, go and die.

    with lockflight.Mutex("report", domain="jobs"):
        ...

A lock is known by the name of its domain and its own. Any process of the machine that uses the same
names uses the same lock; there is no daemon and nothing to start. A thread that ends, or a process
that is killed, frees what it holds, and the next holder is told (`owner_died`).

A lock object may be used by all threads of a process, passed to other processes (it is picklable)
and used after fork. Its holder is a thread: the thread that acquires releases. Tasks of asyncio use
`async with`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, List, Optional, Tuple, Type, Union
import weakref

from . import _communicator, _core
from ._communicator import Communicator
from ._core import DomainError, OwnerDied
from ._decorator import Decorator
from ._several import AllOf, Member
from ._tasks import TaskHolds, holds_of
from ._within import LockUser, NotAcquired, Within

__all__ = [
    "AllOf",
    "Communicator",
    "Domain",
    "DomainError",
    "DomainOver",
    "LockState",
    "LockUse",
    "LockUser",
    "Mutex",
    "NotAcquired",
    "OwnerDied",
    "Participant",
    "Semaphore",
    "SharedMutex",
    "all_of",
]
__version__ = "0.1.0"

# ---- domains -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Participant:
    """A thread that has a slot of a domain. It may be `stopped` by a signal or a debugger.
    `guarded_pid` is a process that has to end, too, before the participant counts as dead, such as
    the command of `lockflight run`, or 0; `command` is that process's if there is one."""

    slot: int
    pid: int
    thread: int
    dead: bool
    command: str
    stopped: bool = False
    guarded_pid: int = 0


@dataclass(frozen=True)
class LockUse:
    """What a participant does with a lock: `what` is "waits", "holds" or "shares", `since` the time
    of time.monotonic() when it began, or 0. The rest is as in Participant. The holder of a unit of
    a semaphore has its number as `unit`."""

    slot: int
    pid: int
    dead: bool
    what: str
    since: float
    stopped: bool = False
    guarded_pid: int = 0
    unit: Optional[int] = None


@dataclass(frozen=True)
class LockState:
    """A lock of a domain, as it was when it was read. `units` is N of a semaphore, and 0 of a
    lock."""

    name: str
    kind: str
    parameters: str
    token: int
    repairs: int
    owner_died: bool
    uses: List[LockUse] = field(default_factory=list)
    units: int = 0


def _text(name: str, value: Any, accepted: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} {value!r} (accepted: {accepted})")
    return value


_DOMAIN_NAME = (
    "1 to 64 characters of a-z, A-Z, 0-9, '.', '_', '-', not beginning with '.'; with 'etcd:' "
    "before them, the domain of a cluster"
)
_DOMAIN_PATTERN = r"(etcd:)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_LOCK_NAME = "1 to 255 bytes of UTF-8, none of them NUL or newline"


def _checked_domain(name: Any) -> str:
    if not re.fullmatch(_DOMAIN_PATTERN, _text("domain", name, _DOMAIN_NAME)):
        raise ValueError(f"domain {name!r} (accepted: {_DOMAIN_NAME})")
    return str(name)


def _checked_lock(name: Any) -> str:
    _text("name", name, _LOCK_NAME)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"name {name!r} (accepted: {_LOCK_NAME})") from None
    if not 1 <= size <= 255 or "\0" in name or "\n" in name:
        shown = repr(name) if size <= 255 else f"of {size} bytes"
        raise ValueError(f"name {shown} (accepted: {_LOCK_NAME})")
    return str(name)


def _whole(name: str, value: Any, accepted: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} {value!r} (accepted: {accepted})")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} {value!r} (accepted: {accepted})")
    return value


def _checked_mode(mode: Any) -> int:
    if _whole("mode", mode, _MODE) not in (0, 0o600, 0o660):
        raise ValueError(f"mode {mode:#o} (accepted: {_MODE})")
    return int(mode)


_MODE = "0o600, 0o660, or 0 for that of the domain"


def _shown(command: bytes) -> str:
    return command.decode("utf-8", "surrogateescape")


class Domain:
    """A domain: a file in memory with room for `names` locks and `slots` threads at the same time.

    Opens the domain, and creates it if there is none. One that exists keeps its own numbers. `mode`
    is 0o600 for a domain of the user's own, and 0o660 for one that a group shares: `group`, by name
    or number, or else the process's. With mode 0 it is the domain of that name that there is, and a
    new one is the user's own. ValueError if it exists with another mode or group.

    "etcd:NAME" is the domain of a cluster, whose locks exclude all hosts that are in it. The agent
    of this host makes its file; without one, DomainError with the reason "missing".
    """

    def __init__(
        self,
        name: str,
        *,
        slots: int = _core.default_slots,
        names: int = _core.default_names,
        mode: int = 0,
        group: str = "",
    ) -> None:
        self._core = _core.Domain(
            _checked_domain(name),
            _whole("slots", slots, "1 to 4095"),
            _whole("names", names, "1 to 1048576"),
            _checked_mode(mode),
            _text("group", group, "the name or number of a group"),
        )

    @classmethod
    def attach(cls, name: str, *, mode: int = 0) -> "Domain":
        """Opens the domain if it exists, else raises DomainError with the reason "missing"."""
        self = cls.__new__(cls)
        self._core = _core.attach(_checked_domain(name), _checked_mode(mode))
        return self

    @staticmethod
    def over(
        comm: Communicator,
        *,
        slots: int = _core.default_slots,
        names: int = _core.default_names,
    ) -> "DomainOver":
        """A new domain for the ranks of a communicator of mpi4py, which lie on one host. All ranks
        call it, and later DomainOver.close(). Raises ValueError on all ranks if they lie on several
        hosts."""
        return DomainOver(comm, slots, names)

    @staticmethod
    def list() -> "List[str]":
        """The names of the domains that this user can open."""
        return _core.list()

    @staticmethod
    def remove(name: str, *, force: bool = False, mode: int = 0) -> bool:
        """Removes a domain with all its locks; False if there is none. Raises DomainError with the
        reason "held" if another living thread uses it, or this one holds a lock of it, unless
        `force` is true. Holders of its locks go on, and exclude nobody who comes later:
        still_valid() says so. Within a second other acquires go on in the new domain of that name,
        or raise DomainError with the reason "removed"."""
        removed = _core.remove(_checked_domain(name), bool(force), _checked_mode(mode))
        _opened.pop(name, None)
        return removed

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def slots(self) -> int:
        """The most threads at the same time."""
        return self._core.slots

    @property
    def names(self) -> int:
        """The most locks at the same time."""
        return self._core.names

    @property
    def mode(self) -> int:
        return self._core.mode

    @property
    def group(self) -> str:
        return self._core.group

    @property
    def path(self) -> str:
        """Of its file."""
        return self._core.path

    def still_valid(self) -> bool:
        """False once the domain has been removed, so that others do not find it any more."""
        return self._core.still_valid()

    def cut_off_for(self) -> float:
        """In the domain of a cluster: for how many seconds this host has not been a member, so that
        no acquire on it succeeds; 0.0 if it is one, and math.inf if nobody knows since when. 0.0 in
        the domain of one machine. An acquire with a timeout that returns False may ask it why."""
        return self._core.cut_off_for()

    def has_agent(self) -> bool:
        """Whether the agent of this host runs, in the domain of a cluster."""
        return self._core.has_agent()

    def participants(self) -> "List[Participant]":
        """The threads that have slots now."""
        return [
            Participant(slot, pid, thread, dead, _shown(command), stopped, guarded)
            for slot, pid, thread, dead, command, stopped, guarded in self._core.participants()
        ]

    def locks(self) -> "List[LockState]":
        """The locks and who uses them now, read without stopping anybody."""
        return [
            LockState(
                _shown(name),
                kind,
                parameters,
                token,
                repairs,
                owner_died,
                [LockUse(*use) for use in uses],
                units,
            )
            for name, kind, parameters, token, repairs, owner_died, uses, units in (
                self._core.locks()
            )
        ]

    def show(self) -> str:
        """The state of the domain as text: a line for each participant and each lock."""
        lines = [f"domain {self.name}: {self._core.count()} of {self.names} names"]
        for p in self.participants():
            lines.append(
                f"  slot {p.slot}: process {_process(p)}, thread {p.thread}, {p.command}{_state(p)}"
            )
        for lock in self.locks():
            died = ", a holder died" if lock.owner_died else ""
            kind = f"{lock.kind} of {lock.units}" if lock.units else lock.kind
            lines.append(f"  lock {lock.name!r} ({kind}), token {lock.token}{died}")
            lines += [
                f"    slot {u.slot}, process {_process(u)}: {u.what}{_unit(u)}{_state(u)}"
                for u in lock.uses
            ]
        return "\n".join(lines)

    def forget(self, name: str) -> bool:
        """Gives back the name and the memory of a lock; False if there is none of that name. Lock
        objects of it make it anew. Raises DomainError with the reason "held" if it is held or
        awaited."""
        return self._core.forget(_checked_lock(name))

    def sweep(self) -> int:
        """Deals with deaths that nobody has met yet, and frees the slots of the dead: how many."""
        return self._core.sweep()

    def __repr__(self) -> str:
        return f"lockflight.Domain({self.name!r})"

    def __reduce__(self) -> "Tuple[Any, ...]":
        return _reopen, (self.name, self.slots, self.names, self.mode, self.group)


def _process(of: Union[Participant, LockUse]) -> str:
    return f"{of.pid} with {of.guarded_pid}" if of.guarded_pid else str(of.pid)


def _state(of: Union[Participant, LockUse]) -> str:
    return ", dead" if of.dead else ", stopped" if of.stopped else ""


def _unit(of: LockUse) -> str:
    return "" if of.unit is None else f" unit {of.unit}"


class DomainOver(Domain):
    """The domain of a communicator: `with Domain.over(comm) as domain:`, on all ranks."""

    def __init__(self, comm: Communicator, slots: int, names: int) -> None:
        self._comm: Optional[Communicator] = comm
        name = _communicator.new_name(comm)
        first = comm.Get_rank() == 0
        try:
            _communicator.agree(comm, self._try(name, slots, names) if first else None)
            _communicator.agree(comm, None if first else self._try(name, slots, names))
        except Exception:
            if first:
                Domain.remove(name, force=True)
            raise

    def _try(self, name: str, slots: int, names: int) -> Optional[Exception]:
        try:
            if self._comm is not None and self._comm.Get_rank() == 0:
                super().__init__(name, slots=slots, names=names)
            else:
                self._core = _core.attach(name, 0)
        except Exception as error:
            return error
        return None

    def close(self) -> None:
        """Waits for all ranks, and removes the domain. Called by all ranks, when none holds a lock
        of it. Without it, as after an exception, the domain stays until Domain.remove(name)."""
        if self._comm is None:
            return
        comm, self._comm = self._comm, None
        comm.allgather(None)
        if comm.Get_rank() == 0:
            Domain.remove(self.name, force=True)

    def __enter__(self) -> "DomainOver":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is None:  # else the other ranks may never come
            self.close()


def _reopen(name: str, slots: int, names: int, mode: int, group: str) -> Domain:
    return Domain(name, slots=slots, names=names, mode=mode, group=group)


# The domains that locks have opened by name. Locks of one domain share its mapping.
_opened: "weakref.WeakValueDictionary[str, Domain]" = weakref.WeakValueDictionary()


def _domain_of(given: Union[str, Domain]) -> Domain:
    if isinstance(given, Domain):
        return given
    name = _checked_domain(given)
    found = _opened.get(name)
    if found is None or not found.still_valid():
        found = _opened[name] = Domain(name)
    return found


# ---- locks ---------------------------------------------------------------------------------------


class _Named(Decorator):
    """What locks and semaphores have in common: names, and the calls of tasks that hold them."""

    _recipe: "Tuple[Any, ...]"
    _tasks: TaskHolds
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
            LockUser(pid, what, now - seconds, _shown(command), _shown(host), unit, dead, stopped)
            for pid, what, seconds, command, host, unit, dead, stopped in (
                self.domain._core.uses_of(self.name)
            )
        ]

    def _not_acquired(self, seconds: float) -> NotAcquired:
        holders = [each for each in self.users() if each.what != "waits"]
        text = f"lock {self.name!r} was not free in {seconds:g} s"
        if holders:
            first, others = holders[0], len(holders) - 1
            where = f" on {first.host}" if first.host else ""
            text += f": held by {first.command}{where} (pid {first.pid})"
            if others:
                text += f" and {others} other{'s' if others > 1 else ''}"
            text += f" for {time.monotonic() - first.since:.1f} s"
        return NotAcquired(text, self.name, holders)

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
        await self._tasks.acquire(self, False)
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self._tasks.release(self, False)

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

        return await self._tasks.worker(self).call(call)


def _checked_on_owner_died(given: Any) -> str:
    if given not in ("tell", "raise"):
        raise ValueError(f"on_owner_died {given!r} (accepted: 'tell', 'raise')")
    return str(given)


class Mutex(_Named, _core.Lock):
    """A lock with one holder at a time, known to all processes by `domain` and `name`.

    `kind` and `parameters` choose among the locks that `lockflight locks` lists. All who use a name
    agree, else ValueError; `lockflight run` and SharedMutex use the default. With
    on_owner_died="tell" an acquire after a death succeeds, and `owner_died` is true until a holder
    calls mark_consistent(). With "raise" such an acquire raises OwnerDied, and does not hold the
    lock. Not recursive: an acquire by the holder raises DomainError, also with another object of
    that name. As a decorator, `@Mutex("report")`, it is held by each call of a function or a
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
    ) -> None:
        self._recipe = (
            _checked_lock(name),
            _domain_of(domain),
            _text("kind", kind, "a lock that `lockflight locks` lists"),
            _text("parameters", parameters, "such as 'local_budget=16,barge=2'"),
            _checked_on_owner_died(on_owner_died),
        )
        self._tasks = holds_of(self._recipe[1]._core.path, self._recipe[0])
        super().__init__(
            self._recipe[1]._core, self._recipe[0], kind, parameters, on_owner_died == "raise"
        )

    def __repr__(self) -> str:
        return f"lockflight.{type(self).__name__}({self.name!r}, domain={self.domain.name!r})"

    def __reduce__(self) -> "Tuple[Any, ...]":
        return _remake, (type(self), *self._recipe)


def _remake(
    cls: Type[Mutex], name: str, domain: Domain, kind: str, parameters: str, on_owner_died: str
) -> Mutex:
    return cls(name, domain, kind=kind, parameters=parameters, on_owner_died=on_owner_died)


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
        await self._lock._tasks.acquire(self._lock, True)
        return self._lock

    async def __aexit__(self, *_: object) -> None:
        await self._lock._tasks.release(self._lock, True)


class SharedMutex(Mutex):
    """A lock with one writer or any number of readers at a time: `with lock:` writes, and
    `with lock.shared():` reads. Each reader of asyncio takes a slot of the domain."""

    def __init__(
        self,
        name: str,
        domain: Union[str, Domain] = "default",
        *,
        kind: str = _core.default_kind,
        parameters: str = "",
        on_owner_died: str = "tell",
    ) -> None:
        super().__init__(
            name, domain, kind=kind, parameters=parameters, on_owner_died=on_owner_died
        )

    def shared(self) -> _Shared:
        return _Shared(self)


_UNITS = "1 to 1024"


class Semaphore(_Named, _core.Units):
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
        if not 1 <= _whole("units", units, _UNITS) <= 1024:
            raise ValueError(f"units {units!r} (accepted: {_UNITS})")
        self._recipe = (
            _checked_lock(name),
            _domain_of(domain),
            units,
            _checked_on_owner_died(on_owner_died),
        )
        self._tasks = holds_of(self._recipe[1]._core.path, self._recipe[0])
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
