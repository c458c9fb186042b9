#!/usr/bin/env python3
"""Random faults in clusters of real agents, etcd and clients on this machine, and a check of what
the clients saw. ./dev cluster runs it.

Exit codes: 0 fine; 1 a violation: the seed is printed and the history kept; 2 bad usage."""

import argparse
import collections
import itertools
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from testbed import Cluster, checker, history
from testbed.faults import Crew, Faults
from testbed.host import DOMAIN

LONGEST_ROUND = 300


class Round:
    """One cluster, from its start to the check of its history. In turn there are storms, in which
    faults begin and end, and calm times, in which everybody has to get on."""

    def __init__(self, seed, options):
        self.seed = seed
        self.random = random.Random(seed)
        # In half of the clusters names are given back as soon as they are not used for a moment.
        keep = self.random.choice([0.05, 600])
        self.cluster = Cluster(options.hosts, options.etcds, options.ttl, keep)
        self.crew = Crew(self.cluster, self.random, options.clients, options.names)
        self.longest_wait = options.longest_wait  # that is allowed
        self.judges_times = not options.untimed
        self.faults = Faults(self.cluster, self.random, self.crew)
        self.kinds = collections.Counter()
        self.log = []      # (when, what)
        self.calm = []     # (since, until)
        self.ongoing = []  # (until, name, what ends it)
        self.found = []    # violations
        self.operations = []
        self.around = None  # what the testbed knows, once it is over

    def note(self, what):
        self.log.append((time.monotonic_ns(), what))

    def run(self, seconds):
        end = time.monotonic() + seconds
        self.cluster.start()
        for host in self.cluster.hosts:
            self.crew.fill(host)
        self.wait(1)
        while time.monotonic() < end and not self.found:
            self.storm(self.random.uniform(0.5, 5) * self.cluster.ttl)
            self.get_calm()
        self.check()

    def storm(self, seconds):
        end = time.monotonic() + seconds
        intensity = self.random.uniform(0.1, 1.5) * self.cluster.ttl
        while time.monotonic() < end:
            begun = self.faults.begin()
            if begun:
                kind, where, what_ends = begun
                self.kinds[kind] += 1
                lasts = self.random.choice([0.1, 0.5, 1, 2.5]) * self.cluster.ttl
                lasts *= self.random.uniform(0.2, 1)
                self.ongoing.append((time.monotonic() + lasts, f"{kind} {where}", what_ends))
                self.note(f"{kind} {where}, for {lasts:.2f} s")
            self.wait(self.random.uniform(0, intensity))

    def get_calm(self):
        for ending in self.ongoing:
            self.end(ending)
        self.ongoing = []
        self.note("calm")
        since = time.monotonic_ns()
        self.wait(3 * self.cluster.ttl)
        all_are_back = time.monotonic_ns()
        why_not = self.missing_members()
        self.wait(self.longest_wait + 0.5)
        if self.cluster.network.has_stalled(since):
            self.note("the testbed itself did not get on")
            return
        self.calm.append((all_are_back, time.monotonic_ns()))
        if why_not and self.judges_times:
            self.found.append(f"no epoch of all hosts after 3 TTL of calm: {why_not}")

    def missing_members(self):
        try:
            self.cluster.await_members(self.cluster.hosts, self.longest_wait)
        except AssertionError as e:
            return str(e)
        return None

    def end(self, ending):
        _, name, what_ends = ending
        what_ends()
        self.note(f"end of {name}")

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            due = [each for each in self.ongoing if each[0] <= now]
            self.ongoing = [each for each in self.ongoing if each[0] > now]
            for each in due:
                self.end(each)
            self.crew.supervise()
            if now >= end:
                return
            time.sleep(min(0.1, end - now))

    # ---- the check ----

    def removals(self):
        """The epochs in which a host of the one before is not any more."""
        removed, newer = set(), None
        for text in self.cluster.etcd.values_of(f"lockflight/{DOMAIN}/epoch"):
            older = json.loads(text)
            ids = {(each["id"], each["incarnation"]) for each in older["members"]}
            if newer and newer[0] != older["number"] and ids - newer[1]:
                removed.add(newer[0])
            newer = older["number"], ids
        return removed

    def check(self):
        for host in self.cluster.hosts:
            for each in list(host.clients):
                self.crew.kill(host, each)
        ends = time.monotonic_ns()
        for path in sorted(self.cluster.histories.iterdir()):
            self.operations += history.read(path, self.crew.killed.get(path.stem, ends))
        stopped = {label: [(since, until or ends) for since, until in times]
                   for label, times in self.crew.stopped.items()}
        self.around = checker.Surroundings(
            ends=ends, removals=self.removals(), calm=self.calm, stopped=stopped,
            stalls=self.cluster.network.stalls,
            longest_wait=int(self.longest_wait * history.SECOND), ttl=int(self.cluster.ttl * history.SECOND),
            judges_times=self.judges_times)
        self.found += checker.check(self.operations, self.around)
        self.found += self.crew.failed
        self.found += [f"the agent of {host} ended by itself with {code}: {said}"
                       for host, code, said in self.crew.exits
                       if code != 3 or "has been removed" in str(said)]

    @property
    def locks(self):
        """The operations on locks."""
        return [each for each in self.operations if not isinstance(each, history.Sight)]

    @property
    def acquires(self):
        return sum(each.acquired is not None for each in self.locks)

    @property
    def waited(self):
        return max((waited for _, waited in checker.waits(self.locks, self.around)),
                   default=0) / history.SECOND

    def keep(self):
        """What is needed to understand a violation."""
        to = pathlib.Path(tempfile.gettempdir()) / f"lockflight-cluster-{self.seed}"
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        shutil.copytree(self.cluster.histories, to / "histories")
        for log in self.cluster.folder.glob("*.log"):
            shutil.copy(log, to)
        with open(to / "faults.txt", "w", encoding="utf-8") as file:
            file.writelines(f"{at} {what}\n" for at, what in self.log)
        with open(to / "violations.txt", "w", encoding="utf-8") as file:
            file.writelines(each + "\n" for each in self.found)
        return to


def options_from(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("seconds", type=float, nargs="?", default=1800)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--etcds", type=int, choices=[1, 3], default=None)
    parser.add_argument("--ttl", type=float, default=2)
    parser.add_argument("--names", type=int, default=4)
    parser.add_argument("--longest-wait", type=float, default=2,
                        help="seconds after which an acquire in calm times counts as stuck")
    parser.add_argument("--untimed", action="store_true",
                        help="check what holds however busy the machine is, and no times")
    parser.add_argument("--clients", type=int, default=1, help="processes on each host")
    parser.add_argument("--round", type=float, default=LONGEST_ROUND, help="seconds of a cluster")
    return parser.parse_args(arguments)


def main(arguments):
    options = options_from(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    end = time.monotonic() + options.seconds
    etcds = [options.etcds] if options.etcds else [1, 3]
    acquires, longest, kinds, exits = 0, 0.0, collections.Counter(), 0
    for seed, options.etcds in zip(itertools.count(options.seed), itertools.cycle(etcds)):
        left = end - time.monotonic()
        one = Round(seed, options)
        with one.cluster:
            one.run(min(left, options.round))
            acquires += one.acquires
            longest = max(longest, one.waited)
            kinds += one.kinds
            exits += len(one.crew.exits)
            print(f"seed {seed}, etcd of {options.etcds}: {one.acquires} acquires, "
                  f"{one.kinds.total()} faults, {len(one.around.removals)} hosts taken off, "
                  f"{len(one.crew.exits)} agents started again, "
                  f"longest wait in {len(one.calm)} calm times {one.waited:.2f} s", flush=True)
            for what in sorted({str(said[0].get("text") if said else "") + f" ({code})"
                                for _, code, said in one.crew.exits}):
                print(f"  an agent ended: {what}")
            if one.found:
                print(f"{len(one.found)} violations with --seed {seed}; all that is known is in "
                      f"{one.keep()}", *one.found[:10], sep="\n  ")
                break
        if time.monotonic() >= end - 1:
            break
    print(f"{acquires} acquires, {kinds.total()} faults "
          f"({', '.join(f'{kind} {many}' for kind, many in sorted(kinds.items()))}), "
          f"{exits} agents started again, longest wait in calm times {longest:.2f} s, "
          f"{len(one.found)} violations")
    return 1 if one.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
