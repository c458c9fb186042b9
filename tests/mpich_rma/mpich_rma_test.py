"""MPICH's own tests of one-sided operations with and without the drop-in: a test that passes without it
must pass with it.

usage: mpich_rma_test.py MPI FETCHED DROP_IN LAUNCHER... (up to the number of ranks)

MPI is openmpi or mpich, FETCHED the folder that tests/mpich_rma/fetch fetched the tests to and built them
in. Where it is not there the exit code is 77, and the test counts as skipped. The environment variable
LOCKFLIGHT_ONLY names the tests that run, by a regular expression.
"""

import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from programs import launches

MPI, FETCHED, DROP_IN, *LAUNCHER = sys.argv[1:]
FETCHED = Path(FETCHED).resolve()
SKIPPED = 77
MOST_RANKS = 4
# With more ranks than cores MPICH takes 10 ms for a flush, and minutes for some tests. Those of locks
# have four ranks anyway; so have those that fail with fewer ranks than they are meant for.
CORES = max(2, len(os.sched_getaffinity(0))) if MPI == "mpich" else MOST_RANKS
OF_LOCKS = re.compile(r"lock|mutex|contention|linked_list|mimic|fetchandadd|flush$|reqops")
LIMIT_S = 60
# With the drop-in a test may take so many times as long: what is slower is reported as slower.
MORE_TIME = 3
# A test that fails with the drop-in may be one that fails now and then without it.
MORE_WITHOUT = 2
# A test that seems slower than this is run again so often, and the shortest times count; but not one
# that takes so long that other programs' time slices hardly count.
SLOWER = 1.5
MORE_IF_SLOWER = 2
LONG_S = 20
# What fails with Open MPI 4.1's own choice, osc/rdma, may pass with others (docs/mpi-details.md).
ENVIRONMENTS = {"openmpi": [{}, {"OMPI_MCA_osc": "sm,pt2pt"}]}.get(MPI, [{}])


@dataclass
class Run:
    """What became of one launch. `failed` is empty when it passed."""

    failed: str
    said: str
    took_s: float


def run(launch, limit_s, environment):
    words = [f"{name}={value}" for name, value in environment.items()]
    begun = time.monotonic()
    with subprocess.Popen(
            [*LAUNCHER, str(launch.ranks), "env", *words, f"{FETCHED}/{MPI}/{launch.program}",
             *launch.arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            cwd=f"{FETCHED}/source/rma", stdin=subprocess.DEVNULL) as started:
        try:
            said, _ = started.communicate(timeout=limit_s)
            failed = f"exit code {started.returncode}" if started.returncode else ""
        except subprocess.TimeoutExpired:
            started.terminate()  # the launcher ends its ranks
            try:
                said, _ = started.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                started.kill()
                said, _ = started.communicate()
            failed = f"no end after {limit_s:.0f} s"
    if not failed and not re.search(r"^\s*No Errors\s*$", said, re.MULTILINE):
        failed = "does not say No Errors"
    return Run(failed, said, time.monotonic() - begun)


class Suite:
    def __init__(self):
        self.ratios = []
        self.not_counted = []
        self.lost = []

    def compare(self, launch):
        ranks = [launch.ranks]
        if launch.ranks > CORES and not OF_LOCKS.search(launch.program):
            ranks.insert(0, CORES)
        ways = [(replace(launch, ranks=some), environment) for some in ranks
                for environment in ENVIRONMENTS]
        for launch, environment in ways:
            without = run(launch, launch.limit_s, environment)
            if not without.failed:
                break
        if without.failed:
            self.say(launch, f"not counted: without the drop-in {without.failed}; it said: "
                             f"{(without.said.strip().splitlines() or ['nothing'])[-1]}")
            self.not_counted.append(launch)
            return
        under = self.run_under(launch, environment)
        without_s, under_s = without.took_s, under.took_s
        for _ in range(MORE_IF_SLOWER):
            if under.failed or under_s <= SLOWER * without_s or under_s > LONG_S:
                break
            again = run(launch, launch.limit_s, environment)
            without_s = without_s if again.failed else min(without_s, again.took_s)
            under = self.run_under(launch, environment)
            under_s = min(under_s, under.took_s)
        if under.failed:
            again = [run(launch, launch.limit_s, environment) for _ in range(MORE_WITHOUT)]
            if any(other.failed for other in again):
                self.say(launch, "not counted: without the drop-in it fails now and then")
                self.not_counted.append(launch)
                return
            self.say(launch, f"LOST: with the drop-in {under.failed}\n{under.said}")
            self.lost.append(launch)
            return
        ratio = under_s / without_s
        self.ratios.append((ratio, launch, without_s, under_s))
        self.say(launch, f"{without_s:.2f} s without, {under_s:.2f} s with: {ratio:.2f}")

    @staticmethod
    def run_under(launch, environment):
        return run(launch, MORE_TIME * launch.limit_s, environment | {"LD_PRELOAD": DROP_IN})

    @staticmethod
    def say(launch, what):
        print(f"{launch.name()}, {launch.ranks} ranks: {what}", flush=True)

    def summary(self):
        print(f"\n{MPI}: {len(self.ratios)} tests pass without the drop-in and with it, "
              f"{len(self.lost)} without only, {len(self.not_counted)} not counted")
        for what, some in [("lost", self.lost), ("not counted", self.not_counted)]:
            if some:
                print(f"{what}: " + ", ".join(launch.name() for launch in some))
        if self.ratios:
            ordered = sorted(self.ratios, key=lambda one: one[0], reverse=True)
            whole = [sum(one[part] for one in ordered) for part in (2, 3)]
            print(f"time with the drop-in divided by time without: median "
                  f"{statistics.median(one[0] for one in ordered):.2f}, worst {ordered[0][0]:.2f} "
                  f"({ordered[0][1].name()}); all tests {whole[0]:.0f} s and {whole[1]:.0f} s")
            for ratio, launch, without, under in ordered:
                if ratio > SLOWER:
                    print(f"slower: {launch.name()}, {launch.ranks} ranks: {without:.2f} s "
                          f"without, {under:.2f} s with")


def main():
    for part in (MPI, "source"):
        if not (FETCHED / part).exists():
            print(f"skipped: {FETCHED}/{part} is missing; ./dev setup test fetches and builds "
                  "MPICH's tests, and says why where it cannot")
            return SKIPPED
    only = re.compile(os.environ.get("LOCKFLIGHT_ONLY", ""))
    suite = Suite()
    for launch in launches(FETCHED / "source", MOST_RANKS, LIMIT_S):
        if not only.search(launch.program):
            continue
        if not (FETCHED / MPI / launch.program).exists():
            suite.say(launch, "not counted: it does not compile with this MPI")
            suite.not_counted.append(launch)
            continue
        suite.compare(launch)
    suite.summary()
    return 1 if suite.lost or not suite.ratios else 0


if __name__ == "__main__":
    sys.exit(main())
