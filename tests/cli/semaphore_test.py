"""lockflight run --units: at most N runs of a name at a time, on one machine, and what the other
commands say of them. tests/names/locks/semaphore_test.cpp has the semaphore itself."""

import signal
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM
from waiting import gone, wait_until


class Slots(NamedTest):
    def unit(self, number, word="exec sleep 60", name="gpu"):
        """A run that holds a unit; returns the run, the command's process and the unit."""
        run = self.start("run", "--domain", DOMAIN, "--units", str(number), name, "--", "sh", "-c",
                         f"echo $$ $LOCKFLIGHT_UNIT ${{LOCKFLIGHT_OWNER_DIED-no}}; {word}")
        self.addCleanup(self.end, run)
        return run

    def told(self, run):
        """The command's process, its unit, and whether a holder of that unit died."""
        command, unit, died = run.stdout.readline().split()
        return int(command), int(unit), died == b"1"

    def attempt(self, number, *options, name="gpu"):
        return self.run_in("sh", "-c", "echo $LOCKFLIGHT_UNIT",
                           options=["--units", str(number), *options], name=name)

    def test_n_at_a_time_each_with_its_unit(self):
        runs = [self.unit(3) for _ in range(3)]
        self.assertEqual(sorted(self.told(run)[1] for run in runs), [0, 1, 2])
        self.assertEqual(self.attempt(3, "--nonblock"), (1, "", ""))
        code, out, err = self.attempt(3, "--timeout", "0.1", "-E", "9")
        self.assertEqual((code, out), (9, ""))
        self.assertIn("held by sleep", err)
        waiter = self.unit(3)
        self.wait_for_waiters(1, "gpu")
        runs[1].terminate()
        self.assertEqual(runs[1].wait(timeout=10), 128 + signal.SIGTERM)
        self.assertFalse(self.told(waiter)[2], "a command that was ended is no death")

    def test_the_environment_of_a_run_inside_of_a_run(self):
        script = "'%s' run --domain %s inner -- sh -c 'echo ${LOCKFLIGHT_UNIT-none}'"
        code, out, err = self.run_in("sh", "-c", script % (PROGRAM, DOMAIN),
                                     options=["--units", "2"], name="gpu")
        self.assertEqual((code, out, err), (0, "none\n", ""))

    def test_a_killed_run_gives_its_unit_back(self):
        first, second = self.unit(2), self.unit(2)
        told = {run: self.told(run) for run in (first, second)}
        waiter = self.unit(2)
        self.wait_for_waiters(1, "gpu")
        second.kill()
        _, unit, died = self.told(waiter)
        self.assertEqual((unit, died), (told[second][1], True))
        self.assertTrue(wait_until(lambda: gone(told[second][0])), "the command goes on unguarded")
        self.end(waiter)
        code, out, _ = self.run_in("sh", "-c", "echo $LOCKFLIGHT_UNIT $LOCKFLIGHT_OWNER_DIED",
                                   options=["--units", "2"], name="gpu")
        self.assertEqual((code, out), (0, f"{unit} 1\n"), "it exits with 0: the unit is repaired")
        self.assertEqual(self.attempt(2), (0, f"{unit}\n", ""))
        code, out, _ = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-no}",
                                   options=["--units", "2"], name="gpu")
        self.assertEqual((code, out), (0, "no\n"))

    def test_killed_waiters_are_skipped(self):
        holder = self.unit(1)
        self.told(holder)
        waiters = []
        for i in range(3):
            waiters.append(self.unit(1))
            self.wait_for_waiters(i + 1, "gpu")
        for waiter in waiters[:2]:
            waiter.kill()
        self.wait_for_waiters(1, "gpu")
        holder.terminate()
        self.assertEqual(self.told(waiters[2])[1:], (0, False))

    def test_a_waiter_may_be_interrupted_and_stopped(self):
        holder = self.unit(1)
        self.told(holder)
        head = self.unit(1)
        self.wait_for_waiters(1, "gpu")
        second = self.unit(1)
        self.wait_for_waiters(2, "gpu")
        second.send_signal(signal.SIGINT)
        self.assertEqual(second.wait(timeout=10), -signal.SIGINT)
        third = self.unit(1)
        self.wait_for_waiters(2, "gpu")
        head.send_signal(signal.SIGSTOP)
        holder.terminate()
        self.assertEqual(self.told(third)[1], 0)
        head.send_signal(signal.SIGCONT)
        third.terminate()
        self.assertEqual(self.told(head)[1], 0)

    def test_users_who_disagree(self):
        self.told(self.unit(3))
        code, out, err = self.attempt(4)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertRegex(err, "lock 'gpu' is a semaphore of 3 units .made by process [0-9]+, "
                              "sh., not a semaphore of 4 units .accepted: ")
        code, out, err = self.run_in("true", name="gpu")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("is a semaphore of 3 units", err)
        code, _, err = self.run_program("domain", "forget", DOMAIN, "gpu")
        self.assertEqual(code, 2)
        self.assertIn("holds it", err)

    def test_another_number_after_it_is_forgotten(self):
        self.assertEqual(self.attempt(3), (0, "0\n", ""))
        # Its queue and the unit that was taken have a name each.
        shown = self.run_well("domain", "show", DOMAIN)
        self.assertIn(" 2 of 131072 names taken", shown)
        self.assertRegex(self.run_well("domain", "list"), rf"(?m)^{DOMAIN} +0 +4095 +2 +131072 ")
        self.assertEqual(self.run_program("domain", "forget", DOMAIN, "gpu")[0], 0)
        self.assertEqual(self.attempt(4), (0, "0\n", ""))

    def test_what_the_other_commands_say(self):
        holder = self.unit(2)
        command, unit, _ = self.told(holder)
        self.told(self.unit(2))
        self.unit(2)
        self.wait_for_waiters(1, "gpu")
        found = self.who("gpu")
        self.assertEqual((found["kind"], found["units"]), ("semaphore", 2))
        self.assertEqual(sorted(user["unit"] for user in found["holders"]), [0, 1])
        self.assertNotIn("unit", found["waiters"][0])
        self.assertIn(command, [user["guarded_pid"] for user in found["holders"]])
        _, out, _ = self.run_program("who", "gpu", "--domain", DOMAIN)
        self.assertIn("2 of 2 units are held", out)
        self.assertRegex(out, rf"{holder.pid} +holds unit {unit} ")
        _, out, _ = self.run_program("top", DOMAIN, "--once")
        self.assertRegex(out, rf"gpu: {holder.pid} holds unit {unit} for ")
        _, out, _ = self.run_program("domain", "show", DOMAIN)
        self.assertRegex(out, rf"gpu +semaphore of 2 .*{holder.pid} \(unit {unit}\)")

    def test_the_names_of_earlier_versions(self):
        self.assertEqual(self.run_in("sh", "-c", "echo $LOCKFLIGHT_UNIT", options=["--slots", "1"],
                                     name="gpu"), (0, "0\n", ""))
        for option in ["--every=3660d", "--once-per=3660d"]:  # the second one is not run
            code, out, _ = self.run_in("echo", "ran", options=[option], name="once")
            self.assertEqual((code, out), (0, "ran\n" if option.startswith("--every") else ""))

    def test_what_is_refused(self):
        for options, words in [
                (["--units", "0"], ["--units '0'", "from 1 to 1024"]),
                (["--units", "x"], ["--units 'x'", "from 1 to 1024"]),
                (["--units", "1025"], ["--units '1025'"]),
                (["--units", "2", "--shared"], ["not together with --shared"]),
                (["--units", "2", "--leader"], ["not together with --leader"]),
                (["--units", "2", "--every", "1h"], ["not together with --every"])]:
            with self.subTest(options=options):
                code, out, err = self.run_in("true", options=options)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                for word in [*words, "accepted"]:
                    self.assertIn(word, err)

    def test_many_short_runs(self):
        """Never more than two at a time, and all of them run."""
        script = "echo begin; sleep 0.01; echo end"
        begin = time.monotonic()
        line = f"exec '{PROGRAM}' run --domain {DOMAIN} --units 2 gpu -- sh -c '{script}' >> log"
        runs = [self.start("-c", line, program="/bin/sh") for _ in range(20)]
        for run in runs:
            self.assertEqual((run.communicate(timeout=30)[1], run.returncode), (b"", 0))
        self.assertLess(time.monotonic() - begin, 20)
        inside = 0
        for line in self.read("log").splitlines():
            inside += 1 if line == "begin" else -1
            self.assertLessEqual(inside, 2)
        self.assertEqual(self.read("log").count("begin"), 20)


if __name__ == "__main__":
    unittest.main()
