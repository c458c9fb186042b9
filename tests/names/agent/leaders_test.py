"""Elections among hosts: what observers see of leaders that come, step down, die and are cut off."""

import json
import threading
import time
import unittest

from testbed import Cluster
from testbed.links import CUT, OPEN
from testbed.host import BUILD, DOMAIN, PROGRAM

IN_DOMAIN = f"etcd:{DOMAIN}"
OBSERVER = BUILD / "tests" / "names" / "agent" / "cluster_observer"
TTL = 3
OBSERVERS = 34  # on each of three hosts


class Observers:
    """Threads of one host that observe an election."""

    def __init__(self, host, name, threads):
        self.host = host
        self.process = host.popen([OBSERVER, IN_DOMAIN, name, threads])
        self.seen = []  # (moment in seconds, term, value)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            _, moment, term, *value = line.rstrip("\n").split(" ", maxsplit=3)
            self.seen.append((int(moment) / 1e6, int(term), "".join(value)))

    def moments(self, value):
        return [moment for moment, _, seen in list(self.seen) if seen == value]

    def await_seen(self, value, times, seconds=20):
        self.host.wait_until(lambda: len(self.moments(value)) >= times, seconds,
                             f"seen {value!r} {times} times: {self.seen[-5:]}")
        return self.moments(value)


def boot_time():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leaders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=3, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def setUp(self):
        self.one, self.two, self.three = self.cluster.hosts
        self.name = self.id().rsplit(".", maxsplit=1)[-1]

    def lead(self, host, value, *command):
        """A run that leads until its input ends, unless there is another command."""
        return host.popen([PROGRAM, "run", "--domain", IN_DOMAIN, "--leader", "--value", value,
                           self.name, "--", *(command or ("cat",))])

    def leader(self, host, *options):
        code, out = host.lockflight("leader", self.name, IN_DOMAIN, "--json", *options)
        return code, json.loads(out)

    def test_all_hosts_see_each_leader(self):
        self.assertEqual(self.leader(self.three)[1]["leads"], False)
        all_observers = [Observers(host, self.name, OBSERVERS) for host in self.cluster.hosts]
        first = self.lead(self.one, "first")
        for each in all_observers:
            each.await_seen("first", OBSERVERS)
        for host in self.cluster.hosts:
            code, said = self.leader(host)
            self.assertEqual((code, said["value"]), (0, "first"))
        # The next one leads when the first one has stepped down.
        second = self.lead(self.two, "second")
        self.one.wait_until(lambda: self.waits(self.two), 20, "a candidate on h2")
        stepped_down = boot_time()
        first.stdin.close()
        moments = [moment for each in all_observers
                   for moment in each.await_seen("second", OBSERVERS)]
        self.assertLess(max(moments) - stepped_down, 2)
        self.assertGreater(min(moments), stepped_down)
        terms = {value: term for each in all_observers for _, term, value in each.seen if term}
        self.assertLess(terms["first"], terms["second"])
        # No observer sees leaders in another order.
        for each in all_observers:
            values = [value for _, _, value in each.seen]
            self.assertLess(max(i for i, value in enumerate(values) if value == "first"),
                            len(values) - 1)
        second.stdin.close()
        for each in all_observers:
            each.host.wait_until(lambda each=each: each.seen[-1][1] == 0, 20, "without a leader")

    def waits(self, on):
        _, out = self.one.lockflight("who", self.name, IN_DOMAIN, "--json")
        return on.name in [each.get("host") for each in json.loads(out)["waiters"]]

    def test_a_leader_that_is_killed_leads_no_more(self):
        observers = Observers(self.two, self.name, 1)
        run = self.lead(self.one, "first", "sleep", "60")
        observers.await_seen("first", 1)
        run.kill()
        observers.await_seen("", 1)
        self.assertEqual(self.leader(self.three)[1]["leads"], False)

    def test_agents_that_are_started_again_go_on(self):
        observers = Observers(self.two, self.name, 1)
        first = self.lead(self.one, "first")
        observers.await_seen("first", 1)
        for host in (self.one, self.two):
            host.agent.kill()
            host.start_agent()
        self.cluster.await_members(self.cluster.hosts)
        first.stdin.close()  # nobody withdraws the value but the new agent of h1, or the run
        observers.await_seen("", 1)
        self.lead(self.three, "second", "sleep", "60")
        observers.await_seen("second", 1)

    def test_a_value_may_have_all_characters_and_be_long(self):
        value = "\\\t\nä'\"" * 6000
        observers = Observers(self.two, self.name, 1)
        self.lead(self.one, value, "sleep", "60")
        self.two.wait_until(lambda: self.leader(self.two)[1].get("value") == value, 20, "the value")
        observers.await_seen(value.replace("\t", "").replace("\n", ""), 1)

    def test_a_change_that_cannot_be_read_at_once(self):
        """An agent learns of a change, and etcd does not answer its question."""
        observers = Observers(self.two, self.name, 1)
        first = self.lead(self.one, "first")
        observers.await_seen("first", 1)
        link = self.two.to_etcd[0]
        link.set(OPEN, 1.2)  # longer than one question waits
        self.addCleanup(link.set, OPEN)
        first.stdin.close()
        self.one.wait_until(lambda: self.leader(self.one)[0] == 1, 20, "left")
        self.lead(self.one, "second", "sleep", "60")
        time.sleep(1)
        link.set(OPEN)
        observers.await_seen("second", 1)

    def test_without_etcd(self):
        self.lead(self.one, "first", "sleep", "60")
        self.one.wait_until(lambda: self.leader(self.one)[0] == 0, 20, "led")
        etcd = self.cluster.etcd.members[0].process
        etcd.stop()
        self.addCleanup(self.cluster.await_members, self.cluster.hosts)
        self.addCleanup(etcd.go_on)
        code, said = self.one.lockflight("leader", self.name, IN_DOMAIN)
        self.assertEqual(code, 3, said)
        self.assertIn(f"lock '{self.name}': its note in etcd: etcd ", said)


class Work(unittest.TestCase):
    """lockflight run --success and --follow, and lockflight done, among hosts."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=2, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def setUp(self):
        self.one, self.two = self.cluster.hosts
        self.name = self.id().rsplit(".", maxsplit=1)[-1]

    def run_on(self, host, *command, options=()):
        return host.run(self.name, *command, options=options)

    def last(self, host):
        return json.loads(host.lockflight("done", self.name, IN_DOMAIN, "--json")[1]).get("last")

    def test_a_success_counts_on_all_hosts(self):
        success = ("--every", "3000d", "--success")
        self.assertEqual(self.run_on(self.one, "sh", "-c", "exit 3", options=success)[0], 3)
        self.assertEqual(self.last(self.two)["code"], 3)
        self.assertEqual(self.run_on(self.two, "echo", "ran", options=success), (0, "ran\n"))
        code, said = self.run_on(self.one, "echo", "ran", options=success)
        self.assertEqual(code, 0)
        self.assertRegex(said, "^lockflight run: lock .* is done until ")
        self.assertEqual(self.one.lockflight("done", self.name, IN_DOMAIN, "--forget")[0], 0)
        self.assertEqual(self.run_on(self.two, "echo", "ran", options=success), (0, "ran\n"))

    def test_another_host_follows(self):
        worker = self.one.popen([PROGRAM, "run", "--domain", IN_DOMAIN, "--follow", self.name,
                                 "--", "sh", "-c", "read line; exit 7"])
        self.one.wait_until(lambda: self.one.lockflight("who", self.name, IN_DOMAIN)[0] == 0, 20,
                            "the worker")
        follower = self.two.popen([PROGRAM, "run", "--domain", IN_DOMAIN, "--follow", self.name,
                                   "--", "echo", "ran"])
        self.one.wait_until(
            lambda: "waits" in self.one.lockflight("who", self.name, IN_DOMAIN)[1], 20,
            "the follower")
        worker.communicate("go\n", timeout=20)
        said, _ = follower.communicate(timeout=20)
        self.assertEqual(follower.returncode, 7)
        self.assertRegex(said, "sh ended with 7 at .* so COMMAND is not run")

    def test_an_etcd_that_does_not_answer_is_no_news(self):
        """The result of an earlier run is not taken for that of one that has ended meanwhile."""
        self.assertEqual(self.run_on(self.one, "sh", "-c", "exit 3", options=["--follow"])[0], 3)
        etcd = self.cluster.etcd.members[0].process
        etcd.stop()
        self.addCleanup(etcd.go_on)
        run = self.one.popen([PROGRAM, "run", "--domain", IN_DOMAIN, "--follow", self.name, "--",
                              "echo", "ran"])
        time.sleep(1)
        etcd.go_on()
        self.assertEqual((run.communicate(timeout=20)[0], run.returncode), ("ran\n", 0))


class LostHost(unittest.TestCase):
    def test_the_value_of_a_host_that_is_gone_is_left_out(self):
        with Cluster(hosts=2, ttl=TTL) as cluster:
            cluster.start()
            one, two = cluster.hosts
            observers = Observers(two, "n", 1)
            one.popen([PROGRAM, "run", "--domain", IN_DOMAIN, "--leader", "--value", "first", "n",
                       "--", "sleep", "60"])
            observers.await_seen("first", 1)
            for link in one.links:
                link.set(CUT)
            observers.await_seen("", 1)
            # The host comes back in another incarnation, in which nobody leads.
            cluster.mend_links()
            cluster.await_members(cluster.hosts)
            code, _ = two.lockflight("leader", "n", f"etcd:{DOMAIN}")
            self.assertEqual(code, 1)
            self.assertEqual(len(observers.seen), 2, observers.seen)


if __name__ == "__main__":
    unittest.main()
