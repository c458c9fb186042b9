"""What a command does when somebody whom it has to ask says nothing: another host, the agent of its
own host, or etcd."""

import json
import os
import subprocess
import time
import unittest

from testbed import Cluster, long_test
from testbed.cluster import OPEN, SWALLOWS
from testbed.host import DOMAIN, PROGRAM

IN_DOMAIN = f"etcd:{DOMAIN}"
TTL = 8  # a silence is shorter, so that no host is taken off
NO_ANSWER = "etcd (has not answered yet|does not answer: .*)"
LATE = 0.5  # a limit is kept within 0.2 s; the rest is for a busy machine

shared = Cluster(hosts=3, ttl=TTL)


def setUpModule():
    unittest.addModuleCleanup(shared.close)
    shared.start()


class SilenceTest(unittest.TestCase):
    def setUp(self):
        self.one, self.two, self.three = shared.hosts
        self.name = self.id().rsplit(".", maxsplit=1)[-1]

    def said(self, *words, pass_fds=()):
        """(exit code, standard output, standard error, seconds)"""
        began = time.monotonic()
        done = subprocess.run(
            [PROGRAM, *words], text=True, capture_output=True, timeout=30, check=False,
            stdin=subprocess.DEVNULL, pass_fds=pass_fds,
            env={**os.environ, **self.one.environment})
        return done.returncode, done.stdout, done.stderr, time.monotonic() - began

    def run_for(self, limit, *options, names=None, pass_fds=()):
        """lockflight run with --timeout, or with --nonblock for 0: (exit code, standard error)."""
        patience = ("--timeout", str(limit)) if limit else ("--nonblock",)
        names = names or (self.name,)
        code, _, err, took = self.said("run", "--domain", IN_DOMAIN, *patience, *options, *names,
                                       "--", "true", pass_fds=pass_fds)
        self.assertLess(took, (limit or 0.2) + LATE, err)
        return code, err

    def start(self, *words, host=None):
        process = subprocess.Popen(
            [PROGRAM, "run", "--domain", IN_DOMAIN, *words], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **(host or self.one).environment})
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def stop_etcd(self):
        """The hosts have renewed just now, so that none is cut off within most of the TTL. A test before
        may have kept the answers of etcd from a host for some seconds."""
        shared.await_members(shared.hosts)
        for host in shared.hosts:
            host.wait_until(lambda host=host: host.valid_for() > TTL - 2, 20, "just renewed")
        etcd = shared.etcd.members[0].process
        etcd.stop()
        self.addCleanup(etcd.go_on)
        return etcd


class Hosts(SilenceTest):
    """The host of a holder is cut off from the host that asks, or the asking host's agent says
    nothing: nobody may say that nobody holds the lock."""

    def setUp(self):
        super().setUp()
        self.holder = self.two.hold(self.name)
        self.holder.await_held()

    def cut_off(self):
        for link in shared.between(self.one, self.two):
            link.set(SWALLOWS)
            self.addCleanup(link.set, OPEN)

    def check_said_by_all(self, silence, host):
        """By who, top and domain show, as text and as JSON."""
        for words, first in (
                (("who", self.name, IN_DOMAIN),
                 f"{silence}: somebody may hold '{self.name}' or wait for it"),
                (("top", "--once", IN_DOMAIN), f"{silence}: more locks may be in use"),
                (("domain", "show", IN_DOMAIN), f"{silence}: more locks may be in use")):
            code, out, err, _ = self.said(*words)
            self.assertEqual((out.split("\n", maxsplit=1)[0], err), (first, ""))
            self.assertEqual(code, 3 if words[0] == "who" else 0)
            _, out, _, _ = self.said(*words, "--json")
            self.assertEqual(json.loads(out)["silent"], [host])

    def test_the_agent_that_waits_for_another_host_is_not_shown(self):
        """The agent of the holder's host waits for the holder, so that another host can have the
        lock."""
        self.start(self.name, "--", "true")

        def waiters():
            _, out = self.two.lockflight("who", self.name, IN_DOMAIN, "--json")
            return [each.get("host") for each in json.loads(out)["waiters"]]

        self.two.wait_until(lambda: "h1" in waiters(), 20, "the waiter on the other host")
        self.assertEqual(waiters(), ["h1"])

    def test_a_host_that_does_not_answer_is_named(self):
        code, out, _, _ = self.said("who", self.name, IN_DOMAIN, "--json")
        self.assertEqual((code, "silent" in json.loads(out)), (0, False))
        self.cut_off()
        self.check_said_by_all("h2 does not answer", "h2")

    def test_a_host_that_etcd_does_not_answer_may_not_know_all_hosts(self):
        nobodys = f"{self.name}.free"
        self.addCleanup(shared.await_members, shared.hosts)
        self.stop_etcd()
        cut_off = ("this host is cut off, so that hosts may have come that it has not heard of: "
                   f"somebody may hold '{nobodys}' or wait for it\n")

        def says_so():
            code, out, _, _ = self.said("who", nobodys, IN_DOMAIN)
            return code == 3 and out.endswith(cut_off)

        self.one.wait_until(says_so, 20, "cut off")

    def test_a_limit_is_kept_when_a_host_does_not_answer(self):
        self.cut_off()
        was_not_free = f"lockflight run: lock '{self.name}' was not free in time: "
        unknown = "its holder is not known; h2 does not answer\n"
        self.assertEqual(self.run_for(1), (1, was_not_free + unknown))
        self.assertEqual(self.run_for(0), (1, was_not_free + unknown))
        # The others are free. Each of what is said while the run waits asks the hosts.
        reader, writer = os.pipe()
        code, err = self.run_for(3, "--verbose", "--json", str(writer), pass_fds=(writer,),
                                 names=(f"{self.name}.a", self.name, f"{self.name}.b"))
        os.close(writer)
        with open(reader, encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        self.assertEqual(code, 1, err)
        self.assertEqual([(each["event"], each["name"], each["silent"]) for each in events],
                         [("waits", self.name, ["h2"]), ("not_free", self.name, ["h2"])])

    def test_an_agent_that_does_not_answer_is_named(self):
        silence = "the agent of this host does not answer, so no other host was asked"
        self.one.agent.stop()
        self.addCleanup(self.one.agent.go_on)
        code, out, _, _ = self.said("who", self.name, IN_DOMAIN)
        self.assertEqual(
            (code, out), (3, f"{silence}: somebody may hold '{self.name}' or wait for it\n"))
        code, err = self.run_for(1)
        self.assertEqual(
            (code, err), (1, f"lockflight run: lock '{self.name}' was not free in time: its "
                             f"holder is not known; {silence}\n"))

    def test_an_agent_that_does_not_run_is_named(self):
        self.one.agent.kill()
        self.addCleanup(shared.await_members, shared.hosts)
        self.addCleanup(self.one.start_agent)
        self.check_said_by_all(
            "the agent of this host does not answer, so no other host was asked",
            "the agent of this host")

    def tearDown(self):
        self.holder.kill()


class Etcd(SilenceTest):
    """etcd says nothing for longer than one request waits, as in an election."""

    OPTIONS = {"every": ("--every", "3660d"), "units": ("--units", "2")}

    def test_a_run_waits_for_etcd(self):
        etcd = self.stop_etcd()
        runs = [self.start("--verbose", *options, f"{self.name}.{what}", "--", "echo", "ran")
                for what, options in self.OPTIONS.items()]
        time.sleep(2.5)
        self.assertEqual([each.poll() for each in runs], [None, None])
        etcd.go_on()
        for each, what in zip(runs, self.OPTIONS):
            out, err = each.communicate(timeout=20)
            self.assertEqual((each.returncode, out), (0, "ran\n"), err)
            self.assertRegex(err, rf"^lockflight run: waiting for '{self.name}\.{what}', "
                                  rf"{NO_ANSWER}\n$")

    def test_a_run_that_gives_up_says_for_what_it_has_waited(self):
        for what, options in self.OPTIONS.items():
            etcd = self.stop_etcd()
            name = f"{self.name}.{what}"
            for limit in 0, 2:
                code, err = self.run_for(limit, "-E", "9", *options, names=(name,))
                self.assertEqual(code, 9, err)
                self.assertRegex(err, rf"^lockflight run: lock '{name}': {NO_ANSWER}\n$")
            etcd.go_on()
        # The period of a run that gave up is not done.
        self.assertEqual(
            self.said("run", "--domain", IN_DOMAIN, *self.OPTIONS["every"],
                      f"{self.name}.every", "--", "echo", "ran")[:3], (0, "ran\n", ""))

    def test_a_signal_ends_the_wait_for_etcd(self):
        self.stop_etcd()
        run = self.start(*self.OPTIONS["every"], self.name, "--", "true")
        time.sleep(0.5)
        began = time.monotonic()
        run.terminate()
        run.communicate(timeout=20)
        self.assertEqual(run.returncode, -15)
        self.assertLess(time.monotonic() - began, 1)

    def test_a_command_begins_in_the_period_that_is_noted(self):
        """Answers of etcd take so long that many of them come in the next period."""
        length, delay = 2, 0.15
        for link in (self.one.to_etcd[0], self.two.to_etcd[0]):
            link.set(OPEN, delay)
            self.addCleanup(link.set, OPEN)
        began = []
        end = time.monotonic() + 9
        while time.monotonic() < end:
            run = self.start("--every", f"{length}s", self.name, "--", "date", "+%s.%N")
            out, err = run.communicate(timeout=20)
            self.assertEqual(run.returncode, 0, err)
            began += [float(at) for at in out.split()]
        periods = [int(at // length) for at in began]
        self.assertEqual(sorted(set(periods)), periods, f"two in a period: {began}")
        self.assertGreater(len(periods), 3)

    def test_a_period_that_ends_before_its_note_is_named(self):
        """Nine of ten notes come in the next period, and each run notes periods until one does not."""
        link = self.one.to_etcd[0]
        link.set(OPEN, 0.45)
        self.addCleanup(link.set, OPEN)
        said = ""
        while not said:
            run = self.start("--every", "1s", self.name, "--", "true")
            said = run.stderr.readline()
            link.set(OPEN)
            self.assertEqual(run.wait(20), 0)
            link.set(OPEN, 0.45)
        self.assertIn("the period has ended before etcd had its note", said)


class TakenBack(SilenceTest):
    """A run ends when it has noted its period, and COMMAND has not begun. Answers of etcd take so long
    that the test finds the note in etcd before the run knows of it."""

    MAY_BE_DONE = "COMMAND has not run, but its period may count as done"

    def setUp(self):
        super().setUp()
        self.cluster = Cluster(hosts=1, ttl=30)
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.one, = self.cluster.hosts
        self.link = self.one.to_etcd[0]

    def noted(self, *options):
        """A run whose note has reached etcd. The answer is on its way until the link is open. On a
        busy machine the answer may have come before the link was closed, and COMMAND has run: then
        another name is tried."""
        for _ in range(10):
            self.link.set(OPEN, 0.4)
            run = self.start("--every", "3660d", *options, self.name, "--", "echo", "ran")
            note = f"lockflight/{DOMAIN}/note/done/{self.name}"
            self.one.wait_until(lambda: self.cluster.etcd.entry(note), 20, "noting the period")
            self.link.set(SWALLOWS)
            try:
                run.wait(0.3)
            except subprocess.TimeoutExpired:
                return run
            out, err = run.communicate()
            self.assertEqual((out, run.returncode), ("ran\n", 0), err)
            self.name += "'"
        self.fail("the answer of etcd came before its link was closed, ten times")

    def ended(self, run, code):
        out, err = run.communicate(timeout=20)
        self.assertEqual((out, run.returncode), ("", code), err)
        self.link.set(OPEN)
        return err

    def next_run(self):
        return self.said("run", "--domain", IN_DOMAIN, "--every", "3660d", self.name, "--",
                         "echo", "ran")[1:3]

    def test_after_a_signal(self):
        run = self.noted()
        run.terminate()
        time.sleep(0.4)  # it looks for signals every 0.1 s
        self.link.set(OPEN)
        self.assertEqual(self.ended(run, -15), "")
        self.assertEqual(self.next_run(), ("ran\n", ""))

    def test_after_a_signal_while_etcd_is_silent(self):
        run = self.noted()
        run.terminate()
        self.assertIn(self.MAY_BE_DONE, self.ended(run, -15))

    @long_test
    def test_after_the_time_to_wait_while_etcd_is_silent(self):
        for options in ((), ("--no-wait-message",)):
            self.name += "'"
            run = self.noted("--timeout", "8", *options)
            err = self.ended(run, 1)
            self.assertIn(self.MAY_BE_DONE, err)
            self.assertEqual(len(err.splitlines()), 1 if options else 2, err)


class Lost(SilenceTest):
    """etcd is silent for a host that notes its period, until the host has lost the lock."""

    def setUp(self):
        cluster = Cluster(hosts=2, ttl=2)
        self.addCleanup(cluster.close)
        cluster.start()
        self.name = "daily"
        self.one, self.two = cluster.hosts

    def once(self, host, *options):
        return self.start("--every", "3660d", *options, self.name, "--", "echo", "ran", host=host)

    def lose(self, *options):
        """Its third question is the one that notes the period. An answer takes 0.3 s."""
        link = self.one.to_etcd[0]
        link.set(OPEN, 0.15)
        run = self.once(self.one, *options)
        time.sleep(0.8)
        link.set(SWALLOWS)
        time.sleep(5)
        self.assertIsNone(run.poll())
        return run, link

    @long_test
    def test_a_run_that_has_lost_the_lock_waits_again(self):
        run, link = self.lose()
        link.set(OPEN)
        out, err = run.communicate(timeout=20)
        self.assertEqual((out, run.returncode), ("ran\n", 0), err)

    def test_a_run_that_is_cut_off_says_that_its_period_may_count(self):
        run, _ = self.lose("--timeout", "7")
        out, err = run.communicate(timeout=20)
        self.assertEqual((out, run.returncode), ("", 1))
        self.assertRegex(err, r"lock 'daily': this host is no member .*\n.*'daily': "
                              + TakenBack.MAY_BE_DONE)

    @long_test
    def test_another_host_runs_in_its_place(self):
        run, link = self.lose()
        other = self.once(self.two)
        self.assertEqual(other.communicate(timeout=20), ("ran\n", ""))
        link.set(OPEN)
        out, err = run.communicate(timeout=20)
        self.assertEqual((out, run.returncode), ("", 0))
        self.assertRegex(err, r"lock 'daily' is done until ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
