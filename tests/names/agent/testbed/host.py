"""A host: its folders, its agent, and its clients."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time

from .links import Door, Link, sender_of
from .processes import BUILD, Process, before_exec
from ports import free_port
from waiting import wait_until

DOMAIN = "jobs"
PROGRAM = BUILD / "lockflight"
AGENT = BUILD / "lockflight-agent"
CLIENT = BUILD / "tests" / "names" / "agent" / "cluster_client"
HOLDER = BUILD / "tests" / "names" / "agent" / "cluster_holder"
STOPPED_CLOCK = BUILD / "tests" / "names" / "agent" / "libcluster_stopped_clock.so"


class Host:
    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.folder = cluster.folder / name
        self.state = cluster.folder / f"{name}.state"
        self.log = cluster.folder / f"{name}.agent.log"
        self.folder.mkdir()
        self.port = free_port()
        self.agent = None
        self.clients = []
        self.started = 0  # clients
        self._said = None  # its agent, last
        self.door = Door(cluster.network, self.port, self._link_from)
        self.to_hosts = {}  # by the name of the other host
        self.to_etcd = [Link(cluster.network, name, m.name) for m in cluster.etcd.members]
        self.etcd_doors = [Door(cluster.network, m.port, lambda port, link=link: link)
                           for m, link in zip(cluster.etcd.members, self.to_etcd)]

    def _link_from(self, port):
        """The link of the host whose agent connects from that port."""
        of = {host.agent.pid: host for host in self.cluster.hosts if host.agent}
        pid = sender_of(port, self.door.port, of)
        return None if pid is None else of[pid].to_hosts.get(self.name)

    @property
    def links(self):
        return self.to_etcd + list(self.to_hosts.values())

    @property
    def environment(self):
        return {"LOCKFLIGHT_DOMAINS": str(self.folder)}

    # ---- the agent ----

    def agent_command(self, **changed):
        options = {
            "--etcd": ",".join(f"http://127.0.0.1:{door.port}" for door in self.etcd_doors),
            "--domain": DOMAIN, "--host": self.name, "--state": self.state,
            "--listen": f"127.0.0.1:{self.port}", "--advertise": f"127.0.0.1:{self.door.port}",
            "--ttl": self.cluster.ttl, "--keep": self.cluster.keep}
        options.update({f"--{key}": value for key, value in changed.items()})
        return [AGENT, "agent", *(text for pair in options.items() for text in pair)]

    def start_agent(self, **changed):
        self.agent = Process(self.agent_command(**changed), self.log, self.environment)

    def start_agent_under(self, *program):
        self.agent = Process([*program, *self.agent_command()], self.log, self.environment)

    def start_agent_with_a_clock_that_stops(self, file):
        """From when that file is there."""
        self.agent = Process(self.agent_command(), self.log, {
            **self.environment, "LD_PRELOAD": str(STOPPED_CLOCK), "STOPPED_CLOCK_FILE": str(file)})

    def refused_agent(self, **changed):
        """What an agent says that is not to start, and how it exits."""
        done = subprocess.run(
            [str(each) for each in self.agent_command(**changed)], timeout=20, text=True,
            env={**os.environ, **self.environment}, capture_output=True, check=False,
            preexec_fn=before_exec)
        return done.returncode, done.stdout + done.stderr

    def status(self):
        """What `lockflight agent status --json` shows, or showed last; None if there was nothing yet."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
                to.settimeout(1)
                to.connect(str(self._file(".ask")))
                to.sendall(b"status\n")
                said = b"".join(iter(lambda: to.recv(65536), b"")).decode()
            text = said.split("\n")[0].split("\t")[1]
            self._said = json.loads(text.replace("\\n", "\n").replace("\\\\", "\\"))
        except (OSError, ValueError, IndexError):
            pass
        return self._said

    def _file(self, end):
        found = [path for path in self.folder.rglob(f"*{end}")]
        return found[0] if found else self.folder / "none"

    def knows(self, epoch):
        """Whether its agent said last that this is the epoch, and that it is a member."""
        said = self.status()
        return said and said["epoch"] == epoch and said["deadline_us"] > 0

    def valid_for(self):
        """For how many seconds its clients may rely on their holds, if it renews no more."""
        said = self.status()
        return (said["deadline_us"] - said["written_us"]) / 1e6 if said else 0

    def said(self):
        """The lines of its agents' journal."""
        lines = []
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"event": "text", "text": line})
        return lines

    # ---- clients ----

    def start_client(self, seed, names, threads=4):
        self.started += 1
        label = f"{self.name}.{self.started}"
        process = Process(
            [CLIENT, self.cluster.histories / f"{label}.json", self.cluster.registers,
             f"etcd:{DOMAIN}", seed, threads, names],
            self.cluster.folder / f"{label}.log", self.environment)
        process.label = label
        self.clients.append(process)
        return process

    def popen(self, command):
        process = subprocess.Popen(
            [str(each) for each in command], env={**os.environ, **self.environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, preexec_fn=before_exec)
        self.cluster.others.append(process)
        return process

    def run(self, name, *command, options=()):
        """lockflight run on this host: (exit code, output)."""
        return self.lockflight("run", "--domain", f"etcd:{DOMAIN}", *options, name, "--", *command)

    def lockflight(self, *words, under=()):
        """lockflight on this host, perhaps started by another program: (exit code, output)."""
        process = self.popen([*under, PROGRAM, *words])
        out, _ = process.communicate(timeout=30)
        return process.returncode, out

    def in_another_time(self, test):
        """What starts a program in another time namespace, whose clock is 1000 s ahead. Skips the test
        where there can be none."""
        namespace = self.popen(["unshare", "--time", "--boottime", "1000", "--fork",
                                "sh", "-c", "echo $$; exec cat"])
        pid = namespace.stdout.readline().strip()
        if not pid.isdigit():
            test.skipTest(f"no time namespace can be made here: {pid}")
        return "nsenter", "--time", "--no-fork", "--target", pid

    def hold(self, name, *how):
        """A process that has the lock until release(), or is about to have it (holder.cpp)."""
        return Holder(self, self.popen([HOLDER, f"etcd:{DOMAIN}", name, *how]))

    # ---- as a machine ----

    def kill_all(self):
        """Without power: nobody runs here any more. What is on disk stays."""
        for each in [self.agent, *self.clients]:
            if each:
                each.kill()

    def die(self):
        self.kill_all()
        self.clients.clear()
        self.agent = None
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def wait_until(self, condition, seconds, what):
        if not wait_until(condition, seconds):
            raise AssertionError(f"{self.name}: not {what} after {seconds} s: {self.status()}")


class Holder:
    def __init__(self, host, process):
        self.host = host
        self.process = process
        self.lines = []  # (when, what it said)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.strip()))

    def said(self, word):
        """When it said so, and the line; None if it has not."""
        return next(((at, line) for at, line in self.lines if line.startswith(word)), None)

    def await_said(self, word, seconds=20):
        self.host.wait_until(lambda: self.said(word), seconds, f"said {word}: {self.lines}")
        return self.said(word)

    def await_held(self, seconds=20):
        """(when, token, whether a holder has died)"""
        at, line = self.await_said("held", seconds)
        _, token, died = line.split()
        return at, int(token), died == "1"

    def release(self):
        self.process.stdin.close()
        self.await_said("released")

    def kill(self):
        self.process.kill()
        self.process.wait()
