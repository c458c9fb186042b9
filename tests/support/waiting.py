"""Waiting for something to become so, and what /proc says of a process, for tests in Python."""

import time


def wait_until(holds, seconds=10):
    """True if it holds at some moment of that time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def state_of(pid):
    """The state's letter in /proc, such as T for stopped; X if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def gone(pid):
    """Whether it has ended, even if its parent has not noticed."""
    return state_of(pid) in "ZX"
