"""A domain over the ranks of a communicator: threads that look like ranks, and mpi4py."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import threading

import pytest

import lockflight
from lockflight import _communicator

ROOT = pathlib.Path(__file__).parents[3]
FETCHED = ROOT / "build" / "mpi4py"
OPTIONS = {"openmpi": ["--allow-run-as-root", "--oversubscribe"], "mpich": []}


class Rank:
    """A rank of a communicator whose ranks are threads."""

    def __init__(self, rank, size, shared):
        self._rank, self._size, self._shared = rank, size, shared

    def Get_rank(self):
        return self._rank

    def Get_size(self):
        return self._size

    def allgather(self, sendobj):
        barrier, values = self._shared
        values[self._rank] = sendobj
        barrier.wait()
        found = list(values)
        barrier.wait()
        return found

    def bcast(self, obj, root=0):
        return self.allgather(obj)[root]


def on_ranks(size, body):
    """What `body(comm)` returns, or raises, on each rank."""
    shared = threading.Barrier(size, timeout=30), [None] * size
    results = [None] * size

    def run(rank):
        try:
            results[rank] = body(Rank(rank, size, shared))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_ranks_share_a_domain_that_is_removed():
    counted = [0]

    def body(comm):
        with lockflight.Domain.over(comm) as domain:
            mutex = lockflight.Mutex("count", domain)
            tokens = []
            for _ in range(50):
                with mutex:
                    counted[0] += 1
                    tokens.append(mutex.token)
            return domain.name, tokens

    results = on_ranks(3, body)
    names = {name for name, _ in results}
    assert counted == [150]
    assert len(names) == 1 and names.pop() not in lockflight.Domain.list()
    assert len({token for _, tokens in results for token in tokens}) == 150


def test_close_may_be_called_again():
    def body(comm):
        domain = lockflight.Domain.over(comm, slots=3, names=5)
        domain.close()
        domain.close()
        return domain.slots, domain.names

    assert on_ranks(2, body) == [(3, 5)] * 2


def test_several_hosts_are_refused_on_all_ranks(monkeypatch):
    # The kernel's number of the thread: those that Python gives are addresses, whose low bits may be
    # the same.
    monkeypatch.setattr(
        _communicator, "host", lambda: (f"host{threading.get_native_id()}", "kernel")
    )
    for error in on_ranks(2, lockflight.Domain.over):
        assert isinstance(error, ValueError)
        assert str(error).startswith("comm has ranks on 2 hosts: host")


def test_an_error_of_one_rank_is_an_error_of_all():
    before = lockflight.Domain.list()
    errors = on_ranks(2, lambda comm: lockflight.Domain.over(comm, slots=5000))
    assert all(isinstance(error, ValueError) for error in errors)
    assert "slots 5000" in str(errors[0])
    assert str(errors[1]).startswith("rank 0 of comm cannot use the domain: slots 5000")
    assert lockflight.Domain.list() == before


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_example_with_mpi4py(mpi):
    launcher = shutil.which(f"mpirun.{mpi}")
    if launcher is None or not (FETCHED / mpi).is_dir():
        pytest.skip(f"mpi4py with {mpi} is not there (./dev setup test fetches it)")
    compiled_for = sysconfig.get_config_var("EXT_SUFFIX")
    if not list((FETCHED / mpi / "mpi4py").glob(f"MPI*{compiled_for}")):
        pytest.skip(f"mpi4py with {mpi} is not that of this Python, {compiled_for}")
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(FETCHED / mpi)])
    done = subprocess.run(
        [launcher, *OPTIONS[mpi], "-n", "3", sys.executable, ROOT / "examples/python/ranks.py"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (0, "300 300\n"), done.stderr
