"""The environment fails, or the user interrupts: the right exit code, at once, and nothing left."""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

from support import PROGRAM, ProgramTest, everything_in, shared_memory, skip_visibly
from waiting import gone, state_of, wait_until

LONG = ["bench", "--lock", "rma-rw", "--procs", "3", "--seconds", "60",
        "--json", "runs.json", "--html", "page.html"]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


# The number of the system call in which a rank sleeps until another rank writes.
FUTEX = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine)


def stopped_asleep(pid):
    """Stops a rank that sleeps until another rank writes, and no other: that one runs on."""
    if state_of(pid) != "S":
        return False
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", 10)
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        call = file.read().split()
    if call[0] == FUTEX and int(call[2], 16) == 0:  # FUTEX_WAIT
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def closing(*descriptors):
    """For preexec_fn: the program is started without these."""
    def close():
        for descriptor in descriptors:
            os.close(descriptor)
    return close


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
        self.assertTrue(wait_until(lambda: all(gone(rank) for rank in ranks), 3), "ranks live")
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

    # A holder computes and a client with --waiting park sleeps: a client that was stopped asleep
    # waits.
    def test_a_rank_that_is_killed_in_the_queue_is_passed_over(self):
        if FUTEX is None or not os.access(f"/proc/{os.getpid()}/syscall", os.R_OK):
            skip_visibly(self, "where a process sleeps cannot be seen here")
        process, ranks = self.start_long_run(
            ["bench", "--lock", "dlm-server", "--workload", "contention", "--locks", "1",
             "--procs", "4", "--hold", "200000", "--ops", "12", "--waiting", "park",
             "--json", "runs.json", "--html", "page.html"], 4)
        victims = []

        def found():
            victims.extend([rank for rank in [1, 2, 3] if stopped_asleep(ranks[rank])][:1])
            return victims

        self.assertTrue(wait_until(found, 10), "no client ever waits")
        os.kill(ranks[victims[0]], signal.SIGKILL)
        for rank in ranks:
            if rank != ranks[victims[0]]:
                os.kill(rank, signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, b""))
        said = f"rank {victims[0]} was lost, and the others went on: its operations are not counted."
        self.assertIn(said, out.decode())
        self.assertIn(said, self.read("page.html"))
        run = json.loads(self.read("runs.json"))["runs"][0]
        self.assertEqual((run["lost_ranks"], run["ops"], run["violations"]), (victims, 8, 0))
        self.assertTrue(wait_until(lambda: all(gone(rank) for rank in ranks), 3), "ranks live")
        self.assertEqual(shared_memory() - self.shared, set())

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
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.read("runs.json"), "precious")
        self.assert_nothing_left(["runs.json"])

    def test_a_reader_that_goes_away(self):
        process = self.start(*LONG[:5], "--ops", "3000000", "--html", "page.html")
        self.addCleanup(process.kill)
        process.stdout.close()
        process.wait(timeout=30)
        self.assertEqual((process.returncode, process.stderr.read()), (141, b""))
        process.stderr.close()
        self.assertLessEqual(set(everything_in(self.folder)), {"page.html"},
                             "a temporary file is left")

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

    def test_closed_standard_streams(self):
        for closed, code in ((2,), 0), ((1,), 3), ((0, 1, 2), 3):
            with self.subTest(closed=closed):
                process = self.start("bench", "--lock", "flight", "--procs", "2",
                                     "--seconds", "0.1", preexec_fn=closing(*closed))
                out, _ = process.communicate(timeout=30)
                self.assertEqual((process.returncode, b"flight" in out), (code, code == 0))

    def test_no_file_of_ours_is_a_standard_stream(self):
        """What is written to standard error would go into that file."""
        process = self.start(*LONG, preexec_fn=closing(0, 1, 2))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: len(children_of(process.pid)) == 3, 20))
        for pid in [process.pid, *children_of(process.pid)]:
            for fd in range(3):
                self.assertEqual(os.readlink(f"/proc/{pid}/fd/{fd}"), "/dev/null")

    def test_the_command_of_run_finds_them_closed(self):
        domain = f"test-streams-{os.getpid()}"
        self.addCleanup(self.run_program, "domain", "remove", domain, "--force")
        script = "for fd in 0 1 2; do test ! -h /proc/$$/fd/$fd || exit 40; done; exit 41"
        process = self.start("run", "--domain", domain, "jobs", "--", "sh", "-c", script,
                             preexec_fn=closing(0, 1, 2))
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 41)

    def test_ended_children_are_ignored(self):
        process = self.start("bench", "--lock", "flight", "--procs", "2", "--seconds", "0.1",
                             preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (0, b""))
        self.assertIn(b"flight", out)


if __name__ == "__main__":
    unittest.main()
