"""Errors that the MPI makes are the same with and without the drop-in.

usage: as_alone_test.py DROP_IN PROGRAM LAUNCHER...
"""

import os
import subprocess
import sys
import unittest

from on_mpi import is_mpich

DROP_IN, PROGRAM, *LAUNCHER = sys.argv[1:]
IS_MPICH = is_mpich(DROP_IN)
ON_TWO_NODES = {"LOCKFLIGHT_MPI_LOCK": "flight", "LOCKFLIGHT_MPI_NODES": 2}


def launch(what, handler, **environment):
    """The program's own lines and what was said besides, of 2 ranks that end well."""
    done = subprocess.run(
        [*LAUNCHER, "2", "env", *(f"{name}={value}" for name, value in environment.items()),
         PROGRAM, what, handler],
        capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[-1:]) == (0, ["the end"]), done.stdout + done.stderr
    return lines, done.stderr


class AsAlone(unittest.TestCase):
    maxDiff = None

    def is_the_same(self, what, handler, **environment):
        alone, _ = launch(what, handler)
        with_it, said = launch(what, handler, LD_PRELOAD=DROP_IN, **environment)
        self.assertEqual(with_it, alone)
        return said

    def test_windows_that_are_not_made(self):
        for handler in ["returned", "own", *(["of_world"] if IS_MPICH else [])]:
            with self.subTest(handler):
                self.is_the_same("windows", handler)

    def test_null_handles(self):
        for handler in ["returned", "of_world"]:
            with self.subTest(handler):
                self.is_the_same("null", handler)

    def test_flushes_outside_an_epoch(self):
        for handler in ["returned", "own", *(["of_world"] if IS_MPICH else [])]:
            with self.subTest(handler):
                self.is_the_same("flushes", handler)

    @unittest.skipUnless(IS_MPICH, "Open MPI frees a window that is locked")
    def test_windows_that_are_not_freed(self):
        for handler in ["returned", "of_world"]:
            with self.subTest(handler):
                self.is_the_same("freed", handler)

    @unittest.skipUnless(IS_MPICH, "Open MPI frees a window that is locked")
    def test_windows_that_are_not_freed_on_two_nodes(self):
        self.is_the_same("freed", "returned", **ON_TWO_NODES)

    # The statistics are summed up once, when the window is freed.
    @unittest.skipUnless(IS_MPICH, "Open MPI frees a window that is locked")
    def test_the_statistics_of_windows_that_are_not_freed(self):
        for nodes in [{}, ON_TWO_NODES]:
            with self.subTest(nodes=nodes):
                said = self.is_the_same("freed", "returned", LOCKFLIGHT_MPI_STATS=1, **nodes)
                self.assertEqual(said.count("lockflight: window 'refused', 2 ranks"), 1, said)
                self.assertEqual(said.count("lockflight: window"), 2, said)

    # MPICH alone drops the program's handler at the second refusal, and then ends the process.
    @unittest.skipUnless(IS_MPICH, "Open MPI frees a window that is locked")
    def test_a_handler_of_the_window_outlives_refusals(self):
        own, _ = launch("freed", "own", LD_PRELOAD=DROP_IN)
        of_world, _ = launch("freed", "of_world", LD_PRELOAD=DROP_IN)
        self.assertEqual(own, [line for line in of_world if "MPI_COMM_SELF's" not in line])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
