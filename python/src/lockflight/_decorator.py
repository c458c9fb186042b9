"""Locks as decorators: each call of the function holds the lock."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Decorator:
    """For a class with `__enter__`, and for coroutines `__aenter__`."""

    def __call__(self, function: _Function) -> _Function:
        """`@lock` before a function or a coroutine function: each call acquires the lock, and
        releases it at the end. A function that calls itself would wait for itself, which raises
        DomainError."""
        lock: Any = self
        if not callable(function):
            raise TypeError(f"{function!r} under {self!r} (accepted: a function)")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function!r} under {self!r}, a generator, which runs after the call (accepted: a "
                "function that takes the lock inside)"
            )
        if inspect.iscoroutinefunction(function):
            if not hasattr(lock, "__aenter__"):
                raise TypeError(f"{function!r}, a coroutine function (accepted: a function)")

            @functools.wraps(function)
            async def call_async(*arguments: Any, **named: Any) -> Any:
                async with lock:
                    return await function(*arguments, **named)

            return cast(_Function, call_async)

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            with lock:
                return function(*arguments, **named)

        return cast(_Function, call)
