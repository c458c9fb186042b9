"""mpi4py's own tests of windows with and without the drop-in: whatever passes without it must pass
with it, on every rank.

usage: mpi4py_test.py MPI FETCHED DROP_IN LAUNCHER... (up to the number of ranks)
       mpi4py_test.py MPI FETCHED DROP_IN HOSTS (tests/hosts/hosts: 2 hosts of 2 ranks)

MPI is openmpi or mpich, FETCHED the folder that ./dev setup test fetched mpi4py to. Where it is not
there the exit code is 77, and the test counts as skipped.
"""

import functools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "mpi_preload"))
from on_mpi import DEFAULT_LOCK  # noqa: E402

MPI, FETCHED, DROP_IN, *LAUNCHER = sys.argv[1:]
ONE_RANK = Path(__file__).parent / "one_rank.py"
SKIPPED = 77
# Alone MPICH takes 4 to 70 s for all cases where its two ranks do not have two cores all the time.
LONGEST_S = 240

OVER_HOSTS = os.path.basename(LAUNCHER[0]) == "hosts"


def launcher(ranks):
    if not OVER_HOSTS:
        return [*LAUNCHER, str(ranks)]
    return [sys.executable, *LAUNCHER, "-n", "2", "--per-host", str(ranks // 2), "--launch", MPI,
            "--"]


# Open MPI 4.1's osc/rdma crashes on compare-and-swap to the own rank (docs/mpi-details.md), and osc/pt2pt
# makes no window where threads call MPI at the same time.
ENVIRONMENT = {"openmpi": {"OMPI_MCA_osc": "sm,pt2pt"}, "mpich": {}}[MPI]
THREAD_LEVEL = {"openmpi": "single", "mpich": "multiple"}[MPI]

WINDOWS = ["test_rma", "test_rma_nb", "test_win", "test_attributes.TestWinAttr",
           "test_exceptions.TestExcWin", "test_subclass.TestMyWin"]
# With more ranks than cores MPICH takes 10 ms for a fence, and a minute for some of the rest.
# Windows of every kind, locks on one and on all, and both kinds of epochs with active targets.
SOME = ["test_rma.TestRMAWorld.testFlush", "test_rma.TestRMAWorld.testSync",
        "test_rma.TestRMAWorld.testFence", "test_rma.TestRMAWorld.testStartCompletePostWait",
        "test_win.TestWinCreateWorld.testMemory",
        "test_win.TestWinAllocateSharedWorld.testSharedQuery",
        "test_win.TestWinCreateDynamicWorld.testAttachDetach"]


class Run:
    """A launch: what became of each test case on each rank, and what the ranks said."""

    def __init__(self, ranks, cases, **environment):
        with tempfile.TemporaryDirectory() as folder:
            launched = subprocess.Popen(
                [*launcher(ranks), "env", f"PYTHONPATH={FETCHED}/{MPI}",
                 *(f"{name}={value}" for name, value in (ENVIRONMENT | environment).items()),
                 sys.executable, "-B", str(ONE_RANK), f"{FETCHED}/test", folder, THREAD_LEVEL,
                 *cases],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                env=dict(os.environ))
            try:
                self.said, _ = launched.communicate(timeout=LONGEST_S)
                self.ended = f"exit code {launched.returncode}"
            except subprocess.TimeoutExpired:
                launched.terminate()  # the launcher ends its ranks
                self.said, _ = launched.communicate()
                self.ended = f"ended after {LONGEST_S} s"
            self.verdicts = {}
            self.lock = set()
            for rank in range(ranks):
                told = Path(folder, str(rank))
                for line in told.read_text("utf-8").splitlines() if told.exists() else []:
                    what, verdict = line.split()
                    if what == "lock":
                        self.lock.add(verdict)
                    else:
                        self.verdicts[rank, what] = verdict

    def passed(self):
        return {case for case, verdict in self.verdicts.items() if verdict == "ok"}


@functools.cache
def without_drop_in(ranks, *cases):
    return Run(ranks, cases)


class Compared(unittest.TestCase):
    def compare(self, ranks, cases, without, **environment):
        """Runs the cases under the drop-in. `without` is a run without it, of these and others."""
        self.assertEqual(without.lock, {"none"}, without.said)
        expected = {(rank, case) for rank, case in without.passed()
                    if f"{case}.".startswith(tuple(f"{wanted}." for wanted in cases))}
        self.assertTrue(expected, "nothing passes without the drop-in: " + without.said)

        under = Run(ranks, cases, LD_PRELOAD=DROP_IN, **environment)
        # Over hosts the locks are MPI's own, and what waits before them is a flight.
        default = "flight" if OVER_HOSTS else DEFAULT_LOCK
        lock = environment.get("LOCKFLIGHT_MPI_LOCK", default)
        self.assertEqual(under.lock, {lock}, under.said)
        lost = sorted(expected - under.passed())
        if lost:
            self.fail(
                f"pass without the drop-in only ({ranks} ranks, {under.ended}):\n" +
                "".join(f"  rank {rank} {case}: {under.verdicts.get((rank, case), 'not reached')}\n"
                        for rank, case in lost) + under.said)
        print(f"{ranks} ranks, {lock}: {len(expected)} pass without the drop-in, and with it",
              flush=True)


@unittest.skipIf(OVER_HOSTS, "on one machine")
class OneMachine(Compared):
    def test_two_ranks(self):
        self.compare(2, WINDOWS, without_drop_in(2, *WINDOWS))

    def test_two_nodes(self):
        self.compare(2, SOME, without_drop_in(2, *WINDOWS), LOCKFLIGHT_MPI_LOCK="rma-rw",
                     LOCKFLIGHT_MPI_NODES=2)

    def test_more_ranks_than_cores(self):
        self.compare(3, SOME, without_drop_in(3, *SOME))


@unittest.skipUnless(OVER_HOSTS, "over hosts")
class Hosts(Compared):
    def test_two_hosts_of_two(self):
        self.compare(4, SOME, without_drop_in(4, *SOME))


if __name__ == "__main__":
    for part in (MPI, "test"):
        if not Path(FETCHED, part).exists():
            print(f"skipped: {FETCHED}/{part} is missing; ./dev setup test fetches and builds "
                  "mpi4py, and says why where it cannot")
            sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
