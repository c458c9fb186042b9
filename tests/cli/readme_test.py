"""The README says what is so."""

import json
import os
import re
import unittest

from support import SOURCES, ProgramTest


def source(path):
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        return file.read()


class Readme(ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = source("README.md")

    def test_the_first_program_is_the_example(self):
        programs = re.findall(r"```cpp\n(.*?)```", self.text, re.S)
        self.assertEqual(programs[0], source("examples/first.cpp"))

    def test_the_programs_in_other_languages_are_examples(self):
        for language, example in [("c", "counter.c"), ("fortran", "mpi/counter_f08.f90")]:
            programs = re.findall(rf"```{language}\n(.*?)```", self.text, re.S)
            self.assertEqual(programs, [source(f"examples/{example}")])

    def test_the_table_has_the_locks_that_exist(self):
        locks = {lock["name"]: lock["kind"]
                 for lock in json.loads(self.run_well("locks", "--json"))["locks"]}
        rows = re.findall(r"(?m)^\| ((?:`[a-z-]+`(?:, )?)+) \| (mutex|rw) \|", self.text)
        told = {name: kind for names, kind in rows for name in re.findall(r"`([a-z-]+)`", names)}
        self.assertEqual(told, locks)

    def test_paths_exist(self):
        for path in re.findall(r"`((?:include|src|tests|docs|examples)/[^`*{}]*)`", self.text):
            self.assertTrue(os.path.exists(os.path.join(SOURCES, path)), path)
        for path in re.findall(r"\]\(([^)#:]+)\)", self.text):
            self.assertTrue(os.path.exists(os.path.join(SOURCES, path)), path)

    def test_commands_exist(self):
        dev = source("dev")
        for command in re.findall(r"\./dev (\w+)", self.text):
            self.assertIn(f"\ncmd_{command}()", dev)

    def test_lockflight_commands_parse(self):
        for line in re.findall(r"(?m)^(?:\./build/)?lockflight (.*?)(?: +#.*)?$", self.text):
            command = line.split()[0]
            self.assertIn(command, self.run_well("--help"))


if __name__ == "__main__":
    unittest.main()
