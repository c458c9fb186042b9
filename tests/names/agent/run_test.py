"""lockflight run in a cluster of two hosts: a host whose agent is stopped loses its locks, and its
commands end before another host has them."""

import os
import signal
import subprocess
import time
import unittest

from testbed import Cluster
from testbed.host import DOMAIN, PROGRAM
from waiting import state_of, wait_until

TTL = 3
GRACE = 1  # of --grace
SURVIVED = 0.8 * TTL  # an outage of etcd that no command notices, in docs/cluster.md


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
        cls.cluster = Cluster(hosts=2, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.agent = cls.cluster.hosts[0].agent
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
        cls.agent.stop()
        cls.plain_said = cls.plain.communicate(timeout=20)
        cls.well_said = cls.said_by(cls.well)
        cls.agent.go_on()
        show = ["sh", "-c", "echo died$LOCKFLIGHT_OWNER_DIED 0"]
        after = {name: cls.start(0, name=name, command=show) for name in ("plain", "well")}
        cls.told_after = {name: list(cls.said_by(each)[0]) for name, each in after.items()}

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
        cls.waiter = cls.start(1, name="jobs", command=[
            "sh", "-c", f'{STAMP} stamp got; echo "died$LOCKFLIGHT_OWNER_DIED 0"; exit 3'])
        cls.stopped = time.clock_gettime(time.CLOCK_BOOTTIME)
        cls.agent.stop()
        cls.stubborn_said = cls.said_by(cls.stubborn)
        cls.suspended_said = cls.suspended.communicate(timeout=20)
        cls.ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        cls.waiter_said = cls.said_by(cls.waiter)

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
        self.assertRegex(err, r"leads 'jobs' with token \d+\nlockflight run: lock 'jobs' of domain "
                              r"etcd:jobs is lost, because .*; COMMAND was ended\n$")
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
