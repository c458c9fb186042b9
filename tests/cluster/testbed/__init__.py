"""A cluster on one machine: etcd, hosts with an agent each, and links between them that can fail.

    with Cluster(hosts=3, ttl=2) as cluster:
        cluster.start()
        cluster.hosts[0].run("jobs", "true")

A host is a folder with its domain files (LOCKFLIGHT_DOMAINS), a state folder, an agent and its
clients. All hosts share this machine's clocks."""

from .cluster import Cluster
from .processes import ROOT, free_port

__all__ = ["ROOT", "Cluster", "free_port"]
