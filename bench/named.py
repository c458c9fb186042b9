"""The goals on named locks, for bench/perf: beside flock(2), POSIX, Python's locks and Redis."""

import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

from measuring import PROGRAM, ROOT, Failed, NotMeasured, output_of, text_of

NAMED_LOCKS = pathlib.Path(PROGRAM).parent / "bench" / "named_locks"
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's packages
# What must be there for a lock that Python programs use, and the command that brings it.
NEEDS = {"lockflight": ("import lockflight", "./dev setup test, ./dev build"),
         "filelock": ("import filelock", "apt-get install python3-filelock"),
         "redis": ("import redis", "apt-get install redis-server python3-redis")}
RUNS = 200
WAITERS = 8


@dataclass(frozen=True)
class NamedSpeed:
    """One run of bench/named_locks."""

    lock: str
    procs: int = 1
    take: str = "throughput_ops_s"

    def sample(self, seconds):
        value = output_of([str(NAMED_LOCKS), self.lock, str(self.procs), str(seconds)])
        for field in self.take.split("."):
            value = value[field]
        return value


@dataclass(frozen=True)
class OtherSpeed:
    """The same of a lock that Python programs use."""

    lock: str
    procs: int = 1
    take: str = "throughput_ops_s"

    def sample(self, seconds):
        statement, command = NEEDS.get(self.lock, ("", ""))
        with_ours = ["env", f"PYTHONPATH={pathlib.Path(PROGRAM).parent / 'python'}", PYTHON]
        try:
            text_of([*with_ours, "-c", statement])
        except Failed as missing:
            raise NotMeasured(command) from missing
        if self.lock == "redis" and shutil.which("redis-server") is None:
            raise NotMeasured(command)
        value = output_of([*with_ours, "-B", str(ROOT / "bench" / "other_locks.py"), self.lock,
                           str(self.procs), str(seconds)])
        for field in self.take.split("."):
            value = value[field]
        return value


@dataclass(frozen=True)
class Recovery:
    """Milliseconds from a holder's death to the next acquire, with waiters."""

    take: str
    lock: str = "named-mutex, its holder killed"
    procs: int = WAITERS

    def sample(self, _seconds):
        return output_of([str(NAMED_LOCKS), "recovery", str(WAITERS), "5"])["recovery_ms"][self.take]


@dataclass(frozen=True)
class WholeRun:
    """Milliseconds of one command under a lock, from start to end: the median of many."""

    lock: str
    procs: int = 1

    def sample(self, _seconds):
        domain = f"perf-{os.getpid()}"
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            command = {"flock(1)": ["flock", os.path.join(folder, "lock"), "true"],
                       "lockflight run": [PROGRAM, "run", "--domain", domain, "perf", "--", "true"],
                       }[self.lock]
            try:
                text_of(command)
                times = []
                for _ in range(RUNS):
                    begun = time.perf_counter()
                    subprocess.run(command, check=True)
                    times.append(time.perf_counter() - begun)
            finally:
                subprocess.run([PROGRAM, "domain", "remove", domain, "--force"],
                               capture_output=True, check=False)
        return statistics.median(times) * 1e3


def named_goals(goal, constant):
    """`goal` and `constant` are those of bench/perf."""
    for procs in (1, 2, 8):
        yield goal(f"names: named_mutex against flock(2), P = {procs}, throughput",
                   NamedSpeed("named-mutex", procs), NamedSpeed("flock", procs), at_least=20)
        yield goal(f"names: named_mutex against flock(2), P = {procs}, median latency",
                   NamedSpeed("named-mutex", procs, "latency_us.p50"),
                   NamedSpeed("flock", procs, "latency_us.p50"), at_most=1)
        for other in ("filelock", "multiprocessing", "redis"):
            yield goal(f"names: Mutex against {other}, both in Python, P = {procs}, throughput",
                       OtherSpeed("lockflight", procs), OtherSpeed(other, procs), at_least=1)
            yield goal(f"names: Mutex against {other}, both in Python, P = {procs}, median latency",
                       OtherSpeed("lockflight", procs, "latency_us.p50"),
                       OtherSpeed(other, procs, "latency_us.p50"))
    yield goal("names: named_mutex against a robust process-shared pthread_mutex, P = 1, time",
               NamedSpeed("robust-mutex"), NamedSpeed("named-mutex"), at_most=1.3)
    yield goal("names: named_shared_mutex shared against flight-rw on shm, P = 1, time",
               NamedSpeed("flight-rw"), NamedSpeed("named-shared"), at_most=1.3)
    yield goal("names: named_shared_mutex against pthread_rwlock, read only, P = 2, throughput",
               NamedSpeed("named-shared", 2), NamedSpeed("pthread-rwlock", 2), at_least=5)
    yield goal(f"names: recovery from a holder's death, {WAITERS} waiters, median, ms",
               Recovery("p50"), constant(1.0), at_most=5)
    yield goal(f"names: recovery from a holder's death, {WAITERS} waiters, slowest, ms",
               Recovery("max"), constant(1.0), at_most=100)
    yield goal("names: lockflight run NAME -- true against flock FILE true, whole process, time",
               WholeRun("lockflight run"), WholeRun("flock(1)"), at_most=1.5)
