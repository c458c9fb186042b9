#!/usr/bin/env python3
"""The program's MPI builds from outside, started by mpirun.

usage: program_test.py PROGRAM FAILING_RANK LAUNCHER... (a command up to the number of ranks)
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, FAILING_RANK, *LAUNCHER = sys.argv[1:]

# MPICH's ranks never yield while they wait: more of them than cores take minutes.
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
crowded = unittest.skipUnless(LONG or os.path.basename(os.path.dirname(PROGRAM)) != "mpich",
                              "MPICH, and more ranks than cores: ./dev test --all")


def launch(ranks, *command, **environment):
    """Exit code, what it printed, and lockflight's own lines on standard error."""
    done = subprocess.run(
        [*LAUNCHER, str(ranks), *command], capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL, env=dict(os.environ, NO_COLOR="1", **environment), check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("lockflight")]
    return done.returncode, done.stdout, said


class Bench(unittest.TestCase):
    def runs(self, ranks, *options, **environment):
        code, out, said = launch(ranks, PROGRAM, "bench", "--fabric", "mpi", "--ops", "100", "--json",
                                 "-", *options, **environment)
        self.assertEqual((code, said), (0, []), out)
        runs = json.loads(out)["runs"]
        self.assertTrue(runs)
        return runs

    def test_all_locks_on_one_node(self):
        runs = self.runs(2, "--lock", "all")
        self.assertIn("rma-rw", [run["lock"] for run in runs])
        self.assertNotIn("pthread-mutex", [run["lock"] for run in runs])
        for run in runs:
            self.assertEqual((run["fabric"], run["procs"], run["violations"]), ("mpi", 2, 0), run)
            self.assertEqual(run["ops"], 100, run)

    def test_the_same_fields_as_on_shm(self):
        on_mpi = self.runs(2, "--lock", "d-mcs")[0]
        out = subprocess.run([PROGRAM, "bench", "--lock", "d-mcs", "--procs", "2", "--ops",
                              "100", "--json", "-"], capture_output=True, text=True, check=True)
        self.assertEqual(set(on_mpi), set(json.loads(out.stdout)["runs"][0]))

    def test_tuning_goes_in_lock_step(self):
        code, out, said = launch(2, PROGRAM, "tune", "--fabric", "mpi", "--lock", "flight",
                                 "--levels", "2x1", "--writers", "1", "--ops", "200", "--turns", "2",
                                 "--runs", "16", "--json", "-", OMPI_MCA_osc="sm,pt2pt")
        self.assertEqual((code, said), (0, []), out)
        (tuned,) = json.loads(out)["tuned"]
        self.assertEqual((tuned["fabric"], tuned["procs"]), ("mpi", 2))
        self.assertLessEqual(tuned["runs"], 16)
        self.assertGreater(len(tuned["tried"]), 0)
        code, out, said = launch(2, PROGRAM, "tune", "--fabric", "mpi", "--lock", "flight",
                                 "--budget", "1", "--ops", "200")
        self.assertEqual((code, said), (0, []), out)
        self.assertRegex(out, "(?m)^(Gained|Nothing gained)")

    @crowded
    def test_fewer_ranks_than_the_launch(self):
        runs = self.runs(4, "--lock", "d-mcs,rma-rw", "--procs", "1,2,4")
        self.assertEqual([run["procs"] for run in runs], [1, 2, 4, 1, 2, 4])

    @crowded
    def test_several_nodes_on_one_machine(self):
        for run in self.runs(4, "--lock", "rma-mcs,rma-rw", "--levels", "2x2", "--workload", "wcsb",
                             "--writers", "1"):  # each writes a word
            self.assertEqual((run["levels"], run["violations"]), ("2x2", 0))
            self.assertGreater(run["fabric_ops"]["nic"]["put"], 0)

    def test_nodes_by_the_environment(self):
        run = self.runs(4, "--lock", "d-mcs", LOCKFLIGHT_MPI_NODES="2")[0]
        self.assertTrue(run["levels"].startswith("2x"), run["levels"])

    def test_refusals_are_one_line(self):
        for options, words in [
            (["--procs", "3"], ["--procs", "'3'", "1 to 2"]),
            (["--lock", "pthread-mutex"], ["--lock", "'pthread-mutex'", "shm"]),
            (["--levels", "2x2"], ["--procs", "'4'"]),
            (["--threads"], ["--threads"]),
            (["--json", "/nowhere/runs.json"], ["--json", "/nowhere/runs.json"]),
        ]:
            code, out, said = launch(2, PROGRAM, "bench", "--fabric", "mpi", *options)
            self.assertEqual((code, out, len(said)), (2, "", 1), (options, said))
            for word in words:
                self.assertIn(word, said[0])

    def test_only_one_file_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "runs.json")
            code, out, _ = launch(2, PROGRAM, "bench", "--fabric", "mpi", "--lock", "d-mcs",
                                  "--seconds", "0.05", "--json", path)
            self.assertEqual((code, out.count("wrote"), os.listdir(folder)),
                             (0, 1, ["runs.json"]), out)


class Others(unittest.TestCase):
    def test_locks_names_the_fabric(self):
        out = subprocess.run([PROGRAM, "locks", "--json"], capture_output=True, text=True,
                             check=True).stdout
        fabrics = {lock["name"]: lock["fabrics"] for lock in json.loads(out)["locks"]}
        self.assertEqual(fabrics["rma-rw"], ["shm", "mpi", "sim"])
        self.assertEqual(fabrics["pthread-mutex"], ["shm"])

    def test_doctor(self):
        code, out, said = launch(2, PROGRAM, "doctor", "--fabric", "mpi")
        self.assertEqual((code, said), (0, []), out)
        for words in ["unified memory model", "fetch-and-op atomic", "the target computes for"]:
            self.assertEqual(out.count(words), 1, out)

    def test_a_file_that_cannot_be_written_ends_all_ranks(self):
        code, out, said = launch(2, PROGRAM, "doctor", "--fabric", "mpi", "--json", "/nowhere/x")
        self.assertEqual((code, out, len(said)), (2, "", 1), said)
        self.assertIn("--json '/nowhere/x'", said[0])

    def test_options_that_differ_are_said_once(self):
        for command, more, words in [
            ("doctor", "--json x.json", "--json differs: not given on rank 0; 'x.json' on rank 1 "),
            ("bench --lock d-mcs", "--ops=10", "--ops differs: not given on rank 0; '10' on rank 1 "),
            ("bench --ops 10", "--no-such", "--no-such differs: not given on rank 0; given on rank 1 "),
        ]:
            rank = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
            code, out, said = launch(2, "sh", "-c", f'[ {rank} = 0 ] || set -- "$@" {more}; exec "$@"',
                                     "sh", PROGRAM, *command.split(), "--fabric", "mpi")
            self.assertEqual((code, out, len(said)), (2, "", 1), said)
            self.assertIn("lockflight: " + words, said[0])

    def test_a_word_that_is_none_is_said_once(self):
        code, out, said = launch(2, PROGRAM, "bench", "--fabric", "mpi", "--lock", "d-mcs", "--ops",
                                 "10", LOCKFLIGHT_PROGRESS="telepathy")
        self.assertEqual((code, out, len(said)), (2, "", 1), said)
        self.assertIn("LOCKFLIGHT_PROGRESS 'telepathy' (accepted: calls, thread, auto)", said[0])

    def test_a_failing_rank_ends_the_launch(self):
        started = time.monotonic()
        code, out, said = launch(4, FAILING_RANK)
        self.assertEqual((code, out), (3, ""))
        self.assertTrue(any("rank 3" in line and "has had enough" in line for line in said), said)
        self.assertLess(time.monotonic() - started, 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
