"""What etcd loses, etcds that are not one, copies of a host, and the recovery after a restore."""

import pathlib
import shutil
import signal
import time
import unittest

from testbed import Cluster, long_test
from testbed.etcd import Etcd
from testbed.host import DOMAIN, PROGRAM
from testbed.links import OPEN

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

    def member_of(self, host):
        return next(each["id"] for each in host.status()["members"] if each["host"] == host.name)

    def use(self, host):
        """(token, whether a holder has died)"""
        holder = host.hold("n")
        _, token, died = holder.await_held()
        holder.release()
        return token, died


class Keys(LossesTest):
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

    def test_a_deleted_secret_is_named(self):
        self.delete("secret")
        for host in (self.one, self.two):
            host.wait_until(lambda host=host: "somebody has deleted the key" in str(host.said()), 20,
                            "told of the deleted key")
            self.assertNotIn("of another etcd", str(host.said()))
        for host in (self.one, self.two):
            host.agent.send(signal.SIGHUP)
            self.assertEqual(host.agent.child.wait(20), 0)
        for host in (self.one, self.two):
            host.start_agent()
        self.cluster.await_members([self.one, self.two])

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
        self.one.start_agent()
        self.cluster.await_members([self.one, self.two])
        holder.release()


class Copies(LossesTest):
    def test_a_copied_domain_file_is_refused(self):
        self.spare.folder.rmdir()
        shutil.copytree(self.one.folder, self.spare.folder,
                        ignore=shutil.ignore_patterns("*.agent", "*.ask"))
        said = self.refused(self.spare)
        self.assertIn("is a copy of a domain file", said)
        self.assertIn(str(self.spare.folder), said)
        domain = f"etcd:{DOMAIN}"
        for words in (("run", "--domain", domain, "n", "--", "true"), ("who", "n", domain),
                      ("top", "--once", domain), ("domain", "show", domain)):
            code, said = self.spare.lockflight(*words)
            self.assertNotEqual(code, 0, said)
            self.assertIn("is a copy of a domain file", said)

    def test_a_copy_of_the_same_inode_number(self):
        """On another file system."""
        elsewhere = self.cluster.folder / "elsewhere"
        elsewhere.mkdir()
        room = self.spare.popen(["unshare", "--mount", "sh", "-c", f"""
            mount -t tmpfs none {self.spare.folder} && mount -t tmpfs none {elsewhere} && echo made
            exec sleep 100"""])
        if room.stdout.readline() != "made\n":
            self.skipTest("no file system can be mounted here")
        inside = ("nsenter", f"--target={room.pid}", "--mount")
        self.spare.start_agent_under(*inside)
        self.spare.wait_until(lambda: "epoch" in [line["event"] for line in self.spare.said()], 20,
                              "a member")
        self.spare.agent.kill()
        first, second = (pathlib.Path(f"/proc/{room.pid}/root{folder}")
                         for folder in (self.spare.folder, elsewhere))
        # An agent writes the words of a cluster into this file, which it makes first.
        file = next(path for path in first.rglob("*jobs*") if path.stat().st_size > 1 << 20)
        copy = second / file.relative_to(first)
        for folder in reversed(copy.relative_to(second).parents):
            (second / folder).mkdir(exist_ok=True)
        shutil.copy(file, copy)
        if copy.stat().st_ino != file.stat().st_ino:
            self.skipTest("its inode number is another one")
        again = [*inside, "env", f"LOCKFLIGHT_DOMAINS={elsewhere}", *self.spare.agent_command()]
        out, _ = self.spare.popen(again).communicate(timeout=20)
        self.assertIn("is a copy of a domain file", out)

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
        self.replace_etcd(shutil.rmtree)

    def copy_of_etcd(self):
        copy = self.cluster.folder / "copy"
        self.replace_etcd(lambda folder: shutil.copytree(folder, copy))
        return copy

    def restore(self, copy):
        def put_back(folder):
            shutil.rmtree(folder)
            shutil.copytree(copy, folder)
        self.replace_etcd(put_back)

    def replace_etcd(self, change):
        """Ends etcd, changes its folder, and starts it."""
        member = self.cluster.etcd.members[0]
        member.process.kill()
        change(member.folder)
        self.cluster.etcd.start()
        self.cluster.etcd.await_leader()

    def end_agents(self):
        """In order, so that etcd has no members any more."""
        for host in (self.one, self.two):
            host.agent.send(signal.SIGTERM)
        for host in (self.one, self.two):
            self.assertEqual(host.agent.child.wait(20), 0)

    def recover_words(self, host, *options, url=None):
        return ("agent", "recover", "--domain", DOMAIN, "--etcd",
                url or self.cluster.etcd.members[0].url, "--state", host.state, *options)

    def recover(self, host, *options):
        return host.lockflight(*self.recover_words(host, *options))

    def check_recovery(self, said, *parts, code=0):
        self.assertEqual(said[0], code, said[1])
        for part in parts:
            self.assertIn(part, said[1])

    def test_an_etcd_that_was_set_up_anew(self):
        for host in (self.one, self.two, self.one):
            before, _ = self.use(host)
        self.end_agents()
        self.set_up_anew()
        self.assertIn("lockflight agent recover", self.refused(self.one))
        self.check_recovery(self.recover(self.one), "not kept", "is no terminal: say --yes", code=2)
        self.check_recovery(self.recover(self.one, "--yes"), "not kept", "told of a death",
                            "recovered: start")
        epoch = self.cluster.epoch()["number"]
        for host in self.cluster.hosts:
            host.start_agent()
        self.cluster.await_members(self.cluster.hosts)
        token, died = self.use(self.spare)
        self.assertGreater(token, before)
        self.assertTrue(died)
        self.assertLess(self.cluster.epoch()["number"], epoch + 100)

    def test_a_recovery_that_is_not_needed(self):
        self.end_agents()
        self.check_recovery(self.recover(self.one), "nothing has to be recovered", code=2)
        self.check_recovery(self.recover(self.one, "--yes"), "nothing has to be recovered", code=2)
        self.set_up_anew()
        self.check_recovery(self.recover(self.one, "--yes"), "recovered: start")
        epoch = self.cluster.epoch()["number"]
        self.check_recovery(self.recover(self.one, "--yes"), "nothing has to be recovered", code=2)
        self.assertEqual(self.cluster.epoch()["number"], epoch)
        self.check_recovery(self.recover(self.one, "--yes", "--above", epoch + 7),
                            "recovered: start")
        self.assertEqual(self.cluster.epoch()["number"], epoch + 1_007)

    def test_a_host_that_was_no_member_cannot_recover(self):
        self.end_agents()
        # The agent notes which etcd it sees, and is refused before its host becomes a member.
        self.assertIn("--ttl", self.spare.refused_agent(ttl=TTL + 1)[1])
        self.assertTrue((self.spare.state / f"{DOMAIN}.json").exists())
        self.set_up_anew()
        for options in ((), ("--above", 5_000)):
            self.spare.die()
            code, said = self.recover(self.spare, "--yes", *options)
            self.assertEqual((code, "in which this host was a member" in said, "--above" in said),
                             (3, True, False), said)

    def test_a_host_that_has_lost_its_note(self):
        """Its domain file still says which cluster this is."""
        last = self.cluster.epoch()["number"]
        self.end_agents()
        shutil.rmtree(self.one.state)
        self.set_up_anew()
        self.check_recovery(self.recover(self.one, "--yes"), "was a member", code=3)
        self.check_recovery(self.recover(self.one, "--yes", "--above", last + 5), "recovered: start")
        for host in (self.one, self.two):
            host.start_agent()
        self.cluster.await_members([self.one, self.two])

    def test_a_note_that_cannot_be_written(self):
        self.end_agents()
        self.set_up_anew()
        (self.one.state / f"{DOMAIN}.json~").mkdir()
        self.check_recovery(self.recover(self.one, "--yes"), "recovered, but ",
                            "cannot be written: Is a directory", code=3)
        self.assertIsNotNone(self.cluster.epoch())

    def test_the_longest_time_to_live_is_waited_for(self):
        note = f"lockflight/{DOMAIN}/note/ttl"
        self.end_agents()
        waits = f"waits for {TTL} s"
        self.cluster.etcd.put(note, "1000")  # as an older copy may have it
        self.check_recovery(self.recover(self.one), waits, code=2)
        self.one.die()
        self.check_recovery(self.recover(self.one), waits, code=2)
        self.cluster.etcd.put(note, "30000")
        self.check_recovery(self.recover(self.one), "waits for 30 s", code=2)
        self.cluster.etcd.put(note, "7")
        self.check_recovery(self.recover(self.one), "(accepted: 1000 to 300000", code=3)
        self.assertIn("(accepted: 1000 to 300000", self.refused(self.two))

    def test_two_recoveries_at_once(self):
        self.end_agents()
        self.set_up_anew()
        both = [host.popen([PROGRAM, *self.recover_words(host, "--yes")])
                for host in (self.one, self.two)]
        said = sorted((process.communicate(timeout=30)[0], process.returncode)
                      for process in both)
        won, lost = sorted(said, key=lambda each: each[1])
        self.assertEqual((won[1], lost[1]), (0, 3), said)
        self.assertIn("another recovery or an agent", lost[0])

    @long_test
    def test_an_agent_that_begins_during_a_recovery(self):
        """It renews after the recovery has read the keys, and before they are erased. Each answer of
        etcd takes so long that the test sees what the recovery has written before."""
        member = self.member_of(self.two)
        for host in (self.one, self.two):
            host.agent.kill()
        keys = [f"lockflight/{DOMAIN}/{kind}/{member}" for kind in ("member", "beat")]
        values = [self.cluster.etcd.entry(key)[0] for key in keys]
        ttl = f"lockflight/{DOMAIN}/note/ttl"
        self.set_up_anew()
        for key, value in zip(keys, values):
            self.cluster.etcd.put(key, value)
        self.one.to_etcd[0].set(OPEN, 0.5)
        run = self.one.popen([PROGRAM, *self.recover_words(
            self.one, "--yes", url=f"http://127.0.0.1:{self.one.etcd_doors[0].port}")])
        self.one.wait_until(lambda: self.cluster.etcd.entry(ttl), 20, "recovering")
        self.cluster.etcd.put(keys[1], values[1])
        said = run.communicate(timeout=30)[0]
        self.check_recovery((run.returncode, said), f"member {member}", "has not ended", code=3)
        self.assertIsNotNone(self.cluster.etcd.entry(keys[0]))

    def test_an_old_copy_that_other_hosts_have_gone_on_with(self):
        copy = self.copy_of_etcd()
        self.spare.start_agent()
        self.cluster.await_members(self.cluster.hosts)
        last = self.cluster.epoch()["number"]
        for host in self.cluster.hosts:
            host.agent.kill()
        self.spare.die()
        shutil.rmtree(self.spare.state)
        self.restore(copy)
        # A host that knows no better goes on with it, past the last epoch.
        while self.cluster.epoch()["number"] <= last:
            before = self.cluster.epoch()["number"]
            self.spare.start_agent()
            self.spare.wait_until(lambda: self.cluster.epoch()["number"] > before, 20, "in an epoch")
            self.spare.agent.kill()
        for host in (self.one, self.two):
            self.assertIn(f"its epoch {last} is not the one", self.refused(host))

    def test_a_copy_of_the_same_epoch_is_refused_by_agents_that_run(self):
        copy = self.copy_of_etcd()
        time.sleep(TTL)
        self.restore(copy)
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
        again = ("--yes", "--above", 1)
        self.check_recovery(self.recover(self.one, *again), "another agent runs", code=3)
        self.one.agent.send(signal.SIGTERM)
        self.one.agent.child.wait(20)
        self.cluster.await_members([self.two])  # else its new epoch may be in the way first
        self.check_recovery(self.recover(self.one, *again), "has not ended", code=3)


if __name__ == "__main__":
    unittest.main(verbosity=1)
