#!/usr/bin/env python3
"""The testbed itself: hosts are apart, links are cut and mended, hosts end, nothing is left."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import support
import testbed
from waiting import wait_until

HOSTS = str(pathlib.Path(__file__).with_name("hosts"))


def reaches(hosts, host, other):
    """Whether a TCP connection from one host to another is at least refused by it."""
    tried = hosts.start(host, [sys.executable, "-c", f"""
import socket, sys
s = socket.socket(); s.settimeout(0.3)
try: s.connect(("{hosts.name(other)}", 9))
except ConnectionRefusedError: sys.exit(0)
except OSError: sys.exit(1)"""])
    return tried.wait(10) == 0


def said(hosts, host, *command):
    return support.finished(hosts.start(host, command, **support.captured))[1].strip()


class Testbed(unittest.TestCase):
    def test_hosts_have_their_own_name_memory_and_network(self):
        with testbed.Hosts(2) as hosts:
            self.assertEqual([said(hosts, i, "hostname") for i in range(2)], ["host0", "host1"])
            said(hosts, 0, "touch", "/dev/shm/mine")
            self.assertEqual(said(hosts, 0, "ls", "/dev/shm"), "mine")
            self.assertEqual(said(hosts, 1, "ls", "/dev/shm"), "")
            self.assertFalse(os.path.exists("/dev/shm/mine"))
            self.assertRegex(said(hosts, 0, "ip", "-br", "route"), r"\A10\.11\.12\.0/24 .*\Z")

    def test_a_link_is_cut_and_mended(self):
        with testbed.Hosts(3) as hosts:
            self.assertTrue(reaches(hosts, 0, 1))
            hosts.cut(1)
            self.assertFalse(reaches(hosts, 0, 1))
            self.assertTrue(reaches(hosts, 0, 2))
            hosts.mend(1)
            self.assertTrue(wait_until(lambda: reaches(hosts, 0, 1), 5))

    def test_processes_stop_and_go_on_and_a_host_goes_with_all_of_them(self):
        with testbed.Hosts(2) as hosts:
            ticks = hosts.start(1, ["sh", "-c", "(while sleep 0.01; do echo; done) & wait"],
                                stdout=subprocess.PIPE)
            self.assertEqual(ticks.stdout.read(3), b"\n\n\n")
            hosts.stop(1)
            os.set_blocking(ticks.stdout.fileno(), False)
            time.sleep(0.05)
            ticks.stdout.read()
            time.sleep(0.1)
            self.assertIsNone(ticks.stdout.read())
            hosts.go_on(1)
            self.assertTrue(wait_until(ticks.stdout.read, 5))
            hosts.kill(1)
            self.assertEqual(ticks.wait(5), -signal.SIGKILL)
            ticks.stdout.close()
            self.assertEqual(hosts.living(), [0])
            self.assertFalse(reaches(hosts, 0, 1))

    def test_each_mpi_starts_ranks_on_all_hosts(self):
        with testbed.Hosts(2) as hosts:
            for launcher in support.LAUNCHERS:
                # MPICH's launcher fails now and then if a rank ends before it has written to the
                # process that it has started on that rank's host.
                launch = hosts.launch(launcher, 2, ["sh", "-c", "sleep 0.3; echo $(hostname) $GIVEN"],
                                      environment=["GIVEN=it"], **support.captured)
                code, out, err = support.finished(launch)
                self.assertEqual((code, err), (0, ""), launcher)
                self.assertEqual(sorted(out.split("\n")[:-1]), ["host0 it"] * 2 + ["host1 it"] * 2)


def run_hosts(*arguments):
    done = subprocess.run([sys.executable, HOSTS, *arguments], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8")


class Program(unittest.TestCase):
    """./dev hosts"""

    def test_the_exit_code_is_the_launchs(self):
        before = mounts()
        self.assertEqual(run_hosts("--per-host", "2", "--", "sh", "-c", "hostname")[0], 0)
        self.assertEqual(run_hosts("--launch", "openmpi", "--", "sh", "-c", "exit 7")[0], 7)
        self.assertEqual(mounts(), before)

    def test_nothing_is_left_after_a_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                before = mounts()
                marker = f"sleep 1000.{number.value}"
                running = subprocess.Popen([sys.executable, HOSTS, "--", *marker.split()])
                self.assertTrue(wait_until(lambda: self.count(marker) >= 2, 20))
                running.send_signal(number)
                running.wait(10)
                self.assertTrue(wait_until(lambda: self.count(marker) == 0, 5))
                self.assertEqual(mounts(), before)

    def count(self, command):
        """Processes with that command line."""
        words = command.replace(" ", "\0") + "\0"
        found = 0
        for entry in pathlib.Path("/proc").iterdir():
            try:
                found += (entry / "cmdline").read_text(encoding="latin-1") == words
            except OSError:
                pass
        return found

    def test_bad_usage_is_one_line(self):
        for arguments, word in [(["-n", "0", "--", "true"], "'0' (accepted: 1 to 64)"),
                                (["-n", "1000", "--", "true"], "'1000' (accepted: 1 to 64)"),
                                (["--per-host", "x", "--", "true"], "'x' (accepted: 1 to"),
                                (["--launch", "slurm", "--", "true"], "mpich, openmpi"),
                                (["--", "/no/such/program"], "'/no/such/program'"),
                                ([], "no PROGRAM"),
                                (["--launch", "ucx", "--preload", "--", "true"],
                                 "accepted with --launch mpich, openmpi"),
                                (["--preloaded", "--", "true"], "--preloaded")]:
            with self.subTest(arguments=arguments):
                code, out, err = run_hosts(*arguments)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                self.assertIn(word, err)

    def test_without_root_one_line_and_3(self):
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                               sys.executable, HOSTS, "--", "true"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1),
                         done.stderr)
        self.assertIn("root", done.stderr)


if __name__ == "__main__":
    support.main()
