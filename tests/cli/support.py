"""The common parts of the tests of the program: an empty folder to run it in, and a check of what
is left."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["LOCKFLIGHT_PROGRAM"]
SOURCES = os.environ["LOCKFLIGHT_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCES, "tests", "support"))

LAB = os.path.join(os.path.dirname(PROGRAM), "lockflight-lab")

# The commands of lockflight, and those that it passes on to the lab.
OWN_COMMANDS = ["run", "who", "leader", "done", "hold", "release", "break", "units", "top", "agent", "domain", "locks", "topo", "help", "completion", "man"]
LAB_COMMANDS = ["bench", "tune", "check", "reproduce", "grid", "report", "doctor"]
COMMANDS = OWN_COMMANDS + LAB_COMMANDS


def everything_in(folder):
    """Every path below a folder."""
    return sorted(
        os.path.relpath(os.path.join(where, name), folder)
        for where, folders, files in os.walk(folder)
        for name in folders + files
    )


def shared_memory():
    """Files of runs in shared memory. Domains are not: tests beside us have theirs there, as
    browsers and MPI jobs have files."""
    return {name for name in os.listdir("/dev/shm")
            if "lockflight" in name and not re.match(r"lockflight-(\d+$|g\d+-)", name)}


class ProgramTest(unittest.TestCase):
    """Each test runs in an empty folder, which is removed."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockflight-cli-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def start(self, *arguments, program=PROGRAM, **more):
        environment = dict(os.environ, TERM="xterm")
        environment.pop("NO_COLOR", None)
        return subprocess.Popen(
            [program, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )

    def run_program(self, *arguments, timeout=60, program=PROGRAM):
        """Returns (exit code, standard output, standard error)."""
        process = self.start(*arguments, program=program)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return process.returncode, out.decode(), err.decode()

    def run_well(self, *arguments, program=PROGRAM):
        """Standard output of a run that must be fine and silent on standard error."""
        code, out, err = self.run_program(*arguments, program=program)
        self.assertEqual((code, err), (0, ""), f"lockflight {' '.join(arguments)}")
        return out

    def assert_nothing_left(self, before=()):
        self.assertEqual(everything_in(self.folder), sorted(before), "files were left behind")


def checked(command, **more):
    """Any command. Returns (exit code, standard output, standard error)."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    return done.returncode, done.stdout, done.stderr


def skip_visibly(test, why):
    print(f"SKIPPED: {test.id()}: {why}", file=sys.stderr)
    test.skipTest(why)
