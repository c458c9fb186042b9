"""The tests of a client of the drop-in with and without it: a test that passes without the drop-in must
pass with it.

usage: clients_test.py CLIENT MPI FETCHED DROP_IN LAUNCHER... (up to the number of ranks)

CLIENT is a row of clients.py, MPI openmpi or mpich, FETCHED the folder that tests/clients/fetch fetched
the clients to and built them in. Where the client is not there the exit code is 77, and the test counts
as skipped. The environment variable LOCKFLIGHT_ONLY names the tests that run, by a regular expression.

A launch that fails without the drop-in is tried twice more, unless it took long; if it never passes, it
does not count. A launch that then fails with the drop-in runs four times more with it and without it, in
turn. It is lost, and this test fails, if with the drop-in it never passes, or if without the drop-in it
never failed. Otherwise it fails now and then with and without the drop-in, and does not count. Nor does
a difference whose reason is known, which clients.py gives.
"""

import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from clients import CLIENTS

SKIPPED = 77
TRIES_ALONE = 3
MORE_OF_EACH = 4
# With the drop-in a test may take so many times as long: what is slower is reported as slower.
MORE_TIME = 3
# A test that seems slower than this is run again so often, and the shortest times count; but not one
# that takes so long that other programs' time slices hardly count.
SLOWER = 1.5
MORE_IF_SLOWER = 2
LONG_S = 20
# What fails with Open MPI 4.1's own choice, osc/rdma, may pass with others (docs/mpi-details.md).
ENVIRONMENTS = {"openmpi": [{}, {"OMPI_MCA_osc": "sm,pt2pt"}]}


@dataclass
class Run:
    """What became of one launch. `failed` is empty when it passed."""

    failed: str
    said: str
    took_s: float

    def last_line(self):
        return (self.said.strip().splitlines() or ["nothing"])[-1]


class Suite:
    def __init__(self, client, mpi, fetched, drop_in, launcher):
        self.client, self.mpi, self.drop_in, self.launcher = client, mpi, drop_in, launcher
        self.programs = client.programs(fetched, mpi)
        self.runs_in = client.source(fetched) / client.runs_in
        self.ratios = []
        self.not_counted = []
        self.known = []
        self.lost = []

    def run(self, launch, environment, limit_s):
        words = [f"{name}={value}" for name, value in [*launch.environment, *environment.items()]]
        begun = time.monotonic()
        with subprocess.Popen(
                [*self.launcher, str(launch.ranks), "env", *words, f"{self.programs}/{launch.program}",
                 *launch.arguments],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                cwd=self.runs_in, stdin=subprocess.DEVNULL) as started:
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
        if not failed and not self.client.passes.search(said):
            failed = f"does not print {self.client.passes.pattern}"
        return Run(failed, said, time.monotonic() - begun)

    def run_alone(self, launch, environment):
        return self.run(launch, environment, launch.limit_s)

    def run_under(self, launch, environment):
        return self.run(launch, environment | {"LD_PRELOAD": self.drop_in}, MORE_TIME * launch.limit_s)

    def ways(self, launch):
        """The numbers of ranks and the environments that a launch is tried with."""
        ranks = [launch.ranks]
        if self.client.few_ranks and self.mpi == "mpich" and self.client.few_ranks.search(launch.program):
            ranks = sorted({min(launch.ranks, max(2, len(os.sched_getaffinity(0)))), launch.ranks})
        return [(replace(launch, ranks=some), environment) for some in ranks
                for environment in ENVIRONMENTS.get(self.mpi, [{}])]

    def compare(self, launch):
        if not (self.programs / launch.program).exists():
            self.do_not_count(launch, "it does not compile with this MPI")
            return
        failed_alone = 0
        for launch, environment in self.ways(launch):
            for _ in range(TRIES_ALONE):
                alone = self.run_alone(launch, environment)
                if not alone.failed:
                    break
                failed_alone += 1
                if alone.took_s > min(LONG_S, launch.limit_s):
                    break
            if not alone.failed:
                break
        if alone.failed:
            self.do_not_count(launch, f"without the drop-in {alone.failed}; it said: {alone.last_line()}")
            return
        under = self.run_under(launch, environment)
        if under.failed:
            self.judge(launch, environment, under, failed_alone > 0)
        else:
            self.take_times(launch, environment, alone, under)

    def judge(self, launch, environment, under, failed_alone):
        passes_under = False
        for _ in range(MORE_OF_EACH):
            failed_alone |= bool(self.run_alone(launch, environment).failed)
            passes_under |= not self.run_under(launch, environment).failed
        if failed_alone and passes_under:
            self.do_not_count(launch, "it fails now and then, with and without the drop-in")
            return
        reason = self.client.known.get((self.mpi, launch.name(), launch.ranks))
        if reason:
            self.say(launch, f"known difference: {reason}")
            self.known.append(launch)
            return
        self.say(launch, f"LOST: with the drop-in {under.failed}\n{under.said}")
        self.lost.append(launch)

    def take_times(self, launch, environment, alone, under):
        alone_s, under_s = alone.took_s, under.took_s
        for _ in range(MORE_IF_SLOWER):
            if under_s <= SLOWER * alone_s or under_s > LONG_S:
                break
            alone = self.run_alone(launch, environment)
            under = self.run_under(launch, environment)
            if under.failed:
                self.judge(launch, environment, under, bool(alone.failed))
                return
            alone_s = alone_s if alone.failed else min(alone_s, alone.took_s)
            under_s = min(under_s, under.took_s)
        ratio = under_s / alone_s
        self.ratios.append((ratio, launch, alone_s, under_s))
        self.say(launch, f"{alone_s:.2f} s without, {under_s:.2f} s with: {ratio:.2f}")

    def do_not_count(self, launch, why):
        self.say(launch, f"not counted: {why}")
        self.not_counted.append(launch)

    @staticmethod
    def say(launch, what):
        print(f"{launch.name()}, {launch.ranks} ranks: {what}", flush=True)

    def summary(self):
        print(f"\n{self.client.name}, {self.mpi}: {len(self.ratios)} tests pass without the drop-in and "
              f"with it, {len(self.lost)} without only, {len(self.known)} differ for a known reason, "
              f"{len(self.not_counted)} not counted")
        for what, some in [("lost", self.lost), ("known", self.known), ("not counted", self.not_counted)]:
            if some:
                print(f"{what}: " + ", ".join(f"{launch.name()} ({launch.ranks} ranks)" for launch in some))
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

    def passed(self):
        return bool(self.ratios) and not self.lost


def main():
    name, mpi, fetched, drop_in, *launcher = sys.argv[1:]
    fetched = Path(fetched).resolve()
    client = CLIENTS[name]
    for folder in (client.source(fetched), client.programs(fetched, mpi)):
        if not folder.exists():
            print(f"skipped: {folder} is missing; ./dev setup test fetches and builds {name}, and says why "
                  "where it cannot")
            return SKIPPED
    only = re.compile(os.environ.get("LOCKFLIGHT_ONLY", ""))
    suite = Suite(client, mpi, fetched, drop_in, launcher)
    for launch in client.launches(client.source(fetched), mpi):
        if only.search(launch.program):
            suite.compare(launch)
    suite.summary()
    return 0 if suite.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
