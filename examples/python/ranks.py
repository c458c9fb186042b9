"""Ranks of MPI on one host count in a file, of which one at a time has the lock. Prints how far they
counted, and how many tokens they had, which all differ: with 3 ranks 300, twice.

    mpirun -n 3 python examples/python/ranks.py
"""

import pathlib
import tempfile

import lockflight
from mpi4py import MPI

comm = MPI.COMM_WORLD
folder = tempfile.TemporaryDirectory() if comm.rank == 0 else None
path = pathlib.Path(comm.bcast(folder.name if folder else None), "count")
if comm.rank == 0:
    path.write_text("0")

with lockflight.Domain.over(comm) as domain:
    mutex = lockflight.Mutex("count", domain)
    tokens = set()
    for _ in range(100):
        with mutex:
            path.write_text(str(int(path.read_text()) + 1))
            tokens.add(mutex.token)
    of_ranks = comm.gather(tokens)
    if folder:
        print(path.read_text(), len(set().union(*of_ranks)))

if folder:
    folder.cleanup()
