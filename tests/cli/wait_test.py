"""What a lockflight run says while it waits, and when it gives up."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM


class Waiting(NamedTest):
    def wait(self, *options, names=("jobs",)):
        """A run that waits for a lock which somebody holds."""
        before = len(self.who(names[-1])["waiters"])
        run = self.start("run", "--domain", DOMAIN, *options, *names, "--", "true")
        self.addCleanup(self.end, run)
        self.wait_for_waiters(before + 1, names[-1])
        return run

    def said(self, run):
        """On standard error, when the holder has ended."""
        out, err = run.communicate(timeout=20)
        self.assertEqual((run.returncode, out), (0, b""))
        return err.decode()

    def test_one_line_if_it_is_asked_for(self):
        """Of a lock, of several names, of a semaphore."""
        holder, command = self.hold()
        of_b, _ = self.hold(name="b")
        units = [self.hold(options=["--units", "3"], name="gpu")[0] for _ in range(3)]
        runs = [self.wait("--verbose") for _ in range(3)]
        silent = [self.wait(), self.wait("--no-wait-message")]
        several = self.wait("--verbose", names=("c", "a", "b"))
        semaphore = self.wait("--verbose", "--units", "3", names=("gpu",))
        time.sleep(2.2)
        for each in (holder, of_b, units[0]):
            each.terminate()
        for run, place in zip(runs, ["you are next", "1 before you", "2 before you"]):
            self.assertRegex(self.said(run), r"^lockflight run: waiting for 'jobs', held by sleep "
                                             rf"\(pid {command}\) for [12]\.\d s, {place}\n$")
        for run in silent:
            self.assertEqual(self.said(run), "")
        self.assertIn("waiting for 'b', held by sleep", self.said(several))
        self.assertRegex(self.said(semaphore), r"waiting for 'gpu', held by sleep \(pid \d+\) and "
                                               r"2 others for \d\.\d s, you are next\n$")

    def test_a_short_wait_says_nothing(self):
        holder, _ = self.hold()
        run = self.wait("--verbose")
        time.sleep(0.2)
        holder.terminate()
        self.assertEqual(self.said(run), "")

    def test_a_stopped_holder(self):
        _, command = self.hold()
        os.kill(command, signal.SIGSTOP)
        code, _, err = self.run_in("true", options=["--timeout", "0.1"])
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"held by \w+ \(pid {command}, stopped\) for")

    def test_when_it_gives_up(self):
        _, command = self.hold()
        line = (rf"lockflight run: lock 'jobs' was not free in time: held by sleep "
                rf"\(pid {command}\) for \d\.\d s\n")
        for options in (["--timeout", "0.1"], ["--timeout", "0.1", "--verbose"],
                        ["--nonblock", "--verbose"], ["--shared", "--timeout", "0.1"]):
            code, out, err = self.run_in("true", options=options)
            self.assertEqual((code, out), (1, ""), options)
            self.assertRegex(err, f"^{line}$")
        for options in (["--nonblock"], ["--timeout", "0.1", "--no-wait-message"]):
            self.assertEqual(self.run_in("true", options=options), (1, "", ""))

    def full_pipe(self):
        """A pipe that takes no byte any more: (the end to read from, the one to write to)."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.set_blocking(writing, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writing, b"x" * 4096)
        os.set_blocking(writing, True)
        return reading, writing

    def run_into(self, error, *words, options=()):
        """The exit code of a run with that standard error, and how long it took."""
        start = time.monotonic()
        done = subprocess.run(
            [PROGRAM, "run", "--domain", DOMAIN, *options, "jobs", "--", *words],
            cwd=self.folder, stderr=error, timeout=20, check=False)
        os.close(error)
        return done.returncode, time.monotonic() - start

    def test_nobody_reads_what_it_says(self):
        holder, _ = self.hold()
        for options in (["--timeout", "0.2"], ["--nonblock", "--verbose"],
                        ["--timeout", "1.2", "--verbose"]):
            code, seconds = self.run_into(self.full_pipe()[1], "true", options=options)
            self.assertEqual(code, 1)
            self.assertLess(seconds, 3)
        holder.terminate()
        # The lock is free, though nobody reads that COMMAND was killed.
        self.assertEqual(self.run_into(self.full_pipe()[1], "sh", "-c", "kill -9 $$")[0], 137)
        self.assertEqual(self.run_in("true", options=["--timeout", "10"]), (0, "", ""))

    def test_nobody_can_read_what_it_says(self):
        reading, writing = os.pipe()
        os.close(reading)
        self.assertEqual(self.run_into(writing, "sh", "-c", "kill -9 $$")[0], 137)
        self.assertEqual(self.run_in("sh", "-c", "exit ${LOCKFLIGHT_OWNER_DIED-7}")[0], 7)

    def test_what_is_refused(self):
        code, _, err = self.run_in("true", options=["--verbose", "--no-wait-message"])
        self.assertEqual((code, err.count("\n")), (2, 1))
        self.assertIn("option '--no-wait-message' (accepted: not together with --verbose", err)


class OnATerminal(NamedTest):
    def on_terminal(self, *words):
        """A run whose standard streams are a terminal of its own; returns its process and what the
        terminal shows."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(PROGRAM, [PROGRAM, *words])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.addCleanup(os.close, terminal)
        return pid, terminal

    @staticmethod
    def read_until(terminal, pattern, seconds=10):
        shown = b""
        end = time.monotonic() + seconds
        while not re.search(pattern, shown) and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(terminal, 4096)
                except OSError:  # the other end is closed
                    break
        return shown

    def test_the_line_is_drawn_anew_and_taken_away(self):
        holder, command = self.hold()
        run = ("run", "--domain", DOMAIN)
        pid, terminal = self.on_terminal(*run, "jobs", "--", "echo", "runs")
        self.wait_for_waiters(1)
        silent_pid, silent = self.on_terminal(*run, "--no-wait-message", "jobs", "--", "echo", "runs")
        self.wait_for_waiters(2)
        third_pid, third = self.on_terminal(*run, "jobs", "--", "true")
        line = rb"\rwaiting for 'jobs', held by sleep \(pid %d\) for \d\.\d s, " \
               rb"you are next\x1b\[K" % command
        shown = self.read_until(terminal, line + rb".*" + line)
        self.assertRegex(shown, rb"^" + line + rb".*" + line)

        # Ctrl-C takes it away as well.
        self.read_until(third, rb"2 before you\x1b\[K")
        os.write(third, b"\x03")
        self.assertTrue(self.read_until(third, rb"\r\x1b\[K$").endswith(b"\r\x1b[K"))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(third_pid, 0)[1]), -signal.SIGINT)

        holder.terminate()
        self.assertRegex(self.read_until(terminal, rb"runs\r\n"), rb"\r\x1b\[Kruns\r\n$")
        self.assertEqual(self.read_until(silent, rb"runs\r\n"), b"runs\r\n")
        for each in (pid, silent_pid):
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]), 0)

    def test_a_terminal_that_is_stopped_keeps_nobody_from_the_lock(self):
        """By Ctrl-S, after the line was drawn: neither the run itself nor those behind it."""
        holder, _ = self.hold()
        pid, terminal = self.on_terminal("run", "--domain", DOMAIN, "jobs", "--", "touch",
                                         self.path("ran"))
        self.read_until(terminal, rb"you are next\x1b\[K")
        os.write(terminal, b"\x13")
        time.sleep(0.1)
        holder.terminate()
        code, _, _ = self.run_in("true", options=["--timeout", "10"])
        os.write(terminal, b"\x11")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(code, 0)
        self.assertTrue(os.path.exists(self.path("ran")))


if __name__ == "__main__":
    unittest.main()
