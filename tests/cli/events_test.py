"""lockflight run --json FD: what happens to the run, for a script that reads it."""

import json
import os
import signal
import subprocess
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM
from waiting import wait_until


class Events(NamedTest):
    def begin(self, *words, options=(), names=("jobs",), **more):
        """A run, and the descriptor from which its events come."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        run = subprocess.Popen(
            [PROGRAM, "run", "--domain", DOMAIN, "--json", str(writing), *options, *names, "--",
             *words], cwd=self.folder, pass_fds=[writing], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, run)
        os.close(writing)
        return run, reading

    def events_of(self, *words, code=0, **more):
        run, reading = self.begin(*words, **more)
        return self.rest_of(run, reading, code)

    def rest_of(self, run, reading, code):
        with open(os.dup(reading), encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        self.assertEqual(run.wait(timeout=10), code)
        self.assertEqual([each["seconds"] for each in events],
                         sorted(each["seconds"] for each in events))
        return events

    def test_a_run(self):
        before, *after = self.events_of("sh", "-c", "exit 7", code=7, names=("b", "a"))
        self.assertEqual((before["event"], before["names"]), ("acquired", ["a", "b"]))
        self.assertEqual((len(before["tokens"]), before["owner_died"]), (2, False))
        self.assertEqual([each["event"] for each in after], ["ended", "released"])
        self.assertEqual((after[0]["code"], after[0]["ran"]), (7, True))

    def test_a_unit_and_a_death(self):
        first, _ = self.hold(options=["--units", "2"])
        self.assertEqual(self.events_of("true", options=["--units", "2"])[0]["unit"], 1)
        self.hold(options=["--units", "2"])  # the other unit, which would be free before the first
        first.kill()
        first.wait(timeout=10)
        found = self.events_of("true", options=["--units", "2"])[0]
        self.assertEqual((found["unit"], found["owner_died"]), (0, True))

    def test_readers_have_no_token(self):
        self.assertEqual(self.events_of("true", options=["--shared"])[0]["tokens"], [])

    def test_a_wait_in_vain(self):
        self.hold(name="other")  # has the first slot
        run, pid = self.hold()
        self.assertTrue(wait_until(lambda: self.who()["holders"][0]["command"] == "sleep"))
        [same] = self.who()["holders"]
        waits, not_free = self.events_of("true", options=["--timeout", "1.5"], code=1)
        for each, event in ((waits, "waits"), (not_free, "not_free")):
            self.assertEqual((each["event"], each["name"]), (event, "jobs"))
            [holder] = each["holders"]
            self.assertEqual((holder["pid"], holder["guarded_pid"], holder["use"]),
                             (run.pid, pid, "holds"))
            same["seconds"] = holder["seconds"]
            self.assertEqual(holder, same, "as 'who --json' has it")
            self.assertGreater(holder["slot"], 0)
        self.assertGreaterEqual(waits["seconds"], 1)
        self.assertEqual(len(waits["waiters"]), 1)

    def test_a_signal_while_it_waits(self):
        self.hold()
        run, reading = self.begin("true")
        self.wait_for_waiters(1)
        run.send_signal(signal.SIGTERM)
        [event] = self.rest_of(run, reading, -signal.SIGTERM)
        self.assertEqual((event["event"], event["signal"]), ("interrupted", signal.SIGTERM))

    def test_a_slot_that_is_done(self):
        for events in (["acquired", "ended", "released"], ["done"]):
            found = self.events_of("true", options=["--every", "3660d"])
            self.assertEqual([each["event"] for each in found], events)

    def test_a_command_that_is_not_there(self):
        _, ended, _ = self.events_of("no-such-program", code=127)
        self.assertEqual((ended["code"], ended["ran"]), (127, False))

    def test_the_command_does_not_inherit_it(self):
        run, reading = self.begin("sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $!")
        child = int(run.stdout.readline())
        self.assertEqual([each["event"] for each in self.rest_of(run, reading, 0)],
                         ["acquired", "ended", "released"])
        os.kill(child, signal.SIGKILL)

    def test_heirs_say_nothing(self):
        run, reading = self.begin("sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $!",
                                  options=["--inherit"])
        child = int(run.stdout.readline())
        self.assertEqual([each["event"] for each in self.rest_of(run, reading, 0)],
                         ["acquired", "ended"])
        os.kill(child, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not self.who()["holders"]))

    def test_nobody_reads(self):
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        try:
            while os.write(writing, b"x" * 4096):
                pass
        except BlockingIOError:
            os.set_blocking(writing, True)
        for is_there in (True, False):
            if not is_there:
                os.close(reading)
            done = subprocess.run(
                [PROGRAM, "run", "--domain", DOMAIN, "--json", str(writing), "jobs", "--", "echo",
                 "ran"], pass_fds=[writing], capture_output=True, timeout=10, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"ran\n", b""))
        os.close(writing)

    def test_events_go_to_a_file(self):
        with open(os.path.join(self.folder, "events"), "wb") as file:
            subprocess.run([PROGRAM, "run", "--domain", DOMAIN, "--json", str(file.fileno()),
                            "jobs", "--", "true"], pass_fds=[file.fileno()], timeout=10, check=True)
        with open(os.path.join(self.folder, "events"), encoding="utf-8") as lines:
            self.assertEqual([json.loads(line)["event"] for line in lines],
                             ["acquired", "ended", "released"])

    def test_what_is_refused(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        for bad in ("", "0", "2", "-1", "x", "999", str(reading)):
            done = subprocess.run(
                [PROGRAM, "run", "--domain", DOMAIN, "--json", bad, "jobs", "--", "true"],
                pass_fds=[reading], capture_output=True, text=True, timeout=10, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
            self.assertIn(f"--json '{bad}' (accepted: the number of a descriptor", done.stderr)


if __name__ == "__main__":
    unittest.main()
