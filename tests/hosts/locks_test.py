#!/usr/bin/env python3
"""Locks over hosts: the contract's suite and every lock's stress (the binaries of tests/fabric/mpi), the
benchmark, and its witness of mutual exclusion."""

import json
import os
import pathlib
import tempfile
import unittest

import support
import testbed

BINARIES = testbed.ROOT / "build" / "tests"
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ

# (hosts, ranks on each)
SHAPES = [(2, 1), (2, 2), (3, 1)] if LONG else [(2, 1)]


class Suites(unittest.TestCase):
    def run_over_hosts(self, what, shapes=SHAPES):
        for hosts, each in shapes:
            for mpi in support.LAUNCHERS:
                with self.subTest(mpi=mpi, hosts=hosts, ranks_on_each=each), \
                        testbed.Hosts(hosts) as bed:
                    launch = bed.launch(mpi, each, [str(BINARIES / "fabric" / "mpi" / f"mpi_{what}_{mpi}")],
                                        **support.captured)
                    passed, said = support.passed(launch, "all ranks passed\n", 300)
                    self.assertTrue(passed, said[-4000:])

    def test_contract(self):
        self.run_over_hosts("contract")

    def test_stress(self):
        self.run_over_hosts("lock")


def bench(bed, mpi, each, *options):
    """(exit code, the JSON, what it said)"""
    launch = bed.launch(mpi, each, [support.program(mpi), "bench", "--fabric", "mpi", "--json", "-",
                                    *options], **support.captured)
    passed, said = support.passed(launch, "\n}\n", 60)
    assert passed, said
    return json.loads(said[said.index("{"):said.index("\n}\n") + 2])


class Bench(unittest.TestCase):
    def test_results_name_the_hosts_and_say_what_was_witnessed(self):
        for mpi in support.LAUNCHERS:
            with self.subTest(mpi=mpi), testbed.Hosts(2) as bed:
                found = bench(bed, mpi, 2, "--lock", "d-mcs", "--ops", "100")
                self.assertEqual([(h["name"], h["ranks"]) for h in found["hosts"]],
                                 [("host0", [0, 1]), ("host1", [2, 3])])
                (run,) = found["runs"]
                self.assertEqual((run["witnessed"], run["handoffs"], run["violations"]),
                                 ("within hosts", [], 0))
                self.assertEqual(run["ops"], 100)

    def test_locks_hold_by_the_witness_across_hosts(self):
        for mpi in support.LAUNCHERS:
            with self.subTest(mpi=mpi), testbed.Hosts(2) as bed:
                found = bench(bed, mpi, 1, "--lock", "d-mcs,flight-rw,fompi-rw", "--writers", "0.3",
                              "--seconds", "0.2", "--witness")
                self.assertEqual([run["lock"] for run in found["runs"]],
                                 ["d-mcs", "flight-rw", "fompi-rw"])
                for run in found["runs"]:
                    self.assertEqual((run["witnessed"], run["violations"]), ("all", 0), run)
                    self.assertGreater(run["ops"], 0)
                self.assertGreater(sum(found["runs"][0]["handoffs"]), 0)

    def test_times_of_hosts_whose_clocks_differ(self):
        # Their monotone clocks are 1,000 s apart.
        with testbed.Hosts(2) as bed, tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "trace.json")
            (run,) = bench(bed, "openmpi", 1, "--lock", "d-mcs", "--seconds", "0.2", "--trace",
                           str(trace))["runs"]
            self.assertLess(run["elapsed_s"], 5)
            self.assertLess(run["rank_elapsed_s"]["slowest"], 5)
            events = json.loads(trace.read_text(encoding="ascii"))["traceEvents"]
            times = {}
            for event in events:
                if "ts" in event:
                    times.setdefault(event["tid"], []).append(event["ts"])
            self.assertEqual(len(times), 2)
            self.assertLess(max(map(max, times.values())) - min(map(min, times.values())), 20e6)

    def test_a_busy_server_hears_of_clients_on_other_hosts(self):
        with testbed.Hosts(2) as bed:
            (run,) = bench(bed, "openmpi", 1, "--lock", "dlm-server", "--workload", "contention",
                           "--server-busy", "--ops", "20")["runs"]
            self.assertEqual((run["ops"], run["violations"]), (20, 0))


class BrokenLocks(unittest.TestCase):
    def violations(self, mpi, each, witness, lock):
        with testbed.Hosts(2) as bed:
            launch = bed.launch(mpi, each, [str(BINARIES / "hosts" / f"broken_locks_{mpi}"), witness,
                                            lock], **support.captured)
            passed, said = support.passed(launch, "violations", 60)
            self.assertTrue(passed, said)
            return int(said.split(" violations")[0].split()[-1])

    def test_the_witness_catches_them_across_hosts(self):
        for mpi in support.LAUNCHERS:
            for lock in ("node_lock", "ignores_readers", *(["no_lock"] if LONG else [])):
                with self.subTest(mpi=mpi, lock=lock):
                    self.assertGreater(self.violations(mpi, 1, "far", lock), 0)

    def test_the_usual_witness_does_not(self):
        # If it did there would be no need for the other one.
        self.assertEqual(self.violations("mpich", 2, "near", "node_lock"), 0)


class Doctor(unittest.TestCase):
    def test_a_table_of_hosts(self):
        for mpi in support.LAUNCHERS if LONG else ["mpich"]:
            with self.subTest(mpi=mpi), testbed.Hosts(2) as bed:
                launch = bed.launch(mpi, 1, [support.program(mpi), "doctor", "--json", "-"],
                                    **support.captured)
                passed, said = support.passed(launch, "\n}\n", 60)
                self.assertTrue(passed, said)
                found = json.loads(said[said.index("{"):said.index("\n}\n") + 2])
                self.assertEqual([h["name"] for h in found["hosts"]], ["host0", "host1"])
                for host in found["hosts"]:
                    self.assertFalse(host["direct"], host)
                    self.assertGreater(host["computing_us"], host["computed_us"] / 2)
                    for operation in ("put", "get", "fetch_add", "compare_swap"):
                        self.assertGreater(host[f"{operation}_us"], 0)

    def test_a_component_without_windows_is_named_with_what_helps(self):
        with testbed.Hosts(2) as bed:
            launch = bed.launch("openmpi", 1, [support.program("openmpi"), "doctor", "--fabric",
                                               "mpi"], environment=["OMPI_MCA_osc=rdma"],
                                **support.captured)
            code, out, _ = support.finished(launch)
            self.assertEqual(code, 1)
            self.assertIn("OMPI_MCA_osc=sm,pt2pt", out)


if __name__ == "__main__":
    support.main()
