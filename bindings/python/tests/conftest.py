import os
import shutil
import tempfile
import threading
import time

import pytest

import lockflight


def pytest_configure(config):
    """Domains of these tests are not those of other programs of this user."""
    config.domains = tempfile.mkdtemp(prefix="lockflight-tests-", dir="/dev/shm")
    os.environ["LOCKFLIGHT_DOMAINS"] = config.domains


def pytest_unconfigure(config):
    shutil.rmtree(config.domains)


@pytest.fixture
def domain(request):
    """The name of a domain of this test's own."""
    name = f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"
    yield name
    lockflight.Domain.remove(name, force=True)


def in_child(body, *arguments):
    """Runs `body` in a fork of this process and returns its exit status; 99 after an exception."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = body(*arguments) or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def until_waits(mutex, waiters=1):
    """Until so many participants wait."""
    until = time.monotonic() + 10
    while True:
        uses = [u for lock in mutex.domain.locks() if lock.name == mutex.name for u in lock.uses]
        if sum(u.what == "waits" for u in uses) >= waiters:
            return
        assert time.monotonic() < until
        time.sleep(0.002)


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.0005)


def in_thread(call):
    """What `call` returns in another thread, which ends."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


class Elsewhere:
    """A thread that holds a lock for as long as the block lasts."""

    def __init__(self, lock):
        self._lock, self._ready, self._done = lock, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with self._lock:
            self._ready.set()
            self._done.wait()

    def __enter__(self):
        self._thread.start()
        self._ready.wait()

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
