#!/usr/bin/env python3
"""The drop-in over hosts: what MPI says of windows, and which locks serve."""

import os
import unittest

import support
import testbed

BINARIES = testbed.ROOT / "build" / "tests" / "mpi_preload"
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ

# Open MPI 4.1's own choice makes no windows over TCP.
ENVIRONMENT = ["OMPI_MCA_osc=sm,pt2pt", "LOCKFLIGHT_MPI_STATS=1"]


def run(mpi, each, program, mark, *more, preload=True):
    """What it printed, the drop-in's statistics too unless MPICH hung in MPI_Finalize."""
    with testbed.Hosts(2) as bed:
        launch = bed.launch(mpi, each, [str(program[0]), *program[1:]], preload=preload,
                            environment=[*ENVIRONMENT, *more], **support.captured)
        passed, said = support.passed(launch, mark, 60)
        assert passed, said
        return said


class DropIn(unittest.TestCase):
    def test_windows_of_all_kinds(self):
        for mpi in support.LAUNCHERS:
            with self.subTest(mpi=mpi):
                run(mpi, 1, [BINARIES / f"drop_in_window_locks_{mpi}", "", "", "mpi"], "all holds")

    def test_windows_of_all_kinds_with_our_own_locks(self):
        for mpi in support.LAUNCHERS if LONG else ["mpich"]:
            with self.subTest(mpi=mpi):
                run(mpi, 1, [BINARIES / f"drop_in_window_locks_{mpi}", "", "", "groups"],
                    "all holds")

    # Without the drop-in more than half of these launches hang in MPI_Finalize.
    def test_launches_of_mpich_end(self):
        with testbed.Hosts(2) as bed:
            for _ in range(6):
                launch = bed.launch("mpich", 2, [str(BINARIES / "drop_in_unlocks_mpich")],
                                    preload=True, **support.captured)
                code, _, said = support.finished(launch)
                self.assertEqual(code, 0, said)

    # Without statistics Open MPI has the windows to itself, and all the same says which locks serve.
    def test_200_windows(self):
        for mpi in support.LAUNCHERS:
            for counts in ("1", "0"):
                with self.subTest(mpi=mpi, counts=counts):
                    said = run(mpi, 1, [BINARIES / f"drop_in_many_windows_{mpi}", "open", "200"],
                               "all holds", f"LOCKFLIGHT_MPI_STATS={counts}")
                    if mpi == "openmpi":  # MPICH may have hung before there were statistics
                        self.assertEqual("lock_all mpi" in said, counts == "1", said)

    def test_armci(self):
        for mpi in support.LAUNCHERS:
            program = BINARIES / f"drop_in_armci_{mpi}"
            for preload in (False, True) if LONG else (True,):
                with self.subTest(mpi=mpi, preload=preload):
                    if not program.exists():
                        self.skipTest(f"ARMCI-MPI for {mpi} is not here (Debian: libarmci-mpi-dev)")
                    said = run(mpi, 2, [program], "all holds", preload=preload)
                    if mpi == "openmpi":  # MPICH may have hung before there were statistics
                        self.assertEqual("lockflight" in said, preload, said)

    # The program fails if an addition under exclusive locks is lost. Three ranks and more queue.
    def test_the_locks_are_mpis(self):
        for each in (1, 2) if LONG else (2,):
            with self.subTest(ranks_on_each=each):
                program = [testbed.ROOT / "build" / "openmpi" / "mpi_window_locks",
                           "exclusive-data", "0.3"]
                said = run("openmpi", each, program, "\n")
                self.assertIn("lock flight, lock_all mpi\n", said)
                self.assertNotIn("additions", said)

    def test_a_named_lock_serves(self):
        program = [testbed.ROOT / "build" / "openmpi" / "mpi_window_locks", "exclusive", "0.1"]
        said = run("openmpi", 1, program, "\n", "LOCKFLIGHT_MPI_LOCK=d-mcs")
        self.assertIn("lock d-mcs, lock_all groups\n", said)


if __name__ == "__main__":
    support.main()
