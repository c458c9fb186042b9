#!/usr/bin/env python3
"""The program with UCX under a launcher with PMIx, Open MPI's mpirun, and without one.

usage: pmix_test.py PROGRAM MPIRUN... (up to the number of ranks)
"""

import json
import os
import subprocess
import sys
import unittest

PROGRAM, *MPIRUN = sys.argv[1:]

BENCH = [PROGRAM, "bench", "--fabric", "ucx", "--lock", "d-mcs", "--ops", "40", "--json", "-"]
SECONDS = 20


def run(command, **environment):
    """The exit code, standard output, and what lockflight itself says."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    return (done.returncode, done.stdout,
            [line for line in done.stderr.splitlines() if line.startswith("lockflight")])


class Launches(unittest.TestCase):
    def test_the_ranks_find_each_other(self):
        code, out, said = run([*MPIRUN, "4", *BENCH], LOCKFLIGHT_UCX_NODES="2", UCX_TLS="tcp,self")
        self.assertEqual((code, said), (0, []), out)
        (bench,) = json.loads(out)["runs"]
        self.assertEqual((bench["levels"], bench["ops"], bench["violations"]), ("2x2", 40, 0))

    def test_the_variables_go_first(self):
        # Each of mpirun's two processes is a launch of one rank.
        each = ('LOCKFLIGHT_RENDEZVOUS=127.0.0.1:$((20000 + $$ % 10000)) LOCKFLIGHT_RANK=0 '
                'LOCKFLIGHT_RANKS=1 exec "$@"')
        code, out, said = run([*MPIRUN, "2", "sh", "-c", each, "sh", *BENCH])
        self.assertEqual((code, said), (0, []), out)
        self.assertEqual(out.count('"procs": 1'), 2)


class Refusals(unittest.TestCase):
    def refuses(self, code, ranks, words, shell, **environment):
        """`ranks`: how many of them say so, at least one."""
        found, out, said = run([*MPIRUN, str(ranks), "sh", "-c", shell + ' exec "$@"', "sh",
                                *BENCH], **environment)
        self.assertEqual((found, out), (code, ""), said)
        self.assertTrue(1 <= len(said) <= ranks, said)
        for line in said:
            self.assertIn(words, line)

    def test_nobody_answers(self):
        code, out, said = run(BENCH, PMIX_NAMESPACE="nobody", PMIX_RANK="0")
        self.assertEqual((code, out, len(said)), (3, "", 1))
        self.assertIn("PMIx: no launcher answers", said[0])
        self.assertIn("LOCKFLIGHT_RENDEZVOUS=HOST:PORT", said[0])

    def test_two_ranks_with_one_number(self):
        # The launcher notices, or else rank 0.
        self.refuses(3, 3, "one process for each", "[ $PMIX_RANK != 2 ] || PMIX_RANK=1;")

    def test_a_rank_that_does_not_come(self):
        self.refuses(3, 2, "rank 1 has not come to", "[ $PMIX_RANK = 0 ] || exec sleep 10;",
                     LOCKFLIGHT_RENDEZVOUS_TIMEOUT="1")

    def test_rank_0_does_not_come(self):
        self.refuses(3, 2, "rank 0 has said nothing for 1 s",
                     "[ $PMIX_RANK = 1 ] || exec sleep 10;", LOCKFLIGHT_RENDEZVOUS_TIMEOUT="1")

    def test_a_bad_timeout(self):
        self.refuses(2, 2, "LOCKFLIGHT_RENDEZVOUS_TIMEOUT 'soon'", "",
                     LOCKFLIGHT_RENDEZVOUS_TIMEOUT="soon")

    def test_a_launcher_without_pmix(self):
        code, out, said = run(BENCH, PMI_SIZE="4", PMI_RANK="1")
        self.assertEqual((code, out, len(said)), (2, "", 1))
        for words in ("one of 4 ranks (PMI_SIZE)", "launcher with PMIx",
                      "LOCKFLIGHT_RENDEZVOUS=HOST:PORT"):
            self.assertIn(words, said[0])


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main(verbosity=2)
