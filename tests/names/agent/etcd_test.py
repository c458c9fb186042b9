"""One host, and an etcd of three members that fail: as long as two of them are there, the host's
holders notice nothing."""

import time
import unittest

from testbed import Cluster
from testbed.links import OPEN, SWALLOWS


class EtcdTest(unittest.TestCase):
    ttl = 4  # an election takes a while on a busy machine

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(hosts=1, etcds=3, ttl=cls.ttl)
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


class Leader(EtcdTest):
    def test_the_leader_is_stopped_and_wakes_up(self):
        leader = self.cluster.etcd.leader()
        leader.process.stop()
        self.assert_nothing_is_lost(self.ttl)
        leader.process.go_on()
        self.assert_nothing_is_lost(0.3)

    def test_the_leader_is_killed(self):
        leader = self.cluster.etcd.leader()
        leader.process.kill()
        self.assert_nothing_is_lost(self.ttl)
        self.cluster.etcd.start_again()
        self.cluster.etcd.await_leader()


class ShortTimeToLive(EtcdTest):
    ttl = 2

    def test_a_member_that_says_nothing(self):
        for link in self.host.to_etcd:
            link.set(SWALLOWS)
            self.assert_nothing_is_lost(self.ttl)
            link.set(OPEN)


if __name__ == "__main__":
    unittest.main(verbosity=1)
