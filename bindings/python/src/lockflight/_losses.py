"""How a program is told that a hold is lost.

The thread of the library that finds a loss must not wait for the interpreter, since a holder that has
the interpreter may wait for that thread. So it adds the number of the hold to a list, and a thread of
Python, which starts when the first number is given out, takes them.
"""

from __future__ import annotations

import itertools
import os
import queue
import sys
import threading
from typing import Any, List
import weakref

from . import _core

# The objects to call, by number, as long as somebody else keeps them.
_objects: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_threads: List[threading.Thread] = []  # two, or none yet
_functions: queue.SimpleQueue[Any] = queue.SimpleQueue()  # whose functions are to be called


def number_for(what: Any) -> int:
    """A number by which a hold can be watched: `what._on_hold_lost()` is called when it is lost, on a
    thread of its own; of an object that `_is_quick`, whatever such a call of others does."""
    number = next(_numbers)
    _objects[number] = what
    _start()
    return number


def _start() -> None:
    """A finalizer in the middle may make another lock, and call this again: each change is one call,
    and a second thread does no harm."""
    if _threads:
        return
    for body in (_report, _call_functions):
        # A daemon: the process can end while it waits.
        thread = threading.Thread(target=body, name="lockflight-losses", daemon=True)
        thread.start()
        _threads.append(thread)


def _report() -> None:
    """Cancels tasks, and passes on what may take long."""
    while True:
        for number in _core.take_losses():
            what = _objects.get(number)
            if what is None:
                continue
            if what._is_quick:
                _call(what)
            else:
                _functions.put(what)
            del what


def _call_functions() -> None:
    while True:
        _call(_functions.get())


def _call(what: Any) -> None:
    try:
        what._on_hold_lost()
    except BaseException:  # as of a thread of the program: the others are told all the same
        try:
            kind, value, traceback = sys.exc_info()
            threading.excepthook(
                threading.ExceptHookArgs((kind, value, traceback, threading.current_thread()))
            )
        except BaseException:  # nothing that a hook does ends the thread
            pass
        finally:
            del kind, value, traceback


def _after_fork() -> None:
    """A child has none of the threads."""
    global _functions
    _functions = queue.SimpleQueue()
    _threads.clear()
    if len(_objects) > 0:
        _start()


os.register_at_fork(after_in_child=_after_fork)
