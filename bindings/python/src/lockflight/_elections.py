"""Leaders: one process, or thread or task, has a role at a time, and others want to know which one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Iterator, Optional, Tuple, Type, Union

from . import _core, _workers
from ._checked import checked_function, checked_text, checked_whole
from ._domains import Domain
from ._locks import Mutex

_MAKES_WAY_FOR = 0.02  # seconds, after which a candidate that makes way asks again
MOST_BYTES = 65_000
MOST_PRIORITY = 1_000
_PRIORITIES = f"0 to {MOST_PRIORITY}"
_NOBODY: _core._Published = (b"", 0, True)


@dataclass(frozen=True)
class Leader:
    """The leader of an election at one moment: its `value`, such as its address, and its `term`,
    which is its fencing token: it is greater for each later leader."""

    value: str
    term: int


class _Role(Mutex):
    """The lock of a role, for a candidate."""

    def __init__(
        self,
        name: str,
        domain: Union[str, Domain],
        priority: int,
        loss: Optional[str],
        on_loss: Optional[Callable[[Any], object]],
    ) -> None:
        self._priority = priority
        super().__init__(name, domain, loss=loss, on_loss=on_loss)


def _bytes_of(name: str, value: str) -> bytes:
    accepted = f"a text of at most {MOST_BYTES} bytes of UTF-8, such as an address"
    try:
        made = checked_text(name, value, accepted).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{name} {value!r} (accepted: {accepted})") from None
    if len(made) > MOST_BYTES:
        raise ValueError(f"{name} of {len(made)} bytes (accepted: {accepted})")
    return made


def _leader_of(found: _core._Published) -> Optional[Leader]:
    value, term, lasts_with_hold = found
    # A value that outlives its hold is a preference of the leader that has stepped down.
    if term == 0 or not lasts_with_hold:
        return None
    return Leader(value.decode("utf-8", "surrogateescape"), term)


class Election:
    """The role `name` of a domain, for its candidates and its observers.

        scheduler = lockflight.Election("scheduler", domain="etcd:jobs", value="10.0.0.5:8080")
        with scheduler:                       # waits until this thread leads
            schedule_jobs(scheduler.term)

        for leader in lockflight.Election("scheduler", domain="etcd:jobs").observe():
            connect_to(leader.value if leader else None)

    A leader holds the Mutex of that name, and publishes `value`, a text of at most 65,000 bytes, for
    `leader()`, `observe()` and `lockflight leader`. So no two lead at once, and candidates are
    served in the order in which they came. A leader is a thread or a task, as the holder of a Mutex
    is; in asyncio it is `async with election:`. When the role becomes free, candidates of a greater
    `priority`, 0 to 1,000, come before those of a lesser one; a leader is not disturbed by a later
    candidate. Tasks of one process campaign one after the other, whatever their priorities. `loss` and `on_loss` are those of Mutex, the
    function is called with this object: a leader that is cut off from its cluster is told before
    another one can lead.
    """

    def __init__(
        self,
        name: str,
        domain: Union[str, Domain] = "default",
        *,
        value: str = "",
        priority: int = 0,
        loss: Optional[str] = None,
        on_loss: Optional[Callable[[Any], object]] = None,
    ) -> None:
        """Makes the object, and opens or makes the domain; nobody campaigns."""
        if not 0 <= checked_whole("priority", priority, _PRIORITIES) <= MOST_PRIORITY:
            raise ValueError(f"priority {priority!r} (accepted: {_PRIORITIES})")
        checked_function("on_loss", on_loss)
        self._value = _bytes_of("value", value)
        self._priority, self._loss, self._on_loss = priority, loss, on_loss
        self._role = _Role(name, domain, priority, loss, self._tell)
        self._observer = Mutex(name, self._role.domain, loss="ignore")
        self._precedence = _core.Precedence(priority)

    def _tell(self, _: Any) -> None:
        if self._on_loss is not None:
            self._on_loss(self)

    # ---- a thread ----

    def campaign(self, timeout: Optional[float] = None) -> bool:
        """Waits until this thread leads, for at most `timeout` seconds. Whether it leads now. A term
        that was lost ends first. If a leader has stepped down in favour of another candidate, this one makes way for it, for two
        seconds at most."""
        until = None if timeout is None else time.monotonic() + _core.checked_seconds(timeout)
        if self._role.held and not self.is_leader:
            self.step_down()  # from a term that was lost
        try:
            while True:
                left = None if until is None else max(0.0, until - time.monotonic())
                if not self._role.acquire(timeout=left):
                    return False
                try:
                    if self._leads(left):
                        return True
                except BaseException:
                    self._role.release()
                    raise
                self._role.release()
                if until is not None and time.monotonic() >= until:
                    return False
                time.sleep(_MAKES_WAY_FOR)
        finally:
            self._role._hide_priority()

    def _leads(self, left: Optional[float]) -> bool:
        """For the holder of the role: whether it leads, or makes way for another candidate."""
        if self._role._makes_way(self._precedence, self._value, left):
            return False
        self._role._publish(self._value, True)
        return True

    def step_down(self, to: Optional[str] = None) -> None:
        """Ends the term of this thread. With `to`, in favour of the candidate with that value: the
        others make way for it, for two seconds at most. DomainError if this thread does not lead."""
        preferred = None if to is None else _bytes_of("to", to)
        try:
            self._end_value(preferred)
        finally:
            self._role.release()

    def _end_value(self, preferred: Optional[bytes] = None) -> None:
        """Without an answer of etcd the agent withdraws the value, once the hold has ended; a
        preference that cannot be published is reported."""
        if not self.is_leader:
            return
        try:
            if preferred is None:
                self._role._withdraw()
            else:
                self._role._prefer(preferred)
        except OSError:  # etcd does not answer
            if preferred is not None:
                raise
        except _core.DomainError as error:
            if error.reason != "not_held":  # it was lost meanwhile
                raise

    def publish(self, value: str) -> None:
        """Changes the value of this thread, which leads."""
        made = _bytes_of("value", value)
        self._role._publish(made, True)
        self._value = made

    def __enter__(self) -> Election:
        """campaign(), without a limit; the election itself."""
        self.campaign()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        """step_down(). Raises LockLost if the term was lost meanwhile, unless loss='ignore'."""
        try:
            self._end_value()
        finally:
            self._role.__exit__(kind, value, traceback)

    def terms(self) -> Iterator[int]:
        """One term after another, as long as the loop goes on: each time this thread leads, the
        number of the term. The end of the loop's body steps down; a term that was lost meanwhile is
        over as well, and the next one is campaigned for.

            for term in election.terms():
                schedule_jobs_until(lambda: not election.is_leader)
        """
        while True:
            self.campaign()
            try:
                yield self.term
            finally:
                try:
                    self.__exit__(None, None, None)
                except _core.LockLost:
                    pass

    @property
    def is_leader(self) -> bool:
        """Whether this thread leads, and its term is not lost."""
        return self.valid_for() > 0

    def valid_for(self) -> float:
        """For how many seconds this thread certainly leads, as Mutex.valid_for() has it."""
        return self._role.valid_for() if self._role.held else 0.0

    @property
    def lost(self) -> bool:
        """Whether the term of this thread, or its last one, was lost."""
        return self._role.lost

    @property
    def term(self) -> int:
        """The number of this thread's term, present or last; 0 if it has not led. Terms grow."""
        return self._role.token

    # ---- a task ----

    async def __aenter__(self) -> Election:
        """Waits until the task that calls it leads."""
        while True:
            await self._role.__aenter__()
            try:
                if await self._in_holder(self._campaign_in_holder):
                    return self
            except BaseException:
                await self._role.__aexit__(None, None, None)
                raise
            await self._role.__aexit__(None, None, None)
            await asyncio.sleep(_MAKES_WAY_FOR)

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        """Steps down, as __exit__ does. The body is cancelled as soon as the term is lost."""
        try:
            if await self.valid_for_async() > 0:
                await self._in_holder(self._end_value)
        except _core.DomainError:  # the task does not lead, as __aexit__ of the role says
            pass
        finally:
            await self._role.__aexit__(kind, value, traceback)

    def _campaign_in_holder(self) -> bool:
        """In the thread that holds for the task, which serves others when the task makes way."""
        try:
            return self._leads(None)
        finally:
            self._role._hide_priority()

    async def _in_holder(self, call: Callable[[], Any]) -> Any:
        return await self._role._tasks.hold_of(self._role).worker.call(call)

    async def publish_async(self, value: str) -> None:
        """publish for a task that leads."""
        await self._in_holder(lambda: self.publish(value))

    async def valid_for_async(self) -> float:
        """valid_for for a task that leads."""
        return await self._role.valid_for_async()

    async def term_async(self) -> int:
        """term for a task that leads."""
        return await self._role.token_async()

    # ---- observers ----

    def leader(self) -> Optional[Leader]:
        """The leader, as it is known now; None if nobody leads. In the domain of a cluster etcd is
        asked, else memory is read."""
        return _leader_of(self._observer._published())

    def observe(self) -> Observation:
        """The leader of now, and then each change, for `for` and `async for`: a Leader, or None
        while nobody leads. Changes that follow each other quickly may be seen as one."""
        return Observation(self._observer)

    @property
    def value(self) -> str:
        """The value of this candidate."""
        return self._value.decode("utf-8", "surrogateescape")

    @property
    def name(self) -> str:
        """The name of the role in its domain."""
        return self._role.name

    @property
    def domain(self) -> Domain:
        """The domain of the role."""
        return self._role.domain

    def __repr__(self) -> str:
        return f"lockflight.Election({self.name!r}, domain={self.domain.name!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        options = self._priority, self._loss, self._on_loss
        return _remake, (type(self), self.name, self.domain, self.value, *options)


def _remake(
    cls: Type[Election],
    name: str,
    domain: Domain,
    value: str,
    priority: int,
    loss: Optional[str],
    on_loss: Optional[Callable[[Any], object]],
) -> Election:
    return cls(name, domain, value=value, priority=priority, loss=loss, on_loss=on_loss)


class Observation:
    """The leaders of an election, one after the other: what Election.observe() returns."""

    def __init__(self, observer: Mutex) -> None:
        """Made by Election.observe()."""
        self._observer = observer
        self._seen: Optional[_core._Published] = None

    def wait(self, timeout: Optional[float] = None) -> Tuple[bool, Optional[Leader]]:
        """Waits for the next change, for at most `timeout` seconds: whether there was one, and the
        leader. The first call returns the leader of now."""
        seconds = None if timeout is None else _core.checked_seconds(timeout)
        until = None if seconds is None else time.monotonic() + seconds
        if self._seen is None:
            return self._changed(self._observer._published())
        before = _leader_of(self._seen)
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            self._seen = self._observer._await_published(self._seen, left)
            if _leader_of(self._seen) != before:
                return True, _leader_of(self._seen)
            if until is not None and time.monotonic() >= until:
                return False, before

    def _changed(self, to: _core._Published) -> Tuple[bool, Optional[Leader]]:
        self._seen = to
        return True, _leader_of(to)

    def __iter__(self) -> Iterator[Optional[Leader]]:
        """The leaders, without an end."""
        while True:
            yield self.wait()[1]

    async def __aiter__(self) -> AsyncIterator[Optional[Leader]]:
        """The leaders for a task, without an end. The end of the task ends the wait."""
        while True:
            if self._seen is None:
                self._seen = await _workers.call_aside(self._observer._published)
                yield _leader_of(self._seen)
                continue
            before = _leader_of(self._seen)
            self._seen = await self._next()
            if _leader_of(self._seen) != before:
                yield _leader_of(self._seen)

    async def _next(self) -> _core._Published:
        seen = self._seen or _NOBODY
        cancelled = _core.Cancellation()
        try:
            found = await _workers.call_aside(
                lambda: self._observer._await_published_unless(cancelled, seen)
            )
        except BaseException:
            cancelled.cancel()
            raise
        return found or seen
