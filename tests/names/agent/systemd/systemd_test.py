"""The systemd units of the tree: systemd accepts them, the jobs of examples/systemd/ exclude each
other, and what the units forbid lockflight does not need.

usage: systemd_test.py [UNIT-OF-THE-AGENT]

Exit codes: 0 fine, 1 a test failed, 77 there is no systemd-analyze.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from system_calls import calls_of, can_filter, only

PROGRAM = os.environ["LOCKFLIGHT_PROGRAM"]
EXAMPLES = os.path.join(os.environ["LOCKFLIGHT_SOURCE_DIR"], "examples", "systemd")
AGENT = sys.argv[1:]
JOBS = ["backup", "reindex"]
INSTALLED = re.compile(r"/usr(/local)?/bin/lockflight\b")


def settings(name):
    """{key: [values]} of a unit of the examples."""
    found = {}
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        for key, value in re.findall(r"^(\w+)=(.*)$", file.read(), re.MULTILINE):
            found.setdefault(key, []).append(value)
    return found


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockflight-systemd-")
        self.addCleanup(shutil.rmtree, self.folder)

    def verified(self, *paths, change=lambda text: text):
        """What systemd says of the units, whose programs are not installed where they will be."""
        copies = []
        for path in paths:
            copies.append(os.path.join(self.folder, os.path.basename(path)))
            with open(path, encoding="utf-8") as old, open(copies[-1], "w", encoding="utf-8") as new:
                new.write(change(INSTALLED.sub(PROGRAM, old.read())))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *copies], check=False,
                              capture_output=True, text=True)
        return done.stdout + done.stderr

    def test_systemd_accepts_them(self):
        units = [os.path.join(EXAMPLES, f"{job}.{kind}") for job in JOBS for kind in ["service", "timer"]]
        self.assertEqual(self.verified(*units, *AGENT), "")
        said = self.verified(*units, change=lambda text: text.replace("KillMode=", "KillMod="))
        self.assertIn("KillMod", said)

    def test_every_unit_is_tested(self):
        self.assertEqual({name for name in os.listdir(EXAMPLES) if "." in name and not name.endswith(".d")},
                         {f"{job}.{kind}" for job in JOBS for kind in ["service", "timer"]})

    @unittest.skipUnless(shutil.which("systemd-tmpfiles") and os.geteuid() == 0, "root is needed")
    def test_the_folder_is_made(self):
        os.mkdir(os.path.join(self.folder, "etc"))
        at = f"--root={self.folder}"
        for program, more in [("sysusers", []), ("tmpfiles", ["--create"])]:
            subprocess.run([f"systemd-{program}", at, *more,
                            os.path.join(EXAMPLES, f"{program}.d", "lockflight-jobs.conf")],
                           check=True, capture_output=True)
        place = settings("backup.service")["Environment"][0].split("=", 1)[1]
        made = os.stat(self.folder + place)
        self.assertNotEqual(made.st_uid, 0)
        self.assertEqual(made.st_mode & 0o7777, 0o700)

    # ---- what the jobs do ----

    def command(self, job, script):
        """The job's, with a script as its program."""
        line = settings(f"{job}.service")["ExecStart"]
        self.assertEqual(len(line), 1)
        words = shlex.split(INSTALLED.sub(PROGRAM, line[0]))
        return [*words[:words.index("--") + 1], "/bin/sh", "-c", script]

    def environment(self):
        return dict(os.environ, LOCKFLIGHT_DOMAINS=self.folder)

    def test_the_jobs_exclude_each_other(self):
        inner = shlex.join(self.command("reindex", "exit 4"))
        code = subprocess.run(self.command("backup", inner), env=self.environment(), check=False,
                              capture_output=True, timeout=60).returncode
        self.assertEqual(str(code), settings("reindex.service")["SuccessExitStatus"][0])
        code = subprocess.run(self.command("reindex", "exit 4"), env=self.environment(), check=False,
                              timeout=60).returncode
        self.assertEqual(code, 4)

    # ---- what the jobs may do ----

    def under(self, allowed, command):
        return subprocess.run(command, preexec_fn=only(allowed), env=self.environment(), check=False,
                              capture_output=True, text=True, timeout=60)

    @unittest.skipUnless(can_filter(), "needs x86-64, and the headers of the kernel")
    def test_the_filter_leaves_what_the_program_needs(self):
        for job in JOBS:
            filters = settings(f"{job}.service")["SystemCallFilter"]
            self.assertEqual(filters, ["@system-service"])
            # LockPersonality=, RestrictNamespaces=: filters, too.
            allowed = calls_of(["@default", *filters]) - {"personality", "unshare", "setns"}
            done = self.under(allowed, self.command(job, "exit 4"))
            self.assertEqual((done.returncode, done.stderr), (4, ""))

    # As docs/domains.md says. It also shows that the filter filters.
    @unittest.skipUnless(can_filter(), "needs x86-64, and the headers of the kernel")
    def test_without_membarrier(self):
        allowed = calls_of(["@default", "@system-service"]) - {"membarrier"}
        command = self.command("backup", "exit 4")
        self.assertEqual(self.under(allowed, command).returncode, 4, "the first makes a domain for it")
        self.assertEqual(subprocess.run(command, env=self.environment(), check=False).returncode, 4)
        subprocess.run([PROGRAM, "domain", "remove", "default"], env=self.environment(), check=True,
                       capture_output=True)
        self.assertEqual(subprocess.run(command, env=self.environment(), check=False).returncode, 4)
        done = self.under(allowed, command)
        self.assertEqual(done.returncode, 3)
        self.assertIn("membarrier is refused", done.stderr)


if __name__ == "__main__":
    if not shutil.which("systemd-analyze"):
        print("skipped: there is no systemd-analyze (Debian: package systemd)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
