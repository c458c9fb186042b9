"""The goals on named locks, for lab/perf/perf: beside flock(2), POSIX, Python's locks and Redis."""

import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

from measuring import PROGRAM, ROOT, NotMeasured, output_of, text_of

NAMED_LOCKS = pathlib.Path(PROGRAM).parent / "lab" / "perf" / "named_locks"
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's packages
OURS, OTHERS = "lockflight.Mutex", ("filelock.FileLock", "multiprocessing.Lock", "redis.lock")
# What brings a lock that Python programs use.
BRINGS = {OURS: "./dev setup test, ./dev build",
          "filelock.FileLock": "apt-get install python3-filelock",
          "redis.lock": "apt-get install redis-server python3-redis"}
RUNS = 200
WAITERS = 8


@dataclass(frozen=True)
class NamedSpeed:
    """One run of lab/perf/named_locks."""

    lock: str
    procs: int = 1
    take: str = "throughput_ops_s"

    def sample(self, seconds):
        value = output_of([str(NAMED_LOCKS), self.lock, str(self.procs), str(seconds)])
        for field in self.take.split("."):
            value = value[field]
        return value


@dataclass(frozen=True)
class PythonSpeed:
    """One run of bindings/python/bench_names.py."""

    lock: str
    procs: int = 1
    take: str = "pairs_per_s"
    form: str = "with"

    def sample(self, seconds):
        package = pathlib.Path(PROGRAM).parent / "python"
        found = output_of(["env", f"PYTHONPATH={package}", PYTHON, "-B",
                           str(ROOT / "bindings" / "python" / "bench_names.py"), "--locks", self.lock,
                           "--forms", self.form, "--processes", str(self.procs),
                           "--seconds", str(seconds), "--repeats", "1"])["locks"]
        if self.lock not in found:
            raise NotMeasured(BRINGS[self.lock])
        return found[self.lock][0][self.take]


@dataclass(frozen=True)
class Recovery:
    """Milliseconds from a holder's death to the next acquire, with waiters."""

    take: str
    how: str = "recovery"
    lock: str = "named-mutex, its holder killed"
    procs: int = WAITERS

    def sample(self, _seconds):
        return output_of([str(NAMED_LOCKS), self.how, str(WAITERS), "5"])["recovery_ms"][self.take]


@dataclass(frozen=True)
class Waiting:
    """One run of lab/perf/named_locks that measures waiters."""

    what: str
    procs: int
    take: str
    lock: str = "named-mutex"

    def sample(self, seconds):
        return output_of([str(NAMED_LOCKS), self.what, str(self.procs),
                          str(max(seconds, 4))])[self.take]


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
    """`goal` and `constant` are those of lab/perf/perf."""
    for procs in (1, 2, 8):
        yield goal(f"names: named_mutex against flock(2), P = {procs}, throughput",
                   NamedSpeed("named-mutex", procs), NamedSpeed("flock", procs), at_least=20)
        yield goal(f"names: named_mutex against flock(2), P = {procs}, median latency",
                   NamedSpeed("named-mutex", procs, "latency_us.p50"),
                   NamedSpeed("flock", procs, "latency_us.p50"), at_most=1)
        for other in OTHERS:
            yield goal(f"names: with Mutex against {other}, in Python, P = {procs}, throughput",
                       PythonSpeed(OURS, procs), PythonSpeed(other, procs), at_least=1)
            yield goal(f"names: with Mutex against {other}, in Python, P = {procs}, median latency",
                       PythonSpeed(OURS, procs, "pair_us"), PythonSpeed(other, procs, "pair_us"))
        # The others spend more on the call itself: here it is the lock that counts.
        fastest = "multiprocessing.Lock"
        yield goal(f"names: acquire and release of Mutex against {fastest}, in Python, "
                   f"P = {procs}, throughput", PythonSpeed(OURS, procs, form="calls"),
                   PythonSpeed(fastest, procs, form="calls"), at_least=1)
    yield goal("names: named_mutex against a robust process-shared pthread_mutex, P = 1, time",
               NamedSpeed("robust-mutex"), NamedSpeed("named-mutex"), at_most=1.3)
    for procs in (2, 4, 16):
        yield goal("names: named_mutex against a robust process-shared pthread_mutex, "
                   f"P = {procs}, throughput", NamedSpeed("named-mutex", procs),
                   NamedSpeed("robust-mutex", procs), at_least=0.8)
    yield goal("names: one waiting process, percent of a core",
               Waiting("waiting", 1, "of_a_core_percent"), constant(1.0), at_most=0.05)
    yield goal("names: 200 waiting processes, percent of a core",
               Waiting("waiting", 200, "of_a_core_percent"), constant(1.0), at_most=0.05)
    yield goal("names: the longest wait of 12 processes that hold for 50 ms, in turns of all",
               Waiting("turns", 12, "longest_wait_turns"), constant(1.0), at_most=2)
    yield goal("names: named_shared_mutex shared against flight-rw on shm, P = 1, time",
               NamedSpeed("flight-rw"), NamedSpeed("named-shared"), at_most=1.3)
    yield goal("names: named_shared_mutex against pthread_rwlock, read only, P = 2, throughput",
               NamedSpeed("named-shared", 2), NamedSpeed("pthread-rwlock", 2), at_least=5)
    yield goal(f"names: recovery from a holder's death, {WAITERS} waiters, median, ms",
               Recovery("p50"), constant(1.0), at_most=5)
    yield goal(f"names: recovery from a holder's death, {WAITERS} waiters, slowest, ms",
               Recovery("max"), constant(1.0), at_most=100)
    yield goal(f"names: the same after a second of waiting, {WAITERS} waiters, median, ms",
               Recovery("p50", "late-recovery"), constant(1.0), at_most=2)
    yield goal("names: lockflight run NAME -- true against flock FILE true, whole process, time",
               WholeRun("lockflight run"), WholeRun("flock(1)"), at_most=1.1)
