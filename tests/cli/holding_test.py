"""lockflight run --at-least, which holds on after its command, and --on-owner-died, which deals with
a death before it."""

import signal
import time
import unittest

from named_support import DOMAIN, NamedTest
from waiting import state_of, wait_until


class AtLeast(NamedTest):
    def test_the_lock_is_held_on(self):
        begin = time.monotonic()
        run = self.start("run", "--domain", DOMAIN, "--at-least", "1s", "jobs", "--", "sh", "-c",
                         "echo ran; exit 7")
        self.addCleanup(self.end, run)
        self.assertEqual(run.stdout.readline(), b"ran\n")
        self.assertEqual(self.run_in("true", options=["--nonblock"]), (1, "", ""))
        self.assertEqual(self.run_in("true"), (0, "", ""))
        self.assertGreater(time.monotonic() - begin, 1)
        self.assertEqual(run.wait(timeout=10), 7)
        code, out, _ = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}")
        self.assertEqual((code, out), (0, "no\n"))

    def test_a_longer_command_holds_no_longer(self):
        begin = time.monotonic()
        self.assertEqual(self.run_in("sleep", "1.2", options=["--at-least", "1s"]), (0, "", ""))
        self.assertLess(time.monotonic() - begin, 2)

    def test_a_command_that_cannot_run_is_not_held_for(self):
        begin = time.monotonic()
        self.assertEqual(self.run_in("no-such-program", options=["--at-least", "60s"])[0], 127)
        self.assertLess(time.monotonic() - begin, 20)

    def test_signals_end_it(self):
        for each in (signal.SIGINT, signal.SIGTERM):
            run = self.start("run", "--domain", DOMAIN, "--at-least", "60s", "jobs", "--", "true")
            self.addCleanup(self.end, run)
            self.assertTrue(wait_until(lambda: self.who()["holders"]))
            time.sleep(0.2)  # COMMAND has ended
            run.send_signal(each)
            self.assertEqual(run.wait(timeout=10), -each)
            code, out, _ = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}")
            self.assertEqual((code, out), (0, "no\n"), "it is no death")

    def test_a_kill_is_no_death_once_the_command_has_ended(self):
        for options, name in (([], "jobs"), (["--units", "1"], "gpu")):
            run = self.start("run", "--domain", DOMAIN, "--at-least", "60s", *options, name, "--",
                             "sh", "-c", "exit 7")
            self.addCleanup(self.end, run)
            self.assertTrue(wait_until(lambda: self.who(name)["holders"]))
            time.sleep(0.2)  # COMMAND has ended
            [holder] = self.who(name)["holders"]
            self.assertEqual(holder["guarded_pid"], 0)
            self.assertEqual(self.run_in("true", options=[*options, "--nonblock"], name=name)[0],
                             1)
            run.kill()
            run.wait(timeout=10)
            code, out, _ = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}; exit 1",
                                       options=options, name=name)
            self.assertEqual((code, out), (1, "no\n"))
            # The next holder that is killed has died, also if it has the same slot.
            holder, _ = self.hold(options=options, name=name)
            holder.kill()
            code, out, _ = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}",
                                       options=options, name=name)
            self.assertEqual((code, out), (0, "1\n"))

    def test_it_is_stopped_and_goes_on(self):
        run = self.start("run", "--domain", DOMAIN, "--at-least", "1s", "jobs", "--", "true")
        self.addCleanup(self.end, run)
        self.assertTrue(wait_until(lambda: self.who()["holders"]))
        run.send_signal(signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(run.pid) == "T"))
        self.assertTrue(self.who()["holders"][0]["stopped"])
        run.send_signal(signal.SIGCONT)
        self.assertEqual(run.wait(timeout=10), 0)

    def test_what_is_refused(self):
        for bad in ("", "30", "0s", "-1s", "1.5s", "x"):
            code, out, err = self.run_in("true", options=["--at-least", bad])
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(f"--at-least '{bad}' (accepted: a whole number from 1 and s, m, h or d",
                          err)


class OnOwnerDied(NamedTest):
    TOLD = ("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}")

    def die(self, name="jobs", options=()):
        run, _ = self.hold(name=name, options=options)
        run.kill()
        run.wait(timeout=10)

    def deal(self, what, *words, **more):
        return self.run_in(*(words or self.TOLD), options=["--on-owner-died", what], **more)

    def test_without_a_death_nothing_is_done(self):
        for what in ("fail", "run", "touch repaired"):
            self.assertEqual(self.deal(what), (0, "no\n", ""))
        self.assert_nothing_left()

    def test_fail(self):
        self.die()
        for _ in range(2):
            code, out, err = self.deal("fail")
            self.assertEqual((code, out), (65, ""))
            self.assertEqual(err, "lockflight run: lock 'jobs': a holder died, so COMMAND is not "
                                  "run\n")
        self.assertEqual(self.deal("run"), (0, "1\n", ""))
        self.assertEqual(self.deal("fail"), (0, "no\n", ""), "COMMAND has ended with 0")

    def test_a_repair(self):
        self.die()
        code, out, err = self.deal("echo repairs $LOCKFLIGHT_LOCK $LOCKFLIGHT_OWNER_DIED")
        self.assertEqual((code, out, err), (0, "repairs jobs 1\nno\n", ""))
        self.assertEqual(self.deal("fail"), (0, "no\n", ""))

    def test_a_repair_counts_if_the_command_fails(self):
        self.die()
        self.assertEqual(self.deal("true", "sh", "-c", "exit 3"), (3, "", ""))
        self.assertEqual(self.deal("fail"), (0, "no\n", ""))

    def test_a_repair_that_fails(self):
        self.die()
        code, out, err = self.deal("exit 4")
        self.assertEqual((code, out), (65, ""))
        self.assertEqual(err, "lockflight run: lock 'jobs': a holder died, and the repair has ended "
                              "with 4, so COMMAND is not run\n")
        self.assertEqual(self.deal("run"), (0, "1\n", ""))

    def test_a_run_that_is_killed_while_it_repairs(self):
        self.die()
        run = self.start("run", "--domain", DOMAIN, "--on-owner-died", "echo begins; exec sleep 60",
                         "jobs", "--", "true")
        self.addCleanup(self.end, run)
        self.assertEqual(run.stdout.readline(), b"begins\n")
        self.assertEqual(self.run_in("true", options=["--nonblock"]), (1, "", ""))
        run.kill()
        self.assertEqual(self.deal("fail")[0], 65)
        self.assertEqual(self.deal("true"), (0, "no\n", ""))

    def test_a_repair_that_is_killed_is_called_so(self):
        self.die()
        code, _, err = self.deal("kill -9 $$")
        self.assertEqual(code, 65)
        self.assertEqual(err, "lockflight run: the repair 'kill -9 $$' was killed (SIGKILL)\n"
                              "lockflight run: lock 'jobs': a holder died, and the repair has "
                              "ended with 137, so COMMAND is not run\n")

    def test_a_signal_that_the_repair_outlives(self):
        """It ends the run before COMMAND has begun, but the repair counts."""
        for each in (signal.SIGTERM, signal.SIGINT):
            self.die()
            run = self.start("run", "--domain", DOMAIN, "--on-owner-died",
                             "trap : TERM INT; echo begins; sleep 0.5; sleep 0.1; exit 0", "jobs",
                             "--", "echo", "runs")
            self.addCleanup(self.end, run)
            self.assertEqual(run.stdout.readline(), b"begins\n")
            run.send_signal(each)
            self.assertEqual((run.communicate(timeout=20), run.returncode), ((b"", b""), -each))
            self.assertEqual(self.deal("fail"), (0, "no\n", ""))

    def test_an_interrupt_of_the_repair(self):
        self.die()
        run = self.start("run", "--domain", DOMAIN, "--on-owner-died", "echo begins; exec sleep 60",
                         "jobs", "--", "true")
        self.addCleanup(self.end, run)
        self.assertEqual(run.stdout.readline(), b"begins\n")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10), -signal.SIGINT)
        self.assertEqual(self.deal("fail")[0], 65)

    def test_of_a_unit_and_of_several(self):
        self.die("gpu", ["--units", "1"])
        self.assertEqual(self.run_in(*self.TOLD, name="gpu", options=[
            "--units", "1", "--on-owner-died", "true"]), (0, "no\n", ""))
        self.die("b")
        run = self.start("run", "--domain", DOMAIN, "--on-owner-died", "echo repairs", "a", "b",
                         "--", "echo", "runs")
        self.assertEqual(run.communicate(timeout=20), (b"repairs\nruns\n", b""))

    def test_what_is_refused(self):
        for options, words in ((["--on-owner-died", ""], ["--on-owner-died ''", "fail, run or"]),
                               (["--on-owner-died", "true", "--shared"], ["with --shared"])):
            code, out, err = self.run_in("true", options=options)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            for word in words:
                self.assertIn(word, err)
        self.die()
        self.assertEqual(self.run_in("true", options=["--on-owner-died", "fail", "--shared"])[0],
                         65)


if __name__ == "__main__":
    unittest.main()
