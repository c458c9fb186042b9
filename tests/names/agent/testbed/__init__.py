"""A cluster on one machine: etcd, hosts with an agent each, and links between them that can fail.

    with Cluster(hosts=3, ttl=2) as cluster:
        cluster.start()
        cluster.hosts[0].run("jobs", "true")

A host is a folder with its domain files (LOCKFLIGHT_DOMAINS), a state folder, an agent and its
clients. All hosts share this machine's clocks."""

import os
import unittest

from .cluster import Cluster
from .processes import ROOT
from ports import free_port

# A test that waits for long.
long_test = unittest.skipUnless("LOCKFLIGHT_LONG_TESTS" in os.environ, "it is long: ./dev test --all")

__all__ = ["ROOT", "Cluster", "free_port", "long_test"]
