#!/usr/bin/env python3
"""Breaks locks, the cluster's core and semaphores in many places, and looks whether that is found.

Generates mutants (generate.py), writes them into tables like those that are written by hand, has
them compiled (make_mutants, make_core_mutants) and judged (mutants_judge, cluster_judge). Run by
`./dev mutate`.

Exit codes: 0 each mutant is found or in the list of those that break nothing; 1 some are not;
2 bad usage; 3 nothing could be built.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import string
import subprocess
import sys
import time

import generate

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build"
OF_LOCKS = BUILD / "tests/lab/mutants/generated"
OF_CORE = BUILD / "tests/names/cluster/generated"
CORE = {"home": ["home.hpp", "home.cpp", "home_unused.cpp"], "owner": ["owner.hpp", "owner.cpp"],
        "agent": ["agent.hpp", "agent.cpp", "agent_unused.cpp"],
        "membership": ["membership.hpp", "membership.cpp", "membership_changes.cpp"],
        "acquire": ["acquire.hpp"]}
PARTS = ("locks", "cluster", "semaphores", "robust")


def fail(code, text):
    print(f"mutate: {text}", file=sys.stderr)
    sys.exit(code)


class Table:
    """A table of this directory, and the mutants that are generated beside it."""

    def __init__(self, path):
        self.name = path.stem
        self.head, self.insides, self.files = [], [], []
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] == ["lock"]:
                self.head.append(line)
                self.files = words[2:]
            elif words[:1] == ["subject"]:
                self.head.append(line)
            elif words[:1] == ["inside"] and line not in self.insides:
                self.insides.append(line)
        if self.name in ("robust", "failing"):
            self.part = "robust"
        elif self.name == "semaphore":
            self.part = "semaphores"
        else:
            self.part = "locks"

    def sources(self):
        for file in self.files:
            if file.startswith("tests/"):  # helpers of tests are no part of a lock
                continue
            folder = "include/lockflight/" + ("" if file.startswith("rma/") else "lock/")
            if file.startswith("lab/"):
                folder = ""
            yield file, ROOT / folder / file

    def text(self, mutants):
        lines = ["# Made by mutate.py.", *self.head]
        by_inside = collections.defaultdict(list)
        for m in mutants:
            by_inside[m.inside].append(m)
        for inside, some in by_inside.items():
            if inside:
                lines.append(inside)
            for m in some:
                lines += ["", *m.lines()]
        return "\n".join(lines) + "\n"


class CoreTable:
    def __init__(self, name):
        self.name, self.part, self.insides = "core_" + name, "cluster", []
        self.core = name

    def sources(self):
        for file in CORE[self.core]:
            path = ROOT / "src/names/cluster/core" / file
            if path.exists():
                yield file, path

    def text(self, mutants):
        lines = ["# Made by mutate.py."]
        for m in mutants:
            lines += ["", *m.lines()]
        return "\n".join(lines) + "\n"


class Mutant:
    def __init__(self, name, change, inside):
        self.name, self.change, self.inside = name, change, inside

    def lines(self):
        c = self.change
        return [f"mutant {self.name}", f"  why  {c.kind}, line {c.line} of {c.file}",
                f"  in {c.file}", *(f"  - {line}" for line in c.before),
                *(f"  + {line}" for line in c.after)]

    def shown(self):
        _, before, after = self.change.key()
        text = f"{self.change.file}:{self.change.line}: {self.change.kind}\n"
        text += "".join(f"    - {line}\n" for line in before)
        return text + "".join(f"    + {line}\n" for line in after)


def read_list(path):
    """The changes that break nothing, each with its reason."""
    known = {}
    file, before, after, why = "", [], [], ""

    def close():
        if before or after:
            if not why:
                fail(3, f"{path}: a change of {file} has no reason: {before}")
            known[generate.Change(file, tuple(before), tuple(after), "", 0).key()] = why

    for line in path.read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if word == "in" or (word == "-" and after):
            close()
            before, after, why = [], [], ""
        if word == "in":
            file = rest
        elif word == "-":
            before.append(rest)
        elif word == "+":
            after.append(rest)
        elif word == "why":
            why += (" " if why else "") + rest
    close()
    return known


def candidates(table):
    for name, path in table.sources():
        yield from generate.changes_of_file(name, path.read_text())


def stale_entries(tables, known):
    """The entries of the list that are no change of the present sources."""
    possible = {change.key() for table in tables for change in candidates(table)}
    return [key for key in known if key not in possible]


def two_of(things, number):
    """One of them and the next one, or the only one."""
    at = number % len(things)
    return dict.fromkeys([things[at], things[(at + 1) % len(things)]])


def choose(tables, count, seed):
    """`count` changes of all, so that each table gets its share by size. A change of a file that
    several tables have counts once. It is a mutant of each of them, and of two of the locks inside
    if a table has some. A hash of each change decides, so a change of the sources leaves the choice
    among the other changes as it is."""
    tables_of, changes = collections.defaultdict(list), {}
    for table in tables:
        for change in candidates(table):
            tables_of[change.key()].append(table)
            changes.setdefault(change.key(), change)

    def draw(key):
        return hashlib.sha256(json.dumps([seed, key]).encode()).hexdigest()

    chosen = collections.defaultdict(list)
    for key in sorted(changes, key=draw)[:count]:
        number = draw(key)[:10]
        places = [(table, inside) for table in tables_of[key]
                  for inside in two_of(table.insides or [""], int(number, 16))]
        for copy, (table, inside) in zip(string.ascii_lowercase, places):
            chosen[table.name].append(Mutant(f"m{number}{copy}", changes[key], inside))
    return chosen, len(changes)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_tables(tables, chosen):
    for table in tables:
        folder = OF_CORE if table.part == "cluster" else OF_LOCKS
        name = table.core if table.part == "cluster" else table.name
        write(folder / f"{name}.mutants", table.text(chosen.get(table.name, [])))


def culprits(log, chosen):
    """The mutants in whose namespaces the compiler found errors."""
    named = set()
    for path, line in re.findall(r"^(/?\S+generated/\w+\.cpp):(\d+):\d+: error:", log, re.M):
        text = (BUILD / path).read_text().splitlines() if not path.startswith("/") else \
            pathlib.Path(path).read_text().splitlines()
        for i in range(int(line) - 1, -1, -1):
            found = re.match(r"namespace lockflight::\w+::mutant_(m[0-9a-f]{10}[a-z])\b", text[i])
            if found:
                named.add(found.group(1))
                break
    # An error in a header names the mutant in what it was instantiated for.
    for line in log.splitlines():
        if "mutant_m" in line and ("error" in line or "required from" in line
                                   or "In instantiation" in line):
            named.update(re.findall(r"mutant_(m[0-9a-f]{10}[a-z])", line))
    return named


def build(target, jobs):
    return subprocess.run(["cmake", "--build", str(BUILD), "--target", target, f"-j{jobs}", "--",
                           "-k", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def compile_all(target, tables, chosen, jobs):
    """Drops the mutants that do not compile, and returns them with the names of their tables."""
    dropped = []
    while True:
        write_tables(tables, chosen)
        made = build(target, jobs)
        if made.returncode == 0:
            return dropped
        bad = culprits(made.stdout, chosen)
        now = [(table, m) for table, some in chosen.items() for m in some if m.name in bad]
        if not now:
            fail(3, "cannot build " + target + "\n" + made.stdout[-3000:])
        for name in chosen:
            chosen[name] = [m for m in chosen[name] if m.name not in bad]
        dropped += now
        print(f"  {len(now)} do not compile", flush=True)


class Results:
    """The verdicts of a run, in a file, so that a run that was cut goes on. A change of a file that
    several locks share has a verdict in the table of each."""

    VERDICTS = ("killed", "equivalent", "survived", "not compiled")

    def __init__(self, path, kept):
        self.path, self.best, self.lines = path, {}, {}
        for line in path.read_text().splitlines() if kept and path.exists() else []:
            made = json.loads(line)
            if made["verdict"] in kept:
                self.note(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(made) + "\n" for made in self.lines.values()))

    @staticmethod
    def key(m):
        return json.dumps(m.change.key())

    def note(self, made):
        """Of several mutants with the same change, one that is found is enough."""
        change, order = json.dumps(made["change"]), self.VERDICTS.index
        place = change, made["table"]
        self.lines[place] = min(self.lines.get(place, made), made, key=lambda m: order(m["verdict"]))
        before = self.best.get(change, self.VERDICTS[-1])
        self.best[change] = min(before, made["verdict"], key=order)

    def add(self, table, m, verdict, rule="", search="", seconds=0.0):
        made = {"change": m.change.key(), "table": table, "verdict": verdict, "rule": rule,
                "search": search, "seconds": seconds}
        self.note(made)
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(json.dumps(made) + "\n")

    def needs(self, table, m):
        """True if the mutant has no verdict, and no other one with its change was found."""
        change = self.key(m)
        return (self.best.get(change) not in ("killed", "equivalent")
                and (change, table) not in self.lines)

    def split(self, mutants):
        return {verdict: [m for m in mutants if self.best[self.key(m)] == verdict]
                for verdict in self.VERDICTS}


def judge(command, mutants, results):
    number, began = 0, time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            name, verdict, rule, search, seconds = line.rstrip("\n").split("\t")
            number += 1
            table, m = mutants[name]
            if search == "stale":
                fail(3, f"{m.shown()}cannot be applied: {rule}")
            results.add(table, m, verdict, rule, search, float(seconds))
            left = (time.monotonic() - began) / number * (len(mutants) - number) / 60
            print(f"{number:5}/{len(mutants)} {verdict:8} {seconds:>6} s  {rule[:40]:40} {search}"
                  f"  ({left:.0f} min left)")
            if verdict == "survived":
                print(m.shown(), end="")
            sys.stdout.flush()
    if running.returncode != 0 or number != len(mutants):
        fail(3, f"{command[0]} ended with {running.returncode} after {number} of {len(mutants)}")


def judge_all(tables, chosen, jobs, results):
    """Judges those that have no verdict yet."""
    for target, some, command in (
            ("mutants_judge", [t for t in tables if t.part != "cluster"],
             [str(BUILD / "tests/lab/mutants/mutants_judge"), str(HERE), str(jobs)]),
            ("cluster_judge", [t for t in tables if t.part == "cluster"],
             [str(BUILD / "tests/names/cluster/cluster_judge"), str(jobs)])):
        mine = {t.name: [m for m in chosen.get(t.name, []) if results.needs(t.name, m)]
                for t in some}
        if not any(mine.values()):
            continue
        print(f"building {target}", flush=True)
        for table, m in compile_all(target, some, mine, jobs):
            results.add(table, m, "not compiled")
        judge(command, {m.name: (table, m) for table, ms in mine.items() for m in ms}, results)


def main():
    says = argparse.ArgumentParser(prog="./dev mutate", description=__doc__.split("\n")[0])
    says.add_argument("count", nargs="?", type=int, default=300, help="mutants (default: 300)")
    says.add_argument("--seed", type=int, default=1, help="of the choice of mutants (default: 1)")
    says.add_argument("--of", action="append", choices=PARTS, help="only of these parts")
    says.add_argument("--table", action="append", help="only of these tables")
    says.add_argument("--list", action="store_true", help="print the changes and judge none")
    says.add_argument("--check-list", action="store_true",
                      help="only check that the list of equivalent mutants fits the sources")
    says.add_argument("--resume", action="store_true",
                      help="go on with the last run: judge only mutants that it did not judge")
    says.add_argument("--retry", action="store_true",
                      help="as --resume, and judge those that survived anew")
    says.add_argument("--jobs", type=int, default=os.cpu_count(), help="(default: all processors)")
    given = says.parse_args()
    if given.count < 1 or given.jobs < 1:
        says.error("at least one mutant and one job")
    tables = [Table(path) for path in sorted(HERE.glob("*.mutants"))]
    tables += [CoreTable(name) for name in CORE]
    used = [t for t in tables if (not given.of or t.part in given.of)
            and (not given.table or t.name in given.table)]
    if not used:
        says.error("no such table")
    known = read_list(HERE / "equivalent.list")
    if given.check_list:
        stale = stale_entries(tables, known)
        for file, before, after in stale:
            print(f"equivalent.list: no such change of {file}: {before} {after}")
        return 1 if stale else 0
    chosen, possible = choose(used, given.count, given.seed)
    print(f"{min(given.count, possible)} of {possible} changes, seed {given.seed}", flush=True)
    mutants = list({m.change.key(): m for some in chosen.values() for m in some}.values())
    if given.list:
        for m in mutants:
            print(m.shown(), end="")
        return 0
    kept = {"killed", "not compiled"} if given.resume or given.retry else set()
    if given.resume and not given.retry:
        kept.add("survived")
    results = Results(BUILD / "tests/lab/mutants/results", kept)
    for table, some in chosen.items():
        for m in some:
            if m.change.key() in known:
                results.add(table, m, "equivalent", known[m.change.key()])
    judge_all(tables, chosen, given.jobs, results)
    totals = results.split(mutants)
    print("\n" + ", ".join(f"{len(some)} {verdict}" for verdict, some in totals.items()))
    for m in totals["survived"]:
        print(m.shown(), end="")
    return 1 if totals["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
