"""lockflight reproduce: exit codes, JSON, tables, files. Claims of our own, so that a verdict is known."""

import json
import re
import unittest

from support import SOURCES, ProgramTest

HEAD = 'paper = "some"\ntitle = "Some paper"\nmachine = "piz-daint"\n'
CLAIM = """[[claim]]
id = "{id}"
where = "section 1, figure 2"
what = "queues beat spinning"
kind = "direction"
relation = ">"
value = {value}
unit = "x"
calibrated = false
[claim.measure]
metric = "throughput"
numerator = {{ lock = "{lock}", workload = "ecsb", procs = 4, levels = "1x4", writers = 1.0, ops = 200 }}
denominator = {{ lock = "spin", workload = "ecsb", procs = 4, levels = "1x4", writers = 1.0, ops = 200 }}
"""


def claims(*rows):
    return HEAD + "".join(
        CLAIM.format(**{"id": "one", "value": 0.001, "lock": "d-mcs", **row}) for row in rows)


class Reproduce(ProgramTest):
    def test_a_claim_that_holds_is_fine(self):
        self.write("some.toml", claims({}))
        out = self.run_well("reproduce", "some.toml")
        self.assertIn("one    queues beat spinning  > 0.001 x", out)
        self.assertIn("1 of 1 claim hold", out)

    def test_a_missed_claim_is_1(self):
        self.write("some.toml", claims({}, {"id": "far", "value": 1e9}))
        code, out, err = self.run_program("reproduce", "some.toml")
        self.assertEqual((code, err), (1, ""))
        self.assertIn("1 of 2 claims hold", out)
        self.assertIn("misses", out)

    def test_a_bad_file_is_2_with_its_line_and_key(self):
        self.write("some.toml", claims({}).replace('unit = "x"', 'unit = "ns"'))
        code, out, err = self.run_program("reproduce", "some.toml")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("some.toml:11: claim.unit 'ns' (accepted: x, us", err)
        self.assertEqual(err.count("\n"), 1)

    def test_what_the_benchmark_refuses_is_2_with_the_claim(self):
        self.write("some.toml", claims({"lock": "dmcs"}))
        code, out, err = self.run_program("reproduce", "some.toml", "--html", "page.html")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("some.toml:4: claim 'one': --lock 'dmcs' (nearest: d-mcs", err)
        self.assert_nothing_left(["some.toml"])

    def test_json_is_as_the_design_fixes_it(self):
        self.write("some.toml", claims({}, {"id": "far", "value": 1e9}))
        code, out, _ = self.run_program("reproduce", "some.toml", "--json", "-")
        self.assertEqual(code, 1)
        rows = json.loads(out)["claims"]
        self.assertEqual([row["verdict"] for row in rows], ["holds", "misses"])
        for row in rows:
            self.assertLessEqual(
                {"paper", "id", "what", "paper_value", "ours", "unit", "tolerance", "verdict",
                 "calibrated_on_this"}, set(row))
            self.assertIsInstance(row["ours"], float)
            self.assertIs(row["calibrated_on_this"], False)

    def test_files(self):
        self.write("some.toml", claims({}))
        out = self.run_well("reproduce", "some.toml", "--json", "c.json", "--html", "c.html")
        self.assertIn("wrote c.json\nwrote c.html\n", out)
        self.assertEqual(len(json.loads(self.read("c.json"))["claims"]), 1)
        self.assertIn("queues beat spinning", self.read("c.html"))
        self.assert_nothing_left(["some.toml", "c.json", "c.html"])

    def test_pages_of_all_are_an_index_and_a_page_for_each(self):
        out = self.run_well("reproduce", "--quick", "--html", "all.html")
        names = ["all.html"] + [f"all-{name}.html" for name in
                                ("rma", "alock", "fx100", "dlm", "scc", "dslr", "shiftlock",
                                 "declock", "farlock", "beyond")]
        for name in names:
            self.assertIn(f"wrote {name}\n", out)
        self.assertIn('href="all-dlm.html"', self.read("all.html"))
        self.assertIn('href="all.html"', self.read("all-dlm.html"))
        self.assert_nothing_left(names)

    def test_a_page_that_would_be_the_json_is_refused(self):
        code, _, err = self.run_program("reproduce", "--quick", "--json", "a-rma.html",
                                        "--html", "a.html")
        self.assertEqual(code, 2)
        self.assertIn("--html", err)
        self.assertIn("another file than that of --json", err)
        self.assert_nothing_left([])

    def test_the_claims_themselves_are_never_written_over(self):
        self.write("some.toml", claims({}))
        for option in ["--html", "--json"]:
            code, _, err = self.run_program("reproduce", "some.toml", option, "./some.toml")
            self.assertEqual(code, 2)
            self.assertIn("another file than the claims", err)
        self.assertEqual(self.read("some.toml"), claims({}))
        self.assert_nothing_left(["some.toml"])

    def test_a_folder_is_no_claim_file(self):
        code, _, err = self.run_program("reproduce", "./")
        self.assertEqual(code, 2)
        self.assertIn("or a claim file", err)

    def test_list_runs_nothing_and_has_all(self):
        out = self.run_well("reproduce", "--list")
        for part in ["rma: High-Performance", "lb-1024-vs-d-mcs", "k-computer", "on a model of scc"]:
            self.assertIn(part, out)

    def test_beyond_is_data_and_no_claims(self):
        rows = json.loads(self.run_well("reproduce", "beyond", "--quick", "--json", "-"))
        self.assertEqual(rows["claims"], [])
        rows = rows["beyond"]
        self.assertEqual(len({row["machine"] for row in rows}), 9)
        self.assertGreaterEqual(len({row["lock"] for row in rows}), 15)
        self.assertEqual({row["procs"] for row in rows}, {4, 16})
        for row in rows:
            self.assertGreater(row["throughput_ops_s"], 0, row)
            self.assertGreater(row["latency_us"]["mean"], 0, row)
            self.assertEqual(row["violations"], 0, row)
        readers = {row["lock"] for row in rows if row["writers"] == 0.002}
        self.assertIn("rma-rw", readers)
        self.assertNotIn("d-mcs", readers)

    def test_beyond_says_who_is_fastest(self):
        out = self.run_well("reproduce", "beyond", "--quick", "--html", "b.html")
        self.assertRegex(out, r"(?m)^piz-daint +all write +[a-z-]+ 4")
        self.assertRegex(out, r"(?m)^scc +0.2 % write +[a-z-]+ 4")
        self.assertIn("wrote b.html", out)
        self.assertEqual(self.read("b.html").count('class="card" data-machine='), 18)

    def test_beyond_is_part_of_all_and_of_no_paper(self):
        self.assertIn("beyond: every lock", self.run_well("reproduce", "--list"))
        self.assertRegex(self.run_well("reproduce", "beyond", "--list"),
                         r"(?m)^slingshot +sob +0.2 % write +\d+ +65536$")
        self.assertNotIn("beyond", self.run_well("reproduce", "dlm", "--list"))
        self.write("some.toml", claims({}))
        self.assertNotIn("beyond", json.loads(
            self.run_well("reproduce", "some.toml", "--json", "-")))

    def test_the_quick_ones_hold_wherever_the_program_is(self):
        out = self.run_well("reproduce", "fx100", "--quick")
        self.assertRegex(out, r"pair-4 .* holds")
        self.assertNotIn("k-computer", out)


class Documents(unittest.TestCase):
    """The counts in the documents are those of the files."""

    def test_of_claims(self):
        def read(name):
            with open(f"{SOURCES}/{name}", encoding="utf-8") as file:
                return file.read()

        all_claims = [0, 0, 0]
        for paper in ["rma", "alock", "fx100", "dlm", "scc", "dslr", "shiftlock", "declock",
                      "farlock"]:
            text = read(f"lab/claims/{paper}.toml")
            counts = [len(re.findall(pattern, text, re.MULTILINE)) for pattern in
                      (r"^\[\[claim\]\]", r"^calibrated = true", r"^needs = ")]
            all_claims = [sum(pair) for pair in zip(all_claims, counts)]
            claims, calibrated, needs = counts
            with self.subTest(paper):
                self.assertRegex(read("lab/claims/README.md"), rf"\| `{paper}\.toml` \|.*\| "
                                 rf"{claims} \| {calibrated} \| {needs} \|\n")
                self.assertRegex(read("docs/reproduction.md"), rf"\| `{paper}` \|.*\| {claims} \| "
                                 rf"\d+ \| \d+ \| \d+ \| {needs} \| {calibrated} \|\n")
        self.assertIn(f"There are {all_claims[0]} claims, and {all_claims[1]} of them are calibrated",
                      read("lab/claims/README.md"))


class Machines(ProgramTest):
    def bench(self, *arguments):
        return json.loads(self.run_well(
            "bench", "--fabric", "sim", "--lock", "d-mcs", "--levels", "2x2", "--ops", "400",
            "--json", "-", *arguments))["runs"][0]

    def test_a_name_needs_no_file(self):
        self.assertEqual(self.bench("--machine", "piz-daint")["machine"], "piz-daint")

    def test_a_file_of_that_name_comes_first(self):
        self.write("piz-daint", "name = 3\n")
        code, _, err = self.run_program("bench", "--fabric", "sim", "--machine", "piz-daint")
        self.assertEqual(code, 2)
        self.assertIn("piz-daint:1: ", err)

    def test_the_names_are_in_the_help(self):
        out = " ".join(self.run_well("bench", "--help").split())
        self.assertIn("cloudlab-cx3, cx5-100g, fx10, fx100, ndr-infiniband, osc-2005, piz-daint, scc, "
                      "slingshot", out)

    def test_a_number_is_replaced(self):
        slow = self.bench("--machine", "piz-daint", "--machine-set", "network.latency_ns=100000")
        self.assertGreater(slow["latency_us"]["max"],
                           10 * self.bench("--machine", "piz-daint")["latency_us"]["max"])


if __name__ == "__main__":
    unittest.main()
