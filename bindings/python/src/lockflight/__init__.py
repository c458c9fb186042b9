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

from ._communicator import Communicator
from ._core import DomainError, LockLost, OwnerDied
from ._domains import Domain, DomainOver, LockState, LockUse, LockUser, LockUsers, Participant
from ._elections import Election, Leader, Observation
from ._locks import Mutex, Semaphore, SharedMutex, all_of
from ._once import ResultNotKept, once
from ._way import AllOf, NotAcquired

__all__ = [
    "AllOf",
    "Communicator",
    "Domain",
    "DomainError",
    "DomainOver",
    "Election",
    "Leader",
    "LockLost",
    "LockState",
    "LockUse",
    "LockUser",
    "LockUsers",
    "Mutex",
    "NotAcquired",
    "Observation",
    "OwnerDied",
    "Participant",
    "ResultNotKept",
    "Semaphore",
    "SharedMutex",
    "all_of",
    "once",
]
__version__ = "0.1.0"

# Messages and documentation name what is public by the module that users import it from.
for _each in __all__:
    globals()[_each].__module__ = __name__
