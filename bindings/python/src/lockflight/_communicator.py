"""A domain for the ranks of an MPI communicator, which lie on one host."""

from __future__ import annotations

import os
import platform
import secrets
from typing import Any, List, Optional, Protocol, Tuple


class Communicator(Protocol):
    """The calls that Domain.over() needs of a communicator, as mpi4py.MPI.Comm has them."""

    def Get_rank(self) -> int:
        """The rank of the caller."""

    def Get_size(self) -> int:
        """The number of ranks."""

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The object of the root, on all ranks."""

    def allgather(self, sendobj: Any) -> List[Any]:
        """The objects of all ranks, in the order of the ranks."""


def host() -> Tuple[str, str]:
    """Equal for processes that share a kernel and a host name."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as of_kernel:
            kernel = of_kernel.read().strip()
    except OSError:
        kernel = ""
    return platform.node(), kernel


def new_name(comm: Communicator) -> str:
    """A name that no other domain has, the same on all ranks. Raises ValueError on all ranks if they
    lie on several hosts."""
    hosts = comm.allgather(host())
    if len(set(hosts)) > 1:
        names = ", ".join(sorted({name for name, _ in hosts}))
        raise ValueError(
            f"comm has ranks on {len(set(hosts))} hosts: {names} (accepted: a communicator of one "
            "host, such as comm.Split_type(MPI.COMM_TYPE_SHARED))"
        )
    return str(comm.bcast(f"comm-{os.getpid()}-{secrets.token_hex(8)}", root=0))


def agree(comm: Communicator, error: Optional[Exception]) -> None:
    """Raises on all ranks if there is an error on one: its own error there, ValueError elsewhere."""
    errors = comm.allgather(None if error is None else str(error))
    if error is not None:
        raise error
    for rank, text in enumerate(errors):
        if text is not None:
            raise ValueError(f"rank {rank} of comm cannot use the domain: {text}")
