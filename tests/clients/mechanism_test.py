"""How clients of the drop-in are fetched, built and judged, with clients that are made up here.

usage: mechanism_test.py
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import automake
import clients_test
import fetching
from build import Builder
from client import Client, Debian, Git, Launch
from clients import CLIENTS

# Starts its program as a launcher does, whose ranks are one process.
LAUNCHER = ["sh", "-c", 'shift; exec "$@"', "launcher"]


def made_up(**changed):
    row = {"name": "made_up", "sources": (), "parts": (".",), "build": lambda builder: None,
           "launches": lambda source, mpi: [], "passes": re.compile("fine")}
    return Client(**(row | changed))


class Judging(unittest.TestCase):
    def judged(self, program, **changed):
        """What is said of a client with one program, a shell script, whose working folder is its own."""
        with tempfile.TemporaryDirectory() as fetched:
            client = made_up(**changed)
            client.source(fetched).mkdir(parents=True)
            folder = client.programs(fetched, "mpich")
            folder.mkdir()
            (folder / "program").write_text(f"#!/bin/sh\n{program}\n", "utf-8")
            (folder / "program").chmod(0o755)
            suite = clients_test.Suite(client, "mpich", fetched, "/drop-in", LAUNCHER)
            with (contextlib.redirect_stdout(io.StringIO()) as said,
                  mock.patch.object(clients_test, "SLOWER", 1000)):
                suite.compare(Launch("program", 2))
                suite.summary()
            return suite, said.getvalue()

    def test_a_program_that_passes_both_ways(self):
        suite, _ = self.judged("echo fine")
        self.assertTrue(suite.passed())

    def test_a_program_that_fails_with_the_drop_in_only_is_lost(self):
        for failure in ("exit 1", "echo bad"):
            suite, said = self.judged(f'test -z "$LD_PRELOAD" || {failure}; test -n "$LD_PRELOAD" || echo fine')
            self.assertEqual(1, len(suite.lost), said)
            self.assertFalse(suite.passed())

    def test_a_program_that_fails_with_the_drop_in_now_and_then_is_lost(self):
        suite, said = self.judged('if test -n "$LD_PRELOAD" && mkdir once; then exit 1; fi; echo fine')
        self.assertEqual(1, len(suite.lost), said)

    def test_a_program_that_fails_both_ways_now_and_then_does_not_count(self):
        suite, said = self.judged('if mkdir "once${LD_PRELOAD:+_with}"; then exit 1; fi; echo fine')
        self.assertEqual((0, 1), (len(suite.lost), len(suite.not_counted)), said)

    def test_a_program_that_fails_alone_now_and_then_and_always_with_the_drop_in_is_lost(self):
        suite, said = self.judged('if test -n "$LD_PRELOAD" || mkdir once; then exit 1; fi; echo fine')
        self.assertEqual(1, len(suite.lost), said)

    def test_a_program_that_fails_alone_does_not_count(self):
        suite, said = self.judged("exit 1")
        self.assertEqual((0, 1), (len(suite.lost), len(suite.not_counted)), said)

    def test_a_known_difference_is_named_with_its_reason(self):
        reason = "the program reads what it never wrote"
        suite, said = self.judged('test -z "$LD_PRELOAD" && echo fine',
                                  known={("mpich", "program", 2): reason})
        self.assertEqual((0, 1), (len(suite.lost), len(suite.known)), said)
        self.assertIn(reason, said)

    def test_a_program_that_did_not_compile_is_named(self):
        suite, said = self.judged("echo fine")
        (suite.programs / "program").unlink(missing_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            suite.compare(Launch("another", 2))
        self.assertEqual(["another"], [launch.program for launch in suite.not_counted], said)


class Fetching(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"LOCKFLIGHT_CLIENTS": str(self.folder / "local")}))
        self.enterContext(mock.patch.object(fetching, "MPIS", ()))
        repository = self.folder / "local/made_up"
        repository.mkdir(parents=True)
        (repository / "tests").mkdir()
        (repository / "tests/one.c").write_text("one", "utf-8")
        (repository / "other").write_text("other", "utf-8")
        self.git(repository, "init", "-q")
        self.git(repository, "add", ".")
        self.git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
        self.commit = self.git(repository, "rev-parse", "HEAD").strip()

    @staticmethod
    def git(folder, *words):
        return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout

    def client(self, commit):
        return made_up(sources=(Git("https://nowhere.invalid/made_up", commit),), parts=("tests",))

    def test_the_pinned_commit_of_a_local_copy(self):
        fetching.fetch_and_build(self.client(self.commit), self.folder / "to")
        source = self.folder / "to/made_up/source"
        self.assertEqual("one", (source / "tests/one.c").read_text("utf-8"))
        self.assertFalse((source / "other").exists())

    def test_the_source_is_kept_until_the_pin_changes(self):
        fetching.fetch_and_build(self.client(self.commit), self.folder / "to")
        source = self.folder / "to/made_up/source/tests/one.c"
        source.write_text("changed", "utf-8")
        fetching.fetch_and_build(self.client(self.commit), self.folder / "to")
        self.assertEqual("changed", source.read_text("utf-8"))
        fetching.fetch_and_build(self.client(self.commit[:12]), self.folder / "to")
        self.assertEqual("one", source.read_text("utf-8"))

    def test_a_source_that_cannot_be_had_is_one_line(self):
        with self.assertRaises(fetching.Failed) as caught, mock.patch.object(fetching, "GIT_S", 20):
            fetching.fetch_and_build(self.client("0" * 40), self.folder / "to")
        self.assertIn("the local copy", str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertFalse((self.folder / "to/made_up/of").exists())

    def test_a_client_that_is_not_there_is_skipped(self):
        with mock.patch.object(sys, "argv", ["", "prk", "mpich", str(self.folder / "none"), "/drop-in", "true"]):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(clients_test.SKIPPED, clients_test.main())
        self.assertEqual(1, said.getvalue().count("\n"))


class Table(unittest.TestCase):
    def test_every_client_is_pinned(self):
        for client in CLIENTS.values():
            self.assertTrue(client.sources, client.name)
            for source in client.sources:
                if isinstance(source, Git):
                    self.assertRegex(source.commit, "^[0-9a-f]{40}$")
                else:
                    self.assertIsInstance(source, Debian)
                    self.assertTrue(source.version)

    def test_a_makefile_of_automake(self):
        text = ("check_PROGRAMS = one \\\n  tests/two \\\n  # end\ntests_two_SOURCES = a.c a.h b.c\n"
                "one_CPPFLAGS = -DX -I.\n")
        self.assertEqual({"one": (["one.c"], ["-DX"]), "tests/two": (["a.c", "b.c"], [])},
                         automake.recipes(text, "check_PROGRAMS"))

    def test_what_does_not_compile_leaves_a_log(self):
        with tempfile.TemporaryDirectory() as folder:
            builder = Builder(folder, Path(folder) / "made", "mpich")
            builder.compiler = lambda source: "false"
            builder.programs({"program": (["a.c"], [])})
            self.assertEqual(["program"], builder.failed)
            self.assertTrue((Path(folder) / "made/program.log").exists())


if __name__ == "__main__":
    unittest.main()
