"""The goals on locks of other libraries, for lab/perf/perf, and the table of all of them.

Concurrency Kit, oneTBB, Abseil and glibc, beside our locks, on threads of one process
(lab/perf/peer_locks.cpp).
"""

import json
import pathlib
import statistics
from collections import defaultdict
from dataclasses import dataclass

from measuring import PROGRAM, NotMeasured, output_of, text_of

PEER_LOCKS = pathlib.Path(PROGRAM).parent / "lab" / "perf" / "peer_locks"
PACKAGES = "apt-get install libck-dev libtbb-dev libabsl-dev, ./dev build"
WRITERS = (0.0, 0.002, 0.01, 0.05, 0.2, 0.5, 1.0)
OURS = ("flight", "flight-rw", "rma-rw", "d-mcs")

# Of each measurement, all its runs as JSON: the table shows more of them than goals compare.
_runs = defaultdict(list)


@dataclass(frozen=True)
class PeerSpeed:
    """One run of lab/perf/peer_locks, and its operations a second."""

    lock: str
    procs: int
    writers: float

    def sample(self, seconds):
        if not PEER_LOCKS.exists():
            raise NotMeasured(PACKAGES)
        run = output_of([str(PEER_LOCKS), self.lock, str(self.procs), str(self.writers),
                         str(seconds)])
        _runs[self].append(run)
        return run["throughput_ops_s"]


def against(goal, ours, peer, procs, writers, at_least):
    return goal(f"peers: {ours} against {peer}, F_W = {100 * writers:g} %, P = {procs}, throughput",
                PeerSpeed(ours, procs, writers), PeerSpeed(peer, procs, writers),
                at_least=at_least)


def peer_goals(goal, cores):
    return [
        *(against(goal, "flight", "pthread-mutex", times * cores, 1.0, 0.9) for times in (2, 4)),
        *(against(goal, "flight-rw", "ck-brlock", procs, writers, at_least)
          for writers, at_least in ((0.0, 1.0), (0.002, 1.2)) for procs in (1, cores)),
        *(against(goal, "flight-rw", "rma-rw", procs, writers, 1.0)
          for writers in (0.0, 0.002, 0.05, 1.0) for procs in (1, cores)),
        *(against(goal, "flight-rw", "pthread-rwlock", times * cores, writers, 0.9)
          for writers in WRITERS for times in (2, 4, 8)),
    ]


def numbers_of_threads(cores):
    """1, 2, 4, … up to the cores, and two, four and eight times as many as those."""
    powers = [2**n for n in range(cores.bit_length()) if 2**n <= cores]
    return sorted({*powers, cores, 2 * cores, 4 * cores, 8 * cores})


class Table:
    """All locks at all numbers of threads and all shares of writers."""

    def __init__(self, cores):
        self.procs = numbers_of_threads(cores)
        self.locks = text_of([str(PEER_LOCKS)]).split() if PEER_LOCKS.exists() else OURS
        self.cells = [PeerSpeed(lock, procs, writers) for writers in WRITERS
                      for procs in self.procs for lock in self.locks]

    def show(self):
        """Prints the table as Markdown, and writes all runs as JSON and as a page with charts."""
        if not _runs:
            return
        for writers in WRITERS:
            print(f"\nF_W = {100 * writers:g} %: throughput divided by flight-rw's, the longest "
                  "wait in ms and Jain's index\n")
            heads = [f"P = {procs}" for procs in self.procs]
            most = self.procs[-1]
            print(f"| lock | {' | '.join(heads)} | wait, P = {most} | Jain, P = {most} |")
            print("|---" + "|--:" * (len(heads) + 2) + "|")
            for lock in self.locks:
                ratios = [self.median(lock, procs, writers, "throughput_ops_s") /
                          self.median("flight-rw", procs, writers, "throughput_ops_s")
                          for procs in self.procs]
                wait = self.median(lock, most, writers, "max_wait_us") / 1000
                fair = self.median(lock, most, writers, "fairness_jain")
                print(f"| `{lock}` | {' | '.join(f'{ratio:.2g}' for ratio in ratios)} | "
                      f"{wait:.3g} | {fair:.2f} |")
        self.show_grid()
        violations = sum(run["violations"] for runs in _runs.values() for run in runs)
        print(f"\nviolations of mutual exclusion: {violations}")
        self.write()

    def show_grid(self):
        """How flight-rw does beside the fastest lock and beside the POSIX one, all in one table."""
        print("\nthroughput of flight-rw divided by that of the fastest of all locks, and by that of "
              "pthread-rwlock\n")
        print(f"| F_W | {' | '.join(f'P = {procs}' for procs in self.procs)} |")
        print("|---" + "|--:" * len(self.procs) + "|")
        for writers in WRITERS:
            cells = []
            for procs in self.procs:
                rate = {lock: self.median(lock, procs, writers, "throughput_ops_s")
                        for lock in self.locks}
                beside = (max(rate.values()), rate.get("pthread-rwlock"))
                cells.append(", ".join(f"{rate['flight-rw'] / other:.2f}"
                                       for other in beside if other))
            print(f"| {100 * writers:g} % | {' | '.join(cells)} |")

    @staticmethod
    def median(lock, procs, writers, field):
        return statistics.median(run[field] for run in _runs[PeerSpeed(lock, procs, writers)])

    @staticmethod
    def write():
        """The run of each cell whose throughput is the median, in the form of `bench --json`."""
        document = output_of([PROGRAM, "bench", "--lock", "flight", "--procs", "1", "--ops", "1",
                              "--json", "-"])
        document["runs"] = [
            sorted(runs, key=lambda run: run["throughput_ops_s"])[len(runs) // 2]
            for runs in _runs.values()]
        pathlib.Path("lockflight-peers.json").write_text(json.dumps(document), encoding="utf-8")
        text_of([PROGRAM, "report", "lockflight-peers.json", "-o", "lockflight-peers.html"])
        print("written: lockflight-peers.json, lockflight-peers.html")
