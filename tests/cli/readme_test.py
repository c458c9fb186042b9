"""The README and the pages under docs/ say what is so: programs, commands, options, tables."""

import functools
import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from support import COMMANDS, SOURCES, ProgramTest, checked


def source(path):
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        return file.read()


def blocks(text, language=r"\w*"):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)


DOCUMENTS = ["README.md"] + sorted(
    os.path.relpath(path, SOURCES) for path in glob.glob(os.path.join(SOURCES, "docs", "*.md")))
# Each program of a page is a file that the build compiles and the tests run.
PROGRAMS = [
    ("README.md", "cpp", "examples/ucx/first.cpp"),
    ("docs/languages.md", "cpp", "examples/first.cpp"),
    ("docs/languages.md", "c", "examples/counter.c"),
    ("docs/languages.md", "fortran", "examples/mpi/counter_f08.f90"),
    ("docs/new-lock.md", "cpp", "tests/lab/check/example_ticket.hpp"),
]

# Page, where a table begins that has each lock, and what to add. The searches of a lock are lines of
# tests/lab/check_deep; tests/style/documents.py says if those of these tables are not.
TABLE_OF_DEATHS = "| lock | `--writers 2 --rounds 2 --deaths 1` |"
TABLES_OF_LOCKS = [
    ("docs/performance.md", "| lock | acquire, free |",
     "add | `{0}` | ACQUIRE, FREE | RELEASE, FREE | HANDOFF |"),
    ("docs/verification.md", "| lock | bound | states |",
     "add a line `{0} ... --memory views` to bounds() in tests/lab/check_deep, and what "
     "`./dev check-deep --table views {0}` prints"),
    ("docs/verification.md", TABLE_OF_DEATHS, "add what `./dev check-deep --table deaths {0}` prints"),
    ("docs/verification.md", "| lock | the largest search |",
     "add lines `{0} ...` to bounds() in tests/lab/check_deep, and | `{0}` | THE LARGEST | STATES, WHICH "
     "`./dev check-deep {0}` PRINTS | WHICH WAITERS NEVER STARVE |"),
]


class Readme(ProgramTest):
    def test_the_programs_are_examples(self):
        for document, language, example in PROGRAMS:
            with self.subTest(document=document, language=language):
                self.assertEqual(blocks(source(document), language), [source(example)])

    def test_the_example_of_a_lock_is_copied_under_another_name(self):
        script = next(block for block in blocks(source("docs/new-lock.md")) if "sed " in block)
        copies = {"include/lockflight/lock/my_lock.hpp": ["class my_lock {", '.name = "my-lock"'],
                  "tests/lock/my_lock_counts_test.cpp": ['#include "lockflight/lock/my_lock.hpp"'],
                  "tests/lab/mutants/my_lock.mutants": ["\nlock my_lock my_lock.hpp\n"]}
        originals = re.findall(r"tests/[\w/]+/example_ticket\w*\.\w+", script)
        for path in [*copies, *originals]:
            os.makedirs(self.path(os.path.dirname(path)), exist_ok=True)
        for path in originals:
            self.write(path, source(path))
        self.assertEqual(checked(["sh", "-e"], input=script, cwd=self.folder), (0, "", ""))
        for path, has in copies.items():
            for text in has:
                self.assertIn(text, self.read(path))
            self.assertNotRegex(self.read(path), "example[-_]ticket|subject")

    def test_python_in_the_readme_compiles(self):
        programs = blocks(source("README.md"), "python")
        self.assertTrue(programs)
        for program in programs:
            compile(program, "README.md", "exec")

    def locks(self):
        return json.loads(self.run_well("locks", "--json"))["locks"]

    def test_the_table_has_the_locks_that_exist(self):
        told = re.findall(r"(?m)^\| `([a-z0-9-]+)` \| (mutex|rw) \|", source("docs/locks.md"))
        listed = [(lock["name"], lock["kind"]) for lock in self.locks()]
        for name, kind in listed:
            if (name, kind) not in told:
                self.fail(f"docs/locks.md, The table: add | `{name}` | {kind} | SOURCE | USE IT WHEN |")
        self.assertEqual(told, listed, "docs/locks.md, The table: the order is that of `lockflight locks`")

    def test_no_table_leaves_a_lock_out(self):
        # Only the pauses of a lock of that name differ from those of another one.
        names = [lock["name"] for lock in self.locks()
                 if "sim" in lock["fabrics"] and not lock["name"].endswith("-backoff")]
        for page, header, add in TABLES_OF_LOCKS:
            table = re.search(rf"(?m)^{re.escape(header)}.*\n((?:\|.*\n)+)", source(page))[1]
            has = {name for cell in re.findall(r"(?m)^\| (.*?) \|", table)
                   for name in re.findall(r"`([a-z0-9-]+)`", cell)}
            for name in names:
                if name not in has and not (header == TABLE_OF_DEATHS and self.cannot_die(name)):
                    self.fail(f"{page}, the table '{header}': no row of {name}; {add.format(name)}")

    def cannot_die(self, lock):
        code, _, err = self.run_program("check", "--lock", lock, "--writers", "1", "--deaths", "1")
        self.assertTrue(code == 0 or "deaths" in err, err)
        return code == 2

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

    def test_each_command_of_dev_prints_its_help_without_a_build(self):
        """In a folder that has the scripts alone, so that no command finds anything to build or remove."""
        dev = shutil.copy(os.path.join(SOURCES, "dev"), self.folder)
        for folder in ("lab", "tests"):
            os.symlink(os.path.join(SOURCES, folder), self.path(folder))
        for tool in ("cmake", "dpkg-query", "apt-get"):
            self.write(tool, "#!/bin/sh\necho $0 is not for help >&2\nexit 1\n")
            os.chmod(self.path(tool), 0o755)
        commands = [name.replace("_", "-") for name in re.findall(r"(?m)^cmd_(\w+)\(\)", source("dev"))]
        running = {command: subprocess.Popen(
            [dev, command, "--help"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}")) for command in commands}
        for command, process in running.items():
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (0, ""), command)
            self.assertRegex(out, command.replace("-", "[-_]"))

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
