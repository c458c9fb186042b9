"""How a program is told that a hold is lost.

The thread of the library that finds a loss must not wait for the interpreter, since a holder that has
the interpreter may wait for that thread. So it writes the hold's number into a pipe, and a thread of
Python, which starts with the first number, reads it.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import struct
import sys
import threading
from typing import Any, List
import weakref

from . import _core

# What is told by a number, as long as somebody else keeps it.
_told: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_pipe: List[int] = []  # the end that is read, and the other one
_starting = threading.Lock()
# Room for the numbers of as many holds as the threads of a domain can have.
_BYTES = 8 * 4096 * 32
_F_SETPIPE_SZ = 1031  # fcntl has a name for it since Python 3.10


def number_for(what: Any) -> int:
    """A number by which a hold can be watched: `what._is_lost_now()` is called when it is lost, on a
    thread of its own."""
    number = next(_numbers)
    _told[number] = what
    _start()
    return number


def _start() -> None:
    with _starting:
        if _pipe:
            return
        _pipe.extend(os.pipe())
        # A write that waited for the reader, which needs the interpreter, would never end.
        os.set_blocking(_pipe[1], False)
        try:
            fcntl.fcntl(_pipe[1], _F_SETPIPE_SZ, _BYTES)
        except OSError:  # then it has room for 8,192 numbers that nobody has read
            pass
        _core.tell_losses_to(_pipe[1])
        # A daemon: the process can end while it waits.
        thread = threading.Thread(
            target=_read, args=(_pipe[0],), name="lockflight-losses", daemon=True
        )
        thread.start()


def _read(end: int) -> None:
    while True:
        for (number,) in struct.iter_unpack("=Q", os.read(end, 8 * 64)):
            what = _told.get(number)
            if what is None:
                continue
            try:
                what._is_lost_now()
            except Exception:
                # As of a thread of the program: the others are told all the same.
                kind, value, traceback = sys.exc_info()
                threading.excepthook(
                    threading.ExceptHookArgs((kind, value, traceback, threading.current_thread()))
                )
            del what


def _after_fork() -> None:
    """A child has a pipe of its own, and none of the threads."""
    global _starting
    _starting = threading.Lock()
    if not _pipe:
        return
    _core.tell_losses_to(-1)
    for end in _pipe:
        os.close(end)
    _pipe.clear()
    if len(_told) > 0:
        _start()


os.register_at_fork(after_in_child=_after_fork)
