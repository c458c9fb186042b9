"""Windows without end under the drop-in: many at once, many one after the other, MPI's own limit.

usage: many_windows_test.py DROP_IN PROGRAM LAUNCHER...
"""

import os
import subprocess
import sys
import unittest

from on_mpi import component, is_mpich

DROP_IN, PROGRAM, *LAUNCHER = sys.argv[1:]
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
IS_MPICH = is_mpich(DROP_IN)

BETWEEN_NODES = {"LOCKFLIGHT_MPI_NODES": 2, **component(LAUNCHER)}


class ManyWindows(unittest.TestCase):
    def holds(self, ranks, *arguments, **environment):
        """What the launch said on standard error, but for its time."""
        done = subprocess.run(
            [*LAUNCHER, str(ranks), "env", f"LD_PRELOAD={DROP_IN}",
             *(f"{name}={value}" for name, value in environment.items()), PROGRAM, *arguments],
            capture_output=True, text=True, timeout=900, check=False, env=dict(os.environ))
        if done.stdout == "no limit\n" and done.returncode == 0:
            self.skipTest("this MPI has more communicators than one can wait for")
        self.assertEqual((done.returncode, done.stdout), (0, "all holds\n"), done.stderr)
        return done.stderr

    def test_2000_are_open(self):
        self.assertNotIn("lockflight:", self.holds(2, "open", "2000"))

    def test_many_are_open_on_several_nodes(self):
        self.assertNotIn("lockflight:", self.holds(2, "open", "200", **BETWEEN_NODES))

    # MPICH's ranks never yield while they wait: with or without the drop-in a window takes it 0.1 s on
    # a machine that has nothing else to do, and seconds on a busy one. So it has fewer of them.
    @unittest.skipUnless(LONG, "more ranks than cores: ./dev test --all")
    def test_many_are_open_and_more_ranks_than_cores(self):
        self.assertNotIn("lockflight:", self.holds(4, "open", "200" if IS_MPICH else "2000"))

    def test_one_after_the_other_leaks_nothing(self):
        self.holds(2, "again", "10000" if LONG else "1000")

    def test_one_after_the_other_on_several_nodes(self):
        self.holds(2, "again", "1000" if LONG else "200", **BETWEEN_NODES)

    def test_with_different_locks(self):
        self.assertNotIn("lockflight:", self.holds(2, "locks", "300"))

    def test_with_different_locks_on_several_nodes(self):
        self.holds(2, "locks", "60", **BETWEEN_NODES)

    def test_groups_that_come_and_go(self):
        self.holds(2, "groups", "300")
        if LONG:
            self.holds(3, "groups", "100")

    # Four ranks of MPICH on two cores take a second for each window.
    def test_a_group_that_its_first_rank_drops_meanwhile(self):
        if IS_MPICH and not LONG:
            self.skipTest("more ranks than cores: ./dev test --all")
        self.holds(4, "dropped", "20" if LONG else "5")

    @unittest.skipIf(IS_MPICH, "MPICH refuses to free such a window")
    def test_windows_that_are_freed_with_locks(self):
        for seed in ("602", "603", "604"):  # each of these met the locks of a window that was freed
            self.holds(3, "held", seed)

    # The hosts of a group are known from those of the first one.
    def test_groups_that_come_and_go_on_several_nodes(self):
        self.assertNotIn("lockflight:", self.holds(2, "groups", "30", **BETWEEN_NODES))

    @unittest.skipUnless(IS_MPICH, "Open MPI has more communicators than a program makes")
    def test_on_one_host_no_communicators_are_needed(self):
        self.assertNotIn("lockflight:", self.holds(2, "limit", "1"))

    @unittest.skipUnless(IS_MPICH, "Open MPI has more communicators than a program makes")
    def test_where_mpi_has_no_communicators_left_it_has_the_locks(self):
        said = self.holds(2, "limit", "0", **BETWEEN_NODES)
        self.assertEqual(said.count("lockflight: "), 1, said)
        self.assertIn("lockflight: this window and perhaps others to come keeps the locks of MPI: "
                      "MPI has no communicators left for others\n", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
