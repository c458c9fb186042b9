"""The README and the pages under docs/ say what is so: programs, commands, options, tables."""

import functools
import glob
import json
import os
import re
import unittest

from support import COMMANDS, SOURCES, ProgramTest


def source(path):
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        return file.read()


def blocks(text, language=r"\w*"):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)


DOCUMENTS = ["README.md"] + sorted(
    os.path.relpath(path, SOURCES) for path in glob.glob(os.path.join(SOURCES, "docs", "*.md")))
# Each program of a page is an example, which the build compiles and the tests run.
PROGRAMS = [
    ("README.md", "cpp", "ucx/first.cpp"),
    ("docs/languages.md", "cpp", "first.cpp"),
    ("docs/languages.md", "c", "counter.c"),
    ("docs/languages.md", "fortran", "mpi/counter_f08.f90"),
]


class Readme(ProgramTest):
    def test_the_programs_are_examples(self):
        for document, language, example in PROGRAMS:
            with self.subTest(document=document, language=language):
                self.assertEqual(blocks(source(document), language),
                                 [source(f"examples/{example}")])

    def test_python_in_the_readme_compiles(self):
        programs = blocks(source("README.md"), "python")
        self.assertTrue(programs)
        for program in programs:
            compile(program, "README.md", "exec")

    def test_the_table_has_the_locks_that_exist(self):
        locks = {lock["name"]: lock["kind"]
                 for lock in json.loads(self.run_well("locks", "--json"))["locks"]}
        rows = re.findall(r"(?m)^\| ((?:`[a-z-]+`(?:, )?)+) \| (mutex|rw) \|",
                          source("docs/locks.md"))
        told = {name: kind for names, kind in rows for name in re.findall(r"`([a-z-]+)`", names)}
        self.assertEqual(told, locks)

    def test_the_table_has_the_workloads_that_exist(self):
        text = source("docs/workloads.md")
        told = re.findall(r"(?m)^\| `([a-z][a-z-]*)` \|", text) + re.findall(r"`--workload (\w+)`", text)
        listed = self.run_well("bench", "--help").split("Workloads:\n")[1].split("\n\n")[0]
        self.assertEqual(sorted(told), sorted(re.findall(r"(?m)^  ([a-z-]+)  ", listed)))

    def test_paths_exist(self):
        text = source("README.md")
        named = re.findall(r"`((?:include|src|tests|docs|examples)/[^`*{}]*)`", text)
        linked = re.findall(r"\]\(([^)#:]+)\)", text)
        self.assertTrue(named and linked)
        for path in named + linked:
            self.assertTrue(os.path.exists(os.path.join(SOURCES, path)), path)

    def test_commands_of_dev_exist(self):
        dev = source("dev")
        found = 0
        for document in DOCUMENTS:
            for command in re.findall(r"\./dev ([a-z][a-z-]*)", source(document)):
                found += 1
                with self.subTest(document=document, command=command):
                    self.assertIn(f"\ncmd_{command.replace('-', '_')}()", dev)
        self.assertGreater(found, 20)

    @functools.lru_cache(maxsize=None)
    def help_of(self, command):
        return self.run_well(command, "--help")

    def test_lockflight_commands_exist_with_their_options(self):
        found = 0
        for document in DOCUMENTS:
            for line in re.findall(r"(?m)\blockflight ([a-z]\w+ .*?)(?: +#.*)?$",
                                   "\n".join(blocks(source(document)))):
                words = line.split(" -- ")[0].split()
                if words[0] not in COMMANDS:
                    continue  # the name in a sentence
                found += 1
                for option in re.findall(r"(?<= )--[a-z-]+", " ".join(words)):
                    with self.subTest(document=document, line=line):
                        self.assertRegex(self.help_of(words[0]), rf"{option}\b(?!-)")
        self.assertGreater(found, 40)

    def test_shell_lines_begin_with_a_command_that_exists(self):
        found = 0
        for document in DOCUMENTS:
            for line in re.findall(r"(?m)^\$? ?(?:\./build/)?lockflight (\S+)",
                                   "\n".join(blocks(source(document)))):
                found += 1
                with self.subTest(document=document):
                    self.assertIn(line, COMMANDS)
        self.assertGreater(found, 20)


if __name__ == "__main__":
    unittest.main()
