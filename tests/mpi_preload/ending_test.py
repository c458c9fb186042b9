"""A rank that has disconnected the others serves them in MPI_Finalize, if some are on other hosts.

usage: ending_test.py DROP_IN ENDING PROGRAM LAUNCHER...
"""

import os
import subprocess
import sys
import unittest

DROP_IN, ENDING, PROGRAM, *LAUNCHER = sys.argv[1:]
RANKS = 2


class Ending(unittest.TestCase):
    def rounds(self, *environment):
        done = subprocess.run(
            [*LAUNCHER, str(RANKS), "env", *environment, f"LD_PRELOAD={DROP_IN}:{ENDING}", PROGRAM],
            capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if line.endswith((" round", " rounds"))]

    def test_one_host(self):
        self.assertEqual(self.rounds(), ["one round"] * RANKS)

    def test_several_hosts(self):
        self.assertEqual(self.rounds("MPI_LOCALNRANKS=1"), ["several rounds"] * RANKS)

    @unittest.skipIf(any("/impi/" in word for word in LAUNCHER),
                     "Intel MPI sets MPI_LOCALNRANKS by itself, in MPI_Init")
    def test_a_launcher_that_does_not_say(self):
        self.assertEqual(self.rounds("--unset=MPI_LOCALNRANKS"), ["several rounds"] * RANKS)

    def test_off(self):
        self.assertEqual(self.rounds("MPI_LOCALNRANKS=1", "LOCKFLIGHT_MPI_OFF=1"),
                         ["one round"] * RANKS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
