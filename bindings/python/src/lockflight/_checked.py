"""Arguments of callers: what is not accepted raises an error that names the argument, the value and
what is accepted."""

from __future__ import annotations

import inspect
import re
from typing import Any, List, Tuple

_DOMAIN_NAME = (
    "1 to 64 characters of a-z, A-Z, 0-9, '.', '_', '-', not beginning with '.'; with 'etcd:' "
    "before them, the domain of a cluster"
)
_DOMAIN_PATTERN = r"(etcd:)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_LOCK_NAME = "1 to 255 bytes of UTF-8, none of them NUL or newline"
_UNITS = "1 to 1024, or a list of different numbers from 0 to 61"
_MODE = "0o600, 0o660, or 0 for that of the domain"


def checked_text(name: str, value: Any, accepted: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} {value!r} (accepted: {accepted})")
    return value


def checked_domain(name: Any) -> str:
    if not re.fullmatch(_DOMAIN_PATTERN, checked_text("domain", name, _DOMAIN_NAME)):
        raise ValueError(f"domain {name!r} (accepted: {_DOMAIN_NAME})")
    return str(name)


def checked_lock(name: Any) -> str:
    checked_text("name", name, _LOCK_NAME)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"name {name!r} (accepted: {_LOCK_NAME})") from None
    if not 1 <= size <= 255 or "\0" in name or "\n" in name:
        shown = repr(name) if size <= 255 else f"of {size} bytes"
        raise ValueError(f"name {shown} (accepted: {_LOCK_NAME})")
    return str(name)


def checked_whole(name: str, value: Any, accepted: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} {value!r} (accepted: {accepted})")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} {value!r} (accepted: {accepted})")
    return value


def checked_units(units: Any) -> Tuple[int, List[int]]:
    """How many units there are, and their numbers if these are chosen."""
    if isinstance(units, (list, tuple, range)):
        numbers = [checked_whole("units", each, _UNITS) for each in units]
        if not numbers or len(set(numbers)) < len(numbers) or not 0 <= min(numbers) <= max(numbers) <= 61:
            raise ValueError(f"units {units!r} (accepted: {_UNITS})")
        return len(numbers), numbers
    if not 1 <= checked_whole("units", units, _UNITS) <= 1024:
        raise ValueError(f"units {units!r} (accepted: {_UNITS})")
    return int(units), []


def checked_mode(mode: Any) -> int:
    if checked_whole("mode", mode, _MODE) not in (0, 0o600, 0o660):
        raise ValueError(f"mode {mode:#o} (accepted: {_MODE})")
    return int(mode)


def checked_group(group: Any) -> str:
    """A number is that of a group, 0 too; without one it is the process's, as with the empty text."""
    if isinstance(group, int) and not isinstance(group, bool):
        return str(group)
    return checked_text("group", group, "the name or the number of a group")


def checked_on_owner_died(given: Any) -> str:
    accepted = "'tell', 'raise'"
    if checked_text("on_owner_died", given, accepted) not in ("tell", "raise"):
        raise ValueError(f"on_owner_died {given!r} (accepted: {accepted})")
    return str(given)


def checked_loss(given: Any, domain: str, max_hold: Any) -> str:
    """None: the default of that domain, or of holds that end."""
    if given is None:
        return "raise" if domain.startswith("etcd:") or max_hold is not None else "ignore"
    accepted = (
        "'raise', 'ignore', or None: 'raise' in the domain of a cluster or with max_hold, else "
        "'ignore'"
    )
    if checked_text("loss", given, accepted) not in ("raise", "ignore"):
        raise ValueError(f"loss {given!r} (accepted: {accepted})")
    return str(given)


def checked_max_hold(given: Any) -> Any:
    accepted = "a number of seconds above 0 and up to 1e9, or None"
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"max_hold {given!r} (accepted: {accepted})")
    if not 0 < given <= 1e9:
        raise ValueError(f"max_hold {given!r} (accepted: {accepted})")
    return given


def checked_function(name: str, given: Any) -> Any:
    if given is not None and (not callable(given) or inspect.iscoroutinefunction(given)):
        raise TypeError(f"{name} {given!r} (accepted: a function of the lock, or None)")
    return given


def checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} {value!r} (accepted: True, False)")
    return value
