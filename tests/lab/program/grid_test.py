"""lockflight grid: a few cells, what is printed of them, JSON, exit codes."""

import json
import os
import statistics
import subprocess
import sys
import unittest

from support import SOURCES, ProgramTest

TABLES = os.path.join(SOURCES, "lab", "perf", "grid_table")

# One machine whose nodes have two cores, and two ranks: a moment.
FEW = ("grid", "--quick", "--machine", "osc-2005", "--procs", "4")


class Grid(ProgramTest):
    usual = None

    def found(self, *arguments):
        code, out, err = self.run_program(*FEW, *arguments, "--json", "-")
        self.assertEqual(err, "")
        found = json.loads(out)
        self.assertEqual(code, 1 if any(row["falls_short"] for row in found["grid"]) else 0)
        return found

    def rows(self, *arguments):
        return self.found(*arguments)["grid"]

    def usual_rows(self):
        """Simulated runs are the same each time: once for all tests."""
        if Grid.usual is None:
            Grid.usual = self.rows()
        return Grid.usual

    def test_json_has_every_cell(self):
        rows = self.usual_rows()
        # 1 lock and 100; 0.2 % writers with flight-rw alone, 100 % with both.
        self.assertEqual(len(rows), 2 * 3)
        for row in rows:
            self.assertEqual((row["machine"], row["procs"]), ("osc-2005", 4))
            self.assertIn(row["lock"], ("flight", "flight-rw"))
            self.assertNotIn(row["lock"], row["others_ops_s"])
            self.assertEqual(row["best_other_ops_s"], max(row["others_ops_s"].values()))
            self.assertEqual(row["best_other_ops_s"], row["others_ops_s"][row["best_other"]])
            self.assertAlmostEqual(row["ratio"],
                                   row["throughput_ops_s"] / row["best_other_ops_s"])
            self.assertEqual((row["bound"], row["falls_short"]), (0.5, row["ratio"] < 0.5))
            self.assertEqual(row["locality"], None if row["locks"] == 1 else 0.9)

    def test_json_has_the_medians(self):
        found = self.found()
        medians = found["medians"]
        # One machine and all of them; 0.2 % writers with flight-rw alone, 100 % with both.
        self.assertEqual(len(medians), 2 * 3)
        for row in medians:
            self.assertIn(row["machine"], ("osc-2005", None))
            ratios = [c["ratio"] for c in found["grid"]
                      if (c["writers"], c["lock"]) == (row["writers"], row["lock"])]
            self.assertEqual(row["cells"], 2)
            self.assertAlmostEqual(row["median"], statistics.median(ratios))
            self.assertEqual(row["least"], min(ratios))
            self.assertEqual(row["falls_short"], sum(ratio < 0.5 for ratio in ratios))

    def test_the_factor_is_an_option(self):
        least = min(row["ratio"] for row in self.usual_rows())
        rows = self.rows("--below", str(least + 1e-6))
        self.assertEqual([row["ratio"] for row in rows if row["falls_short"]], [least])
        for bad in ["-0.5", "101", "half"]:
            code, out, err = self.run_program(*FEW, "--below", bad)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, rf"^lockflight grid: --below '?{bad}'? \(accepted: .*0 to 100\)\n$")

    def test_the_table_has_those_that_fall_short(self):
        ratios = sorted(row["ratio"] for row in self.usual_rows())
        factor = f"{(ratios[1] + ratios[2]) / 2:.6f}"
        code, out, err = self.run_program(*FEW, "--below", factor, "--json", "g.json",
                                          "--jobs", "2")
        self.assertEqual((code, err), (1, ""))
        self.assertIn(f"2 of 6 cells fall short of {float(factor):g} times the fastest other lock\n"
                      "wrote g.json\n", out)
        short, _, medians = out.partition("\n\n")
        self.assertEqual(len([line for line in short.splitlines() if " 4  " in line]), 2)
        self.assertEqual(len([line for line in medians.splitlines()
                              if line.startswith(("osc-2005 ", "all "))]), 4)
        self.assertEqual(len(json.loads(self.read("g.json"))["grid"]), 6)
        self.assert_nothing_left(["g.json"])

    def test_tables_of_a_whole_grid(self):
        def tables(*arguments):
            done = subprocess.run([sys.executable, TABLES, *arguments],
                                  cwd=self.folder, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr

        code, out, err = self.run_program(*FEW, "--json", "g.json", "--below", "0")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("machine  "), "no list of cells where none falls short")
        self.assertTrue(out.endswith("0 of 6 cells fall short of 0 times the fastest other lock\n"
                                     "wrote g.json\n"), out)
        found = json.loads(self.read("g.json"))
        least = min(row["ratio"] for row in found["grid"])
        code, out, err = tables("g.json")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("6 cells, 0 fall short, 0 of them without a result\n"), out)
        _, by_writers, by_machine, *none_short = out.split("\n\n")
        self.assertEqual(len(by_writers.splitlines()), 2 + 3)
        self.assertEqual(len(by_machine.splitlines()), 2 + 1)
        self.assertEqual(none_short, [])
        code, out, err = tables("--below", str(least + 1e-6), "g.json")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("6 cells, 1 fall short, "), out)
        self.assertEqual(len(out.split("\n\n")[3].splitlines()), 2 + 1)
        code, out, err = tables("missing.json")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^grid_table: missing\.json: .*accepted: what lockflight grid")
        code, out, err = tables()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("FILE", err)
        code, out, err = tables("--below", "much", "g.json")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--below", err)


if __name__ == "__main__":
    unittest.main()
