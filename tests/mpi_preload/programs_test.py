"""Programs that check themselves and then say "all holds", under the drop-in.

usage: programs_test.py KIND DROP_IN PROGRAM LAUNCHER...

KIND is armci, errors, sessions or threads.
"""

import os
import subprocess
import sys
import unittest

from on_mpi import DEFAULT_LOCK, component

KIND, DROP_IN, PROGRAM, *LAUNCHER = sys.argv[1:]


class Program(unittest.TestCase):
    def holds(self, ranks, *arguments, **environment):
        """What the launch said on standard error; all of it holds."""
        done = subprocess.run(
            [*LAUNCHER, str(ranks), "env",
             *(f"{name}={value}" for name, value in environment.items()), PROGRAM, *arguments],
            capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "all holds"), done.stderr)
        return done.stderr

    def serves(self, said, lock):
        """That the drop-in had the windows: else a test of it would pass for MPI's own locks."""
        self.assertIn(f"lock {lock}, lock_all ", said)
        self.assertNotIn("keeps the locks of MPI", said)


BETWEEN_NODES = {"LOCKFLIGHT_MPI_NODES": 2, **component(LAUNCHER)}

# Who locks all reads one lock for the whole window.
GLOBAL = {"LOCKFLIGHT_MPI_LOCK_ALL": "global"}


class Armci(Program):
    """ARMCI-MPI's mutexes and fetch-and-add."""

    def test_without_the_drop_in(self):
        self.holds(2)

    def test_two_ranks(self):
        said = self.holds(2, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_STATS=1)
        self.serves(said, DEFAULT_LOCK)

    def test_more_ranks_than_cores(self):
        said = self.holds(4, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_STATS=1)
        self.serves(said, DEFAULT_LOCK)

    def test_a_global_lock(self):
        said = self.holds(4, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_STATS=1, **GLOBAL)
        self.serves(said, DEFAULT_LOCK)

    def test_two_nodes(self):
        said = self.holds(2, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_LOCK="rma-rw",
                          LOCKFLIGHT_MPI_STATS=1, **BETWEEN_NODES)
        self.serves(said, "rma-rw")


class Errors(Program):
    """What MPI's own libraries do not check: under the drop-in only."""

    def test_two_ranks(self):
        self.holds(2, LD_PRELOAD=DROP_IN)

    def test_a_global_lock(self):
        self.holds(2, LD_PRELOAD=DROP_IN, **GLOBAL)

    # MPICH 4.3 and 5 say MPI_SUCCESS of a lock that they refuse.
    def test_the_locks_of_mpi(self):
        self.holds(2, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_LOCK_ALL="mpi")

    def test_two_nodes(self):
        self.holds(3, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_LOCK="d-mcs", **BETWEEN_NODES)


class Sessions(Program):
    """Communicators of a session (MPI 4)."""

    def test_beside_mpi_init(self):
        for words in [[], ["strict"], ["window"], ["duplicate", "strict"]]:
            with self.subTest(words):
                said = self.holds(2, "init", *words, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_STATS=1)
                self.serves(said, DEFAULT_LOCK)

    def test_beside_mpi_init_on_two_nodes(self):
        said = self.holds(2, "init", "window", LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_LOCK="flight",
                          LOCKFLIGHT_MPI_STATS=1, **BETWEEN_NODES)
        self.serves(said, "flight")

    # There is no launch that the drop-in could know, and so MPI has the locks.
    def test_alone(self):
        for words in [[], ["strict"], ["duplicate"]]:
            with self.subTest(words):
                said = self.holds(2, *words, LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_STATS=1)
                self.assertNotIn("lockflight:", said)


class Threads(Program):
    """MPI_THREAD_MULTIPLE."""

    def test_a_mutex_and_both_kinds_of_counters(self):
        for lock in ["d-mcs", "fompi-rw-backoff", "flight-rw"]:
            with self.subTest(lock):
                said = self.holds(2, "3", LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_LOCK=lock,
                                  LOCKFLIGHT_MPI_STATS=1)
                self.serves(said, lock)

    def test_a_global_lock(self):
        for lock in ["d-mcs", "flight-rw"]:
            with self.subTest(lock):
                said = self.holds(2, "3", LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_LOCK=lock,
                                  LOCKFLIGHT_MPI_STATS=1, **GLOBAL)
                self.serves(said, lock)

    def test_many_threads(self):
        said = self.holds(2, "8", LD_PRELOAD=DROP_IN, LOCKFLIGHT_MPI_HANG=60,
                          LOCKFLIGHT_MPI_STATS=1)
        self.serves(said, DEFAULT_LOCK)
        self.assertNotIn("has waited", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=KIND.capitalize())
