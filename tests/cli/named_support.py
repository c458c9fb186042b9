"""What the tests of named locks have in common: a domain of their own, and runs that hold locks."""

import json
import os
import subprocess
import time

from support import PROGRAM, ProgramTest

DOMAIN = f"test-{os.getpid()}"


def wait_until(holds, seconds=10):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def state_of(pid):
    """Its letter in /proc, such as T for stopped; X if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def gone(pid):
    return state_of(pid) in "ZX"


class NamedTest(ProgramTest):
    """Each test has the domain to itself."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.run_program, "domain", "remove", DOMAIN, "--force")

    def run_in(self, *words, options=(), name="jobs"):
        done = subprocess.run(
            [PROGRAM, "run", "--domain", DOMAIN, *options, name, "--", *words],
            cwd=self.folder, capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stdout, done.stderr

    def hold(self, *words, options=(), name="jobs", first="", **more):
        """A run whose command says when it begins, and does something first; returns the run and
        the command's process."""
        script = first + 'echo $$; ' + (" ".join(words) or "exec sleep 60")
        process = self.start("run", "--domain", DOMAIN, *options, name, "--", "sh", "-c", script,
                             **more)
        self.addCleanup(self.end, process)
        return process, int(process.stdout.readline())

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def who(self, name="jobs"):
        code, out, err = self.run_program("who", name, "--domain", DOMAIN, "--json")
        if code == 2 and f"--domain '{DOMAIN}'" in err:  # a run that was just started makes it
            return {"name": name, "holders": [], "waiters": []}
        self.assertIn(code, [0, 1], err)
        return json.loads(out)

    def wait_for_waiters(self, number, name="jobs"):
        self.assertTrue(wait_until(lambda: len(self.who(name)["waiters"]) == number))
