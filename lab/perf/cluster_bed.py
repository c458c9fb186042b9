"""Three hosts of a cluster on this machine, and what they are compared with, for lab/perf/perf_cluster.

A host is a folder of its own for its domain files (LOCKFLIGHT_DOMAINS) and an agent; the agents and
etcd talk over loopback. etcd's data is on a disk, since it waits for the disk before it answers.
Whatever was started ends with this program, however it ends, and the folders are removed.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from measuring import PROGRAM, ROOT, Failed, NotMeasured, text_of

sys.path.append(str(ROOT / "tests" / "support"))
from ports import free_port

CLIENT = str(pathlib.Path(PROGRAM).parent / "lab" / "perf" / "cluster_names")
SCALE = str(pathlib.Path(PROGRAM).parent / "lab" / "perf" / "cluster_scale")
DOMAIN = "perf"
CLUSTER = f"etcd:{DOMAIN}"
# Ends with this program, whatever ends it.
TIED = ["setpriv", "--pdeathsig", "KILL"]
IN_MEMORY = ("tmpfs", "ramfs")


def need(*programs):
    for program, package in programs:
        if shutil.which(program) is None:
            raise NotMeasured(f"apt-get install {package}")


def await_port(port, what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise Failed(f"{what} does not listen after {seconds} s")


def folder_on_disk():
    """A new one, where etcd's fsync costs what it costs."""
    for parent in ("/var/tmp", tempfile.gettempdir(), os.getcwd()):
        kind = subprocess.run(["stat", "-f", "-c", "%T", parent], capture_output=True, text=True,
                              check=False).stdout.strip()
        if kind and kind not in IN_MEMORY:
            return tempfile.mkdtemp(prefix="lockflight-perf-", dir=parent)
    raise Failed("there is no folder on a disk for etcd: /var/tmp is in memory")


class Client:
    """A process of lab/perf/cluster_names, or of another program that is used the same way."""

    def __init__(self, command, environment=None):
        try:
            self.process = subprocess.Popen(
                [*TIED, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        except OSError as error:
            raise Failed(f"{command[0]}: {error}") from error
        self.command = command

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            _, said = self.process.communicate()
            raise Failed(f"{' '.join(map(str, self.command))}: {said.strip()}")
        return text

    def await_ready(self):
        if self.line() != "ready\n":
            raise Failed(f"{' '.join(map(str, self.command))} is not ready")

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def result(self):
        found = json.loads(self.line())
        self.end()
        return found

    def does(self, what):
        self.say(what)
        return json.loads(self.line())

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.stdout.close()
        self.process.stderr.close()

    def kill(self):
        self.process.kill()
        self.process.wait()


def together(clients):
    """The results of clients that wait for each other before they begin."""
    try:
        for each in clients:
            each.await_ready()
        for each in clients:
            each.say("go")
        return [each.result() for each in clients]
    finally:
        for each in clients:
            if each.process.poll() is None:
                each.kill()


class Host:
    def __init__(self, bed, number):
        self.name = f"h{number}"
        self.bed = bed
        self.folder = bed.memory / self.name
        self.folder.mkdir()
        self.state = bed.disk / f"state-{self.name}"
        self.port = free_port()
        self.log = bed.disk / f"{self.name}.log"
        self.agent = None

    def environment(self):
        return {"LOCKFLIGHT_DOMAINS": str(self.folder)}

    def start(self):
        at = f"127.0.0.1:{self.port}"
        command = [*TIED, PROGRAM, "agent", "--etcd", self.bed.etcd, "--domain", DOMAIN, "--listen",
                   at, "--advertise", at, "--host", self.name, "--ttl", str(self.bed.ttl),
                   "--state", str(self.state)]
        with open(self.log, "ab") as log:
            self.agent = subprocess.Popen(command, stderr=log,
                                          env={**os.environ, **self.environment()})

    def kill(self):
        """Only the agent."""
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()
            self.agent = None

    def status(self):
        done = subprocess.run([PROGRAM, "agent", "status", "--domain", DOMAIN, "--json"],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, **self.environment()})
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def client(self, *arguments):
        return Client([CLIENT, *arguments], self.environment())

    def run(self, *arguments):
        """The result of a client that waits for nobody."""
        return self.client(*arguments).result()

    def processor_seconds(self):
        """That the agent has used so far, by the scheduler's count."""
        used = 0
        for each in pathlib.Path("/proc", str(self.agent.pid), "task").iterdir():
            used += int((each / "schedstat").read_text(encoding="ascii").split()[0])
        return used * 1e-9

    def switches(self):
        """How often a thread of the agent has gone to sleep, and so has to be woken up."""
        texts = [(each / "status").read_text(encoding="ascii")
                 for each in pathlib.Path("/proc", str(self.agent.pid), "task").iterdir()]
        return sum(int(line.split()[1]) for text in texts for line in text.splitlines()
                   if line.startswith("voluntary_ctxt_switches"))

    def own_memory_kb(self):
        """Of the agent, without what it shares with other programs."""
        text = pathlib.Path("/proc", str(self.agent.pid), "smaps_rollup").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Anonymous:"))


class Bed:
    """Use it with `with`."""

    def __init__(self, ttl):
        need(("etcd", "etcd-server"), ("etcdctl", "etcd-client"))
        self.ttl = ttl
        self.hosts = []
        self.hosts_made = 0
        self.started = []
        self.memory = self.disk = None
        self.etcd = None
        self.etcd_port = self.redis_port = None

    def __enter__(self):
        try:
            self.memory = pathlib.Path(tempfile.mkdtemp(prefix="lockflight-perf-", dir="/dev/shm"))
            self.disk = pathlib.Path(folder_on_disk())
            self.start_etcd()
            for _ in range(3):
                self.add_host().start()
            self.await_members(3)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for each in [host.agent for host in self.hosts] + self.started:
            if each is not None:
                each.kill()
                each.wait()
        for folder in (self.memory, self.disk):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def start_server(self, command, port, what):
        with open(self.disk / f"{what}.log", "wb") as log:
            self.started.append(subprocess.Popen([*TIED, *command], stdout=log, stderr=log))
        await_port(port, what)

    def start_etcd(self):
        self.etcd_port, peers = free_port(), free_port()
        self.etcd = f"http://127.0.0.1:{self.etcd_port}"
        self.start_server(["etcd", "--data-dir", str(self.disk / "etcd"), "--listen-client-urls",
                           self.etcd, "--advertise-client-urls", self.etcd, "--listen-peer-urls",
                           f"http://127.0.0.1:{peers}", "--initial-advertise-peer-urls",
                           f"http://127.0.0.1:{peers}", "--initial-cluster",
                           f"default=http://127.0.0.1:{peers}"], self.etcd_port, "etcd")
        # It listens before it has a leader, and before the first write is on the disk.
        text_of(["etcdctl", "--endpoints", self.etcd, "--dial-timeout", "20s", "--command-timeout",
                 "20s", "put", "lockflight-perf", "begins"])

    def redis(self):
        """What a client calls the Redis server, which is started when it is needed."""
        need(("redis-server", "redis-server"))
        if self.redis_port is None:
            port = free_port()
            self.start_server(["redis-server", "--port", str(port), "--bind", "127.0.0.1",
                               "--save", "", "--appendonly", "no", "--dir", str(self.disk)],
                              port, "redis-server")
            self.redis_port = port
        return f"redis:{self.redis_port}:{self.memory / 'redis-count'}"

    def add_host(self):
        self.hosts.append(Host(self, self.hosts_made))
        self.hosts_made += 1
        return self.hosts[-1]

    def await_members(self, count, seconds=30):
        """Until all agents that run are in one epoch of so many members, and can reach each other."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            said = [host.status() for host in self.hosts if host.agent is not None]
            if all(one and one["settled"] and
                   sum(each["member"] for each in one["members"]) == count and
                   all(each["self"] or each["connected"] for each in one["members"])
                   for one in said) and len({one["epoch"] for one in said}) == 1:
                return
            time.sleep(0.1)
        raise Failed(f"there are not {count} members after {seconds} s; an agent says: " +
                     self.hosts[0].log.read_text(encoding="utf-8", errors="replace")[-500:])

    def messages(self):
        """Between agents so far. What a release has caused is over a moment later."""
        time.sleep(0.2)
        return sum(host.status()["messages_sent"] for host in self.hosts if host.agent is not None)


def end_on_signals():
    """So that the folders are removed then, too."""
    def end(number, _frame):
        raise SystemExit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
