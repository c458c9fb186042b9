#!/usr/bin/env python3
"""The program with OpenSHMEM from outside, and that exit codes survive the end of SHMEM.

usage: program_test.py PROGRAM ENDS LAUNCHER-WORD...
"""

import json
import os
import subprocess
import sys
import unittest

PROGRAM, ENDS, *LAUNCH = sys.argv[1:]

BENCH = [PROGRAM, "bench", "--fabric", "oshmem"]


def run(command, **environment):
    """(exit code, output, what lockflight says). The launcher has words of its own on errors."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL,
                          env={**os.environ, "NO_COLOR": "1", **environment})
    return (done.returncode, done.stdout,
            [line for line in done.stderr.splitlines() if line.startswith("lockflight")])


def launch(ranks, *command, **environment):
    return run([*LAUNCH, str(ranks), *command], **environment)


class Launches(unittest.TestCase):
    def test_all_locks_on_one_node_and_on_several(self):
        for environment in ({}, {"LOCKFLIGHT_OSHMEM_NODES": "2"}, {"UCX_TLS": "tcp,self"}):
            with self.subTest(environment):
                code, out, said = launch(2, *BENCH, "--ops", "50", "--lock", "all", "--json", "-",
                                         **environment)
                self.assertEqual((code, said), (0, []), out)
                runs = json.loads(out)["runs"]
                self.assertIn("flight-rw", [one["lock"] for one in runs])
                for one in runs:
                    self.assertEqual((one["fabric"], one["procs"], one["violations"], one["ops"]),
                                     ("oshmem", 2, 0, 50), one)

    def test_the_witness_sees_all_ranks(self):
        code, out, said = launch(4, *BENCH, "--lock", "d-mcs,flight-rw", "--ops", "200", "--writers",
                                 "0.5", "--witness", "--json", "-", LOCKFLIGHT_OSHMEM_NODES="2")
        self.assertEqual((code, said), (0, []), out)
        self.assertEqual([(one["lock"], one["witnessed"], one["ops"], one["violations"])
                          for one in json.loads(out)["runs"]],
                         [(lock, "all", 200, 0) for lock in ("d-mcs", "flight-rw")])

    def test_one_rank_needs_no_launcher(self):
        self.assertEqual(run([*BENCH, "--lock", "d-mcs", "--ops", "10"])[::2], (0, []))

    def test_fewer_ranks_than_the_launch(self):
        code, out, said = launch(3, *BENCH, "--lock", "d-mcs", "--ops", "20", "--procs", "1,2,3",
                                 "--json", "-")
        self.assertEqual((code, said), (0, []), out)
        self.assertEqual([one["procs"] for one in json.loads(out)["runs"]], [1, 2, 3])

    def test_doctor(self):
        code, out, said = launch(2, PROGRAM, "doctor", "--fabric", "oshmem")
        self.assertEqual((code, said), (0, []), out)
        for words in ("OpenSHMEM 1.", "fetch-add atomic", "compare-swap atomic",
                      "atomic with the CPU's", "2 on 1 host"):
            self.assertIn(words, out)


class Ends(unittest.TestCase):
    def test_the_end_of_shmem_hides_no_exit_code(self):
        for ranks, code in ((2, 0), (4, 1)):
            self.assertEqual(launch(ranks, ENDS, str(code))[0], code)

    def test_a_body_that_throws_ends_the_launch_with_3(self):
        code, _, said = launch(2, ENDS, "throws")
        self.assertEqual((code, len(said)), (3, 1), said)
        self.assertRegex(said[0], "^lockflight: rank 1 on .* failed: no cheese$")


class Refusals(unittest.TestCase):
    def refuses(self, code, words, *command, **environment):
        got, out, said = run(command, **environment)
        self.assertEqual((got, out, len(said)), (code, "", 1), said)
        for word in words:
            self.assertIn(word, said[0])

    def test_bad_variables(self):
        for name, value, words in [
            ("LOCKFLIGHT_OSHMEM_NODES", "none", ["'none'", "from 1"]),
            ("LOCKFLIGHT_PROGRESS", "magic", ["'magic'", "calls, thread, auto"]),
            ("LOCKFLIGHT_PROGRESS", "thread", ["'thread'", "calls, auto"]),
        ]:
            with self.subTest(name=name, value=value):
                self.refuses(2, words, *BENCH, "--lock", "d-mcs", **{name: value})

    def test_more_ranks_than_the_launch_has(self):
        self.refuses(2, ["--procs '3'", "1 to 2"], *LAUNCH, "2", *BENCH, "--procs", "3")

    def test_a_symmetric_heap_without_room(self):
        self.refuses(3, ["symmetric heap", "SHMEM_SYMMETRIC_SIZE"], *BENCH, "--lock", "d-mcs",
                     "--workload", "table", "--locks", "100000", "--ops", "10",
                     SHMEM_SYMMETRIC_HEAP_SIZE="1M")

    def test_a_build_without_it(self):
        # Not build/lockflight, which becomes the program that has the fabric.
        other = os.path.join(os.path.dirname(PROGRAM), "openmpi", "lockflight")
        if not os.path.exists(other):
            self.skipTest("no build with Open MPI's MPI")
        for command in ("bench", "doctor"):
            self.refuses(2, ["--fabric 'oshmem'", "oshcc"], other, command, "--fabric", "oshmem")


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main(verbosity=2)
