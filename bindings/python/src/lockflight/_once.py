"""Work that is done once for many callers."""

from __future__ import annotations

import functools
import inspect
import pickle
import re
import time
import warnings
from typing import Any, Callable, Optional, Tuple, TypeVar, Union, cast

from . import _core, _workers
from ._checked import checked_text, checked_whole
from ._domains import Domain
from ._locks import Mutex
from ._way import _check_decorated

_Function = TypeVar("_Function", bound=Callable[..., Any])

MOST_BYTES = 64_000
_PERIOD = "a whole number from 1 and s, m, h or d, such as '90s' or '1d', at most 3660d"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# The beginnings of what a call publishes: its result, or the size of one that is not kept.
_RESULT, _NOT_KEPT = b"lockflight.once 1 result\n", b"lockflight.once 1 not kept\n"


class ResultNotKept(LookupError):
    """Another call has done the work, and its result is not there: it was larger than `most_bytes`,
    could not be pickled, or has been forgotten."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


def _seconds_of(per: Optional[str]) -> Optional[int]:
    if per is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})([smhd])", checked_text("per", per, _PERIOD))
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not 1 <= seconds <= 3660 * 86400:
        raise ValueError(f"per {per!r} (accepted: {_PERIOD})")
    return seconds


class _Work:
    """The work of one name, for one call."""

    def __init__(self, of: _Once, name: str) -> None:
        self.of = of
        self.lock = Mutex(name, of.domain, loss="ignore")
        self._seen: Optional[Tuple[bytes, int, bool]] = None

    def look(self) -> Optional[Tuple[Any]]:
        """(the result) if another call has done the work since this one began, or in this period."""
        # The note comes first: the holder publishes before it writes the note.
        is_done = self.of.seconds is not None and self.lock._done_until() > time.time()
        found = self.lock._published()
        seen, self._seen = self._seen, found
        is_news = seen is not None and found[1] != seen[1]
        is_result = found[0].startswith((_RESULT, _NOT_KEPT))
        if not is_done and not (is_news and is_result):
            return None
        if not found[0].startswith(_RESULT):
            raise ResultNotKept(
                f"{self.lock!r}: the work is done, and its result is not kept (kept are those of at "
                f"most {self.of.most_bytes} bytes that can be pickled)"
            )
        return (self.of.loads(found[0][len(_RESULT) :]),)

    def keep(self, result: Any) -> None:
        """By the holder."""
        try:
            data = _RESULT + self.of.dumps(result)
        except Exception:  # what can be pickled, nobody can say before
            data = _NOT_KEPT
        if len(data) - len(_RESULT) > self.of.most_bytes:
            data = _NOT_KEPT
        try:
            self.lock._publish(data, False)
            if self.of.seconds is not None:
                period = self.of.seconds
                self.lock._set_done_until((int(self.began) // period + 1) * period)
        except (_core.DomainError, OSError) as error:  # the work is done all the same, for this caller
            warnings.warn(f"{self.lock!r}: the result is not kept: {error}", stacklevel=4)

    def begin(self) -> None:
        self.began = time.time()


class _Once:
    def __init__(
        self,
        name: Union[str, Callable[..., str]],
        domain: Union[str, Domain],
        seconds: Optional[int],
        most_bytes: int,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
    ) -> None:
        self.name, self.domain, self.seconds = name, domain, seconds
        self.most_bytes, self.dumps, self.loads = most_bytes, dumps, loads

    def __repr__(self) -> str:
        return f"lockflight.once({self.name!r})"

    def work_of(self, arguments: Tuple[Any, ...], named: Any) -> _Work:
        name = self.name if isinstance(self.name, str) else self.name(*arguments, **named)
        return _Work(self, name)

    def __call__(self, function: _Function) -> _Function:
        _check_decorated(function, self)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*arguments: Any, **named: Any) -> Any:
                work = self.work_of(arguments, named)
                found = await _workers.call_aside(work.look)
                if found is not None:
                    return found[0]
                async with work.lock:
                    worker = work.lock._tasks.hold_of(work.lock).worker
                    found = await worker.call(work.look)
                    if found is not None:
                        return found[0]
                    work.begin()
                    result = await function(*arguments, **named)
                    await worker.call(lambda: work.keep(result))
                    return result

            return cast(_Function, call_async)
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            work = self.work_of(arguments, named)
            found = work.look()
            if found is not None:
                return found[0]
            with work.lock:
                found = work.look()
                if found is not None:
                    return found[0]
                work.begin()
                result = function(*arguments, **named)
                work.keep(result)
                return result

        return cast(_Function, call)


def once(
    name: Union[str, Callable[..., str]],
    *,
    per: Optional[str] = None,
    domain: Union[str, Domain] = "default",
    most_bytes: int = MOST_BYTES,
    dumps: Callable[[Any], bytes] = pickle.dumps,
    loads: Callable[[bytes], Any] = pickle.loads,
) -> Callable[[_Function], _Function]:
    """A decorator for work that many processes may ask for at once, and one does:

        @lockflight.once("exchange-rates", per="1h", domain="etcd:jobs")
        def rates():
            return fetch_rates()

    A call holds the Mutex `name` while the function runs. Calls that come meanwhile, in any process
    of the domain, wait for its end and return its result. With `per`, a period such as "90s" or
    "1d" that begins at full hours or days of UTC, later calls of the period return it as well. If
    the function raises, the exception is that call's alone, and the next call does the work; so it
    is if the process dies. `name` may be a function of the call's arguments, such as `lambda user:
    f"report-{user}"`.

    The result is kept by `dumps`, at most `most_bytes` of it, up to 64,000, and read by `loads`; if
    it is larger, or cannot be kept, the other calls raise ResultNotKept. Users who may write to the
    domain can publish a result, and unpickling runs code: in a domain of several users pass
    functions such as those of json.
    """
    if not callable(name):
        checked_text("name", name, "the name of a lock, or a function that returns it")
    accepted = f"0 to {MOST_BYTES}"
    if not 0 <= checked_whole("most_bytes", most_bytes, accepted) <= MOST_BYTES:
        raise ValueError(f"most_bytes {most_bytes!r} (accepted: {accepted})")
    return _Once(name, domain, _seconds_of(per), most_bytes, dumps, loads)
