"""What the tests of named locks have in common: a domain of their own, and runs that hold locks."""

import json
import os
import subprocess

from support import PROGRAM, ProgramTest
from waiting import wait_until

DOMAIN = f"test-{os.getpid()}"


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
