"""The cluster as a whole."""

import os
import pathlib
import shutil
import signal
import tempfile

from .etcd import Etcd
from .host import Host
from .links import CUT, OPEN, SWALLOWS, Link, Network

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Cluster:
    def __init__(self, hosts=3, etcds=1, ttl=2):
        self.ttl = ttl
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lfc-", dir=MEMORY))
        self.histories = self.folder / "histories"
        self.histories.mkdir()
        self.registers = self.folder / "registers"
        self.others = []  # processes of lockflight run
        self.network = Network()
        self.etcd = Etcd(self.folder, etcds)
        self.hosts = []
        self.hosts = [Host(self, f"h{i + 1}") for i in range(hosts)]
        for host in self.hosts:
            host.to_hosts = {other.name: Link(self.network, host.name, other.name)
                             for other in self.hosts if other is not host}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        self.etcd.start()
        self.etcd.await_leader()
        for host in self.hosts:
            host.start_agent()
        self.await_members(self.hosts)

    def await_members(self, hosts, seconds=20):
        """Until they, and nobody else, are the members of one epoch, and all agents know it."""
        def agree():
            seen = {host.epoch_seen() for host in hosts}
            alive = all(host.status() and host.status()["deadline_us"] > 0 for host in hosts)
            return alive and len(seen) == 1 and seen.pop()[1] == len(hosts)
        hosts[0].wait_until(agree, seconds, f"with {len(hosts)} members")

    @property
    def links(self):
        return [link for host in self.hosts for link in host.links]

    def mend_links(self):
        for link in self.links:
            link.set(OPEN)

    def between(self, one, other):
        return [one.to_hosts[other.name], other.to_hosts[one.name]]

    def close(self):
        for host in self.hosts:
            host.kill_all()
        for member in self.etcd.members:
            if member.process:
                member.process.kill()
        for process in self.others:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)


__all__ = ["CUT", "OPEN", "SWALLOWS", "Cluster"]
