"""lockflight run in a cluster of two hosts, whose folders of domains lie on this machine: a host
whose agent is stopped loses its locks, and its commands end before another host has them.

Exit code 77 if etcd or lockflight-agent is not there."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["LOCKFLIGHT_PROGRAM"]
AGENT = os.path.join(os.path.dirname(PROGRAM), "lockflight-agent")
SKIPPED = 77
TTL = 3
GRACE = TTL / 3  # since the default is longer


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until(holds, seconds=10):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def state_of(pid):
    """Its letter in /proc, such as T for stopped."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


class Cluster:
    """An etcd, and an agent for each of two hosts."""

    def __init__(self):
        # Not below a long TMPDIR, since the path of a socket is short; and in memory.
        self.folder = tempfile.mkdtemp(prefix="lf-cluster-", dir="/dev/shm")
        self.processes = []
        client, peer, *links = free_ports(4)
        self.etcd = f"http://127.0.0.1:{client}"
        peers = f"http://127.0.0.1:{peer}"
        self.start("etcd", ["etcd", "--data-dir", f"{self.folder}/etcd",
                            "--listen-client-urls", self.etcd, "--advertise-client-urls", self.etcd,
                            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                            "--initial-cluster", f"default={peers}"])
        if not wait_until(lambda: self.listens(client)):
            raise RuntimeError(f"etcd does not start: {self.log('etcd')}")
        self.links = links
        self.agents = [self.start_agent(host) for host in range(2)]
        for host in range(2):
            if not wait_until(lambda h=host: self.is_member(h)):
                raise RuntimeError(f"host {host} is no member: {self.log(f'agent{host}')}")

    @staticmethod
    def listens(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def log(self, name):
        with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def start(self, name, words, **more):
        with open(f"{self.folder}/{name}.log", "wb") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       **more)
        self.processes.append(process)
        return process

    def environment(self, host):
        return dict(os.environ, LOCKFLIGHT_DOMAINS=f"{self.folder}/{host}")

    def start_agent(self, host):
        os.makedirs(f"{self.folder}/{host}", exist_ok=True)
        address = f"127.0.0.1:{self.links[host]}"
        return self.start(
            f"agent{host}",
            [PROGRAM, "agent", "--etcd", self.etcd, "--domain", "test", "--listen", address,
             "--advertise", address, "--host", f"host{host}", "--ttl", str(TTL), "--state",
             f"{self.folder}/state{host}"],
            env=self.environment(host))

    def is_member(self, host):
        done = subprocess.run([PROGRAM, "agent", "status", "--domain", "test"], check=False,
                              env=self.environment(host), capture_output=True, timeout=10)
        return done.returncode == 0 and b"host0" in done.stdout and b"host1" in done.stdout

    def run(self, host, *options, name, command, **more):
        return subprocess.Popen(
            [PROGRAM, "run", "--domain", "etcd:test", *options, name, "--", *command],
            env=self.environment(host), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **more)

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self.folder)


STAMP = 'stamp() { read up rest < /proc/uptime; echo "$1 $up"; }; '
FOR_EVER = "stamp began; while :; do stamp alive; sleep 0.01; done"


class Deadline(unittest.TestCase):
    """The agent of host 0 is stopped twice. It goes on in time after the first stop, when the
    commands of two runs on host 0 have ended at SIGTERM:

    plain     its command dies of it
    well      its command ends with 0

    After the second stop it does not, while these run:

    stubborn  on host 0; its command does not end at SIGTERM
    suspended on host 0; it was stopped, with its command, as by Ctrl-Z
    waiter    on host 1; it waits for the lock of the stubborn one, and its command fails

    And from the beginning:

    kept      on host 1; its command takes longer than the time to live"""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster.__new__(Cluster)
        cls.cluster.processes = []
        cls.addClassCleanup(cls.cluster.end)
        cls.cluster.__init__()
        cls.kept = cls.start(1, name="kept", command=["sh", "-c", f"sleep {2 * TTL}; exit 5"])
        cls.stop_in_time()
        cls.stop_for_long()

    @classmethod
    def stop_in_time(cls):
        cls.plain = cls.start(0, name="plain", command=["sh", "-c", "echo began; exec sleep 60"])
        cls.well = cls.start(0, "--grace", "0.8", name="well", command=[
            "sh", "-c", f"{STAMP} trap 'stamp TERM; exit 0' TERM; {FOR_EVER}"])
        for each in (cls.plain, cls.well):
            each.stdout.readline()
        cls.cluster.agents[0].send_signal(signal.SIGSTOP)
        cls.plain_said = cls.plain.communicate(timeout=20)
        cls.well_said = cls.said_by(cls.well)
        cls.cluster.agents[0].send_signal(signal.SIGCONT)
        show = ["sh", "-c", "echo died$LOCKFLIGHT_OWNER_DIED 0"]
        after = {name: cls.start(0, name=name, command=show) for name in ("plain", "well")}
        cls.told_after = {name: list(cls.said_by(each)[0]) for name, each in after.items()}

    @classmethod
    def stop_for_long(cls):
        cls.stubborn = cls.start(0, "--leader", name="jobs", command=[
            "sh", "-c", f"{STAMP} trap 'stamp TERM' TERM; {FOR_EVER}"])
        # In a group of its own, whose parent could continue it: else it would not stop.
        cls.suspended = cls.start(0, name="suspended", preexec_fn=os.setpgrp, command=[
            "sh", "-c", "echo began; exec sleep 60"])
        for each in (cls.stubborn, cls.suspended):
            each.stdout.readline()
        cls.suspended.send_signal(signal.SIGTSTP)
        cls.was_suspended = wait_until(lambda: state_of(cls.suspended.pid) == "T")
        cls.waiter = cls.start(1, name="jobs", command=[
            "sh", "-c", f'{STAMP} stamp got; echo "died$LOCKFLIGHT_OWNER_DIED 0"; exit 3'])
        cls.stopped = time.clock_gettime(time.CLOCK_BOOTTIME)
        cls.cluster.agents[0].send_signal(signal.SIGSTOP)
        cls.stubborn_said = cls.said_by(cls.stubborn)
        cls.suspended_said = cls.suspended.communicate(timeout=20)
        cls.ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        cls.waiter_said = cls.said_by(cls.waiter)

    @classmethod
    def start(cls, host, *options, **more):
        process = cls.cluster.run(host, *options, **more)
        cls.cluster.processes.append(process)
        return process

    @staticmethod
    def said_by(process):
        """The last moments, by word, of the lines 'WORD MOMENT' that a command printed; and what
        the run said on standard error."""
        out, err = process.communicate(timeout=20)
        return {word: float(at) for word, at in (line.split() for line in out.splitlines())}, err

    def test_a_command_ends_before_the_deadline(self):
        moments, err = self.stubborn_said
        self.assertEqual(self.stubborn.returncode, 76, err)
        self.assertRegex(err, r"leads 'jobs' with token \d+\nlockflight run: lock 'jobs' of domain "
                              r"etcd:test is lost, because .*; COMMAND was ended\n$")
        self.assertLess(self.ended - self.stopped, TTL)
        self.assertAlmostEqual(moments["alive"] - moments["TERM"], GRACE, delta=GRACE / 2)

    def test_another_host_has_the_lock_later_and_is_told(self):
        moments, err = self.waiter_said
        self.assertEqual((self.waiter.returncode, err), (3, ""))
        self.assertIn("died1", moments)
        self.assertGreater(moments["got"], self.stubborn_said[0]["alive"])
        # The last renewal may be a third of the time to live older than the stop.
        self.assertGreater(moments["got"] - self.stopped, TTL * 2 / 3 - 0.1)
        # Its command has failed, so the next one is told, too.
        again = self.start(1, name="jobs", command=["sh", "-c", "echo died$LOCKFLIGHT_OWNER_DIED 0"])
        self.assertIn("died1", self.said_by(again)[0])

    def test_a_command_that_dies_of_SIGTERM_counts_as_a_death(self):
        """The host was a member all the time, so nobody else has noted a death."""
        self.assertEqual(self.plain.returncode, 76)
        self.assertRegex(self.plain_said[1], r"lock 'plain' of domain etcd:test is lost, because "
                                             r".*; COMMAND was ended\n$")
        self.assertEqual(self.told_after["plain"], ["died1"])

    def test_a_command_that_ends_with_0_at_SIGTERM_does_not(self):
        moments, err = self.well_said
        self.assertEqual(self.well.returncode, 76, err)
        self.assertRegex(err, r"lock 'well' of domain etcd:test was about to be lost, because .*; "
                              r"COMMAND was ended\n$")
        self.assertIn("TERM", moments)
        self.assertEqual(self.told_after["well"], ["died"])

    def test_nobody_on_the_host_gets_a_lock_and_it_is_said_why(self):
        for options, code in [(["--timeout", "0.5"], 1), (["--nonblock", "-E", "9"], 9)]:
            late = self.start(0, *options, name="jobs", command=["true"])
            _, err = self.said_by(late)
            self.assertEqual(late.returncode, code)
            self.assertRegex(err, r"lock 'jobs': this host is no member of domain etcd:test "
                                  r"since \d+ s .*\n$")

        # Without an agent, a domain is not even opened.
        self.cluster.agents[0].kill()
        self.cluster.agents[0].wait()
        late = self.start(0, name="jobs", command=["true"])
        _, err = self.said_by(late)
        self.assertEqual((late.returncode, err.count("\n")), (2, 1), err)
        self.assertIn("its agent does not run on this host", err)
        self.assertIn("lockflight agent --domain test --etcd URL starts it", err)

    def test_a_stopped_run_is_continued_and_ends_its_command(self):
        self.assertTrue(self.was_suspended)
        _, err = self.suspended_said
        self.assertEqual(self.suspended.returncode, 76, err)
        self.assertRegex(err, r"lock 'suspended' of domain etcd:test is lost, .*; COMMAND was ended")

    def test_on_another_host_nothing_is_lost(self):
        _, err = self.said_by(self.kept)
        self.assertEqual((self.kept.returncode, err), (5, ""))


if __name__ == "__main__":
    if not shutil.which("etcd") or not os.path.exists(AGENT):
        print("SKIPPED: there is no etcd, or no lockflight-agent")
        raise SystemExit(SKIPPED)
    unittest.main()
