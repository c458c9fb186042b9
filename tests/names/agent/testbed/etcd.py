"""etcd: one member or three, which may be killed, stopped and started again."""

import base64
import json
import time
import urllib.request

from .processes import Process
from ports import free_port


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


class Member:
    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.port, self.peer_port = free_port(), free_port()
        self.process = None

    @property
    def peer_url(self):
        return f"http://127.0.0.1:{self.peer_port}"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def post(self, path, body, timeout=2, headers=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers or {})
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return json.load(reply)


class Etcd:
    """Its elections take a fifth of a second or so, so that a short TTL outlives them."""

    def __init__(self, folder, members):
        self.folder = folder
        self.members = [Member(f"e{i + 1}", folder / f"e{i + 1}") for i in range(members)]

    def start(self, member=None):
        for each in [member] if member else self.members:
            each.process = Process(
                ["etcd", "--name", each.name, "--data-dir", each.folder,
                 "--listen-client-urls", each.url, "--advertise-client-urls", each.url,
                 "--listen-peer-urls", each.peer_url,
                 "--initial-advertise-peer-urls", each.peer_url,
                 "--initial-cluster", ",".join(f"{m.name}={m.peer_url}" for m in self.members),
                 "--heartbeat-interval", "50", "--election-timeout", "250",
                 "--log-level", "error"],
                self.folder / f"{each.name}.log")

    def start_again(self):
        """What has ended."""
        for each in self.members:
            if each.process.exit_code() is not None:
                self.start(each)

    def await_leader(self, seconds=20):
        end = time.monotonic() + seconds
        while self.leader() is None:
            if time.monotonic() > end:
                raise TimeoutError("etcd has no leader")
            time.sleep(0.05)

    def leader(self):
        """The member that leads, or None."""
        for each in self.members:
            try:
                status = each.post("/v3/maintenance/status", {}, timeout=0.3)
            except (OSError, ValueError):
                continue
            if status.get("leader") == status["header"]["member_id"]:
                return each
        return None

    def ask(self, path, body):
        """From the first that answers."""
        errors = []
        for each in self.members:
            try:
                return each.post(path, body)
            except OSError as e:
                errors.append(f"{each.name}: {e}")
        raise OSError("; ".join(errors))

    def put(self, key, text):
        self.ask("/v3/kv/put", {"key": base64_of(key), "value": base64_of(text)})

    def delete(self, key):
        self.ask("/v3/kv/deleterange", {"key": base64_of(key)})

    def keys(self, prefix):
        """The names of all keys that begin with it, in their order."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        reply = self.ask("/v3/kv/range", {"key": base64_of(prefix), "range_end": base64_of(end),
                                          "keys_only": True})
        return [base64.b64decode(found["key"]).decode() for found in reply.get("kvs", [])]

    def entry(self, key, revision=0):
        """(value, the revision that made it, the header's revision), or None."""
        reply = self.ask("/v3/kv/range", {"key": base64_of(key), "revision": str(revision)})
        for found in reply.get("kvs", []):
            return (base64.b64decode(found["value"]).decode(), int(found["mod_revision"]))
        return None

    def values_of(self, key):
        """All that the key ever was, the newest first."""
        at = 0
        while (found := self.entry(key, at)) is not None:
            yield found[0]
            at = found[1] - 1
            if at <= 0:
                return
