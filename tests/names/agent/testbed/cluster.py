"""The cluster as a whole."""

import json
import os
import pathlib
import shutil
import signal
import tempfile

from .etcd import Etcd
from .host import DOMAIN, Host
from .links import CUT, OPEN, SWALLOWS, Link, Network

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def make_folder():
    """In memory. Those of testbeds that were killed are removed."""
    for left in pathlib.Path(MEMORY).glob("lfc-*-*"):
        if not os.path.exists(f"/proc/{left.name.split('-')[1]}"):
            shutil.rmtree(left, ignore_errors=True)
    return pathlib.Path(tempfile.mkdtemp(prefix=f"lfc-{os.getpid()}-", dir=MEMORY))


class Cluster:
    def __init__(self, hosts=3, etcds=1, ttl=2, keep=600):
        self.ttl = ttl
        self.keep = keep
        self.folder = make_folder()
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

    def start(self, hosts=None):
        self.etcd.start()
        self.etcd.await_leader()
        hosts = hosts or self.hosts
        for host in hosts:
            host.start_agent()
        self.await_members(hosts)

    def epoch(self):
        """As it stands in etcd; None if there is none yet."""
        found = self.etcd.entry(f"lockflight/{DOMAIN}/epoch")
        return found and json.loads(found[0])

    def await_members(self, hosts, seconds=20):
        """Until they, and nobody else, are the members of the epoch, and all have begun in it."""
        def agree():
            epoch = self.epoch()
            return (epoch and epoch["settled"] and len(epoch["members"]) == len(hosts) and
                    all(host.knows(epoch["number"]) for host in hosts))
        hosts[0].wait_until(agree, seconds, f"in an epoch of {len(hosts)}")

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
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)


__all__ = ["CUT", "OPEN", "SWALLOWS", "Cluster"]
