"""The examples do what their first lines say. The arguments are the built examples."""

import os
import re
import statistics
import sys
import tempfile
import unittest

from support import ProgramTest, checked

EXAMPLES = {os.path.basename(path): path for path in sys.argv[1:]}


class Examples(ProgramTest):
    def output_of(self, name, *arguments):
        code, out, err = checked([EXAMPLES[name], *arguments], cwd=self.folder, timeout=60)
        self.assertEqual((code, err), (0, ""))
        self.assert_nothing_left()
        return out

    def test_all_are_tested(self):
        fortran = {"example_counter_fortran"} & set(EXAMPLES)  # where there is a compiler
        self.assertEqual(set(EXAMPLES), {"example_counter", "example_election", "example_first", "example_levels", "example_loss",
                                         "example_named_mutex", "example_readers",
                                         "example_shared_table", "example_tuned"} | fortran)

    def test_counters(self):
        for name in {"example_first", "example_named_mutex", "example_counter",
                     "example_counter_fortran"} & set(EXAMPLES):
            with self.subTest(name):
                self.assertEqual(self.output_of(name), "4000\n")

    def test_readers(self):
        for name in ["example_readers", "example_shared_table"]:
            with self.subTest(name):
                self.assertRegex(self.output_of(name),
                                 r"^rank 1 read the table \d+ times, always whole\n$")

    def test_election(self):
        self.assertEqual(self.output_of("example_election"),
                         "leader: first\nleader: second\nnobody leads\n")

    def test_loss(self):
        self.assertEqual(self.output_of("example_loss"), "stopped: the lock was lost\n")

    def test_levels(self):
        def moves(*arguments):
            counts = []
            # On a busy machine a rank may be done before the next one begins, and the lock moves
            # from element to element a few times only.
            for _ in range(5):
                out = self.output_of("example_levels", *arguments)
                found = re.fullmatch(r"T_L2 \d+: 16000 acquisitions, (\d+) moves .*\n", out)
                self.assertTrue(found, out)
                counts.append(int(found[1]))
            return statistics.median(counts)

        self.assertLess(moves("2x4", "1000"), moves("2x4", "1"))

    def test_tuned(self):
        self.assertEqual(self.output_of("example_tuned"), "local_budget 64: 4000\n")
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("format = 1\n[flight.parameters]\nlocal_budget = 3\n")
            file.flush()
            self.assertEqual(self.output_of("example_tuned", file.name), "local_budget 3: 4000\n")
        code, out, err = checked([EXAMPLES["example_tuned"], "/nowhere.toml"], cwd=self.folder)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("tuned: '/nowhere.toml' (accepted: a profile that can be read: ", err)

    def test_levels_refuses(self):
        for arguments in [["2x"], ["2x2", "x"], ["2x2", "-1"]]:
            code, out, err = checked([EXAMPLES["example_levels"], *arguments], cwd=self.folder)
            self.assertEqual((code, out, err.count("\n")), (1, "", 1), err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
