"""lockflight run --units in a cluster of two hosts: the units are those of both."""

import os
import subprocess
import time
import unittest

from testbed import Cluster
from testbed.host import DOMAIN, PROGRAM

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

    def test_hosts_that_disagree(self):
        self.told(self.unit(0, 3, "other"))
        run = self.run_on(1, "--units", "4", name="other", command=["true"])
        out, err = run.communicate(timeout=20)
        self.assertEqual((out, err.count("\n"), run.returncode), ("", 1, 2), err)
        self.assertIn("'other' is a semaphore of 3 units in the cluster, not a semaphore of 4 units",
                      err)


if __name__ == "__main__":
    unittest.main()
