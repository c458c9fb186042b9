"""lockflight and lockflight-lab: which commands are whose, how one finds the other, and what the
first one loads."""

import os
import re
import shutil
import stat
import subprocess
import unittest

from support import (COMMANDS, LAB, LAB_COMMANDS, OWN_COMMANDS, PROGRAM, ProgramTest, checked,
                     skip_visibly)

# Says who it is, and how it was started.
STAND_IN = """#!/bin/sh
printf '%s' {name}; printf ' <%s>' "$@"; echo
exit {code}
"""


class Finding(ProgramTest):
    """Copies of lockflight in folders with and without a lab."""

    def setUp(self):
        super().setUp()
        self.program = self.installed("bin/lockflight")

    def installed(self, place):
        os.makedirs(os.path.dirname(self.path(place)), exist_ok=True)
        shutil.copy(PROGRAM, self.path(place))
        return self.path(place)

    def lab(self, place, code=0):
        """A lab that prints its place and its arguments."""
        os.makedirs(os.path.dirname(self.path(place)), exist_ok=True)
        self.write(place, STAND_IN.format(name=place, code=code))
        os.chmod(self.path(place), 0o755)

    def run_found(self, *arguments, program=None, path="/usr/bin:/bin", **more):
        return checked([program or self.program, *arguments], cwd=self.folder,
                       env=dict(os.environ, PATH=path), **more)

    def test_beside_it(self):
        self.lab("bin/lockflight-lab")
        self.lab("libexec/lockflight/lockflight-lab")
        self.lab("other/lockflight-lab")
        self.assertEqual(self.run_found("bench", path=self.path("other")),
                         (0, "bin/lockflight-lab <bench>\n", ""))

    def test_in_libexec(self):
        self.lab("libexec/lockflight/lockflight-lab")
        self.lab("other/lockflight-lab")
        self.assertEqual(self.run_found("bench", path=self.path("other")),
                         (0, "libexec/lockflight/lockflight-lab <bench>\n", ""))

    def test_not_itself_under_that_name(self):
        os.symlink("lockflight", self.path("bin/lockflight-lab"))
        self.lab("other/lockflight-lab")
        self.assertEqual(self.run_found("bench", path=self.path("other")),
                         (0, "other/lockflight-lab <bench>\n", ""))

    def test_on_the_path(self):
        self.lab("other/lockflight-lab")
        self.assertEqual(self.run_found("bench", path=f"/nowhere:{self.path('other')}"),
                         (0, "other/lockflight-lab <bench>\n", ""))

    def test_through_a_link_of_the_user(self):
        self.lab("bin/lockflight-lab")
        os.makedirs(self.path("mine"))
        for name in ["lockflight", "lf"]:
            os.symlink(self.program, self.path(f"mine/{name}"))
            self.assertEqual(self.run_found("bench", program=self.path(f"mine/{name}")),
                             (0, "bin/lockflight-lab <bench>\n", ""))
        self.assertEqual(
            self.run_found("-c", "exec lockflight bench", program="/bin/sh",
                           path=f"{self.path('mine')}:/bin")[:2],
            (0, "bin/lockflight-lab <bench>\n"))

    def test_the_lab_of_a_network(self):
        """lockflight.mpich does not take the lab that has no MPI."""
        program = self.installed("bin/lockflight.mpich")
        self.lab("bin/lockflight-lab")
        self.assertEqual(self.run_found("bench", program=program)[:2], (3, ""))
        self.lab("libexec/lockflight/lockflight-lab.mpich")
        self.assertEqual(self.run_found("bench", program=program),
                         (0, "libexec/lockflight/lockflight-lab.mpich <bench>\n", ""))

    def test_nothing_of_the_directory_that_the_user_is_in(self):
        self.lab("lockflight-lab")
        for path in ["", ".", ":/bin", "/bin:", "/bin::/usr/bin", "./"]:
            with self.subTest(path=path):
                self.assertEqual(self.run_found("bench", path=path)[:2], (3, ""))

    def test_it_is_missing(self):
        for arguments in [["bench"], ["help", "bench"], ["bench", "--help"], ["--help", "bench"]]:
            code, out, err = self.run_found(*arguments)
            self.assertEqual((code, out, err.count("\n")), (3, "", 1), err)
            for word in ["lockflight: this command", "lockflight-lab is not there", self.path("bin/"), "libexec/lockflight",
                         "PATH"]:
                self.assertIn(word, err)
        self.assertEqual(self.run_found("--help")[0], 0)
        self.assertEqual(self.run_found("completion", "bash")[0], 0)

    def test_one_that_cannot_be_run_is_passed_over(self):
        self.lab("bin/lockflight-lab")
        os.chmod(self.path("bin/lockflight-lab"), stat.S_IRUSR)
        code, _, err = self.run_found("bench")
        self.assertEqual(code, 3)
        self.assertIn(f"{self.path('bin/lockflight-lab')} cannot be run: Permission denied", err)
        self.lab("other/lockflight-lab")
        self.assertEqual(self.run_found("bench", path=self.path("other"))[1],
                         "other/lockflight-lab <bench>\n")

    def test_without_proc(self):
        """Where /proc is not mounted a program cannot know its own folder."""
        if os.geteuid() != 0:
            skip_visibly(self, "not root: /proc cannot be hidden")
        self.lab("bin/lockflight-lab")
        self.lab("other/lockflight-lab")
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        if checked([*hidden, "true"])[0] != 0:
            skip_visibly(self, "unshare or mount are refused")
        path = f"{self.path('other')}:/usr/bin:/bin:/usr/sbin:/sbin"
        self.assertEqual(
            self.run_found(*hidden[1:], self.program, "bench", program=hidden[0], path=path),
            (0, "other/lockflight-lab <bench>\n", ""))

    def test_arguments_and_exit_code_pass_through(self):
        self.lab("bin/lockflight-lab", code=77)
        odd = ["", " ", "--", "-h", "--fabric=x", "a\nb", "\x1b", "ä", "--help", "run"]
        for command in LAB_COMMANDS:
            code, out, err = self.run_found(command, *odd)
            words = " ".join(f"<{word}>" for word in [command, *odd])
            self.assertEqual((code, out, err), (77, f"bin/lockflight-lab {words}\n", ""))
        self.assertEqual(self.run_found("--help", "bench")[1],
                         "bin/lockflight-lab <--help> <bench>\n")

    def test_own_commands_do_not_need_it(self):
        self.lab("bin/lockflight-lab", code=77)
        for arguments in [["locks"], ["topo"], ["domain", "list"], ["man"], ["--version"]]:
            code, out, _ = self.run_found(*arguments)
            self.assertEqual(code, 0, arguments)
            self.assertNotIn("lockflight-lab <", out)

    def test_standard_streams_pass_through(self):
        self.lab("bin/lockflight-lab")
        self.write("bin/lockflight-lab", "#!/bin/sh\ncat; echo said >&2; kill -TERM $$\n")
        done = subprocess.run([self.program, "report"], input=b"given", capture_output=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (-15, b"given", b"said\n"))


class Lab(ProgramTest):
    """lockflight-lab by itself."""

    def test_version_and_help(self):
        self.assertRegex(self.run_well("--version", program=LAB), r"^lockflight-lab \d+\.\d+\.\d+\n$")
        listed = re.findall(r"(?m)^  (\w+)  ",
                            self.run_well("--help", program=LAB).split("Options:")[0])
        self.assertEqual(listed, LAB_COMMANDS + ["help", "completion", "man"])

    def test_it_does_what_lockflight_passes_on(self):
        for arguments in [["bench", "--help"], ["reproduce", "--list", "--quick"],
                          ["check", "--lock", "nope"], ["report"]]:
            self.assertEqual(self.run_program(*arguments, program=LAB), self.run_program(*arguments))

    def test_it_has_no_command_of_lockflight(self):
        for command in set(OWN_COMMANDS) - {"help", "completion", "man"}:
            code, out, err = self.run_program(command, program=LAB)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1))
            self.assertIn(f"lockflight-lab: command '{command}'", err)

    def test_an_unknown_command_is_told_all_there_are(self):
        for program, known in [(PROGRAM, COMMANDS), (LAB, LAB_COMMANDS)]:
            code, out, err = self.run_program("bnech", program=program)
            self.assertEqual((code, out), (2, ""))
            for command in known:
                self.assertRegex(err, rf"\b{command}\b")
            self.assertIn("nearest: bench", err)


class Start(ProgramTest):
    """A program that is started for each command under a lock loads what the locks need."""

    def needed_by(self, program):
        if not shutil.which("readelf"):
            skip_visibly(self, "no readelf")
        code, out, _ = checked(["readelf", "--wide", "--dynamic", program])
        self.assertEqual(code, 0)
        return set(re.findall(r"\(NEEDED\).*\[(\w+)", out))

    def test_lockflight_loads_the_library_of_c_alone(self):
        self.assertLessEqual(self.needed_by(PROGRAM), {"libc", "libpthread", "ld"})

    def test_it_has_no_code_of_the_instruments(self):
        """Nor of the parsers and fibers that the lab is linked with, nor streams and locales."""
        if not shutil.which("nm"):
            skip_visibly(self, "no nm")
        _, out, _ = checked(["nm", "--demangle", PROGRAM])
        if "lockflight::cli::" not in out:
            skip_visibly(self, "the program has no symbols")
        for part in ["bench", "sim", "check", "reproduce", "report", "tune", "lab", "fiber"]:
            self.assertNotRegex(out, rf" lockflight::{part}::")
        self.assertNotRegex(out, r" (toml|boost)::")
        self.assertNotRegex(out, r"std::(locale::locale|ios_base::Init)\(")


if __name__ == "__main__":
    unittest.main()
