"""One host, and an etcd of three members that fail: as long as two of them are there, the host's
holders notice nothing."""

import time
import unittest

from testbed import Cluster
from testbed.links import OPEN, SWALLOWS

TTL = 2


class EtcdTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=1, etcds=3, ttl=TTL)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.host, = cls.cluster.hosts

    def setUp(self):
        self.holder = self.host.hold("jobs")
        self.holder.await_held()

    def tearDown(self):
        self.holder.release()

    def assert_nothing_is_lost(self, seconds):
        time.sleep(seconds)
        self.assertIsNone(self.holder.said("lost"))

    def test_a_member_that_says_nothing(self):
        for link in self.host.to_etcd:
            link.set(SWALLOWS)
            self.assert_nothing_is_lost(TTL)
            link.set(OPEN)

    def test_the_leader_is_stopped_and_wakes_up(self):
        leader = self.cluster.etcd.leader()
        leader.process.stop()
        self.assert_nothing_is_lost(TTL)
        leader.process.go_on()
        self.assert_nothing_is_lost(0.3)

    def test_the_leader_is_killed(self):
        leader = self.cluster.etcd.leader()
        leader.process.kill()
        self.assert_nothing_is_lost(TTL)
        self.cluster.etcd.start_again()
        self.cluster.etcd.await_leader()


if __name__ == "__main__":
    unittest.main(verbosity=1)
