"""How many flushes reach the MPI under the drop-in.

usage: flushes_test.py DROP_IN COUNTER PROGRAM LAUNCHER...
"""

import subprocess
import sys
import unittest

DROP_IN, COUNTER, PROGRAM, *LAUNCHER = sys.argv[1:]
ROUNDS = 10  # as in unlocks.c


class Flushes(unittest.TestCase):
    def test_only_what_is_left_to_complete_is_flushed(self):
        done = subprocess.run(
            [*LAUNCHER, "2", "env", f"LD_PRELOAD={DROP_IN}:{COUNTER}", PROGRAM],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        # An unlock after a put flushes; one after nothing, or after the program's own flush, does
        # not, and the program's own flush does.
        said = [line for line in done.stderr.splitlines() if line.startswith("flushes: ")]
        self.assertEqual(said, [f"flushes: {2 * ROUNDS}"] * 2, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
