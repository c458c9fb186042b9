"""A program in Fortran, alone and under the drop-in.

usage: fortran_test.py DROP_IN PROGRAM LAUNCHER...
"""

import subprocess
import sys
import unittest

DROP_IN, PROGRAM, *LAUNCHER = sys.argv[1:]


def launch(*environment):
    """What rank 0 prints: the lock of its window."""
    done = subprocess.run([*LAUNCHER, "2", "env", *environment, PROGRAM], capture_output=True,
                          text=True, timeout=60, check=True)
    return done.stdout.strip()


class Fortran(unittest.TestCase):
    def test_without_it(self):
        self.assertEqual(launch(), "")

    def test_under_it(self):
        for lock in ["fompi-rw-backoff", "flight-rw"]:
            with self.subTest(lock):
                self.assertEqual(
                    launch(f"LD_PRELOAD={DROP_IN}", f"LOCKFLIGHT_MPI_LOCK={lock}"), lock)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
