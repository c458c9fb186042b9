"""Domains: what locks are made in, and what is shown of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
import sys
import time
from types import FrameType, TracebackType
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union
import warnings
import weakref

from . import _communicator, _core
from ._checked import checked_domain, checked_group, checked_lock, checked_mode, checked_units, checked_whole
from ._communicator import Communicator


@dataclass(frozen=True)
class Participant:
    """A thread that has a slot of a domain: `slot`, the numbers of its process and its own, `pid`
    and `thread`, and its `command`. It may be `dead`, or `stopped` by a signal or a debugger.
    `guarded_pid` is a process that has to end, too, before the participant counts as dead, such as
    the command of `lockflight run`, or 0; `command` is that process's if there is one. With
    `has_foreign_pid` the numbers are those of another PID namespace, such as a container's."""

    slot: int
    pid: int
    thread: int
    dead: bool
    command: str
    stopped: bool = False
    guarded_pid: int = 0
    has_foreign_pid: bool = False


@dataclass(frozen=True)
class LockUse:
    """A use of a lock by a participant: `what` is "waits", "holds" or "shares", `since` the time of
    time.monotonic() when it began, or 0. `unit` is the number of the unit that a holder of a
    semaphore has, and else None. `ends_in` is after how many seconds the hold ends, if an end is
    set, and `note` that of `lockflight hold`. `slot`, `pid`, `dead`, `stopped`, `guarded_pid` and
    `has_foreign_pid` are those of Participant. `units_held` are the numbers of all units that the
    participant has, also while it waits for more."""

    slot: int
    pid: int
    dead: bool
    what: str
    since: float
    stopped: bool = False
    guarded_pid: int = 0
    unit: Optional[int] = None
    has_foreign_pid: bool = False
    units_held: Tuple[int, ...] = ()
    ends_in: Optional[float] = None
    note: str = ""


@dataclass(frozen=True)
class LockUser:
    """A process that holds a lock or waits for it. `pid` is that of its command if it is a
    `lockflight run`; `host` is empty on this host, and another one of a cluster otherwise; `since`
    is the time of time.monotonic() when it began. `command` is the name of the process. `what`,
    `unit`, `units_held`, `dead`, `stopped`, `has_foreign_pid`, `ends_in` and `note` are those of
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
    units_held: Tuple[int, ...] = ()
    ends_in: Optional[float] = None
    note: str = ""


@dataclass(frozen=True)
class LockState:
    """A lock of a domain, as it was when it was read: its `name`, its `kind` and `parameters`,
    the `token` of its last exclusive acquire, the number of its `repairs` after deaths and stops,
    `owner_died`, which is true if a holder died, and its `uses`, the holders first. `units` is N of
    a semaphore, and 0 of a lock."""

    name: str
    kind: str
    parameters: str
    token: int
    repairs: int
    owner_died: bool
    uses: List[LockUse] = field(default_factory=list)
    units: int = 0


_Shown = TypeVar("_Shown")


def _shown(cls: Type[_Shown], found: Dict[str, Any]) -> _Shown:
    """An object of a data class from what the part in C++ has found, which may be more."""
    of_class = {each.name for each in fields(cls)}  # type: ignore[arg-type]
    values = {name: found[name] for name in found if name in of_class}
    for name, value in values.items():
        if isinstance(value, bytes):
            values[name] = value.decode("utf-8", "surrogateescape")
    return cls(**values)


def _since(found: Dict[str, Any]) -> float:
    """The time of time.monotonic(); 0 if it is not known."""
    return time.monotonic() - found["seconds"] if found["seconds"] else 0.0


class LockUsers(List[LockUser]):
    """The users of a lock, as far as they are known. `silence` says in a sentence which hosts of a
    cluster did not answer: somebody there may use the lock as well. It is empty if all did."""

    silence: str = ""


def users_of(domain: Domain, name: str, seconds: float = 2) -> LockUsers:
    """The users of a lock that are known after that time."""
    users, silence = domain._core.users_of(name, seconds)
    found = LockUsers(
        _shown(LockUser, dict(each, since=_since(each), pid=each["guarded_pid"] or each["pid"]))
        for each in users
    )
    found.silence = silence
    return found


class Domain:
    """A domain: a file in memory with room for `names` locks and `slots` threads at the same time.

    Opens the domain, and creates it if there is none. One that exists keeps its own numbers. `mode`
    is 0o600 for a domain of the user's own, and 0o660 for one that a group shares: `group`, by name
    or number, of which 0 is one, or else the process's. With mode 0 it is the domain of that name
    that there is, and a new one is the user's own. ValueError if it exists with another mode or
    group.

    "etcd:NAME" is the domain of a cluster, whose locks exclude all hosts that are in it. The agent
    of this host makes its file; without one, DomainError with the reason "missing". If NAME is
    made, without "etcd:", while this host has the cluster's domain, a UserWarning says so.
    """

    def __init__(
        self,
        name: str,
        *,
        slots: int = _core.default_slots,
        names: int = _core.default_names,
        mode: int = 0,
        group: Union[str, int] = "",
    ) -> None:
        if warning := _core.warning_before_open(checked_domain(name), checked_mode(mode)):
            warnings.warn(f"lockflight {warning}", stacklevel=_levels_of_the_package())
        self._core = _core.Domain(
            name,
            checked_whole("slots", slots, "1 to 4095"),
            checked_whole("names", names, "1 to 1048576"),
            checked_mode(mode),
            checked_group(group),
        )

    @classmethod
    def attach(cls, name: str, *, mode: int = 0) -> Domain:
        """Opens the domain if it exists, else raises DomainError with the reason "missing"."""
        self = cls.__new__(cls)
        self._core = _core.attach(checked_domain(name), checked_mode(mode))
        return self

    @staticmethod
    def over(
        comm: Communicator,
        *,
        slots: int = _core.default_slots,
        names: int = _core.default_names,
    ) -> DomainOver:
        """A new domain for the ranks of a communicator of mpi4py, which lie on one host. All ranks
        call it, and later DomainOver.close(). Raises ValueError on all ranks if they lie on several
        hosts."""
        return DomainOver(comm, slots, names)

    @staticmethod
    def list() -> List[str]:
        """The names of the domains that this user can open."""
        return _core.list()

    @staticmethod
    def remove(name: str, *, force: bool = False, mode: int = 0) -> bool:
        """Removes a domain with all its locks; False if there is none. Raises DomainError with the
        reason "held" if another living thread uses it, or this one holds a lock of it, unless
        `force` is true. Holders of its locks go on, and exclude nobody who comes later:
        still_valid() says so. Within a second other acquires go on in the new domain of that name,
        or raise DomainError with the reason "removed"."""
        removed = _core.remove(checked_domain(name), bool(force), checked_mode(mode))
        _opened.pop(name, None)
        return removed

    @property
    def name(self) -> str:
        """As it was opened; that of a cluster begins with "etcd:"."""
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
        """0o600 if it belongs to its user, or 0o660 if it belongs to a group."""
        return self._core.mode

    @property
    def group(self) -> str:
        """The number of its group, if it belongs to one, and else the empty text."""
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

    def participants(self) -> List[Participant]:
        """The threads that have slots now."""
        return [_shown(Participant, each) for each in self._core.participants()]

    def locks(self) -> List[LockState]:
        """The locks and who uses them now, read without stopping anybody."""

        def uses(of: Dict[str, Any]) -> List[LockUse]:
            return [_shown(LockUse, dict(each, since=_since(each))) for each in of["uses"]]

        return [_shown(LockState, dict(each, uses=uses(each))) for each in self._core.locks()]

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
        return self._core.forget(checked_lock(name))

    def set_units(self, name: str, units: Union[int, Sequence[int]]) -> None:
        """Changes which units a semaphore has: so many, or these numbers. No holder is interrupted: a
        unit that is left out is given to nobody any more. From then on the units that semaphores of
        this name were made with do not count. `lockflight units NAME --set` does the same."""
        count, numbers = checked_units(units)
        self._core.set_units(checked_lock(name), count, numbers)

    def units_of(self, name: str) -> Tuple[int, ...]:
        """The numbers of the units that a semaphore has now; () if there is none of that name."""
        return tuple(self._core.units_of(checked_lock(name)))

    def sweep(self) -> int:
        """Deals with deaths that nobody has met yet, and frees the slots of the dead: how many."""
        return self._core.sweep()

    def __repr__(self) -> str:
        return f"lockflight.Domain({self.name!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopen, (self.name, self.slots, self.names, self.mode, self.group)


def _levels_of_the_package() -> int:
    """The stacklevel of a warning about the line that has called into this package."""
    levels, frame = 0, sys._getframe()  # type: Tuple[int, Optional[FrameType]]
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("lockflight."):
        levels, frame = levels + 1, frame.f_back
    return levels


def _process(of: Union[Participant, LockUse]) -> str:
    return f"{of.pid} with {of.guarded_pid}" if of.guarded_pid else str(of.pid)


def _state(of: Union[Participant, LockUse]) -> str:
    state = ", dead" if of.dead else ", stopped" if of.stopped else ""
    return state + (", in another PID namespace" if of.has_foreign_pid else "")


def _unit(of: LockUse) -> str:
    if not of.units_held:
        return ""
    return (" unit " if len(of.units_held) == 1 else " units ") + ", ".join(map(str, of.units_held))


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

    def __enter__(self) -> DomainOver:
        """The domain itself."""
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        """close(), unless an exception ends the block: then the other ranks may never come."""
        if kind is None:
            self.close()


def _reopen(name: str, slots: int, names: int, mode: int, group: str) -> Domain:
    return Domain(name, slots=slots, names=names, mode=mode, group=group)


# The domains that locks have opened by name. Locks of one domain share its mapping.
_opened: weakref.WeakValueDictionary[str, Domain] = weakref.WeakValueDictionary()


def domain_of(given: Union[str, Domain]) -> Domain:
    if isinstance(given, Domain):
        return given
    name = checked_domain(given)
    found = _opened.get(name)
    if found is None or not found.still_valid():
        found = _opened[name] = Domain(name)
    return found
