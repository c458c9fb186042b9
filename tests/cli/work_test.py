"""Work that is done once for many: lockflight run --success, --retries and --follow, lockflight done,
and lockflight leader, on one machine. tests/names/agent/ has what a cluster adds."""

import json
import pathlib
import signal
import time
import unittest

from named_support import DOMAIN, NamedTest
from waiting import wait_until

# A period that does not end during the test, but for one moment in eight years.
EVERY = ["--every", "3000d"]
SUCCESS = [*EVERY, "--success"]
FOLLOW = ["--follow"]


class WorkTest(NamedTest):
    def done(self, *options, name="jobs"):
        return self.run_program("done", name, "--domain", DOMAIN, *options)

    def last(self, name="jobs"):
        return json.loads(self.done("--json", name=name)[1]).get("last")


class Success(WorkTest):
    def test_a_failure_does_not_count(self):
        self.assertEqual(self.run_in("sh", "-c", "exit 3", options=SUCCESS), (3, "", ""))
        self.assertEqual(self.done()[0], 1)
        self.assertEqual(self.last()["code"], 3)
        self.assertEqual(self.run_in("echo", "ran", options=SUCCESS), (0, "ran\n", ""))
        self.assertEqual(self.done()[0], 0)
        code, out, err = self.run_in("echo", "ran", options=SUCCESS)
        self.assertEqual((code, out), (0, ""))
        self.assertIn("is done until", err)

    def test_neither_does_a_death_nor_a_command_that_is_not_there(self):
        process, _ = self.hold(options=SUCCESS)
        process.kill()
        process.wait(timeout=10)
        self.assertEqual(self.run_in("no-such-program", options=SUCCESS)[0], 127)
        self.assertEqual(self.run_in("echo", "ran", options=SUCCESS), (0, "ran\n", ""))

    def test_a_signal_that_is_passed_on_is_no_failure(self):
        process, _ = self.hold("while :; do sleep 0.05; done", options=SUCCESS,
                                 first="trap 'test -e done && exit 0' USR1; ")
        pathlib.Path(self.folder, "done").touch()
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.done()[0], 0)

    def test_one_of_many_succeeds(self):
        script = "echo ran; sleep 0.1"
        runs = [self.start("run", "--domain", DOMAIN, *SUCCESS, "jobs", "--", "sh", "-c", script)
                for _ in range(8)]
        outputs = [run.communicate(timeout=30)[0] for run in runs]
        self.assertEqual(sorted(outputs), [b""] * 7 + [b"ran\n"])
        self.assertEqual({run.returncode for run in runs}, {0})

    def test_it_can_be_forgotten(self):
        self.assertEqual(self.run_in("true", options=SUCCESS)[0], 0)
        self.assertEqual(self.done("--forget"), (0, "", ""))
        self.assertEqual((self.done()[0], self.last()), (1, None))
        self.assertEqual(self.run_in("echo", "ran", options=SUCCESS), (0, "ran\n", ""))
        self.hold()
        code, out, err = self.done("--forget")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("--forget 'jobs' (accepted: a name that nobody holds at this moment)", err)
        self.assertEqual(self.done()[0], 0)

    def test_nothing_was_done(self):
        self.assertEqual(self.run_in("true")[0], 0)
        self.assertEqual(self.done(), (1, "'jobs' is not done\n", ""))
        self.assertIsNone(self.last())


class Retries(WorkTest):
    COUNTS = 'echo try; echo x >> tries; exit $((3 - $(wc -l < tries)))'

    def test_until_it_succeeds(self):
        begun = time.monotonic()
        self.assertEqual(
            self.run_in("sh", "-c", self.COUNTS, options=["--retries", "5", "--backoff", "1s"]),
            (0, "try\n" * 3, ""))
        self.assertGreater(time.monotonic() - begun, 1 + 2)

    def test_a_signal_for_the_command_does_not_end_them(self):
        process, _ = self.hold("while :; do sleep 0.05; done", options=["--retries", "1"],
                               first="trap 'exit 1' USR1; ")
        process.send_signal(signal.SIGUSR1)
        self.assertTrue(process.stdout.readline().strip().isdigit(), "a second try")
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 1)

    def test_they_end(self):
        self.assertEqual(self.run_in("sh", "-c", self.COUNTS, options=["--retries", "1"]),
                         (1, "try\n" * 2, ""))

    def test_a_signal_ends_the_pause(self):
        process, _ = self.hold("exit 3", options=["--retries", "9", "--backoff", "1h", *SUCCESS])
        self.assertTrue(wait_until(lambda: self.last() is None and self.who()["holders"]))
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertEqual(self.done()[0], 1)

    def test_a_break_ends_the_pause(self):
        process, _ = self.hold("exit 4", options=["--retries", "5", "--backoff", "1h"])
        time.sleep(0.3)
        self.assertEqual(self.run_program("break", "jobs", "--domain", DOMAIN, "--yes")[0], 0)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 76)

    def test_the_lock_is_held_meanwhile(self):
        self.hold("exit 3", options=["--retries", "9", "--backoff", "1h"])
        time.sleep(0.1)
        self.assertEqual(self.run_in("true", options=["--nonblock"])[0], 1)


class Follow(WorkTest):
    def followers(self, number, options=FOLLOW):
        runs = [self.start("run", "--domain", DOMAIN, *options, "jobs", "--", "echo", "ran")
                for _ in range(number)]
        self.wait_for_waiters(number)
        return runs

    def ends_of(self, runs):
        outputs = [run.communicate(timeout=30)[0] for run in runs]
        return sorted(zip((run.returncode for run in runs), outputs))

    def test_they_end_as_the_one_that_works(self):
        go = pathlib.Path(self.folder, "go")
        self.hold(f"while ! test -e {go}; do sleep 0.05; done; exit 7", options=FOLLOW)
        runs = self.followers(4)
        go.touch()
        self.assertEqual(self.ends_of(runs), [(7, b"")] * 4)
        self.assertEqual(self.last()["code"], 7)
        self.assertEqual(self.run_in("echo", "ran", options=FOLLOW), (0, "ran\n", ""), "a later one")

    def test_one_works_if_the_other_is_killed_or_interrupted(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            worker, _ = self.hold(options=FOLLOW)
            runs = self.followers(3)
            worker.send_signal(number)
            worker.wait(timeout=10)
            self.assertEqual(self.ends_of(runs), [(0, b"")] * 2 + [(0, b"ran\n")])

    def test_work_that_was_done_in_this_period(self):
        self.assertEqual(self.run_in("sh", "-c", "exit 5", options=EVERY)[0], 5)
        code, out, err = self.run_in("echo", "ran", options=[*EVERY, *FOLLOW])
        self.assertEqual((code, out), (5, ""))
        self.assertRegex(err, "sh ended with 5 at .* on .*, so COMMAND is not run")

    def test_work_of_this_period_that_goes_on_is_waited_for(self):
        """Its period is noted, and the last result is that of an earlier period."""
        self.assertEqual(self.run_in("sh", "-c", "exit 7", options=FOLLOW)[0], 7)
        go = pathlib.Path(self.folder, "go")
        self.hold(f"while ! test -e {go}; do sleep 0.05; done; exit 9", options=EVERY)
        runs = self.followers(2, [*EVERY, *FOLLOW])
        go.touch()
        self.assertEqual(self.ends_of(runs), [(9, b"")] * 2)
        self.assertEqual(self.run_in("true", options=[*EVERY, *FOLLOW])[0], 9)

    def test_one_works_if_the_other_is_ended_between_its_tries(self):
        worker, _ = self.hold("exit 6", options=[*FOLLOW, "--retries", "5", "--backoff", "1h"])
        runs = self.followers(1)
        time.sleep(0.3)
        worker.terminate()
        worker.wait(timeout=10)
        self.assertEqual(self.ends_of(runs), [(0, b"ran\n")])

    def test_a_result_that_is_forgotten_while_they_wait(self):
        self.assertEqual(self.run_in("true", options=FOLLOW)[0], 0)
        leader, _ = self.hold(options=["--leader"])  # which withdraws the value
        runs = self.followers(2)
        self.end(leader)
        self.assertEqual(self.ends_of(runs), [(0, b""), (0, b"ran\n")])

    def test_it_has_a_limit(self):
        self.hold(options=FOLLOW)
        self.assertEqual(self.run_in("true", options=[*FOLLOW, "--timeout", "0.1"])[0], 1)

    def test_values_that_are_no_results(self):
        """As those of a leader."""
        leader, _ = self.hold(options=["--leader", "--value", '{"code": "x"}'])
        runs = self.followers(1)
        self.end(leader)
        self.assertEqual(self.ends_of(runs), [(0, b"ran\n")])


class Leader(WorkTest):
    def leader(self, *options):
        return self.run_program("leader", "jobs", "--domain", DOMAIN, *options)

    def test_its_value(self):
        self.assertEqual(self.leader(), (1, "", "lockflight leader: nobody leads 'jobs'\n"))
        run, _ = self.hold(options=["--leader", "--value", "10.0.0.5:80\t"])
        self.assertEqual(self.leader(), (0, "10.0.0.5:80\\x09\n", ""))
        said = json.loads(self.leader("--json")[1])
        self.assertEqual((said["leads"], said["value"]), (True, "10.0.0.5:80\t"))
        self.assertEqual(said["term"], self.who()["token"])
        run.terminate()
        run.wait(timeout=10)
        self.assertEqual(json.loads(self.leader("--json")[1]),
                         {"name": "jobs", "domain": DOMAIN, "leads": False})

    def test_each_change(self):
        watch = self.start("leader", "jobs", "--domain", DOMAIN, "--watch")
        self.addCleanup(self.end, watch)
        self.assertEqual(watch.stdout.readline(), b"nobody leads 'jobs'\n")
        for value in ("one", "two"):
            run, _ = self.hold(options=["--leader", "--value", value])
            self.assertEqual(watch.stdout.readline(), f"{value}\n".encode())
            run.terminate()
            run.wait(timeout=10)
            self.assertEqual(watch.stdout.readline(), b"nobody leads 'jobs'\n")

    def test_a_priority_comes_before_a_lesser_one(self):
        leader, _ = self.hold(options=["--leader"])
        runs = {}
        for priority in ("0", "5", "3"):
            runs[priority] = self.start(
                "run", "--domain", DOMAIN, "--leader", "--priority", priority, "jobs", "--", "sh",
                "-c", f"echo {priority} >> order")
            self.wait_for_waiters(len(runs))
        self.assertEqual(sorted(each.get("priority", 0) for each in self.who()["waiters"]),
                         [0, 3, 5])
        self.end(leader)
        for each in runs.values():
            each.communicate(timeout=20)
        with open(pathlib.Path(self.folder, "order"), encoding="utf-8") as order:
            self.assertEqual(order.read().split(), ["5", "3", "0"])

    def test_a_result_is_no_preference(self):
        self.assertEqual(self.run_in("true", options=FOLLOW)[0], 0)
        begun = time.monotonic()
        self.assertEqual(self.run_in("true", options=["--leader"])[0], 0)
        self.assertLess(time.monotonic() - begun, 1.5)

    def test_a_wait_for_one(self):
        waits = self.start("leader", "jobs", "--domain", DOMAIN, "--timeout", "20")
        self.assertEqual(self.leader("--timeout", "0.1")[0], 1)
        self.hold(options=["--leader", "--value", "here"])
        self.assertEqual(waits.communicate(timeout=20)[0], b"here\n")
        self.assertEqual(waits.returncode, 0)


class BadUsage(WorkTest):
    def test_options_that_do_not_go_together(self):
        for options, said in (
                (["--success"], "option '--success' (accepted: only with --every"),
                (["--retries", "-1"], "--retries '-1' (accepted: a whole number from 0"),
                (["--backoff", "1s"], "--backoff '1s' (accepted: only with --retries"),
                (["--retries", "1", "--backoff", "1"], "--backoff '1' (accepted: a whole number"),
                (["--follow", "--nonblock"], "option '--follow' (accepted: not together with"),
                (["--follow", "--shared"], "option '--follow' (accepted: not together with"),
                (["--priority", "1"], "--priority '1' (accepted: only with --leader"),
                (["--leader", "--priority", "1001"], "--priority '1001' (accepted: a whole number"),
                (["--value", "x"], "--value 'x' (accepted: only with --leader"),
                (["--leader", "--value", "x" * 65_001], "--value '65001 bytes' (accepted: at most")):
            code, out, err = self.run_in("true", options=options)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
