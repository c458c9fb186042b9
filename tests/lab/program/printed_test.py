"""lab/perf/printed: the table of docs/printed.md is what its commands measure."""

import os
import subprocess
import sys
import unittest

from support import SOURCES, ProgramTest

SCRIPT = os.path.join(SOURCES, "lab", "perf", "printed")
PAGE = os.path.join(SOURCES, "docs", "printed.md")

# A row of each printed lock that takes a moment; rma-rw-listing has none of the size of its paper.
QUICK = ("--machine scc --workload mix --procs 48 --levels 48x1 --writers 0 ", "--locks 1000 ")

ROW = ("| `--lock rma-rw,rma-rw-listing {} --machine piz-daint --workload sob --procs 16 --levels 4x4"
       " --writers 0.02 --ops 4000` | {} |\n")


class Printed(ProgramTest):
    def printed(self, *arguments):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_the_page_has_what_its_commands_measure(self):
        for text in QUICK:
            code, out, err = self.printed("--check", "--only", text)
            self.assertEqual((code, err), (0, ""), out)
            with open(PAGE, encoding="utf-8") as page:
                for line in out.splitlines():
                    self.assertEqual(line.count("|"), 7, line)
                    self.assertIn(line.split("`")[1], page.read())
                    page.seek(0)

    def test_a_quotient_that_has_moved_is_told_and_written(self):
        mended = ROW.format("--set T_DC=4 --set mend_1=1", "1M | 1M | 0.01 | 1.00 | 0")
        self.write("page.md", "before\n" + mended + "after\n")
        code, out, err = self.printed("--page", "page.md", "--check")
        self.assertEqual(code, 1)
        self.assertEqual(err, "printed: page.md has 0.01 and 1.00 there: run lab/perf/printed "
                              "--write\n")
        code, _, err = self.printed("--page", "page.md", "--write")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.read("page.md"), "before\n" + out + "after\n")
        code, again, err = self.printed("--page", "page.md", "--check")
        self.assertEqual((code, again, err), (0, out, ""))

    def test_violations_of_the_printed_lock_are_a_number(self):
        self.write("page.md", ROW.format("--set T_DC=4", "0 | 0 | 0 | 0 | 0"))
        code, out, err = self.printed("--page", "page.md")
        self.assertEqual((code, err), (0, ""))
        self.assertGreater(int(out.split("|")[-2]), 0)

    def test_bad_usage(self):
        for arguments, says in ((("--only", "nowhere"), "a part of a command in printed.md"),
                                (("--page", "missing.md"), "missing.md"),
                                (("--write", "--check"), "not allowed with")):
            code, out, err = self.printed(*arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(says, err)


if __name__ == "__main__":
    unittest.main()
