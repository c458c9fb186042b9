"""The environment fails, or somebody interrupts: the right exit code, at once, and nothing left."""

import os
import resource
import signal
import subprocess
import time
import unittest

from support import PROGRAM, ProgramTest, everything_in, shared_memory

LONG = ["bench", "--lock", "rma-rw", "--procs", "3", "--seconds", "60",
        "--json", "runs.json", "--html", "page.html"]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Failures(ProgramTest):
    def start_long_run(self, arguments, ranks=3):
        """The process and its ranks, all of them running."""
        self.shared = shared_memory()
        process = self.start(*arguments)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: len(children_of(process.pid)) == ranks, 10))
        time.sleep(0.2)
        return process, children_of(process.pid)

    def assert_all_gone(self, ranks):
        self.assertTrue(wait_until(lambda: not any(lives(rank) for rank in ranks), 3), "ranks live")
        self.assert_nothing_left()
        self.assertEqual(shared_memory() - self.shared, set())

    def test_a_killed_rank_is_named_within_seconds(self):
        process, ranks = self.start_long_run(LONG)
        os.kill(ranks[1], signal.SIGKILL)
        start = time.monotonic()
        out, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual((process.returncode, out.decode(), err.decode().count("\n")), (3, "", 1))
        self.assertIn("rank 1", err.decode())
        self.assertIn("signal 9", err.decode())
        self.assert_all_gone(ranks)

    def test_any_rank_may_be_killed(self):
        for victim in [0, 2]:
            with self.subTest(rank=victim):
                process, ranks = self.start_long_run(LONG)
                os.kill(ranks[victim], signal.SIGKILL)
                _, err = process.communicate(timeout=5)
                self.assertEqual(process.returncode, 3)
                self.assertIn(f"rank {victim} ", err.decode())
                self.assert_all_gone(ranks)

    def interrupted(self, number, code):
        process, ranks = self.start_long_run(LONG)
        self.assertEqual(len(everything_in(self.folder)), 2, "two files are being made")
        start = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 3)
        self.assertEqual((process.returncode, out, err), (code, b"", b""))
        self.assert_all_gone(ranks)

    def test_ctrl_c(self):
        self.interrupted(signal.SIGINT, 130)

    def test_terminated(self):
        self.interrupted(signal.SIGTERM, 143)

    def test_ctrl_c_goes_to_the_ranks_as_well(self):
        process, ranks = self.start_long_run(LONG)
        for rank in ranks:
            os.kill(rank, signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=5)
        self.assertIn(process.returncode, [130, 3])  # 3: a dead rank was seen first
        self.assert_all_gone(ranks)

    def test_ctrl_c_with_threads(self):
        process = self.start(*LONG, "--threads")
        self.addCleanup(process.kill)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=3)
        self.assertEqual(process.returncode, 130)
        self.assert_nothing_left()

    def test_an_old_file_survives_an_interrupted_run(self):
        self.write("runs.json", "precious")
        process, _ = self.start_long_run(LONG)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=5)
        self.assertEqual(self.read("runs.json"), "precious")
        self.assert_nothing_left(["runs.json"])

    def test_a_reader_that_goes_away(self):
        process = self.start(*LONG[:5], "--ops", "3000000", "--html", "page.html")
        self.addCleanup(process.kill)
        process.stdout.close()
        process.wait(timeout=30)
        self.assertEqual((process.returncode, process.stderr.read()), (141, b""))
        process.stderr.close()
        self.assertLessEqual(everything_in(self.folder), ["page.html"], "a temporary file is left")

    def test_no_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

        process = self.start("bench", "--lock", "spin", "--procs", "4096", "--json", "runs.json",
                             preexec_fn=limit)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out, err.count(b"\n")), (3, b"", 1), err)
        self.assertIn(b"memory", err)
        self.assert_nothing_left()

    def test_a_full_disk(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([PROGRAM, "locks"], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (3, 1))
        self.assertIn(b"No space left", done.stderr)


if __name__ == "__main__":
    unittest.main()
