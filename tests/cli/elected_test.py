"""lockflight run for commands that run once for each period of time (--every), and for leaders
(--leader), on one machine. tests/names/agent/run_test.py has what a cluster adds."""

import time
import unittest

from named_support import DOMAIN, NamedTest
from waiting import wait_until

# A period that does not end during the test, but for one moment in eight years.
DAYS = 3000
LONG = ["--every", f"{DAYS}d"]
SECONDS = DAYS * 86400
END = time.strftime("%Y-%m-%d %H:%M:%S UTC",
                    time.gmtime((int(time.time()) // SECONDS + 1) * SECONDS))


class OncePer(NamedTest):
    def assert_done(self, options=(), code=0, **more):
        found, out, err = self.run_in("sh", "-c", "echo ran", options=[*LONG, *options], **more)
        self.assertEqual((found, out, err.count("\n")), (code, "", 1), err)
        self.assertIn(f"is done until {END}, so COMMAND is not run", err)

    def test_once(self):
        self.assertEqual(self.run_in("echo", "ran", options=LONG), (0, "ran\n", ""))
        self.assert_done()
        self.assert_done(["-E", "9"], 9)
        self.assert_done(["--nonblock"])
        self.assertEqual(self.run_in("echo", "ran", options=LONG, name="other"), (0, "ran\n", ""))
        self.assertEqual(self.run_in("echo", "ran"), (0, "ran\n", ""), "without --every it runs")
        self.assert_done()

    def test_one_of_many_at_once(self):
        script = "echo ran; sleep 0.2"
        runs = [self.start("run", "--domain", DOMAIN, *LONG, "jobs", "--", "sh", "-c", script)
                for _ in range(12)]
        outputs = [run.communicate(timeout=30)[0] for run in runs]
        self.assertEqual(sorted(outputs), [b""] * 11 + [b"ran\n"])
        self.assertEqual({run.returncode for run in runs}, {0})

    def test_one_of_many_that_waited(self):
        holder, _ = self.hold()
        runs = [self.start("run", "--domain", DOMAIN, *LONG, "jobs", "--", "echo", "ran")
                for _ in range(4)]
        self.wait_for_waiters(4)
        self.end(holder)
        self.assertEqual(sorted(run.communicate(timeout=30)[0] for run in runs),
                         [b""] * 3 + [b"ran\n"])
        self.assertEqual({run.returncode for run in runs}, {0})

    def test_a_run_does_not_wait_for_the_one_that_does_the_work(self):
        self.hold(options=LONG)
        self.assert_done()

    def test_a_failure_and_a_death_count(self):
        self.assertEqual(self.run_in("false", options=LONG)[0], 1)
        self.assert_done()
        process, _ = self.hold(options=LONG, name="killed")
        process.kill()
        process.wait(timeout=10)
        self.assert_done(name="killed")
        code, out, _ = self.run_in("sh", "-c", "echo $LOCKFLIGHT_OWNER_DIED", name="killed")
        self.assertEqual((code, out), (0, "1\n"))
        self.assert_done(name="killed")

    def test_a_command_that_cannot_run_does_not_count(self):
        self.assertEqual(self.run_in("no-such-program", options=LONG)[0], 127)
        self.assertEqual(self.run_in("echo", "ran", options=LONG), (0, "ran\n", ""))

    def test_a_run_that_does_not_get_the_lock_does_not_count(self):
        self.hold()
        self.assertEqual(self.run_in("true", options=[*LONG, "--nonblock"]), (1, "", ""))
        self.assertEqual(self.run_in("true", options=[*LONG, "--nonblock", "-E", "9"]), (9, "", ""))

    def test_an_earlier_period_than_the_noted_one_is_done(self):
        """As when a clock has gone back."""
        self.assertEqual(self.run_in("true", options=LONG)[0], 0)
        code, out, err = self.run_in("echo", "ran", options=["--every", "1s"])
        self.assertEqual((code, out), (0, ""))
        self.assertIn(f"until {END}", err)
        self.assertIn("after the present period", err)

    def test_a_forgotten_name_has_no_note(self):
        self.assertEqual(self.run_in("true", options=LONG)[0], 0)
        self.assertEqual(self.run_program("domain", "forget", DOMAIN, "jobs")[0], 0)
        self.assertEqual(self.run_in("echo", "ran", options=LONG), (0, "ran\n", ""))

    def test_each_period(self):
        """With periods of a second: never twice in one, and not much less than once in each."""
        ran = []
        begin = time.time()
        while time.time() < begin + 3:
            out = self.run_in("date", "+%s", options=["--every", "1s"])[1]
            ran += out.splitlines()
        # A command that starts at the very end of its period may print the next second.
        self.assertGreaterEqual(len(set(ran)), 2, ran)
        self.assertLessEqual(len(ran), int(time.time()) - int(begin) + 1, ran)


class Leader(NamedTest):
    def candidate(self, word):
        process = self.start("run", "--domain", DOMAIN, "--leader", "jobs", "--", "sh", "-c",
                             f"echo {word}; exec sleep 60")
        self.addCleanup(self.end, process)
        return process

    def test_one_leads_and_another_follows(self):
        first = self.candidate("first")
        self.assertEqual(first.stdout.readline(), b"first\n")
        self.assertRegex(first.stderr.readline(), rb"^lockflight run: leads 'jobs' with token \d+$")
        second = self.candidate("second")
        self.wait_for_waiters(1)
        self.assertIsNone(second.poll())
        first.kill()
        self.assertEqual(second.stdout.readline(), b"second\n")
        self.assertRegex(second.stderr.readline(), rb"leads 'jobs' with token \d+$")
        second.terminate()
        self.assertEqual(second.wait(timeout=10), 143)
        self.assertTrue(wait_until(lambda: not self.who()["holders"]))

    def test_its_exit_code_is_that_of_the_command(self):
        code, _, err = self.run_in("sh", "-c", "exit 7", options=["--leader"])
        self.assertEqual((code, err.count("\n")), (7, 1))


class Refused(NamedTest):
    def assert_refused(self, options, *words):
        with self.subTest(options=options):
            code, out, err = self.run_in("true", options=options)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            for word in [*words, "accepted"]:
                self.assertIn(word, err)

    def test_periods(self):
        for bad in ["", "1", "h", "0h", "-1h", "1.5h", "1w", "1 h", "1hh", "1H", "4000d",
                    "99999999999999999999s", "4294967296d", "+1h"]:
            self.assert_refused(["--every", bad], "--every", f"'{bad}'", "1h")
        for good in ["1s", "90s", "30m", "1h", "1d", "3660d"]:
            self.assertEqual(self.run_in("true", options=["--every", good], name=good)[0], 0)

    def test_what_does_not_go_together(self):
        for other in [["--shared"], ["--timeout", "1"], ["--nonblock"], ["--every", "1h"],
                      ["-E", "3"]]:
            self.assert_refused(["--leader", *other], "--leader", "not together with --")
        self.assert_refused(["--every", "1h", "--shared"], "--every", "--shared")

    def test_grace(self):
        for bad in ["-1", "x", "inf", "1e9"]:
            self.assert_refused(["--grace", bad], "--grace", f"'{bad}'", "0 to")
        self.assertEqual(self.run_in("true", options=["--grace", "0.5"]), (0, "", ""))

    def test_a_clusters_domain_without_an_agent(self):
        code, out, err = self.run_program("run", "--domain", "etcd:no-agent", "a", "--", "true")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("lockflight agent --domain no-agent", err)


if __name__ == "__main__":
    unittest.main()
