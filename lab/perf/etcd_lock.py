#!/usr/bin/env python3
"""etcd's own lock by its API, for lab/perf/perf_cluster: a client with one connection and one lease.

usage: etcd_lock.py PORT NAME SECONDS

Locks and unlocks until the time is over. Prints JSON: pairs of lock and unlock a second, and the
revision of each acquire, which grows from one acquire of the name to the next, whoever holds.
It prints a line when it is ready, and waits for one.
"""

import base64
import http.client
import json
import sys
import time


class Etcd:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.lease = self.ask("/v3/lease/grant", TTL=120)["ID"]

    def ask(self, path, **what):
        self.connection.request("POST", path, json.dumps(what),
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        said = json.loads(answer.read())
        if answer.status != 200:
            raise OSError(f"etcd: {path}: {said}")
        return said

    def lock(self, name):
        """The key that is held, and the revision that it was made with."""
        got = self.ask("/v3/lock/lock", name=name, lease=self.lease)
        return got["key"], int(got["header"]["revision"])

    def unlock(self, key):
        self.ask("/v3/lock/unlock", key=key)

    def revision(self):
        key = base64.b64encode(b"none").decode()
        return int(self.ask("/v3/kv/range", key=key)["header"]["revision"])


def main():
    port, name, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    etcd = Etcd(port)
    name = base64.b64encode(name.encode()).decode()
    print("ready", flush=True)
    sys.stdin.readline()
    order = []
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        key, revision = etcd.lock(name)
        order.append(revision)
        etcd.unlock(key)
    print(json.dumps({"pairs_per_s": len(order) / (time.monotonic() - begun), "order": order}))


if __name__ == "__main__":
    main()
