"""Ports that nobody uses, for servers that tests and measurements start."""

import random
import socket

# Below those that the kernel gives to connections, so that a process that is started again finds
# its port free.
PORTS = range(12_000, 32_000)
given = set()


def free_port():
    """A port of this host that nobody uses now, and that this process was not given before."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in given:
            given.add(port)
            return port
