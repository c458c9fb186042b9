#!/usr/bin/env python3
"""Measures locks that processes share, from Python: how many acquires and releases a second.

usage: bench_names.py [--locks A,B] [--forms with,calls] [--processes 1,2,8] [--seconds S] [--repeats N]

Prints one JSON object: for each lock, number of processes and form (`with lock:`, or calls of acquire
and release) the median of the repeats' sums, the median time of a pair, and how much more the process
that got the lock most often has than the one that got it least often. Compared are lockflight.Mutex,
multiprocessing.Lock, fcntl.flock, filelock where it is installed, and the lock of the redis client
where redis-server is installed: it runs here, without writing to disk, and is reached by a socket in
the file system. Nothing is done while a lock is held.
"""

import argparse
import contextlib
import fcntl
import json
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import lockflight
except ImportError:  # not installed: as ./dev build leaves it
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "build" / "python"))
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

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()


def flock(folder):
    return Flock(os.path.join(folder, "flock"))


def file_lock(folder):
    import filelock

    return filelock.FileLock(os.path.join(folder, "filelock"))  # it looks every 50 ms


def redis_lock(folder):
    import redis

    client = redis.Redis(unix_socket_path=os.path.join(folder, "socket"))
    return client.lock("bench", timeout=60, sleep=0.0001)


@contextlib.contextmanager
def what_it_needs(make):
    """A folder, and what a lock needs beside it for as long as it is measured."""
    with tempfile.TemporaryDirectory() as folder:
        server = serve_redis(folder) if make is redis_lock else None
        try:
            yield folder
        finally:
            if server is not None:
                server.kill()
                server.wait()
            if make is lockflight_mutex:
                lockflight.Domain.remove(f"bench-{os.path.basename(folder)}", force=True)


def serve_redis(folder):
    if shutil.which("redis-server") is None:
        raise RuntimeError("redis-server is not installed")
    socket = os.path.join(folder, "socket")
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    for _ in range(500):
        if pathlib.Path(socket).exists():
            return server
        time.sleep(0.01)
    server.kill()
    raise RuntimeError("redis-server does not start")


LOCKS = {
    "lockflight.Mutex": lockflight_mutex,
    "multiprocessing.Lock": multiprocessing_lock,
    "fcntl.flock": flock,
    "filelock.FileLock": file_lock,
    "redis.lock": redis_lock,
}


# The clock costs as much as a fast lock: one pair in so many is timed.
TIMED_ONE_IN = 8


def with_statements(lock, end, clock, times):
    done = 0
    while (begun := clock()) < end:
        with lock:
            pass
        times.append(clock() - begun)
        for _ in range(TIMED_ONE_IN - 1):
            with lock:
                pass
        done += TIMED_ONE_IN
    return done


def calls(lock, end, clock, times):
    done = 0
    while (begun := clock()) < end:
        lock.acquire()
        lock.release()
        times.append(clock() - begun)
        for _ in range(TIMED_ONE_IN - 1):
            lock.acquire()
            lock.release()
        done += TIMED_ONE_IN
    return done


FORMS = {"with": with_statements, "calls": calls}


def loop(make, form, folder, shared, core, barrier, seconds, results):
    os.sched_setaffinity(0, {core})
    lock = shared if shared is not None else make(folder)
    with lock:  # what is made at the first use
        pass
    times, clock = [], time.perf_counter
    barrier.wait(30)
    done = form(lock, clock() + seconds, clock, times)
    results.put((done, statistics.median(times)))


def once(make, form, processes, seconds):
    """The counts of the processes, and the medians of their pairs' times."""
    context = multiprocessing.get_context("fork")
    cores = sorted(os.sched_getaffinity(0))
    with what_it_needs(make) as folder:
        # multiprocessing.Lock has no name: it is made here and inherited.
        shared = make(folder) if make is multiprocessing_lock else None
        barrier, results = context.Barrier(processes), context.SimpleQueue()
        started = [
            context.Process(
                target=loop,
                args=(make, form, folder, shared, cores[i % len(cores)], barrier, seconds, results),
            )
            for i in range(processes)
        ]
        for each in started:
            each.start()
        for each in started:
            each.join()
        failed = [each.exitcode for each in started if each.exitcode]
        if failed:
            raise RuntimeError(f"{len(failed)} of {processes} processes failed")
        return [results.get() for _ in range(processes)]


def measure(make, form, processes, seconds, repeats):
    rates, medians, most, least = [], [], 0, 0
    for _ in range(repeats):
        found = once(make, FORMS[form], processes, seconds)
        counts = [count for count, _ in found]
        rates.append(sum(counts) / seconds)
        medians += [median for _, median in found]
        most, least = most + max(counts), least + min(counts)
    return {
        "processes": processes,
        "form": form,
        "pairs_per_s": round(statistics.median(rates)),
        "pair_us": round(statistics.median(medians) * 1e6, 3),
        "most_to_least": round(most / max(least, 1), 2),
    }


def missing(make):
    """Why a lock cannot be measured here, or None."""
    try:
        with what_it_needs(make) as folder, make(folder):
            return None
    except Exception as e:  # whatever the other library throws
        return f"{type(e).__name__}: {e}".splitlines()[0]


def one_of(names):
    """The type of an option that is a list of these."""

    def parse(text):
        asked = text.split(",")
        for name in asked:
            if name not in names:
                raise argparse.ArgumentTypeError(f"{name!r} (accepted: {', '.join(names)})")
        return asked

    return parse


def number(kind, least, most):
    """The type of an option that is a number within bounds."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} (accepted: {least} to {most})")
        return value

    return parse


def numbers(text):
    return [number(int, 1, 250)(each) for each in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=number(float, 0.01, 60), default=0.5, help="of each run")
    parser.add_argument("--repeats", type=number(int, 1, 1000), default=3)
    parser.add_argument("--processes", type=numbers, default=[1, 2, 8], help="numbers of them")
    parser.add_argument("--locks", type=one_of(LOCKS), default=list(LOCKS), help="which")
    parser.add_argument("--forms", type=one_of(FORMS), default=list(FORMS), help="of an acquire")
    asked = parser.parse_args()
    result = {"cores": os.cpu_count(), "python": sys.version.split()[0], "locks": {}, "left_out": {}}
    for name in asked.locks:
        make = LOCKS[name]
        why = missing(make)
        if why is not None:
            result["left_out"][name] = why
            continue
        result["locks"][name] = [
            measure(make, form, n, asked.seconds, asked.repeats)
            for n in asked.processes
            for form in asked.forms
        ]
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
