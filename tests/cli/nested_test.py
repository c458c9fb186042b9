"""A run inside of a run that holds the same lock: each would wait for the other."""

import os
import subprocess
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM
from waiting import wait_until

RUN = (PROGRAM, "run", "--domain", DOMAIN)


class Nested(NamedTest):
    def run_all(self, *names, options=(), command, timeout=30, **more):
        done = subprocess.run([*RUN, *options, *names, "--", *command], cwd=self.folder,
                              capture_output=True, text=True, timeout=timeout, check=False, **more)
        return done.returncode, done.stdout, done.stderr

    def nested(self, outer=("jobs",), inner=("jobs",), outer_options=(), inner_options=(), **more):
        return self.run_all(*outer, options=outer_options, **more,
                            command=[*RUN, *inner_options, *inner, "--", "echo", "ran"])

    def assert_refused(self, found, name="jobs"):
        code, out, err = found
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertRegex(err, rf"^lockflight run: NAME '{name}' \(accepted: a lock that no run around "
                              r"this one holds, or --wait-anyway; the run of [a-z]+ \(pid \d+\) "
                              r"(holds|shares) it and waits for this run, which would wait for it\)\n$")

    def test_others_see_the_innermost_command(self):
        inner = [*RUN, "--nonblock", "b", "--", "sh", "-c", "echo; exec sleep 60"]
        outer = self.start(*RUN[1:], "a", "--", *RUN, "middle", "--", *inner)
        self.addCleanup(self.end, outer)
        self.assertEqual(outer.stdout.readline(), b"\n")
        waiter = self.start(*RUN[1:], "a", "--", *inner)
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1, "a")
        self.assertTrue(wait_until(lambda: self.who("b")["holders"][0]["command"] == "sleep"))
        for name in ("a", "middle"):
            self.assertEqual([user["command"] for user in self.who(name)["holders"]], ["sh"])
        self.assertEqual([user["command"] for user in self.who("a")["waiters"]], ["sh"])

    def test_it_is_refused_at_once(self):
        for options in ([], ["--timeout", "20"], ["--shared"], ["-E", "9"]):
            self.assert_refused(self.nested(inner_options=options))
        self.assert_refused(self.nested(outer_options=["--shared"]))
        self.assert_refused(self.nested(outer_options=["--inherit"]))

    def test_whatever_is_between(self):
        inner = [*RUN, "jobs", "--", "true"]
        self.assert_refused(self.run_all("jobs", command=["sh", "-c", '"$@"; exit $?', "-", *inner]))
        self.assert_refused(self.run_all("jobs", command=[*RUN, "other", "--", *inner]))
        self.assert_refused(self.run_all("a", "jobs", "z", command=[*RUN, "b", "--", *inner]))
        self.assert_refused(self.nested(outer=("jobs",), inner=("a", "jobs")))
        self.hold("sleep 1.2", name="z")  # so the outer run has the first lock for longer
        self.assert_refused(self.nested(outer=("jobs", "z")))

    def test_any_name(self):
        for name in (b"a b  c", b"\xff=", b"-\t\\"):
            done = subprocess.run([*RUN, b"x", name, b"--", *RUN, name, b"--", b"true"],
                                  capture_output=True, timeout=30, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), (name, done.stderr))

    def test_what_does_not_wait_for_the_outer_run(self):
        for more in ({"inner": ("other",)},
                     {"outer_options": ["--shared"], "inner_options": ["--shared"]},
                     {"outer": ("gpu",), "inner": ("gpu",), "outer_options": ["--units", "2"],
                      "inner_options": ["--units", "2"]}):
            self.assertEqual(self.nested(**more), (0, "ran\n", ""), more)
        self.assertEqual(self.nested(inner_options=["--nonblock", "-E", "9"]), (9, "", ""))
        other = DOMAIN + "-other"
        self.addCleanup(self.run_program, "domain", "remove", other, "--force")
        self.assertEqual(self.run_all("jobs", command=[PROGRAM, "run", "--domain", other, "jobs", "--",
                                                       "echo", "ran"]), (0, "ran\n", ""))

    def test_both_share_and_a_writer_waits_between_them(self):
        """Nothing is refused, but the inner run says that it waits in a circle."""
        inner = f"{PROGRAM} run --domain {DOMAIN} --shared --timeout 2 jobs -- true 2> said"
        outer, _ = self.hold(f"until [ -e go ]; do sleep 0.01; done; {inner}; exit $?",
                             options=["--shared"])
        writer = self.start("run", "--domain", DOMAIN, "jobs", "--", "true")
        self.addCleanup(self.end, writer)
        self.wait_for_waiters(1)
        self.write("go", "")
        self.assertEqual(outer.wait(timeout=20), 1)
        self.assertRegex(self.read("said"), r"^lockflight run: this run waits in a circle: .*\n"
                                            r"lockflight run: lock 'jobs' was not free in time")
        self.assertEqual(writer.wait(timeout=10), 0)

    def test_a_semaphore_whose_unit_another_run_will_release(self):
        self.hold("exec sleep 1", options=["--units", "2"])
        self.assertEqual(self.nested(outer_options=["--units", "2"],
                                     inner_options=["--units", "2"]), (0, "ran\n", ""))
        self.assert_refused(self.run_all(
            "jobs", options=["--units", "2"],
            command=[*RUN, "--units", "2", "jobs", "--",
                     *RUN, "--units", "2", "jobs", "--", "true"]))

    def test_a_semaphore_without_a_free_unit(self):
        self.assert_refused(self.nested(outer_options=["--units", "1"],
                                        inner_options=["--units", "1"]))

    def test_to_insist(self):
        code, _, err = self.nested(inner_options=["--wait-anyway", "--timeout", "0.5", "-E", "9"])
        self.assertEqual((code, err.count("\n")), (9, 1), err)
        self.assertIn("was not free in time", err)

    def test_a_lock_that_somebody_else_holds(self):
        """The variable is the outer run's, which has ended."""
        self.run_in("sh", "-c", "echo \"$LOCKFLIGHT_INSIDE\" > inside")
        inside = dict(os.environ, LOCKFLIGHT_INSIDE=self.read("inside").rstrip("\n"))
        self.assertRegex(inside["LOCKFLIGHT_INSIDE"], r"^[0-9a-f]+:[0-9a-f]+ \d+ \d+ jobs$")
        holder, _ = self.hold("sleep 0.5")
        self.assertEqual(self.run_all("jobs", command=["echo", "ran"], env=inside),
                         (0, "ran\n", ""))
        holder.wait(timeout=10)
        for bad in ("x", "1:1 2 3 jobs", "\n\n", "1 " * 9):
            self.assertEqual(self.run_all("jobs", command=["echo", "ran"],
                                          env=dict(os.environ, LOCKFLIGHT_INSIDE=bad))[0], 0)

    def test_an_outer_run_that_does_not_wait(self):
        """COMMAND has ended, and what it has left in the background asks for the lock."""
        script = (f"(sleep 0.4; exec {PROGRAM} run --domain {DOMAIN} jobs -- touch ran) "
                  ">/dev/null 2>&1 &")
        start = time.monotonic()
        self.assertEqual(self.run_all("jobs", options=["--at-least", "1s"],
                                      command=["sh", "-c", script]), (0, "", ""))
        self.assertGreaterEqual(time.monotonic() - start, 0.9)
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("ran"))))


if __name__ == "__main__":
    unittest.main()
