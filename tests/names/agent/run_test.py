"""lockflight run in a cluster of two hosts: a host whose agent is stopped loses its locks, and its
commands, with all that they have started, end before another host has them."""

import os
import signal
import subprocess
import sys
import time
import unittest

from testbed import Cluster
from testbed.host import DOMAIN, PROGRAM
from waiting import gone, state_of, wait_until

TTL = 3
DEADLINE = 0.95 * TTL  # after the last renewal
GRACE = 1  # of --grace
SURVIVED = 0.8 * TTL  # an outage of etcd that no command notices, in docs/cluster.md


STAMP = 'stamp() { read up rest < /proc/uptime; echo "$1 $up"; }; '
FOR_EVER = "stamp began; while :; do stamp alive; sleep 0.01; done"

# A daemon that ignores SIGTERM: it writes its number into a file, and then the time, every 5 ms.
DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
written = open(sys.argv[1] + "~", "w", buffering=1)
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
print(os.getpid(), file=written)
os.rename(sys.argv[1] + "~", sys.argv[1])
while True:
    print(time.clock_gettime(time.CLOCK_BOOTTIME), file=written)
    time.sleep(0.005)
"""


class Daemon:
    """A daemon that a command starts by the words in `start`, for a shell."""

    def __init__(self, cluster, name):
        self.file = cluster.folder / f"daemon of {name}"
        self.program = cluster.folder / "daemon.py"
        self.program.write_text(DAEMON)
        self.start = f"{sys.executable} -S -E '{self.program}' '{self.file}' >&- 2>&-; "

    def began(self):
        return wait_until(self.file.exists)

    def lines(self):
        return self.file.read_text().splitlines()

    @property
    def pid(self):
        return int(self.lines()[0])

    def has_ended(self):
        return gone(self.pid)

    def last_moment(self):
        return float(self.lines()[-1])

    def kill(self):
        if self.file.exists() and not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)


class Deadline(unittest.TestCase):
    """The agent of host 0 is stopped twice. It goes on in time after the first stop, when the
    commands of two runs on host 0 have ended at SIGTERM:

    plain     its command dies of it
    well      its command ends with 0
    rest      its command ends with 0 and has started a daemon, which does not end; another run on
              host 0 waits for the lock

    After the second stop it does not, while these run:

    stubborn  on host 0; its command does not end at SIGTERM
    suspended on host 0; it was stopped, with its command, as by Ctrl-Z
    daemon    on host 0; its command has started a daemon; another run waits for it on host 1
    outer     on host 0; its command is a run of a machine's domain, whose command is a daemon's
    asleep    on host 0; it is stopped, its command ends after the deadline, and a daemon goes on
    waiter    on host 1; it waits for the lock of the stubborn one, and its command fails

    And from the beginning:

    kept      on host 1; its command takes longer than the time to live
    leaves    on host 0; its command has left a daemon, and has ended"""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=2, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.agent = cls.cluster.hosts[0].agent
        cls.daemons = {}
        cls.leaves = cls.start(0, name="leaves", command=cls.with_daemon("leaves", "exit 4"))
        cls.leaves_said = cls.said_by(cls.leaves)
        cls.daemons["leaves"].began()
        cls.kept = cls.start(1, name="kept", command=["sh", "-c", f"sleep {2 * TTL}; exit 5"])
        cls.stop_in_time()
        cls.stop_for_long()

    @classmethod
    def stop_in_time(cls):
        cls.plain = cls.start(0, name="plain", command=["sh", "-c", "echo began; exec sleep 60"])
        cls.well = cls.start(0, "--grace", "0.8", name="well", command=[
            "sh", "-c", f"{STAMP} trap 'stamp TERM; exit 0' TERM; {FOR_EVER}"])
        cls.rest = cls.start(0, "--grace", "0.8", name="rest", command=cls.with_daemon(
            "rest", f"{STAMP} trap 'exit 0' TERM; {FOR_EVER}"))
        for each in (cls.plain, cls.well, cls.rest):
            each.stdout.readline()
        cls.daemons["rest"].began()
        cls.after_rest = cls.start(0, name="rest", command=[
            "sh", "-c", f'{STAMP} stamp got; echo "died$LOCKFLIGHT_OWNER_DIED 0"'])
        cls.agent.stop()
        cls.plain_said = cls.plain.communicate(timeout=20)
        cls.well_said = cls.said_by(cls.well)
        cls.rest_said = cls.said_by(cls.rest)
        cls.agent.go_on()
        show = ["sh", "-c", "echo died$LOCKFLIGHT_OWNER_DIED 0"]
        after = {name: cls.start(0, name=name, command=show) for name in ("plain", "well")}
        cls.told_after = {name: list(cls.said_by(each)[0]) for name, each in after.items()}
        cls.after_rest_said = cls.said_by(cls.after_rest)

    @classmethod
    def stop_for_long(cls):
        cls.stubborn = cls.start(0, "--leader", "--grace", str(GRACE), name="jobs", command=[
            "sh", "-c", f"{STAMP} trap 'stamp TERM' TERM; {FOR_EVER}"])
        # In a group of its own, whose parent could continue it: else it would not stop.
        cls.suspended = cls.start(0, name="suspended", preexec_fn=os.setpgrp, command=[
            "sh", "-c", "echo began; exec sleep 60"])
        for each in (cls.stubborn, cls.suspended):
            each.stdout.readline()
        cls.suspended.send_signal(signal.SIGTSTP)
        cls.was_suspended = wait_until(lambda: state_of(cls.suspended.pid) == "T")
        cls.start_daemons()
        cls.waiter = cls.start(1, name="jobs", command=[
            "sh", "-c", f'{STAMP} stamp got; echo "died$LOCKFLIGHT_OWNER_DIED 0"; exit 3'])
        cls.stopped = time.clock_gettime(time.CLOCK_BOOTTIME)
        cls.agent.stop()
        cls.stubborn_said = cls.said_by(cls.stubborn)
        cls.suspended_said = cls.suspended.communicate(timeout=20)
        cls.daemon_said = cls.said_by(cls.daemon)
        cls.outer_said = cls.said_by(cls.outer)
        cls.ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        cls.waiter_said = cls.said_by(cls.waiter)
        cls.after_daemon_said = cls.said_by(cls.after_daemon)
        (cls.cluster.folder / "go").touch()
        wait_until(lambda: gone(cls.asleep_command))
        cls.daemon_outlived_command = not cls.daemons["asleep"].has_ended()
        cls.asleep.send_signal(signal.SIGCONT)
        cls.asleep_said = cls.asleep.communicate(timeout=20)
        cls.daemon_outlived_run = not cls.daemons["asleep"].has_ended()

    @classmethod
    def start_daemons(cls):
        cls.daemon = cls.start(0, name="daemon", command=cls.with_daemon("daemon", "exec sleep 60"))
        inner = cls.with_daemon("outer", "exec sleep 60")
        cls.outer = cls.start(0, name="outer", command=[
            PROGRAM, "run", "--domain", "inside", "inner", "--", *inner])
        cls.asleep = cls.start(0, name="asleep", command=cls.with_daemon(
            "asleep", f"echo $$; while [ ! -e '{cls.cluster.folder}/go' ]; do sleep 0.02; done"))
        cls.asleep_command = int(cls.asleep.stdout.readline())
        cls.all_began = all([each.began() for each in cls.daemons.values()])
        cls.asleep.send_signal(signal.SIGSTOP)
        cls.after_daemon = cls.start(1, name="daemon", command=["sh", "-c", f"{STAMP} stamp got"])

    @classmethod
    def with_daemon(cls, name, then):
        """A command that starts a daemon first."""
        cls.daemons[name] = Daemon(cls.cluster, name)
        cls.addClassCleanup(cls.daemons[name].kill)
        return ["sh", "-c", cls.daemons[name].start + then]

    @classmethod
    def start(cls, host, *options, name, command, **more):
        process = subprocess.Popen(
            [PROGRAM, "run", "--domain", f"etcd:{DOMAIN}", *options, name, "--", *command],
            env={**os.environ, **cls.cluster.hosts[host].environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        cls.addClassCleanup(cls.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

    @staticmethod
    def said_by(process):
        """The last moments, by word, of the lines 'WORD MOMENT' that a command printed; and what
        the run said on standard error."""
        out, err = process.communicate(timeout=20)
        return {word: float(at) for word, at in (line.split() for line in out.splitlines())}, err

    def test_a_command_ends_before_the_deadline(self):
        moments, err = self.stubborn_said
        self.assertEqual(self.stubborn.returncode, 76, err)
        # The shell may say that its 'sleep' was terminated.
        self.assertRegex(err, r"leads 'jobs' with token \d+\n(Terminated\n)*lockflight run: lock "
                              r"'jobs' of domain etcd:jobs is lost, because .*; COMMAND was "
                              r"ended\n$")
        self.assertLess(self.ended - self.stopped, TTL)
        self.assertAlmostEqual(moments["alive"] - moments["TERM"], GRACE, delta=GRACE / 2)

    def test_another_host_has_the_lock_later_and_is_told(self):
        moments, err = self.waiter_said
        self.assertEqual((self.waiter.returncode, err), (3, ""))
        self.assertIn("died1", moments)
        self.assertGreater(moments["got"], self.stubborn_said[0]["alive"])
        # The last renewal may be a twelfth of the time to live older than the stop.
        self.assertGreater(moments["got"] - self.stopped, TTL * 11 / 12 - 0.1)
        # Its command has failed, so the next one is told, too.
        again = self.start(1, name="jobs", command=["sh", "-c", "echo died$LOCKFLIGHT_OWNER_DIED 0"])
        self.assertIn("died1", self.said_by(again)[0])

    def test_a_command_that_dies_of_SIGTERM_counts_as_a_death(self):
        """The host was a member all the time, so nobody else has noted a death."""
        self.assertEqual(self.plain.returncode, 76)
        self.assertRegex(self.plain_said[1], r"lock 'plain' of domain etcd:jobs is lost, because "
                                             r".*; COMMAND was ended\n$")
        self.assertEqual(self.told_after["plain"], ["died1"])

    def test_a_command_that_ends_with_0_at_SIGTERM_does_not(self):
        moments, err = self.well_said
        self.assertEqual(self.well.returncode, 76, err)
        self.assertRegex(err, r"lock 'well' of domain etcd:jobs was about to be lost, because .*; "
                              r"COMMAND was ended\n$")
        self.assertIn("TERM", moments)
        self.assertEqual(self.told_after["well"], ["died"])

    def test_a_daemon_of_the_command_ends_before_another_host_has_the_lock(self):
        self.assertTrue(self.all_began)
        self.assertEqual(self.daemon.returncode, 76, self.daemon_said[1])
        last = self.daemons["daemon"].last_moment()
        self.assertGreater(last, self.stopped)
        self.assertLess(last - self.stopped, DEADLINE)
        # /proc/uptime has hundredths of a second, rounded down.
        self.assertGreater(self.after_daemon_said[0]["got"] + 0.01, last)

    def test_a_daemon_ends_before_another_run_of_its_host_has_the_lock(self):
        """The command had ended well, but its daemon was killed."""
        _, err = self.rest_said
        self.assertEqual(self.rest.returncode, 76, err)
        self.assertRegex(err, r"lock 'rest' of domain etcd:jobs is lost, because .*; COMMAND was "
                              r"ended\n$")
        moments, err = self.after_rest_said
        self.assertEqual((self.after_rest.returncode, err), (0, ""))
        self.assertGreater(moments["got"] + 0.01, self.daemons["rest"].last_moment())
        self.assertIn("died1", moments)

    def test_what_an_inner_run_has_started_ends_with_the_outer_one(self):
        self.assertEqual(self.outer.returncode, 76, self.outer_said[1])
        self.assertLess(self.daemons["outer"].last_moment() - self.stopped, DEADLINE)
        self.assertTrue(self.daemons["outer"].has_ended())

    def test_a_run_that_finds_the_lock_lost_ends_what_its_command_has_left(self):
        self.assertTrue(self.daemon_outlived_command)
        self.assertFalse(self.daemon_outlived_run)
        self.assertEqual(self.asleep.returncode, 76)
        self.assertRegex(self.asleep_said[1], r"lock 'asleep' .* is lost, because .*; COMMAND may "
                                              r"have ended too late\n$")

    def test_a_daemon_goes_on_that_a_command_has_left_at_its_end(self):
        self.assertEqual((self.leaves.returncode, self.leaves_said), (4, ({}, "")))
        self.assertFalse(self.daemons["leaves"].has_ended())
        self.assertGreater(self.daemons["leaves"].last_moment(), self.ended)

    def test_nobody_on_the_host_gets_a_lock_and_it_is_said_why(self):
        for options, code in [(["--timeout", "0.5"], 1), (["--nonblock", "-E", "9"], 9)]:
            late = self.start(0, *options, name="jobs", command=["true"])
            _, err = self.said_by(late)
            self.assertEqual(late.returncode, code)
            self.assertRegex(err, r"lock 'jobs': this host is no member of domain etcd:jobs "
                                  r"for \d+ s .*\n$")

        # Without an agent, a domain is not even opened.
        self.agent.kill()
        late = self.start(0, name="jobs", command=["true"])
        _, err = self.said_by(late)
        self.assertEqual((late.returncode, err.count("\n")), (2, 1), err)
        self.assertIn("its agent does not run on this host", err)
        self.assertIn("lockflight agent --domain jobs --etcd URL starts it", err)

    def test_a_stopped_run_is_continued_and_ends_its_command(self):
        self.assertTrue(self.was_suspended)
        _, err = self.suspended_said
        self.assertEqual(self.suspended.returncode, 76, err)
        self.assertRegex(err, r"lock 'suspended' of domain etcd:jobs is lost, .*; COMMAND was ended")

    def test_a_domain_of_this_machine_with_that_name_is_no_part_of_the_cluster(self):
        command = [PROGRAM, "run", "--domain", DOMAIN, "name", "--", "true"]
        environment = {**os.environ, **self.cluster.hosts[0].environment}
        said = [subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20,
                               check=True).stderr for _ in range(2)]
        self.assertEqual(said, [f"lockflight run: makes domain '{DOMAIN}', which is of this machine "
                                f"alone; that of the cluster is 'etcd:{DOMAIN}'\n", ""])

    def test_on_another_host_nothing_is_lost(self):
        _, err = self.said_by(self.kept)
        self.assertEqual((self.kept.returncode, err), (5, ""))


class Outage(unittest.TestCase):
    """etcd is stopped just before the agent renews, when the least of the time to live is left."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=1, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.host, = cls.cluster.hosts
        cls.etcd = cls.cluster.etcd.members[0].process

    def renewal(self):
        return self.host.status()["deadline_us"]

    def stop_etcd(self):
        """Returns when it was stopped, and when the last renewal before that was sent."""
        for _ in range(20):
            before = self.renewal()
            self.assertTrue(wait_until(lambda: self.renewal() > before))
            sent = self.renewal() / 1e6 - 0.95 * TTL
            time.sleep(max(0, sent + TTL / 12 - 0.015 - time.clock_gettime(time.CLOCK_BOOTTIME)))
            last = self.renewal()
            self.etcd.stop()
            stopped = time.clock_gettime(time.CLOCK_BOOTTIME)
            time.sleep(0.05)
            if self.renewal() == last and stopped - sent > TTL / 12 - 0.03:
                return stopped
            self.etcd.go_on()  # this process or the agent was late
        self.skipTest("the machine is too busy")

    def test_a_command_outlives_most_of_the_time_to_live(self):
        run = self.host.popen([PROGRAM, "run", "--domain", f"etcd:{DOMAIN}", "name", "--", "sh",
                               "-c", f"{STAMP} trap 'stamp TERM; exit 0' TERM; {FOR_EVER}"])
        self.assertTrue(run.stdout.readline())
        # An outage that is over in time.
        stopped = self.stop_etcd()
        time.sleep(stopped + 0.75 * TTL - time.clock_gettime(time.CLOCK_BOOTTIME))
        last = self.renewal()
        self.etcd.go_on()
        self.assertTrue(wait_until(lambda: self.renewal() > last, TTL / 20))
        # One that is not.
        time.sleep(TTL / 4)
        stopped = self.stop_etcd()
        out, _ = run.communicate(timeout=20)
        self.etcd.go_on()
        self.assertEqual(run.returncode, 76, out)
        told, = (float(line.split()[1]) for line in out.splitlines() if line.startswith("TERM"))
        self.assertGreater(told - stopped, SURVIVED)
        self.assertLess(told - stopped, TTL)


if __name__ == "__main__":
    unittest.main()
