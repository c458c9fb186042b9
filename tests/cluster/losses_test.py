"""What etcd loses, etcds that are not one, copies of a host, and the recovery after a restore."""

import shutil
import signal
import time
import unittest

from testbed import Cluster
from testbed.etcd import Etcd
from testbed.host import DOMAIN

TTL = 2


def boot_time_us():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6


class LossesTest(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(hosts=3, etcds=1, ttl=TTL)
        self.addCleanup(self.cluster.close)
        self.one, self.two, self.spare = self.cluster.hosts
        self.cluster.start([self.one, self.two])

    def refused(self, host, **changed):
        code, said = host.refused_agent(**changed)
        self.assertEqual(code, 3, said)
        return said

    def use(self, host):
        """(token, whether a holder has died)"""
        holder = host.hold("n")
        _, token, died = holder.await_held()
        holder.release()
        return token, died


class Keys(LossesTest):
    def member_of(self, host):
        return next(each["id"] for each in host.status()["members"] if each["host"] == host.name)

    def delete(self, key):
        self.cluster.etcd.delete(f"lockflight/{DOMAIN}/{key}")

    def test_a_deleted_key_shortens_no_promise(self):
        holder = self.one.hold("n")
        holder.await_held()
        member = self.member_of(self.one)
        next_holder = self.two.hold("n")
        self.delete(f"member/{member}")
        promised = self.one.status()["deadline_us"]
        next_holder.await_held()
        self.assertGreaterEqual(boot_time_us(), promised)
        self.cluster.await_members([self.one, self.two])
        events = [line["event"] for line in self.one.said()]
        self.assertEqual(events.count("deleted"), 1)
        self.assertIn("since its key was deleted", str(self.one.said()))

    def test_a_deleted_beat_is_written_again(self):
        holder = self.one.hold("n")
        holder.await_held()
        self.delete(f"beat/{self.member_of(self.one)}")
        time.sleep(2 * TTL)
        self.assertGreater(self.one.status()["deadline_us"], boot_time_us())
        self.assertNotIn("another", [line["event"] for line in self.one.said()])
        holder.release()

    def test_a_cluster_that_has_lost_its_epoch_begins_no_first_one(self):
        self.delete("epoch")
        for host in (self.one, self.two):
            self.assertEqual(host.agent.child.wait(20), 3)
        self.assertIn("somebody has deleted the epoch", self.refused(self.spare))
        self.assertIsNone(self.cluster.epoch())


class Clocks(LossesTest):
    def test_an_agent_in_another_time_namespace_shortens_no_promise(self):
        there = self.one.in_another_time(self)
        for how in (signal.SIGKILL, signal.SIGHUP):
            with self.subTest(how=how):
                holder = self.one.hold("n")
                holder.await_held()
                next_holder = self.two.hold("n")
                promised = self.one.status()["deadline_us"]
                self.one.agent.send(how)
                self.one.agent.child.wait(20)
                self.one.start_agent_under(*there)
                next_holder.await_held()
                self.assertGreaterEqual(boot_time_us(), promised)
                self.one.wait_until(lambda: "another clock" in str(self.one.said()), 5, "waiting")
                holder.kill()
                next_holder.release()
                # The next one is outside again.
                self.one.agent.kill()
                self.one.start_agent()
                self.cluster.await_members([self.one, self.two])

    def test_an_agent_with_another_time_to_live_waits(self):
        holder = self.one.hold("n")
        holder.await_held()
        self.one.agent.kill()
        self.cluster.etcd.delete(f"lockflight/{DOMAIN}/note/ttl")
        self.assertIn("its last deadline is not over", self.refused(self.one, ttl=4))


class Copies(LossesTest):
    def test_a_copied_domain_file_is_refused(self):
        self.spare.folder.rmdir()
        shutil.copytree(self.one.folder, self.spare.folder,
                        ignore=shutil.ignore_patterns("*.agent", "*.ask"))
        said = self.refused(self.spare)
        self.assertIn("is a copy of a domain file", said)
        self.assertIn(str(self.spare.folder), said)
        self.assertIn("is a copy of a domain file", self.spare.run("n", "true")[1])

    def test_endpoints_of_two_etcds(self):
        folder = self.cluster.folder / "apart"
        folder.mkdir()
        apart = Etcd(folder, 1)
        apart.start()
        self.addCleanup(lambda: apart.members[0].process.kill())
        apart.await_leader()
        urls = [self.cluster.etcd.members[0].url, apart.members[0].url]
        for etcd in (",".join(urls), ",".join(reversed(urls))):
            state = self.cluster.folder / f"state of {etcd[-2:]}"
            said = self.refused(self.spare, etcd=etcd, state=state)
            self.assertIn("its endpoints are not one etcd", said)


class Recovery(LossesTest):
    def set_up_anew(self):
        member = self.cluster.etcd.members[0]
        member.process.kill()
        shutil.rmtree(member.folder)
        self.cluster.etcd.start()
        self.cluster.etcd.await_leader()

    def recover(self, host, *options):
        return host.lockflight("agent", "recover", "--domain", DOMAIN, "--etcd",
                               self.cluster.etcd.members[0].url, "--state", host.state, *options)

    def test_an_etcd_that_was_set_up_anew(self):
        for host in (self.one, self.two, self.one):
            before, _ = self.use(host)
        for host in (self.one, self.two):
            host.agent.send(signal.SIGTERM)
            self.assertEqual(host.agent.child.wait(20), 0)
        self.set_up_anew()
        self.assertIn("lockflight agent recover", self.refused(self.one))
        code, said = self.recover(self.one)
        self.assertEqual((code, "--yes" in said), (2, True), said)
        code, said = self.recover(self.spare, "--yes")
        self.assertEqual((code, "--above" in said), (3, True), said)
        code, said = self.recover(self.one, "--yes")
        self.assertEqual(code, 0, said)
        for part in ("not kept", "told of a death", "recovered"):
            self.assertIn(part, said)
        for host in self.cluster.hosts:
            host.start_agent()
        self.cluster.await_members(self.cluster.hosts)
        token, died = self.use(self.spare)
        self.assertGreater(token, before)
        self.assertTrue(died)

    def test_an_old_copy_that_other_hosts_have_gone_on_with(self):
        member = self.cluster.etcd.members[0]
        copy = self.cluster.folder / "copy"
        member.process.kill()
        shutil.copytree(member.folder, copy)
        self.cluster.etcd.start()
        self.cluster.etcd.await_leader()
        self.spare.start_agent()
        self.cluster.await_members(self.cluster.hosts)
        last = self.cluster.epoch()["number"]
        for host in self.cluster.hosts:
            host.agent.kill()
        self.spare.die()
        shutil.rmtree(self.spare.state)
        member.process.kill()
        shutil.rmtree(member.folder)
        shutil.copytree(copy, member.folder)
        self.cluster.etcd.start()
        self.cluster.etcd.await_leader()
        # A host that knows no better goes on with it, past the last epoch.
        while self.cluster.epoch()["number"] <= last:
            before = self.cluster.epoch()["number"]
            self.spare.start_agent()
            self.spare.wait_until(lambda: self.cluster.epoch()["number"] > before, 20, "in an epoch")
            self.spare.agent.kill()
        for host in (self.one, self.two):
            self.assertIn(f"its epoch {last} is not the one", self.refused(host))

    def test_a_copy_of_the_same_epoch_is_refused_by_agents_that_run(self):
        member = self.cluster.etcd.members[0]
        copy = self.cluster.folder / "copy"
        member.process.kill()
        shutil.copytree(member.folder, copy)
        self.cluster.etcd.start()
        self.cluster.etcd.await_leader()
        time.sleep(TTL)
        member.process.kill()
        shutil.rmtree(member.folder)
        shutil.copytree(copy, member.folder)
        self.cluster.etcd.start()
        for host in (self.one, self.two):
            self.assertEqual(host.agent.child.wait(20), 3)
            self.assertIn("its revision is", str(host.said()))

    def test_a_recovered_cluster_may_lose_its_number(self):
        for host in (self.one, self.two):
            host.agent.send(signal.SIGTERM)
            host.agent.child.wait(20)
        self.set_up_anew()
        code, said = self.recover(self.one, "--yes")
        self.assertEqual(code, 0, said)
        self.one.start_agent()
        self.two.start_agent()
        self.cluster.await_members([self.one, self.two])
        self.cluster.etcd.delete(f"lockflight/{DOMAIN}/cluster")
        self.one.wait_until(lambda: self.cluster.etcd.entry(f"lockflight/{DOMAIN}/cluster"), 20,
                            "writing the number again")
        self.assertGreater(self.use(self.two)[0], 0)

    def test_a_host_that_has_noted_a_later_epoch_refuses(self):
        self.one.agent.send(signal.SIGTERM)
        self.one.agent.child.wait(20)
        note = self.one.state / f"{DOMAIN}.json"
        note.write_text(note.read_text().replace('"epoch":', '"epoch":7000'))
        self.assertIn("its epoch is", self.refused(self.one))

    def test_an_agent_that_runs_is_in_the_way(self):
        code, said = self.recover(self.one, "--yes")
        self.assertEqual((code, "another agent runs" in said), (3, True), said)
        self.one.agent.send(signal.SIGTERM)
        self.one.agent.child.wait(20)
        code, said = self.recover(self.one, "--yes")
        self.assertEqual((code, "has not ended" in said), (3, True), said)


if __name__ == "__main__":
    unittest.main(verbosity=1)
