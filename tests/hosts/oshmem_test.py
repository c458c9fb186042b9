#!/usr/bin/env python3
"""The OpenSHMEM fabric over hosts: the contract's suite and every lock's stress (the binaries of
tests/fabric/oshmem), the benchmark, and a rank that is killed in the middle."""

import json
import os
import signal
import time
import unittest

import support
import testbed

BINARIES = testbed.ROOT / "build" / "tests" / "fabric" / "oshmem"
PROGRAM = str(testbed.ROOT / "build" / "lockflight")
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ

# (hosts, ranks on each)
SHAPES = [(2, 1), (2, 2), (3, 1)] if LONG else [(2, 2)]


class Suites(unittest.TestCase):
    def run_over_hosts(self, what):
        for hosts, each in SHAPES:
            with self.subTest(hosts=hosts, ranks_on_each=each), testbed.Hosts(hosts) as bed:
                launch = bed.launch("oshmem", each, [str(BINARIES / f"oshmem_{what}"),
                                               "--gtest_color=no"],
                                    **support.captured)
                code, out, err = support.finished(launch, 300)
                self.assertEqual(code, 0, (out + err)[-4000:])
                self.assertIn("all ranks passed\n", out)
                # The machines of the stress have nodes of two ranks.
                self.assertRegex(out, r"PASSED  \] [1-9]\d* tests?\." if each > 1 else "PASSED")

    def test_contract(self):
        self.run_over_hosts("contract")

    @unittest.skipUnless(LONG, "as on ucx: ./dev test --all")
    def test_stress(self):
        self.run_over_hosts("lock")


class Bench(unittest.TestCase):
    def test_locks_hold_by_the_witness_across_hosts(self):
        with testbed.Hosts(2) as bed:
            code, out, err = support.finished(bed.launch(
                "oshmem", 1, [PROGRAM, "bench", "--fabric", "oshmem", "--lock",
                              "d-mcs,flight-rw,msg", "--writers", "0.3", "--seconds", "0.2",
                              "--witness", "--json", "-"], **support.captured))
            self.assertEqual((code, err), (0, ""), out)
            found = json.loads(out)
            self.assertEqual([(h["name"], h["ranks"]) for h in found["hosts"]],
                             [("host0", [0]), ("host1", [1])])
            self.assertEqual([run["lock"] for run in found["runs"]], ["d-mcs", "flight-rw", "msg"])
            for run in found["runs"]:
                self.assertGreater(run["ops"], 0)
                self.assertEqual((run["witnessed"], run["violations"]), ("all", 0), run)
                self.assertLess(run["elapsed_s"], 5)  # the hosts' clocks are 1,000 s apart


class Gone(unittest.TestCase):
    def test_a_dead_rank_ends_the_launch(self):
        with testbed.Hosts(2) as bed:
            launch = bed.launch("oshmem", 1, [PROGRAM, "bench", "--fabric", "oshmem", "--lock",
                                              "d-mcs", "--seconds", "60"], **support.captured)
            time.sleep(2)
            for pid in bed.processes(1):
                if os.readlink(f"/proc/{pid}/exe").endswith("/oshmem/lockflight-lab"):
                    os.kill(pid, signal.SIGKILL)
            code, out, err = support.finished(launch, 20)
            self.assertNotEqual(code, 0, out)
            self.assertIn("exited on signal 9", err)


if __name__ == "__main__":
    support.main()
