#!/usr/bin/env python3
"""The wired fabrics, UCX and libfabric, over hosts, without MPI: the contract's suite and every
lock's stress (the binaries of tests/fabric/wired), the benchmark, the progress thread, and ranks and hosts
that go in the middle."""

import json
import os
import shutil
import signal
import time
import unittest

import support
import testbed

BINARIES = testbed.ROOT / "build" / "tests" / "fabric" / "wired"
PROGRAM = str(testbed.ROOT / "build" / "lockflight")
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ

# (hosts, ranks on each)
SHAPES = [(2, 1), (2, 2), (3, 1)] if LONG else [(2, 2)]


class OnAFabric:
    """Each of these classes becomes a test case for every fabric that is built."""

    fabric = None

    def launched(self, bed, each, *command, **more):
        return support.finished(bed.launch(self.fabric, each, command, **support.captured, **more))

    def bench(self, *arguments):
        return [PROGRAM, "bench", "--fabric", self.fabric, "--lock", *arguments]


class Suites(OnAFabric):
    def run_over_hosts(self, what, **more):
        for hosts, each in SHAPES:
            with self.subTest(hosts=hosts, ranks_on_each=each), testbed.Hosts(hosts) as bed:
                launch = bed.launch(self.fabric, each, [str(BINARIES / f"{self.fabric}_{what}")],
                                    **support.captured, **more)
                code, out, err = support.finished(launch, 300)
                self.assertEqual(code, 0, (out + err)[-4000:])
                self.assertIn("all ranks passed\n", out)

    def test_contract(self):
        self.run_over_hosts("contract")

    @unittest.skipUnless(LONG, "some fifteen seconds: ./dev test --all")
    def test_stress(self):
        self.run_over_hosts("lock")


    @unittest.skipUnless(LONG, "some fifteen seconds: ./dev test --all")
    def test_the_providers_atomics(self):
        if self.fabric != "libfabric":
            self.skipTest("of libfabric")
        for what in ("contract", "lock"):
            self.run_over_hosts(what,
                                environment=["LOCKFLIGHT_LIBFABRIC_OPERATIONS=provider"])


class Bench(OnAFabric):
    def test_locks_hold_by_the_witness_across_hosts(self):
        with testbed.Hosts(2) as bed:
            code, out, err = self.launched(bed, 1, *self.bench(
                "d-mcs,flight-rw,fompi-rw", "--writers", "0.3", "--seconds", "0.2", "--witness",
                "--json", "-"))
            self.assertEqual((code, err), (0, ""), out)
            found = json.loads(out)
            self.assertEqual([(h["name"], h["ranks"]) for h in found["hosts"]],
                             [("host0", [0]), ("host1", [1])])
            self.assertEqual([run["lock"] for run in found["runs"]], ["d-mcs", "flight-rw", "fompi-rw"])
            for run in found["runs"]:
                self.assertGreater(run["ops"], 0)
                self.assertEqual((run["witnessed"], run["violations"]), ("all", 0), run)
                self.assertLess(run["elapsed_s"], 5)  # the hosts' clocks are 1,000 s apart

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "no launcher with PMIx")
    def test_a_launcher_with_pmix(self):
        if self.fabric != "ucx":
            self.skipTest("the same on every wired fabric")
        with testbed.Hosts(2) as bed:
            code, out, err = support.finished(bed.launch(
                "openmpi", 1, self.bench("d-mcs", "--ops", "50", "--json", "-"), **support.captured))
            self.assertEqual((code, err), (0, ""), out)
            self.assertEqual([h["ranks"] for h in json.loads(out)["hosts"]], [[0], [1]])

    def test_a_thread_answers_while_its_rank_computes(self):
        found = {}
        for by in ("calls", "thread"):
            with testbed.Hosts(2) as bed:
                code, out, err = self.launched(bed, 1, PROGRAM, "doctor", "--fabric", self.fabric,
                                               "--json", "-", environment=[f"LOCKFLIGHT_PROGRESS={by}"])
                self.assertEqual((code, err), (0, ""), out)
                found[by] = json.loads(out)["hosts"]
        self.assertEqual([len(hosts) for hosts in found.values()], [2, 2])
        for calls, thread in zip(found["calls"], found["thread"]):
            self.assertFalse(calls["direct"], calls)
            self.assertTrue(thread["direct"], thread)


class Gone(OnAFabric):
    def loses(self, go, words, seconds):
        with testbed.Hosts(2) as bed:
            launch = bed.launch(self.fabric, 1, self.bench("d-mcs", "--seconds", "60"),
                                **support.captured)
            time.sleep(2)
            begun = time.monotonic()
            go(bed)
            code, out, err = support.finished(launch, 40)
            self.assertLess(time.monotonic() - begun, seconds)
            self.assertNotEqual(code, 0)
            self.assertIn(words, err, out)

    def test_a_dead_rank(self):
        def kill(bed):
            for pid in bed.processes(1):
                if os.readlink(f"/proc/{pid}/exe").endswith(f"/{self.fabric}/lockflight-lab"):
                    os.kill(pid, signal.SIGKILL)

        self.loses(kill, "rank 1 on host1 is gone: its process has ended", 3)

    @unittest.skipUnless(LONG, "some ten seconds: ./dev test --all")
    def test_a_dead_host(self):
        self.loses(lambda bed: bed.kill(1),
                   "rank 1 on host1 is gone: its host has not answered for 7 s", 13)


for on in ("ucx", "libfabric"):
    if (BINARIES / f"{on}_contract").exists():
        for tests in (Suites, Bench, Gone):
            name = f"{tests.__name__}On{on.capitalize()}"
            globals()[name] = type(name, (tests, unittest.TestCase), {"fabric": on})

if __name__ == "__main__":
    support.main()
