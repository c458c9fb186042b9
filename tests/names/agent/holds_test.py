"""Holds that end before their holders release, in a cluster of two hosts: lockflight break, hold and
release on one host end what the other one holds."""

import json
import os
import re
import signal
import time
import unittest

from testbed import Cluster
from testbed.host import DOMAIN, PROGRAM
from waiting import gone, state_of, wait_until

shared = Cluster(hosts=2, etcds=1, ttl=3)
DIED = 'echo "${LOCKFLIGHT_OWNER_DIED-no} $LOCKFLIGHT_TOKEN"'


def setUpModule():
    unittest.addModuleCleanup(shared.close)
    shared.start()


class HoldsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.one, self.two = shared.hosts
        self.name = self.id().rsplit(".", maxsplit=1)[-1]

    def start(self, host, *command, options=()):
        """A run on that host, and the process of its command, which says its number first."""
        run = host.popen([PROGRAM, "run", "--domain", f"etcd:{DOMAIN}", *options, self.name, "--",
                          *command])
        return run, int(run.stdout.readline())

    def on(self, host, command, *options):
        return host.lockflight(command, self.name, "--domain", f"etcd:{DOMAIN}", *options)

    def who(self, host):
        return json.loads(self.on(host, "who", "--json")[1])["holders"]

    def next_holder(self, host):
        """Whether the next holder is told of a death, and its token."""
        code, out = host.run(self.name, "sh", "-c", DIED)
        self.assertEqual(code, 0, out)
        died, token = out.split()
        return died == "1", int(token)

    def logged(self, host, result):
        """The orders about this test's name in the log of a host's agent."""
        return [line for line in host.said() if line["event"] == "order" and
                line["name"] == self.name and line["result"] == result]

    def test_break_on_another_host(self):
        run, command = self.start(self.one, "sh", "-c", "echo $$; exec sleep 60")
        code, out = self.on(self.two, "break", "--yes")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, rf"sleep on h1 \(pid {command}\) holds it for .*\n"
                              rf".* on h1 \(pid {command}\) has ended its hold\n")
        self.assertEqual(run.wait(timeout=10), 76)
        self.assertIn("an operator has broken the hold", run.stdout.read())
        self.assertTrue(gone(command))
        [order] = self.logged(self.one, "told")
        self.assertEqual(order["pid"], command)
        self.assertRegex(order["text"], r"\(uid \d+\) on .* ends a hold")
        self.assertTrue(self.next_holder(self.two)[0])

    def test_a_stopped_holder_of_another_host_is_killed(self):
        run, command = self.start(self.one, "sh", "-c", "echo $$; exec sleep 60")
        run.send_signal(signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(run.pid) == "T"))
        code, out = self.on(self.two, "break", "--yes", "--grace", "0.3")
        self.assertEqual(code, 0, out)
        self.assertIn("was killed; the next holder is told that it died", out)
        self.assertTrue(wait_until(lambda: gone(command)))
        self.assertEqual(len(self.logged(self.one, "killed")), 1)
        self.assertTrue(self.next_holder(self.two)[0])

    def test_those_that_share_on_both_hosts(self):
        runs = [self.start(host, "sh", "-c", "echo $$; exec sleep 60", options=["--shared"])[0]
                for host in (self.one, self.two)]
        code, out = self.on(self.one, "break", "--yes")
        self.assertEqual(code, 0, out)
        self.assertEqual(out.count("has ended its hold"), 2)
        for each in runs:
            self.assertEqual(each.wait(timeout=10), 76)

    def test_max_hold(self):
        begin = time.monotonic()
        code, out = self.one.run(self.name, "sleep", "60", options=["--max-hold", "1s"])
        self.assertEqual(code, 76)
        self.assertLess(time.monotonic() - begin, 8)
        self.assertIn("the time of --max-hold is over; COMMAND was ended", out)
        self.assertTrue(self.next_holder(self.two)[0])

    def test_a_hold_is_seen_and_released_on_another_host(self):
        code, out = self.on(self.one, "hold", "--for", "1h", "--note", "kernel\tupgrade")
        self.assertEqual(code, 0, out)
        token = int(out)
        [holder] = self.who(self.two)
        self.assertEqual((holder["host"], holder["token"], holder["note"], holder["ends_by"]),
                         ("h1", token, "kernel\tupgrade", "limit"))
        self.assertGreater(holder["ends_in"], 3_500)
        self.assertTrue(re.search(r"in 59 min \d+ s\s+kernel\\x09upgrade",
                                  self.on(self.two, "who")[1]))
        self.assertEqual(self.two.run(self.name, "true", options=["--nonblock"])[0], 1)
        code, out = self.on(self.two, "release", "--token", str(token - 1))
        self.assertEqual(code, 2)
        self.assertIn(f"that of the hold, which is {token}", out)
        self.assertEqual(self.on(self.two, "release", "--token", str(token)), (0, ""))
        died, next_token = self.next_holder(self.two)
        self.assertFalse(died)
        self.assertGreater(next_token, token)
        self.assertEqual(self.on(self.two, "release", "--token", str(token))[0], 1)

    def test_a_keeper_of_a_host_that_is_cut_off(self):
        code, out = self.on(self.one, "hold", "--for", "1h", "--json")
        self.assertEqual(code, 0, out)
        keeper = json.loads(out)["pid"]
        self.one.agent.stop()
        try:
            self.assertTrue(self.next_holder(self.two)[0])
            self.assertTrue(wait_until(lambda: gone(keeper)))
        finally:
            self.one.agent.go_on()
        shared.await_members(shared.hosts)

    def test_a_host_that_does_not_answer_is_named(self):
        self.start(self.two, "sh", "-c", "echo $$; exec sleep 60")
        self.one.agent.stop()
        try:
            code, out = self.on(self.two, "break", "--yes")
        finally:
            self.one.agent.go_on()
        self.assertEqual(code, 3, out)
        self.assertIn("h1 does not answer: somebody else may hold", out)
        self.assertIn("has ended its hold", out)
        shared.await_members(shared.hosts)


class OfAGroup(unittest.TestCase):
    def test_an_agent_tells_and_does_not_kill(self):
        with Cluster(hosts=2, etcds=1, ttl=3) as cluster:
            cluster.etcd.start()
            cluster.etcd.await_leader()
            for host in cluster.hosts:
                host.start_agent(mode="0660", group=os.getegid())
            cluster.await_members(cluster.hosts)
            one, two = cluster.hosts
            domain = ["--domain", f"etcd:{DOMAIN}"]
            run = one.popen([PROGRAM, "run", *domain, "--grace", "60", "a", "--", "sh", "-c",
                             "trap '' TERM; echo; exec sleep 60"])
            run.stdout.readline()
            run.send_signal(signal.SIGSTOP)
            code, out = two.lockflight("break", "a", *domain, "--yes", "--grace", "0.3")
            self.assertEqual(code, 77, out)
            self.assertIn("the agent of that host may not kill it; 'lockflight break' on that host "
                          "can", out)
            code, out = one.lockflight("break", "a", *domain, "--yes", "--grace", "0.3")
            self.assertEqual(code, 0, out)


if __name__ == "__main__":
    unittest.main()
