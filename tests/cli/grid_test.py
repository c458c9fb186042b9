"""lockflight grid: a few cells, what is printed of them, JSON, exit codes."""

import json
import unittest

from support import ProgramTest

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
            self.assertNotEqual(row["best_other"], row["lock"])
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


if __name__ == "__main__":
    unittest.main()
