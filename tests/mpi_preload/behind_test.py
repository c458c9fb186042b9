"""What reaches the MPI under the drop-in, and by which way.

usage: behind_test.py BUILD_TYPE DROP_IN BEHIND UNLOCKS HELD LAUNCHER...
"""

import subprocess
import sys
import unittest

BUILD_TYPE, DROP_IN, BEHIND, UNLOCKS, HELD, *LAUNCHER = sys.argv[1:]
ROUNDS = 10  # as in unlocks.c
SHORT_EPOCHS = 10  # as in held.c
RANKS = 2


def said_by(program):
    done = subprocess.run(
        [*LAUNCHER, str(RANKS), "env", f"LD_PRELOAD={DROP_IN}:{BEHIND}", program],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


class Behind(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.said = said_by(UNLOCKS)

    def said_of(self, what):
        return [line for line in self.said.splitlines() if line.startswith(f"{what}: ")]

    def test_only_what_is_left_to_complete_is_flushed(self):
        # An unlock after a put flushes; one after nothing, after the program's own flush, or after
        # puts that a fence completed before any lock, does not, and the program's own flush does.
        self.assertEqual(self.said_of("flushes"), [f"flushes: {2 * ROUNDS}"] * RANKS, self.said)

    @unittest.skipUnless(BUILD_TYPE == "Release", "a jump instead of a call is an optimization")
    def test_a_put_is_passed_on_by_a_jump(self):
        # Also those within locks, of which the drop-in takes note: the flushes are of these.
        self.assertEqual(self.said_of("puts"),
                         [f"puts: {3 * ROUNDS} return to the program, 0 to the drop-in"] * RANKS,
                         self.said)

    def test_calls_of_a_long_lock_all_go_past_the_drop_in(self):
        # The drop-in does not see the program's flush of all targets, nor the put on the other window,
        # and so each unlock_all has a flush. In the short epochs it sees the program's flush, and
        # unlock_all has none.
        lines = [line for line in said_by(HELD).splitlines() if line.startswith("flushes of all: ")]
        self.assertEqual(lines, [f"flushes of all: {2 + 1 + SHORT_EPOCHS}"] * RANKS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
