"""Three hosts with an agent each: what their clients see when hosts, agents and etcd fail, and what
an agent says that must not start."""

import json
import pathlib
import platform
import re
import signal
import subprocess
import time
import unittest

from testbed import Cluster
from testbed.host import DOMAIN

TTL = 2.5
TAKEN_OFF = TTL + 1  # within so many seconds the others go on without a host

shared = Cluster(hosts=4, etcds=1, ttl=TTL)


def setUpModule():
    unittest.addModuleCleanup(shared.close)
    shared.start(shared.hosts[:3])


class AgentsTest(unittest.TestCase):
    """The tests share a cluster. Each leaves it with three hosts; on the spare one no agent runs."""

    maxDiff = None
    cluster = shared

    def setUp(self):
        *self.hosts, self.spare = self.cluster.hosts
        self.one, self.two, self.three = self.hosts
        self.cluster.await_members(self.hosts)
        self.began = time.monotonic_ns()
        self.name = self.id().rsplit(".", maxsplit=1)[-1]

    def tearDown(self):
        for process in self.cluster.others:
            process.kill()
        for host in self.hosts:
            if host.agent is None:
                host.start_agent()

    def assert_in_time(self, seconds):
        """That others have gone on without a host, unless the machine was too busy."""
        if not self.cluster.network.has_stalled(self.began):
            self.assertLess(seconds, TAKEN_OFF)

    def hold(self, host, *how):
        holder = host.hold(self.name, *how)
        return holder, *holder.await_held()


class Locks(AgentsTest):
    def test_all_are_in_one_epoch(self):
        self.assertEqual(len({host.status()["epoch"] for host in self.hosts}), 1)
        hosts = {each["host"] for each in self.one.status()["members"]}
        self.assertEqual(hosts, {"h1", "h2", "h3"})

    def test_an_agent_goes_before_clients_that_compute(self):
        release = tuple(int(each) for each in re.findall(r"\d+", platform.release())[:2])
        shown = pathlib.Path("/proc", str(self.one.agent.pid), "sched").read_text(encoding="ascii")
        slice_ns = re.search(r"^se\.slice\s*:\s*(\d+)$", shown, re.MULTILINE)
        if release < (6, 12) or slice_ns is None:
            self.skipTest("a kernel that ignores the request for short slices, or does not show them")
        self.assertEqual(int(slice_ns[1]), 100_000)

    def test_a_name_moves_between_hosts(self):
        tokens = []
        for host in [self.one, self.two, self.three, self.one]:
            holder, _, token, died = self.hold(host)
            self.assertFalse(died)
            tokens.append(token)
            holder.release()
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_one_waits_for_the_other(self):
        first, *_ = self.hold(self.one)
        second = self.two.hold(self.name)
        code, _ = self.three.run(self.name, "true", options=["--timeout", "0.3"])
        self.assertNotEqual(code, 0)
        self.assertIsNone(second.said("held"))
        first.release()
        self.assertGreater(second.await_held()[0], first.said("released")[0] - 0.1)

    def test_hosts_share(self):
        holders = [self.hold(host, "shared")[0] for host in self.hosts]
        writer = self.one.hold(self.name)
        for each in holders:
            self.assertIsNone(writer.said("held"))
            each.release()
        writer.await_held()

    def test_hosts_share_what_one_has_alone(self):
        self.hold(self.one)[0].release()
        self.hold(self.one, "shared")  # and this host owns the name exclusively
        self.two.hold(self.name, "shared").await_held(1)

    def test_a_run_that_does_not_wait_says_who_holds(self):
        self.hold(self.one)
        code, said = self.two.run(self.name, "true", options=["--nonblock"])
        self.assertEqual(code, 1)
        self.assertRegex(said, rf"lock '{self.name}' was not free in time: held by "
                               rf"cluster_holder on {self.one.name} \(pid \d+\) for \d")

    def test_a_client_dies(self):
        holder, *_ = self.hold(self.one)
        holder.kill()
        self.assertTrue(self.hold(self.two)[3])

    def test_names_that_nobody_uses_are_forgotten(self):
        names = [f"{self.name}-{i}" for i in range(12)]
        tokens = []

        def use(host):
            holder, _, token, died = self.hold(host)
            self.assertFalse(died)
            holder.release()
            tokens.append(token)

        def known():
            return sum(host.status()["names"] + host.status()["at_home"] for host in self.hosts)

        for self.name in names:
            use(self.one)
        self.one.wait_until(lambda: known() >= 2 * len(names), 5, "aware of the names")
        for host in self.hosts:
            host.agent.kill()
            host.start_agent(keep=1)
        # Those of other tests stay in which a holder died.
        self.one.wait_until(lambda: known() < len(names), 20, "without the names")
        del tokens[:-1]
        for host in [self.two, self.one]:
            use(host)
        self.assertEqual(tokens, sorted(set(tokens)))

    def test_two_hosts_upgrade(self):
        for host in [self.one, self.two]:
            self.hold(host, "shared")[0].release()
        writers = [host.hold(self.name) for host in [self.one, self.two]]
        self.one.wait_until(lambda: any(each.said("held") for each in writers), 20, "upgraded")
        first, second = sorted(writers, key=lambda each: each.said("held") is None)
        first.release()
        second.await_held()


class Failures(AgentsTest):
    def test_an_agent_that_is_started_again_in_time(self):
        holder, *_ = self.hold(self.one)
        before = self.one.status()
        end = time.monotonic() + 1.2 * TTL
        self.one.agent.kill()
        self.one.start_agent()
        self.one.wait_until(lambda: self.one.status()["agent"] > before["agent"], 20, "started")
        time.sleep(max(0, end - time.monotonic()))
        self.assertEqual(self.one.status()["incarnation"], before["incarnation"])
        self.assertIsNone(holder.said("lost"))
        other = self.two.hold(self.name)
        holder.release()
        self.assertFalse(other.await_held()[2])

    def test_an_agent_that_makes_way_for_the_next(self):
        holder, *_ = self.hold(self.one)
        before = self.one.status()
        self.one.agent.send(signal.SIGHUP)
        self.assertEqual(self.one.agent.child.wait(TTL / 2), 0)
        self.one.start_agent()
        self.one.wait_until(lambda: self.one.status()["agent"] > before["agent"], 20, "started")
        self.assertEqual(self.one.status()["incarnation"], before["incarnation"])
        self.assertIsNone(holder.said("lost"))
        self.assertIn("restarts", [line["event"] for line in self.one.said()])
        self.one.agent.kill()
        self.one.start_agent_under("nohup")
        self.cluster.await_members(self.hosts)
        self.one.agent.send(signal.SIGHUP)
        with self.assertRaises(subprocess.TimeoutExpired):
            self.one.agent.child.wait(0.2)

    def test_an_agent_that_is_stopped_for_too_long(self):
        holder, *_ = self.hold(self.one)
        before = self.one.status()["incarnation"]
        other = self.two.hold(self.name)
        start = time.monotonic()
        self.one.agent.stop()
        at, _, died = other.await_held()
        self.assert_in_time(at - start)
        self.assertTrue(died)
        self.assertLess(holder.await_said("lost")[0], at - TTL / 10, "told in time")
        self.one.agent.go_on()
        self.cluster.await_members(self.hosts)
        self.one.wait_until(lambda: self.one.status()["incarnation"] > before, 20, "another one")
        self.assertIn("another", [line["event"] for line in self.one.said()])
        again = self.one.hold(self.name)
        other.release()
        holder.release()  # excludes nobody any more
        self.assertFalse(again.await_held()[2])

    def test_a_clock_that_stands_still(self):
        stopped = self.cluster.folder / "stopped"
        before = self.one.status()
        self.one.agent.kill()
        self.one.start_agent_with_a_clock_that_stops(stopped)
        self.one.wait_until(lambda: self.one.status()["agent"] > before["agent"], 20, "started")
        self.cluster.await_members(self.hosts)
        holder, *_ = self.hold(self.one)
        stopped.touch()
        self.one.wait_until(lambda: self.one.agent.exit_code() is not None, 20, "ended")
        self.assertEqual(self.one.agent.exit_code(), 3)
        self.assertIn("CLOCK_BOOTTIME of this host has moved", str(self.one.said()[-1]))
        holder.await_said("lost", 1)
        self.one.agent = None
        self.one.start_agent_with_a_clock_that_stops(stopped)  # it does not even begin
        self.one.wait_until(lambda: self.one.agent.exit_code() is not None, 20, "refused")
        self.assertIn("stands still", str(self.one.said()[-1]))
        self.one.agent = None

    def test_a_host_dies_and_comes_back(self):
        holder, *_ = self.hold(self.three)
        before = {each["id"] for each in self.one.status()["members"]}
        holder.kill()
        self.three.die()
        start = time.monotonic()
        holder, at, _, died = self.hold(self.one)
        self.assert_in_time(at - start)
        self.assertTrue(died)
        self.three.start_agent()
        self.cluster.await_members(self.hosts)
        after = {each["id"] for each in self.one.status()["members"]}
        self.assertEqual(len(before - after), 1)
        holder.release()
        self.hold(self.three)

    def test_a_host_leaves_and_comes_back(self):
        self.hold(self.three)[0].release()
        before = len(self.three.said())
        self.three.agent.send(signal.SIGTERM)
        self.assertEqual(self.three.agent.child.wait(20), 0)
        self.assertFalse(self.hold(self.one)[3])
        self.three.start_agent()
        self.cluster.await_members(self.hosts)
        said = [line["event"] for line in self.three.said()[before:]]
        self.assertIn("left", said)
        self.assertNotIn("another", said)  # that is for hosts that are taken off

    def test_two_hosts_die_at_once(self):
        for host in (self.two, self.three):
            host.die()
        self.one.wait_until(lambda: self.one.status()["in_doubt"] == 1, 20, "in doubt")
        said = self.one.lockflight("agent", "status", "--domain", f"etcd:{DOMAIN}")[1]
        self.assertIn("lockflight agent consistent", said)
        self.assertEqual(self.one.lockflight("agent", "consistent", "--domain", DOMAIN),
                         (0, "nothing is in doubt any more\n"))
        self.assertEqual(self.one.status()["in_doubt"], 0)
        holder, _, _, died = self.hold(self.one)
        self.assertFalse(died)
        holder.release()
        for host in (self.two, self.three):
            host.start_agent()
        self.cluster.await_members(self.hosts)

    def test_the_domain_of_a_host_is_removed(self):
        holder, *_ = self.hold(self.three)
        domain = f"etcd:{DOMAIN}"
        waiter = self.three.hold(self.name)
        self.addCleanup(self.three.start_agent)
        self.addCleanup(self.three.agent.kill)  # first; it ends with its domain, a second later
        who = ["who", "--json", "--domain", domain, self.name]
        self.three.wait_until(lambda: '"waits"' in self.three.lockflight(*who)[1], 10, "waiting")
        self.assertEqual(self.three.lockflight("domain", "remove", "--force", domain)[0], 0)
        self.three.wait_until(lambda: "has been removed" in str(waiter.lines), 10, "told")
        code, said = self.three.run(self.name, "true")
        self.assertEqual(code, 2)
        self.assertIn("no agent has been started", said)
        holder.kill()

    def test_etcd_is_down_for_twice_the_time_to_live(self):
        holder, *_ = self.hold(self.one)
        known = [(host.status()["incarnation"], host.status()["agent"]) for host in self.hosts]
        epoch = self.one.status()["epoch"]
        etcd, = self.cluster.etcd.members
        etcd.process.kill()
        start = time.monotonic()
        self.addCleanup(self.cluster.etcd.start_again)
        lost, _ = holder.await_said("lost")
        self.assertLess(lost - start, TTL)
        time.sleep(max(0, start + TTL - time.monotonic()))  # then all deadlines are over
        waiter = self.two.hold(self.name)
        holder.release()
        code, _ = self.one.run("another", "true", options=["--timeout", "0.1"])
        self.assertNotEqual(code, 0)
        time.sleep(max(0, start + 2 * TTL - time.monotonic()))
        self.assertIsNone(waiter.said("held"))
        self.cluster.etcd.start_again()
        self.assertTrue(waiter.await_held()[2], "the holder was told, and may have stopped halfway")
        self.cluster.await_members(self.hosts)
        self.assertEqual(known, [(host.status()["incarnation"], host.status()["agent"])
                                 for host in self.hosts])
        self.assertEqual(self.one.status()["epoch"], epoch)


class LastEpoch(unittest.TestCase):
    @staticmethod
    def has_warned(host):
        return any(line["event"] == "epochs" and line["left"] == 0 for line in host.said())

    def test_no_member_comes_after_it(self):
        last = (1 << 20) - 1
        with Cluster(hosts=2, etcds=1, ttl=TTL) as cluster:
            one, two = cluster.hosts
            cluster.start([one])
            cluster.etcd.put(f"lockflight/{DOMAIN}/epoch",
                             json.dumps({**cluster.epoch(), "number": last}))
            one.wait_until(lambda: one.knows(last), 20, "in the last epoch")
            two.start_agent()
            one.wait_until(lambda: self.has_warned(one) and self.has_warned(two), 20, "warned")
            self.assertIn("0 more changes of members",
                          one.lockflight("agent", "status", "--domain", DOMAIN)[1])
            self.assertEqual((cluster.epoch()["number"], len(cluster.epoch()["members"])),
                             (last, 1))
            holder = one.hold("name")
            _, token, _ = holder.await_held()
            self.assertEqual(token >> 42, last)
            holder.release()


class ManyNames(unittest.TestCase):
    def test_a_host_gives_back_all_when_it_leaves(self):
        many, name = 10_000, "name"
        with Cluster(hosts=2, etcds=1, ttl=TTL) as cluster:
            cluster.start()
            one, two = cluster.hosts
            two.hold(name, "many", str(many)).await_said("used", 60)
            self.assertGreaterEqual(two.status()["owned"], many)
            start = time.monotonic_ns()
            two.agent.send(signal.SIGTERM)
            self.assertEqual(two.agent.child.wait(20), 0)
            if not cluster.network.has_stalled(start):
                self.assertLess((time.monotonic_ns() - start) / 1e9, TTL)
            self.assertEqual([line["event"] for line in two.said()][-2:], ["left", "ended"])
            holder = one.hold(f"{name}0")
            self.assertFalse(holder.await_held()[2])
            holder.release()


class Refusals(AgentsTest):
    def refused(self, host, *words, code=3, **changed):
        is_code, said = host.refused_agent(**changed)
        for word in words:
            self.assertIn(str(word), said)
        self.assertEqual(is_code, code, said)

    def test_a_second_agent(self):
        self.refused(self.one, "another agent runs", self.one.folder, listen="127.0.0.1:0")

    def test_another_etcd(self):
        of_host = self.one.state / f"{DOMAIN}.json"
        known = json.loads(of_host.read_text(encoding="utf-8"))
        self.spare.state.mkdir(exist_ok=True)
        to = self.spare.state / f"{DOMAIN}.json"
        for key, value, words in [("cluster", known["cluster"] + 1, "it is cluster"),
                                  ("revision", 1 << 40, "its revision is"),
                                  ("epoch", known["epoch"] + 1, "its epoch is")]:
            with self.subTest(key=key):
                to.write_text(json.dumps({**known, key: value}), encoding="utf-8")
                self.refused(self.spare, words, to)
        to.write_text("garbage", encoding="utf-8")
        self.refused(self.spare, to, "does not say")
        to.unlink()

    def test_garbage_in_etcd(self):
        for key in ["epoch", "member/0123456789abcdef", "beat/0123456789abcdef", "member/x"]:
            with self.subTest(key=key):
                domain = "other" + key[0] + key[-1]
                self.cluster.etcd.put(f"lockflight/{domain}/{key}", '{"garbage":1}')
                self.refused(self.spare, f"lockflight/{domain}/{key}", "garbage", domain=domain)

    def test_another_time_to_live(self):
        self.refused(self.spare, "--ttl '2'", "accepted: 2.5", ttl=2)


if __name__ == "__main__":
    unittest.main(verbosity=1)
