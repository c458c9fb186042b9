"""lockflight grid: a few cells, what is printed of them, JSON, exit codes."""

import json
import os
import re
import subprocess
import sys
import unittest

from support import SOURCES, ProgramTest

TABLES = os.path.join(SOURCES, "bench", "grid_table")

# One machine whose nodes have two cores, and two ranks: a moment.
FEW = ("grid", "--quick", "--machine", "osc-2005", "--procs", "4")


class Grid(ProgramTest):
    def rows(self):
        code, out, err = self.run_program(*FEW, "--json", "-")
        self.assertEqual(err, "")
        rows = json.loads(out)["grid"]
        self.assertEqual(code, 1 if any(row["falls_short"] for row in rows) else 0)
        return rows

    def test_json_has_every_cell(self):
        rows = self.rows()
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
            self.assertEqual(row["falls_short"], row["ratio"] < row["bound"])
            self.assertEqual(row["locality"], None if row["locks"] == 1 else 0.9)

    def test_the_table_has_those_that_fall_short(self):
        short = [row for row in self.rows() if row["falls_short"]]
        code, out, err = self.run_program(*FEW, "--json", "g.json", "--jobs", "2")
        self.assertEqual((code, err), (1 if short else 0, ""))
        self.assertIn(f"{len(short)} of 6 cells fall short\nwrote g.json\n", out)
        self.assertIn("least ratio", out)
        self.assertEqual(len([line for line in out.splitlines() if " 4  " in line]), len(short))
        self.assertEqual(len(json.loads(self.read("g.json"))["grid"]), 6)
        self.assert_nothing_left(["g.json"])

    def test_tables_of_a_whole_grid(self):
        def tables(*arguments):
            done = subprocess.run([sys.executable, TABLES, *arguments],
                                  cwd=self.folder, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr

        self.run_program(*FEW, "--json", "g.json")
        rows = json.loads(self.read("g.json"))["grid"]
        short = sum(row["falls_short"] for row in rows)
        code, out, err = tables("g.json")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith(f"6 cells, {short} fall short, 0 of them without"), out)
        ratios = re.findall(r"\d+\.\d\d |none", out.split("\n\n")[2])
        self.assertEqual(len(ratios), short)
        code, out, err = tables("missing.json")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^grid_table: missing\.json: .*accepted: what lockflight grid")
        code, out, err = tables()
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^grid_table: 0 arguments \(accepted: one FILE.*\)\n$")


if __name__ == "__main__":
    unittest.main()
