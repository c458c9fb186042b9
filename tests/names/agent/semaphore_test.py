"""lockflight run --units in a cluster of two hosts: the units are those of both."""

import json
import os
import select
import subprocess
import time
import unittest

from testbed import Cluster, long_test
from testbed.host import DOMAIN, PROGRAM
from waiting import wait_until

TTL = 3


class Slots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=2, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def run_on(self, host, *options, command, name="gpu"):
        process = subprocess.Popen(
            [PROGRAM, "run", "--domain", f"etcd:{DOMAIN}", *options, name, "--", *command],
            env={**os.environ, **self.cluster.hosts[host].environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def unit(self, host, units=2, name="gpu"):
        return self.run_on(host, "--units", str(units), name=name, command=[
            "sh", "-c", "echo $LOCKFLIGHT_UNIT ${LOCKFLIGHT_OWNER_DIED-0}; exec sleep 60"])

    @staticmethod
    def told(run):
        """Its unit, and whether a holder of that unit died; when it has one."""
        unit, died = run.stdout.readline().split()
        return int(unit), died == "1"

    def said(self, host, *words):
        return subprocess.run([PROGRAM, *words], text=True, capture_output=True, timeout=30,
                              env={**os.environ, **self.cluster.hosts[host].environment},
                              check=False)

    def test_the_units_are_those_of_all_hosts(self):
        here, there = self.unit(0), self.unit(1)
        units = {here: self.told(here)[0], there: self.told(there)[0]}
        self.assertEqual(sorted(units.values()), [0, 1])
        attempt = self.run_on(1, "--units", "2", "--nonblock", command=["true"])
        self.assertEqual((*attempt.communicate(timeout=20), attempt.returncode)[0::2], ("", 1))
        who = self.said(0, "who", "gpu", "--domain", f"etcd:{DOMAIN}").stdout
        for unit in units.values():
            self.assertRegex(who, rf"holds unit {unit} ")

        # A waiter on host 1 gets the unit of host 0 when that is given back, and so does one whose
        # holder is killed.
        for each, gives_back in ((here, True), (there, False)):
            waiter = self.unit(1 if each is here else 0)
            time.sleep(0.5)
            self.assertIsNone(waiter.poll())
            began = time.monotonic()
            if gives_back:
                each.terminate()
            else:
                each.kill()
            self.assertEqual(self.told(waiter), (units[each], not gives_back))
            self.assertLess(time.monotonic() - began, 2 * TTL)

    def several(self, host, units, take, name):
        return self.run_on(host, "--units", str(units), "--take", str(take), name=name, command=[
            "sh", "-c", "echo $LOCKFLIGHT_UNIT; exec sleep 60"])

    def shown(self, host, name):
        done = self.said(host, "units", name, "--json", "--domain", f"etcd:{DOMAIN}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def set_units(self, host, name, units):
        done = self.said(host, "units", name, "--set", units, "--domain", f"etcd:{DOMAIN}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_several_units_of_all_hosts_are_collected(self):
        there = [self.several(1, 3, 1, "many") for _ in range(2)]
        units = [each.stdout.readline() for each in there]
        self.assertEqual(sorted(units), ["0\n", "1\n"])
        large = self.several(0, 3, 3, "many")
        self.assertTrue(wait_until(lambda: any(
            "collected" in line for line in self.said(
                0, "units", "many", "--domain", f"etcd:{DOMAIN}").stdout.splitlines())))
        small = self.several(1, 3, 1, "many")
        there[0].terminate()
        time.sleep(0.7)
        self.assertIsNone(large.poll())
        there[1].terminate()
        self.assertEqual(large.stdout.readline(), "0,1,2\n")
        who = self.said(1, "who", "many", "--json", "--domain", f"etcd:{DOMAIN}")
        (holder,) = json.loads(who.stdout)["holders"]
        self.assertEqual((holder["unit"], holder["units_held"]), (0, [0, 1, 2]))
        self.assertIsNone(small.poll())
        large.terminate()
        self.assertIn(small.stdout.readline(), ("0\n", "1\n", "2\n"))

    def start_again(self, host):
        host.start_agent()
        self.cluster.await_members(self.cluster.hosts)

    @long_test
    def test_a_host_that_is_lost_while_it_collects(self):
        """Its units are free after the TTL, and the next request gets all that it wants."""
        holder = self.several(1, 3, 1, "lost")
        holder.stdout.readline()
        large = self.several(0, 3, 3, "lost")
        self.assertTrue(wait_until(lambda: "collected" in self.said(
            0, "units", "lost", "--domain", f"etcd:{DOMAIN}").stdout))
        next_one = self.several(1, 3, 3, "lost")
        host = self.cluster.hosts[0]
        host.agent.kill()
        large.kill()
        self.addCleanup(self.start_again, host)
        holder.terminate()
        self.assertEqual(next_one.stdout.readline(), "0,1,2\n")
        # A part of the units is not left with anybody.
        next_one.terminate()
        next_one.wait(timeout=10)
        again = self.several(1, 3, 3, "lost")
        self.assertEqual(again.stdout.readline(), "0,1,2\n")

    def test_a_host_that_is_cut_off_while_it_collects(self):
        """When it is back it has nothing of what it had, and there is no second head: both hosts get
        all units, one after the other."""
        holder = self.several(1, 3, 1, "cut")
        holder.stdout.readline()
        first = self.several(0, 3, 3, "cut")
        self.assertTrue(wait_until(lambda: "collected" in self.said(
            0, "units", "cut", "--domain", f"etcd:{DOMAIN}").stdout))
        agent = self.cluster.hosts[0].agent
        agent.stop()
        self.addCleanup(agent.go_on)
        second = self.several(1, 3, 3, "cut")
        self.assertTrue(wait_until(lambda: "collected" in self.said(
            1, "units", "cut", "--domain", f"etcd:{DOMAIN}").stdout, 10 * TTL))
        agent.go_on()
        self.cluster.await_members(self.cluster.hosts)
        time.sleep(1.5)  # the first one tries the units anew each second
        holder.terminate()
        ready, _, _ = select.select([first.stdout, second.stdout], [], [], 10 * TTL)
        self.assertEqual(len(ready), 1)
        one, other = (first, second) if ready[0] is first.stdout else (second, first)
        self.assertEqual(one.stdout.readline(), "0,1,2\n")
        self.assertEqual(select.select([other.stdout], [], [], 1)[0], [], "they hold at once")
        one.terminate()
        self.assertEqual(other.stdout.readline(), "0,1,2\n")

    def test_an_attempt_gets_all_or_none(self):
        holder = self.several(1, 3, 1, "all")
        holder.stdout.readline()
        attempt = self.run_on(0, "--units", "3", "--take", "3", "--nonblock", name="all",
                              command=["true"])
        self.assertEqual(attempt.wait(timeout=20), 1)
        rest = self.several(0, 3, 2, "all")
        self.assertEqual(rest.stdout.readline(), "1,2\n")

    def test_units_are_set_for_all_hosts(self):
        here, there = self.unit(0, 2, "set"), self.unit(1, 2, "set")
        self.assertEqual(sorted([self.told(here)[0], self.told(there)[0]]), [0, 1])
        waiter = self.unit(1, 2, "set")
        time.sleep(0.5)
        self.assertIsNone(waiter.poll())
        self.assertFalse(self.shown(1, "set")["set"])
        began = time.monotonic()
        self.set_units(0, "set", "0,1,5")
        self.assertEqual(self.told(waiter)[0], 5)
        self.assertLess(time.monotonic() - began, 2)
        now = self.shown(1, "set")
        self.assertEqual((now["set"], [(each["unit"], each["exists"], "holder" in each)
                                       for each in now["units"]]),
                         (True, [(0, True, True), (1, True, True), (5, True, True)]))
        # Units that are left out are given to nobody, on either host, whatever number a run gives.
        self.set_units(1, "set", "1")
        for each in (here, there, waiter):
            self.assertIsNone(each.poll())
        self.assertFalse(self.shown(0, "set")["units"][-1]["exists"])
        for each in (here, there, waiter):
            each.terminate()
            each.wait(timeout=10)
        for host in (0, 1):
            run = self.unit(host, 7 + host, "set")
            self.assertEqual(self.told(run)[0], 0)
            run.terminate()
            run.wait(timeout=10)
        many = self.several(0, 9, 2, "set")
        self.assertEqual(many.wait(timeout=20), 2)
        self.assertIn("take 2 of 1 unit, to which it was set", many.stderr.read())

    def test_an_agent_that_was_down_learns_of_units_that_were_set(self):
        first = self.unit(1, 2, "later")
        self.told(first)
        first.terminate()
        first.wait(timeout=10)
        host = self.cluster.hosts[1]
        host.agent.kill()
        self.set_units(0, "later", "6,7")
        self.start_again(host)
        self.assertTrue(wait_until(lambda: self.said(
            1, "domain", "show", f"etcd:{DOMAIN}", "--json").stdout.count('"mask=192,') == 1))
        run = self.unit(1, 2, "later")
        self.assertEqual(self.told(run)[0], 6)

    def test_a_name_that_is_no_semaphore(self):
        run = self.run_on(0, "--every", "1h", name="daily", command=["true"])
        self.assertEqual(run.wait(timeout=20), 0)
        done = self.said(1, "units", "daily", "--set", "3", "--domain", f"etcd:{DOMAIN}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'daily' is a lock with a note of its work in the cluster", done.stderr)

    def test_hosts_that_disagree(self):
        self.told(self.unit(0, 3, "other"))
        run = self.run_on(1, "--units", "4", name="other", command=["true"])
        out, err = run.communicate(timeout=20)
        self.assertEqual((out, err.count("\n"), run.returncode), ("", 1, 2), err)
        self.assertIn("'other' is a semaphore of 3 units in the cluster, not a semaphore of 4 units",
                      err)


if __name__ == "__main__":
    unittest.main()
