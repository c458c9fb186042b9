"""lockflight run --units: at most N runs of a name at a time, on one machine, and what the other
commands say of them. tests/names/locks/semaphore_test.cpp has the semaphore itself."""

import json
import os
import signal
import subprocess
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
        """A run of a lock leaves the units of the run around it, and one of units has its own."""
        inner = "'%s' run --domain %s %s inner -- sh -c 'echo ${LOCKFLIGHT_UNIT-none}'"
        for options, told in (("", "1,3"), ("--shared", "1,3"), ("--units 9,", "9")):
            name = "inner" + options[:3].strip("-")
            script = (inner % (PROGRAM, DOMAIN, options)).replace(" inner", " " + name)
            for deep in (script, f"'{PROGRAM}' run --domain {DOMAIN} middle -- {script}"):
                found = self.run_in("sh", "-c", deep, name="gpu",
                                    options=["--units", "1,3", "--take", "2"])
                self.assertEqual(found, (0, told + "\n", ""))
        done = subprocess.run(["sh", "-c", inner % (PROGRAM, DOMAIN, "")], check=False, text=True,
                              env=dict(os.environ, LOCKFLIGHT_UNIT="7"), capture_output=True)
        self.assertEqual((done.stdout, done.stderr), ("none\n", ""), "no run is around it")

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
                (["--units", "0,62"], ["--units '0,62'", "numbers from 0 to 61"]),
                (["--units", "1,1"], ["--units '1,1'"]),
                (["--units", ","], ["--units ','"]),
                (["--units", "1,,2"], ["--units '1,,2'"]),
                (["--take", "2"], ["--take '2'", "only with --units"]),
                (["--units", "4", "--take", "5"], ["--take '5'", "from 1 to 4"]),
                (["--units", "0,1,3", "--take", "4"], ["--take '4'", "from 1 to 3"]),
                (["--units", "40", "--take", "32"], ["--take '32'", "from 1 to 31"]),
                (["--units", "2", "--shared"], ["not together with --shared"]),
                (["--units", "2", "--leader"], ["not together with --leader"]),
                (["--units", "2", "--every", "1h"], ["not together with --every"])]:
            with self.subTest(options=options):
                code, out, err = self.run_in("true", options=options)
                self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
                for word in [*words, "accepted"]:
                    self.assertIn(word, err)

    def test_several_units_for_a_run(self):
        script = 'echo $LOCKFLIGHT_UNIT; echo "$LOCKFLIGHT_TOKEN"; exec sleep 60'
        options = ["run", "--domain", DOMAIN, "--units", "5"]
        first = self.start(*options, "--take", "2", "gpu", "--", "sh", "-c", script)
        self.addCleanup(self.end, first)
        self.assertEqual(first.stdout.readline(), b"0,1\n")
        tokens = [int(first.stdout.readline()) for _ in range(2)]
        self.assertTrue(all(tokens))
        waiter = self.start(*options, "--take", "4", "gpu", "--", "sh", "-c", script)
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1, "gpu")
        self.assertTrue(wait_until(lambda: "units_held" in self.who("gpu")["waiters"][0]))
        self.assertEqual(self.attempt(5, "--nonblock"), (1, "", ""), "the waiter has the others")
        found = self.who("gpu")
        (holder,), (waits,) = found["holders"], found["waiters"]
        self.assertEqual((holder["unit"], holder["units_held"]), (0, [0, 1]))
        self.assertEqual((waits.get("unit"), waits["units_held"]), (None, [2, 3, 4]))
        _, out, _ = self.run_program("who", "gpu", "--domain", DOMAIN)
        self.assertIn("5 of 5 units are held", out)
        self.assertRegex(out, rf"{first.pid} +holds units 0, 1 ")
        self.assertRegex(out, rf"{waiter.pid} +waits with units 2, 3, 4 ")
        self.assertRegex(self.run_well("top", DOMAIN, "--once"),
                         rf"gpu: {first.pid} holds units 0, 1 for ")
        self.assertRegex(self.run_well("domain", "show", DOMAIN),
                         rf"{first.pid} \(units 0, 1\) +{waiter.pid} \(units 2, 3, 4\)")
        shown = self.run_well("units", "gpu", DOMAIN)
        self.assertRegex(shown, r"(?m)^ *1 +held .*sleep")
        self.assertRegex(shown, r"(?m)^ *2 +collected .*sh")
        first.terminate()
        self.assertRegex(waiter.stdout.readline(), rb"^[01],2,3,4\n$")

    def test_a_killed_waiter_leaves_no_death(self):
        """It has collected units, and guards nothing under them."""
        holder = self.unit(3)
        self.told(holder)
        waiter = self.start("run", "--domain", DOMAIN, "--units", "3", "--take", "3", "gpu", "--",
                            "true")
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1, "gpu")
        self.assertTrue(wait_until(lambda: "units_held" in self.who("gpu")["waiters"][0]))
        waiter.kill()
        code, out, _ = self.run_in("sh", "-c", "echo $LOCKFLIGHT_UNIT ${LOCKFLIGHT_OWNER_DIED-no}",
                                   options=["--units", "3", "--take", "2"], name="gpu")
        self.assertEqual((code, out), (0, "1,2 no\n"))

    def test_nested_runs_that_would_wait_for_themselves(self):
        inner = [PROGRAM, "run", "--domain", DOMAIN, "--units", "3", "--take", "2", "gpu", "--", "true"]
        code, _, err = self.run_in(*inner, options=["--units", "3", "--take", "2"], name="gpu")
        self.assertEqual(code, 2)
        self.assertIn("holds it and waits for this run", err)
        self.assertEqual(self.run_in(*inner, options=["--units", "3"], name="gpu"), (0, "", ""))

    def test_units_by_number(self):
        devices = ["--units", "5,0,3"]
        first = self.start("run", "--domain", DOMAIN, *devices, "gpu", "--", "sh", "-c",
                           "echo $LOCKFLIGHT_UNIT; exec sleep 60")
        self.addCleanup(self.end, first)
        self.assertEqual(first.stdout.readline(), b"0\n")
        self.assertEqual(self.run_in("sh", "-c", "echo $LOCKFLIGHT_UNIT", name="gpu",
                                     options=[*devices, "--take", "2"]), (0, "3,5\n", ""))
        code, _, err = self.run_in("true", name="gpu", options=["--units", "3"])
        self.assertEqual(code, 2)
        self.assertIn("is a semaphore of the units 0, 3 and 5 (made by", err)
        found = json.loads(self.run_well("units", "gpu", DOMAIN, "--json"))
        self.assertEqual((found["name"], found["domain"], found["set"]), ("gpu", DOMAIN, False))
        self.assertEqual([(each["unit"], each["exists"], "holder" in each) for each in found["units"]],
                         [(0, True, True), (3, True, False), (5, True, False)])
        self.assertEqual(found["units"][0]["holder"]["command"], "sleep")
        self.assertEqual(self.who("gpu")["units"], 3)

    def test_units_are_set_while_they_are_used(self):
        first, second = self.unit(2), self.unit(2)
        self.assertEqual({self.told(first)[1], self.told(second)[1]}, {0, 1})
        waiter = self.unit(2)
        self.wait_for_waiters(1, "gpu")
        self.run_well("units", "gpu", "--set", "0,7", "--domain", DOMAIN)
        command, unit, died = self.told(waiter)
        self.assertEqual((unit, died), (7, False))
        self.assertIsNone(first.poll())
        self.assertIsNone(second.poll())
        shown = self.run_well("units", "gpu", DOMAIN)
        self.assertRegex(shown, r"(?m)^ *1 +left out ")
        self.assertEqual(self.attempt(2, "--nonblock"), (1, "", ""))
        for run in (first, second, waiter):
            self.end(run)
        self.assertEqual(self.attempt(99), (0, "0\n", ""), "the number that a run gives does not count")
        code, _, err = self.run_in("true", options=["--units", "3", "--take", "3"], name="gpu")
        self.assertEqual((code, err.count("\n")), (2, 1), err)
        self.assertIn("take 3 of the units 0 and 7, to which it was set (accepted: 1 to 2", err)
        self.assertTrue(json.loads(self.run_well("units", "gpu", DOMAIN, "--json"))["set"])
        self.run_well("domain", "forget", DOMAIN, "gpu")
        self.assertEqual(self.run_program("units", "gpu", DOMAIN)[0], 1)
        self.assertEqual(self.attempt(4), (0, "0\n", ""))

    def test_units_of_what_is_none(self):
        self.hold("exec sleep 60", name="jobs")
        for words in (["jobs"], ["jobs", "--set", "3"]):
            code, out, err = self.run_program("units", *words, "--domain", DOMAIN)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn("lock 'jobs' is a flight-rw (accepted: a semaphore", err)
        for bad in ("0", "x", "1025", "1,1", "0,62", ""):
            code, _, err = self.run_program("units", "gpu", "--set", bad, "--domain", DOMAIN)
            self.assertEqual((code, err.count("\n")), (2, 1), err)
            self.assertIn(f"--set '{bad}' (accepted: a whole number from 1 to 1024, or a list", err)
        self.assertEqual(self.run_program("units", "none", DOMAIN)[0], 1)

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
