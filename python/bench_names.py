#!/usr/bin/env python3
"""Measures locks that processes share, from Python: how many acquires and releases a second.

usage: bench_names.py [--seconds S] [--repeats N] [--processes 1,2,8]

Prints one JSON object: for each lock and number of processes the median of the repeats' sums, and how
much more the process that got the lock most often has than the one that got it least often. Compared
are lockflight.Mutex, multiprocessing.Lock, fcntl.flock, filelock where it is installed, and the lock
of the redis client where a server answers on localhost. Nothing is done while a lock is held.
"""

import argparse
import fcntl
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

try:
    import lockflight
except ImportError:  # not installed: as ./dev build leaves it
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "build" / "python"))
    import lockflight


def lockflight_mutex(folder):
    return lockflight.Mutex("bench", domain=f"bench-{os.path.basename(folder)}")


def multiprocessing_lock(folder):
    return multiprocessing.get_context("fork").Lock()


class Flock:
    """fcntl.flock on a file that each process opens for itself."""

    def __init__(self, path):
        self.path, self.file, self.pid = path, None, 0

    def acquire(self):
        if self.pid != os.getpid():
            self.file, self.pid = open(self.path, "w"), os.getpid()
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def release(self):
        fcntl.flock(self.file, fcntl.LOCK_UN)


def flock(folder):
    return Flock(os.path.join(folder, "flock"))


def file_lock(folder):
    import filelock

    # Its default waits 50 ms between attempts; the shortest pause is the kindest to it.
    return filelock.FileLock(os.path.join(folder, "filelock"), poll_interval=0.0001)


def redis_lock(folder):
    import redis

    client = redis.Redis(socket_connect_timeout=0.5)
    client.ping()
    return client.lock(os.path.basename(folder), timeout=60, sleep=0.0001)


LOCKS = {
    "lockflight.Mutex": lockflight_mutex,
    "multiprocessing.Lock": multiprocessing_lock,
    "fcntl.flock": flock,
    "filelock.FileLock": file_lock,
    "redis.lock": redis_lock,
}


def loop(make, folder, shared, barrier, seconds, results):
    lock = shared if shared is not None else make(folder)
    acquire, release, clock = lock.acquire, lock.release, time.monotonic
    acquire()
    release()
    barrier.wait(30)
    n, end = 0, clock() + seconds
    while clock() < end:
        # The clock costs as much as a fast lock.
        for _ in range(8):
            acquire()
            release()
        n += 8
    results.put(n)


def once(make, processes, seconds):
    """The counts of the processes."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        # multiprocessing.Lock has no name: it is made here and inherited.
        shared = make(folder) if make is multiprocessing_lock else None
        barrier, results = context.Barrier(processes), context.SimpleQueue()
        arguments = (make, folder, shared, barrier, seconds, results)
        started = [context.Process(target=loop, args=arguments) for _ in range(processes)]
        for each in started:
            each.start()
        for each in started:
            each.join()
        failed = [each.exitcode for each in started if each.exitcode]
        if make is lockflight_mutex:
            lockflight.Domain.remove(f"bench-{os.path.basename(folder)}", force=True)
        if failed:
            raise RuntimeError(f"{len(failed)} of {processes} processes failed")
        return [results.get() for _ in range(processes)]


def measure(make, processes, seconds, repeats):
    rates, most, least = [], 0, 0
    for _ in range(repeats):
        counts = once(make, processes, seconds)
        rates.append(sum(counts) / seconds)
        most, least = most + max(counts), least + min(counts)
    return {
        "processes": processes,
        "pairs_per_s": round(statistics.median(rates)),
        "most_to_least": round(most / max(least, 1), 2),
    }


def missing(make):
    """Why a lock cannot be measured here, or None."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = make(folder)
            made.acquire()
            made.release()
        except Exception as e:  # whatever the other library throws
            return f"{type(e).__name__}: {e}".splitlines()[0]
        finally:
            if make is lockflight_mutex:
                lockflight.Domain.remove(f"bench-{os.path.basename(folder)}", force=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of each run")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", default="1,2,8", help="numbers of processes")
    asked = parser.parse_args()
    result = {"cores": os.cpu_count(), "python": sys.version.split()[0], "locks": {}, "left_out": {}}
    for name, make in LOCKS.items():
        why = missing(make)
        if why is not None:
            result["left_out"][name] = why
            continue
        result["locks"][name] = [
            measure(make, int(n), asked.seconds, asked.repeats) for n in asked.processes.split(",")
        ]
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
