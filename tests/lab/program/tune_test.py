"""Tuning from one end to the other: search on a simulated machine, profile, and its use."""

import json
import os
import re
import unittest

from support import SOURCES, ProgramTest

MACHINE = ["--fabric", "sim", "--machine", "piz-daint", "--levels", "2x4", "--ops", "800",
           "--writers", "1"]
# Between two attempts that take microseconds, waiting only delays.
SEARCH = ["--lock", "spin-backoff", "--parameter", "backoff_first_ns=0,62,16000"]


class Tune(ProgramTest):
    def bench(self, *arguments):
        out = self.run_well("bench", *MACHINE, *arguments, "--json", "-")
        return json.loads(out)["runs"]

    def test_what_is_found_is_what_the_benchmark_then_uses(self):
        out = self.run_well("tune", *MACHINE, *SEARCH, "--out", "p.toml", "--json", "t.json")
        self.assertIn("spin-backoff, ecsb on sim, machine piz-daint, procs 8, levels 2x4, F_W 100 %",
                      out)
        self.assertRegex(out, r"backoff_first_ns +0 .* better, kept\n")
        self.assertRegex(out, r"Gained: throughput 1\.\d+ times as good as the defaults")
        self.assertIn("wrote p.toml\n", out)
        self.assertIn("wrote t.json\n", out)

        (tuned,) = json.loads(self.read("t.json"))["tuned"]
        self.assertEqual(tuned["found"]["params"], {"backoff_first_ns": 0})
        self.assertEqual(tuned["default"]["params"], {"backoff_first_ns": 1000})
        self.assertTrue(tuned["gained"])
        self.assertAlmostEqual(tuned["gain"],
                               tuned["found"]["median"] / tuned["default"]["median"])
        self.assertIn("[spin-backoff.parameters]\nbackoff_first_ns = 0\n", self.read("p.toml"))

        (usual,) = self.bench("--lock", "spin-backoff")
        (better,) = self.bench("--lock", "spin-backoff", "--profile", "p.toml")
        self.assertEqual(usual["params"]["backoff_first_ns"], 1000)
        self.assertEqual(better["params"], dict(usual["params"], backoff_first_ns=0))
        self.assertGreater(better["throughput_ops_s"], 1.1 * usual["throughput_ops_s"])

    def test_what_is_set_or_swept_goes_before_the_profile(self):
        self.write("p.toml", "format = 1\n[rma-rw.parameters]\nT_R = 64\nT_DC = 2\n"
                             "[flight.parameters]\nbarge = 3\n")
        profile = ["--profile", "p.toml"]
        params = [run["params"] for run in self.bench("--lock", "rma-rw,flight,rma-mcs", *profile)]
        self.assertEqual((params[0]["T_R"], params[0]["T_DC"]), (64, 2))
        self.assertEqual(params[1]["barge"], 3)
        self.assertEqual(params[2]["T_L2"], 32)
        (run,) = self.bench("--lock", "rma-rw", *profile, "--set", "T_R=7")
        self.assertEqual((run["params"]["T_R"], run["params"]["T_DC"]), (7, 2))
        runs = self.bench("--lock", "rma-rw", *profile, "--sweep", "T_R=8,9")
        self.assertEqual([(run["params"]["T_R"], run["params"]["T_DC"]) for run in runs],
                         [(8, 2), (9, 2)])

    def test_the_same_seed_finds_the_same(self):
        def tuned(*more):
            out = self.run_well("tune", *MACHINE, "--lock", "flight", "--runs", "60", *more,
                                "--json", "-")
            return json.loads(out)["tuned"]
        self.assertEqual(tuned(), tuned())
        self.assertNotEqual(tuned(), tuned("--seed", "5"))

    def test_all_the_json(self):
        out = self.run_well("tune", *MACHINE, *SEARCH, "--json", "-")
        document = json.loads(out)
        self.assertEqual(set(document), {"lockflight", "host", "tuned"})
        (tuned,) = document["tuned"]
        self.assertEqual(set(tuned), {
            "lock", "kind", "fabric", "machine", "workload", "procs", "levels", "writers", "role",
            "locality", "threads", "seed", "objective", "unit", "turns", "runs", "finished",
            "parameters", "tried", "default", "found", "gained", "gain"})
        self.assertEqual(tuned["parameters"],
                         [{"name": "backoff_first_ns", "values": [0, 62, 1000, 16000]}])
        for tried in tuned["tried"]:
            self.assertEqual(set(tried), {"parameter", "value", "candidate", "best", "verdict"})
            self.assertIn(tried["verdict"], ["better", "even", "same", "worse"])
        for end in ["default", "found"]:
            self.assertEqual(set(tuned[end]), {
                "params", "values", "median", "spread", "throughput_ops_s", "latency_us",
                "fairness_jain", "max_wait_us"})
            self.assertEqual(len(tuned[end]["values"]), tuned["turns"])
        self.assertTrue(tuned["finished"])

    def test_nothing_gained(self):
        out = self.run_well("tune", *MACHINE, "--lock", "rma-mcs", "--parameter", "T_L2=0,1",
                            "--out", "p.toml")
        self.assertIn("Nothing gained", out)
        self.assertIn("The defaults are kept.", out)
        self.assertIn("gain = 1\n[rma-mcs.parameters]\n", self.read("p.toml"))
        (run,) = self.bench("--lock", "rma-mcs", "--profile", "p.toml")
        self.assertEqual(run["params"]["T_L2"], 32)

    def test_several_locks_make_one_profile(self):
        self.run_well("tune", *MACHINE, "--lock", "spin-backoff,rma-mcs", "--runs", "30", "--out",
                      "p.toml")
        text = self.read("p.toml")
        self.assertIn("[rma-mcs.parameters]", text)
        self.assertIn("[spin-backoff.parameters]", text)

    def test_the_runs_are_a_budget(self):
        out = self.run_well("tune", *MACHINE, "--lock", "rma-rw", "--runs", "15", "--json", "-")
        (tuned,) = json.loads(out)["tuned"]
        self.assertLessEqual(tuned["runs"], 15)
        self.assertFalse(tuned["finished"])

    def test_on_shared_memory(self):
        out = self.run_well("tune", "--lock", "flight", "--levels", "2x1", "--writers", "1", "--ops",
                            "200", "--turns", "2", "--runs", "12", "--no-pin", "--parameter",
                            "barge=4,1024", "--json", "-")
        (tuned,) = json.loads(out)["tuned"]
        self.assertEqual((tuned["fabric"], tuned["procs"]), ("shm", 2))
        self.assertLessEqual(tuned["runs"], 12)

    # A simulated machine, so it is the same everywhere. If a lock or the simulator has changed, copy
    # the page's example from the program again.
    def test_the_example_of_the_page(self):
        with open(os.path.join(SOURCES, "docs", "tuning.md"), encoding="utf-8") as file:
            page = file.read()
        command, shown = re.search(r"```\n\$ lockflight (.*)\n([^`]*)```", page).groups()
        self.assertEqual(self.run_well(*command.split()), shown)
        self.assertEqual(self.read("profile.toml"), re.search(r"```toml\n([^`]*)```", page)[1])

    def test_a_profile_that_cannot_be_used(self):
        for text, words in [
                ("format = 2\n", ["p.toml:1: format '2'"]),
                ("format = 1\n[spni.parameters]\n", ["p.toml:2: unknown key 'spni'", "flight"]),
                ("format = 1\n[rma-rw.parameters]\nTR = 1\n",
                 ["p.toml:3: unknown key 'rma-rw.parameters.TR'", "T_DC, T_L1"]),
                ("format = 1\n[rma-rw.parameters]\nT_R = 0\n",
                 ["p.toml:3: rma-rw.parameters.T_R '0'", "1 to "]),
                ("format = ", ["p.toml:1: "])]:
            with self.subTest(text):
                self.write("p.toml", text)
                code, out, err = self.run_program("bench", *MACHINE, "--profile", "p.toml")
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                for word in ["lockflight bench: --profile p.toml", *words]:
                    self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
