"""What an agent does if its surroundings fail: nobody reads its log, its disk is full, what it keeps
beside the domain file is removed, or clients use all threads that its host's domain has room for."""

import http.server
import io
import json
import os
import resource
import signal
import socket
import stat
import threading
import time
import unittest
import urllib.error
import urllib.request

from testbed import Cluster, long_test
from testbed.etcd import base64_of
from testbed.host import DOMAIN

TTL = 2
SLOTS = 10  # of the first host: two are the agent's

shared = Cluster(hosts=3, ttl=TTL)  # no agent runs on the last one


def setUpModule():
    unittest.addModuleCleanup(shared.close)
    shared.etcd.start()
    shared.etcd.await_leader()
    for host in shared.hosts[:2]:
        host.start_agent(slots=SLOTS)
    shared.await_members(shared.hosts[:2])


def fill(pipe):
    for size in (4096, 1):
        try:
            while True:
                os.write(pipe, b"\n" * size)
        except BlockingIOError:
            pass


def drain(pipe):
    try:
        return os.read(pipe, 1 << 20)
    except BlockingIOError:
        return b""


class SurroundingsTest(unittest.TestCase):
    def setUp(self):
        self.one, self.two, self.spare = shared.hosts
        self.name = self.id().rsplit(".", maxsplit=1)[-1]

    def await_said(self, host, event, text):
        def is_said():
            return any(line["event"] == event and text in line["text"] for line in host.said())
        host.wait_until(is_said, 10, f"saying {event}, {text}")

    def start_again(self, host, **changed):
        """As after a crash."""
        host.agent.kill()
        host.start_agent(slots=SLOTS, **changed)

        def is_there():
            status = host.status()
            return status["pid"] == host.agent.pid and status["deadline_us"] > 0
        host.wait_until(is_there, 10, "a member again")
        shared.await_members([self.one, self.two])

    def move_to_next_epoch(self):
        before = shared.epoch()["number"]
        self.start_again(self.two)
        self.assertGreater(shared.epoch()["number"], before)


class Log(SurroundingsTest):
    def test_an_agent_whose_log_nobody_reads_stays_a_member(self):
        log, self.one.log = self.one.log, shared.folder / "fifo"
        os.mkfifo(self.one.log)
        pipe = os.open(self.one.log, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        self.addCleanup(self.start_again, self.one)
        self.addCleanup(setattr, self.one, "log", log)
        fill(pipe)
        self.start_again(self.one)
        holder = self.one.hold(self.name)
        holder.await_held()
        self.move_to_next_epoch()
        self.assertIsNone(holder.said("lost"))
        said = drain(pipe)
        self.assertEqual(said.strip(b"\n"), b"")

        def lines():
            nonlocal said
            said += drain(pipe)
            return [json.loads(line) for line in said.strip(b"\n").split(b"\n") if line]
        self.move_to_next_epoch()
        self.one.wait_until(lambda: any(line["event"] == "epoch" for line in lines()), 10,
                            "writing its log again")
        self.assertEqual(lines()[0]["event"], "log")
        self.assertGreater(lines()[0]["lines"], 0)
        self.assertIsNone(holder.said("lost"))
        holder.release()


class SlowEtcd(http.server.ThreadingHTTPServer):
    """Passes requests on to etcd. A check of a password takes as long as the test says."""

    daemon_threads = True
    takes = 0

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/authenticate") and b'"name":""' not in body:
                time.sleep(self.server.takes)
            headers = {name: value for name, value in self.headers.items()
                       if name in ("Authorization", "Content-Type")}
            try:
                if "watch" in self.path:
                    raise urllib.error.HTTPError(self.path, 404, "", {}, io.BytesIO())
                with urllib.request.urlopen(urllib.request.Request(
                        self.server.to + self.path, body, headers), timeout=20) as reply:
                    status, body = 200, reply.read()
            except urllib.error.HTTPError as e:
                status, body = e.code, e.read()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __init__(self, to):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.to = to
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """The agent has gone."""


class Start(SurroundingsTest):
    def test_an_agent_waits_for_etcd(self):
        self.spare.start_agent(etcd="http://127.0.0.1:1")
        self.addCleanup(self.spare.agent.kill)
        self.await_said(self.spare, "etcd", "the agent waits for etcd: http://127.0.0.1:1")
        self.spare.agent.send(signal.SIGTERM)
        self.assertEqual(self.spare.agent.child.wait(10), 0)

    @staticmethod
    def ask_for_passwords(cluster):
        for user in ("root", "agent"):
            cluster.etcd.ask("/v3/auth/user/add", {"name": user, "password": "first"})
        cluster.etcd.ask("/v3/auth/role/add", {"name": "root"})
        for user in ("root", "agent"):
            cluster.etcd.ask("/v3/auth/user/grant", {"user": user, "role": "root"})
        cluster.etcd.ask("/v3/auth/enable", {})

    @staticmethod
    def change_password(cluster):
        """In etcd, and not in the file."""
        token = cluster.etcd.ask("/v3/auth/authenticate", {"name": "root", "password": "first"})
        cluster.etcd.members[0].post("/v3/auth/user/changepw", {
            "name": "agent", "password": "second"}, headers={"Authorization": token["token"]})

    def test_a_run_waits_for_a_password(self):
        cluster = Cluster(hosts=1, ttl=30)
        self.addCleanup(cluster.close)
        cluster.etcd.start()
        cluster.etcd.await_leader()
        self.ask_for_passwords(cluster)
        host, = cluster.hosts
        password = cluster.folder / "password"
        password.write_text("first\n")
        host.start_agent(**{"user": "agent", "password-file": password})
        host.wait_until(lambda: (host.status() or {}).get("deadline_us", 0) > 0, 20, "a member")
        self.assertEqual(host.run(self.name, "true", options=("--timeout", "20")), (0, ""))
        self.change_password(cluster)
        once = ("--every", "1d")
        code, said = host.run(self.name, "true", options=(*once, "--timeout", "1"))
        self.assertEqual((code, "cannot authenticate" in said), (1, True), said)
        password.write_text("second\n")
        self.assertEqual(host.run(self.name, "echo", "ran", options=once), (0, "ran\n"))

    @long_test
    def test_slow_checks_of_passwords_that_change(self):
        cluster = Cluster(hosts=1, ttl=2 * TTL)
        self.addCleanup(cluster.close)
        cluster.etcd.start()
        cluster.etcd.await_leader()
        host, = cluster.hosts
        self.ask_for_passwords(cluster)
        etcd = SlowEtcd(cluster.etcd.members[0].url)
        self.addCleanup(etcd.server_close)
        self.addCleanup(etcd.shutdown)
        etcd.takes = 2  # longer than an agent waits for another answer
        notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notes.close)
        notes.bind(str(cluster.folder / "notify"))
        notes.settimeout(20)
        password = cluster.folder / "password"
        password.write_text("another\n")
        os.environ["NOTIFY_SOCKET"] = str(cluster.folder / "notify")
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET")
        host.start_agent(**{"etcd": f"http://127.0.0.1:{etcd.server_port}", "user": "agent",
                            "password-file": password})
        self.await_said(host, "etcd", "invalid user ID or password")
        self.assertRegex(notes.recv(4096).decode(),
                         "^EXTEND_TIMEOUT_USEC=\\d+\nSTATUS=waits for etcd: ")
        password.write_text("first\n")
        while "READY=1" not in notes.recv(4096).decode():
            pass
        holder = host.hold(self.name)
        holder.await_held()
        # The password changes while the agent runs, in etcd before in the file.
        etcd.takes = 0
        self.change_password(cluster)
        self.await_said(host, "etcd", "cannot authenticate")
        password.write_text("second\n")
        self.await_said(host, "etcd", "etcd answers again")
        time.sleep(2 * TTL)
        self.assertIsNone(holder.said("lost"))
        holder.release()


class Disk(SurroundingsTest):
    def keep_from_being_written(self, path):
        """A folder in the place of the new file. (Root may write to any folder.)"""
        blocked = path.with_name(path.name + "~")
        blocked.mkdir()
        self.addCleanup(lambda: blocked.exists() and blocked.rmdir())
        return blocked

    def test_a_full_disk_loses_no_holders(self):
        note = self.one.state / f"{DOMAIN}.json"
        holder = self.one.hold(self.name)
        holder.await_held()
        blocked = self.keep_from_being_written(note)
        self.move_to_next_epoch()
        self.await_said(self.one, "note", f"{note}: cannot be written: ")
        self.start_again(self.one)
        self.assertIsNone(holder.said("lost"))
        blocked.rmdir()
        self.await_said(self.one, "note", "can be written again")
        self.assertEqual(json.loads(note.read_text())["epoch"], shared.epoch()["number"])
        holder.release()

    def test_a_host_that_has_never_noted_its_etcd_does_not_begin(self):
        blocked = shared.folder / "new" / f"{DOMAIN}.json~"
        blocked.mkdir(parents=True)
        code, said = self.spare.refused_agent(state=blocked.parent)
        self.assertEqual(code, 3, said)
        self.assertRegex(said, rf"{DOMAIN}\.json: cannot be written: Is a directory")

    def test_metrics_that_cannot_be_written_are_told_of(self):
        metrics = shared.folder / "metrics"
        blocked = self.keep_from_being_written(metrics)
        self.start_again(self.one, metrics=metrics)
        self.await_said(self.one, "metrics", f"{metrics}: cannot be written: ")
        blocked.rmdir()
        self.await_said(self.one, "metrics", "can be written again")
        self.assertIn("lockflight_agent_epoch", metrics.read_text())

    def test_metrics_do_not_replace_a_device(self):
        fifo = shared.folder / "metrics_fifo"
        os.mkfifo(fifo)
        code, said = self.spare.refused_agent(metrics=fifo)
        self.assertEqual(code, 2, said)
        self.assertIn(f"--metrics '{fifo}' (accepted: a regular file, or one that is not there yet)",
                      said)
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode))


class Sockets(SurroundingsTest):
    def test_sockets_that_were_removed_are_made_anew(self):
        for end in (".agent", ".ask"):
            next(self.one.folder.rglob(f"*{end}")).unlink()
        holder = self.one.hold(self.name)  # it has no bell to ring
        holder.await_held(5)
        holder.release()
        self.await_said(self.one, "bell", "has been removed, and is made anew")
        code, said = self.one.lockflight("agent", "status", "--domain", DOMAIN)
        self.assertEqual(code, 0, said)
        self.assertIn("h1 (this host)", said)


class Slots(SurroundingsTest):
    def test_clients_leave_slots_to_the_agent(self):
        """The agent waits for a busy lock in a thread that needs a slot."""
        holder = self.one.hold(self.name, "stays")
        holder.await_held()
        others = [self.one.hold(f"{self.name}.{i}", "stays") for i in range(SLOTS)]
        for each in [holder, *others]:
            self.addCleanup(each.kill)

        def are_taken():
            _, said = self.one.lockflight("domain", "show", f"etcd:{DOMAIN}")
            return int(said.split()[1]) >= SLOTS - 1
        self.one.wait_until(are_taken, 10, "full of clients")
        code, said = self.one.run(self.name, "true", options=("--timeout", "0.1"))
        self.assertEqual(code, 1, said)
        self.assertIn(f"all {SLOTS - 2} slots of domain etcd:{DOMAIN} are taken", said)
        waiter = self.two.hold(self.name)
        self.one.wait_until(lambda: self.one.status()["revocations"] > 0, 10, "asked for the name")
        holder.release()
        waiter.await_held(10)
        waiter.release()

    def test_an_agent_needs_slots_itself(self):
        code, said = self.spare.refused_agent(slots=2)
        self.assertEqual((code, said),
                         (2, "lockflight agent: --slots '2' (accepted: a whole number from 3 to 4095)\n"))


class TimeNamespaces(SurroundingsTest):
    def setUp(self):
        super().setUp()
        self.there = self.one.in_another_time(self)
        self.run = ("run", "--domain", f"etcd:{DOMAIN}", "--timeout", "5", self.name, "--", "true")

    def assert_refused(self, answer):
        code, said = answer
        self.assertEqual(code, 3, said)
        self.assertIn("reads its clock in time namespace time:[", said)
        self.assertIn("'nsenter --time --target PID-OF-THE-AGENT'", said)

    def test_a_client_in_another_one_is_refused(self):
        self.assert_refused(self.one.lockflight(*self.run, under=self.there))
        self.assert_refused(
            self.one.lockflight("agent", "status", "--domain", DOMAIN, under=self.there))
        self.assertEqual(self.one.lockflight(*self.run), (0, ""))

    def test_an_agent_in_another_one_serves_those_that_are_in_it(self):
        members = [*shared.hosts]
        self.addCleanup(shared.await_members, [self.one, self.two])
        self.addCleanup(lambda: self.spare.agent.kill())
        self.spare.start_agent_under(*self.there)
        shared.await_members(members)
        self.assert_refused(self.spare.lockflight(*self.run))
        self.assertEqual(self.spare.lockflight(*self.run, under=self.there), (0, ""))
        # The next agent is outside. What the deadline says is of a clock that is 1000 s ahead.
        before = self.spare.status()["incarnation"]
        self.spare.agent.kill()
        self.spare.start_agent()
        self.spare.wait_until(lambda: self.spare.status()["incarnation"] > before, 10,
                              "a new member")
        shared.await_members(members)
        self.assertEqual(self.spare.lockflight(*self.run), (0, ""))
        code, said = self.spare.lockflight("agent", "status", "--domain", DOMAIN)
        self.assertRegex(said, r"certainly for [01]\.\d s more")


class Status(SurroundingsTest):
    def test_json_says_that_there_is_no_answer(self):
        def shown():
            code, said = self.two.lockflight("agent", "status", "--json", "--domain", DOMAIN)
            status = json.loads(said)
            return code, status["domain"], status["answers"]
        self.assertEqual(shown(), (0, DOMAIN, True))
        self.two.agent.kill()
        self.assertEqual(shown(), (1, DOMAIN, False))
        self.start_again(self.two)

    def test_an_agent_that_cannot_tell_who_holds_a_lock_says_so(self):
        holder = self.one.hold(self.name)
        holder.await_held()
        pid = self.one.agent.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))  # no more than it has
        _, said = self.two.lockflight("who", self.name, "--domain", f"etcd:{DOMAIN}")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        self.assertIn("h1 does not answer", said)
        holder.release()


class Notes(SurroundingsTest):
    def test_many_notes_do_not_slow_renewals(self):
        """There may be one for each name, of --every and of --units."""
        many, at_once = 20_000, 100
        for first in range(0, many, at_once):
            shared.etcd.ask("/v3/kv/txn", {"success": [
                {"request_put": {
                    "key": base64_of(f"lockflight/{DOMAIN}/note/done/{self.name}{i}"),
                    "value": base64_of("1 1")}} for i in range(first, first + at_once)]})
        holder = self.one.hold(self.name)
        holder.await_held()
        time.sleep(2 * TTL)
        self.assertIsNone(holder.said("lost"))
        holder.release()


class Addresses(SurroundingsTest):
    def test_an_address_that_nobody_can_reach_is_refused(self):
        for option, address in (("advertise", "[::1:7411"), ("advertise", "::1:7411"),
                                ("listen", "::1:7411"), ("advertise", "127.0.0.1:0")):
            code, said = self.spare.refused_agent(**{option: address})
            self.assertEqual(code, 2, said)
            self.assertIn(f"--{option} '{address}' (accepted: HOST:PORT, with brackets around an "
                          "IPv6 address)", said)

    def test_a_host_with_the_name_of_another_one_is_told_of(self):
        self.spare.start_agent(host="h1")
        self.addCleanup(shared.await_members, [self.one, self.two])
        self.addCleanup(self.spare.agent.kill)
        for host in self.one, self.spare:
            self.await_said(host, "host", "another host is called 'h1' as well")
        self.assertFalse(any(line["event"] == "host" for line in self.two.said()))

    def test_a_stranger_is_no_member(self):
        with socket.create_connection(("127.0.0.1", self.two.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.await_said(self.two, "link", "a connection from 127.0.0.1 ")
        told = [line for line in self.two.said()
                if line["event"] == "link" and "a connection from 127.0.0.1 " in line["text"]]
        self.assertFalse(any("member" in line for line in told))

    def test_an_etcd_that_is_no_url_is_refused(self):
        code, said = self.spare.refused_agent(etcd="http://127.0.0.1:1,127.0.0.1:2379")
        self.assertEqual((code, said),
                         (2, "lockflight agent: --etcd '127.0.0.1:2379' (accepted: http://HOST:PORT "
                             "or https://HOST:PORT)\n"))

    def test_a_host_that_nobody_hears_says_by_whom_it_is_missed(self):
        self.spare.start_agent(advertise="127.0.0.1:9")
        self.addCleanup(shared.await_members, [self.one, self.two])
        self.addCleanup(self.spare.agent.kill)
        self.await_said(self.spare, "another", "was taken off")
        said = next(line for line in self.spare.said() if line["event"] == "another")
        self.assertEqual(said["advertises"], "127.0.0.1:9")
        self.assertTrue(said["not_heard_by"])
        self.assertLessEqual(set(said["not_heard_by"]), {"h1", "h2"})
        # After the second time it stays away, and says so.
        self.spare.wait_until(lambda: self.spare.status()["away_until_us"] > 0, 20, "away")
        self.assertIn("joins again in",
                      self.spare.lockflight("agent", "status", "--domain", DOMAIN)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
