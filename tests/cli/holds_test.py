"""Holds that end before their holders release: lockflight run --max-hold, break, hold and release."""

import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM, SOURCES, skip_visibly
from waiting import gone, state_of, wait_until

DIED = 'echo "${LOCKFLIGHT_OWNER_DIED-no} $LOCKFLIGHT_TOKEN"'
IGNORES_TERM = 'trap "" TERM; '


class HoldsTest(NamedTest):
    def next_holder(self, name="jobs"):
        """Whether the next holder is told of a death, and its token."""
        code, out, err = self.run_in("sh", "-c", DIED, name=name)
        self.assertEqual((code, err), (0, ""))
        died, token = out.split()
        return died == "1", int(token)

    def operate(self, *words, timeout=60):
        return self.run_program(*words, "--domain", DOMAIN, timeout=timeout)

    def keep(self, *options, name="jobs"):
        """The token of a hold, and its keeper."""
        code, out, err = self.operate("hold", name, "--for", "1h", "--json", *options)
        self.assertEqual((code, err), (0, ""))
        its = json.loads(out)
        self.addCleanup(self.kill, its["pid"])
        return its["token"], its["pid"]

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class MaxHold(HoldsTest):
    def test_it_ends_the_command_and_all_that_it_has_started(self):
        begin = time.monotonic()
        code, out, err = self.run_in(
            "sh", "-c", "setsid sh -c 'echo $$; exec sleep 60' & sleep 60",
            options=["--max-hold", "1s"])
        self.assertEqual(code, 76)
        self.assertGreater(time.monotonic() - begin, 0.9)
        self.assertLess(time.monotonic() - begin, 8)
        self.assertRegex(err, r"'jobs': --max-hold is over in 0\.1 s\n")
        self.assertRegex(err, r"the time of --max-hold is over; COMMAND was ended\n")
        self.assertTrue(gone(int(out)), "what has a session of its own is ended as well")
        self.assertTrue(self.next_holder()[0])

    def test_a_command_that_is_quick_enough_is_left_alone(self):
        self.assertEqual(self.run_in("true", options=["--max-hold", "1s"]), (0, "", ""))
        self.assertFalse(self.next_holder()[0])

    def test_the_lock_is_not_free_before_the_command_has_ended(self):
        run, command = self.hold(first=IGNORES_TERM, options=["--max-hold", "1s", "--grace", "1"])
        time.sleep(1.3)
        self.assertEqual(self.run_in("true", options=["--nonblock"])[0], 1)
        self.assertEqual(run.wait(timeout=20), 76)
        self.assertTrue(gone(command))
        self.assertTrue(self.next_holder()[0])

    def test_a_command_that_ends_well_leaves_no_death(self):
        code, _, err = self.run_in("sh", "-c", 'trap "exit 0" TERM; sleep 60 & wait',
                                   options=["--max-hold", "1s"])
        self.assertEqual(code, 76)
        self.assertIn("COMMAND was ended", err)
        self.assertFalse(self.next_holder()[0])

    def test_units_and_several_names_have_it_too(self):
        for options, names in ((["--units", "2"], ["gpu"]), ([], ["a", "b"])):
            done = subprocess.run(
                [PROGRAM, "run", "--domain", DOMAIN, "--max-hold", "1s", *options, *names, "--",
                 "sleep", "60"], capture_output=True, timeout=30, check=False)
            self.assertEqual(done.returncode, 76)

    def test_events(self):
        done = subprocess.run(
            ["sh", "-c", f"{PROGRAM} run --domain {DOMAIN} --max-hold 1s --json 3 jobs -- sleep 60 "
                         "3>&1 1>&2"],
            capture_output=True, text=True, timeout=30, check=False)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([each["event"] for each in events],
                         ["acquired", "ends_soon", "ended", "lost"])
        self.assertLess(events[1]["ends_in"], 0.2)
        self.assertEqual(events[3]["why"], "limit")

    def test_who_shows_the_end(self):
        self.hold(options=["--max-hold", "1h"])
        [holder] = self.who()["holders"]
        self.assertEqual(holder["ends_by"], "limit")
        self.assertGreater(holder["ends_in"], 3_500)
        self.assertNotIn("token", holder)
        _, out, _ = self.run_program("who", "jobs", "--domain", DOMAIN)
        self.assertRegex(out, r"ends\s.*\n.*in 59 min \d+ s")

    def test_in_another_time_namespace(self):
        inside = ["unshare", "--time", "--boottime", "1000", "--monotonic", "1000", "--fork",
                  "--kill-child"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
            skip_visibly(self, "needs a time namespace of its own")
        run = subprocess.Popen([*inside, PROGRAM, "run", "--domain", DOMAIN, "--max-hold", "1h",
                                "jobs", "--", "sh", "-c", "echo; exec sleep 60"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(self.end, run)
        run.stdout.readline()
        [holder] = self.who()["holders"]
        self.assertGreater(holder["ends_in"], 3_500)
        self.assertLess(holder["ends_in"], 3_601)
        code, out, _ = self.operate("break", "jobs", "--yes")
        self.assertEqual(code, 0, out)
        self.assertEqual(run.wait(timeout=10), 76)

    def test_bad_input(self):
        for options, says in (
                (["--max-hold", "0s"], "--max-hold '0s'"), (["--max-hold", "10"], "90s, 30m"),
                (["--max-hold", "1s", "--inherit"], "not together with --inherit"),
                (["--max-hold", "1s", "--at-least", "2s"], "at least as long as --at-least")):
            code, _, err = self.run_in("true", options=options)
            self.assertEqual(code, 2)
            self.assertIn(says, err)
            self.assertEqual(err.count("\n"), 1)


class Break(HoldsTest):
    def test_it_ends_a_run(self):
        run, command = self.hold()
        before = self.who()["token"]
        waiter = self.start("run", "--domain", DOMAIN, "jobs", "--", "sh", "-c", DIED)
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        code, out, err = self.operate("break", "jobs", "--yes")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, rf"sleep|sh \(pid {command}\) holds it for .*\n.* has ended its hold\n")
        self.assertEqual(run.wait(timeout=10), 76)
        self.assertIn(b"an operator has broken the hold; COMMAND was ended", run.stderr.read())
        died, token = waiter.communicate(timeout=10)[0].split()
        self.assertEqual(died, b"1")
        self.assertGreater(int(token), before)
        self.assertEqual(waiter.returncode, 0, "who waits is left alone")

    def test_a_run_that_gets_no_timer(self):
        if subprocess.run(["prlimit", "--sigpending=0", "true"], capture_output=True,
                          check=False).returncode != 0:
            skip_visibly(self, "needs prlimit(1)")
        run = subprocess.Popen(["prlimit", "--sigpending=0", PROGRAM, "run", "--domain", DOMAIN,
                                "jobs", "--", "sh", "-c", "echo; exec sleep 60"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(self.end, run)
        self.assertEqual(run.stdout.readline(), b"\n")
        self.assertEqual(self.operate("break", "jobs", "--yes")[0], 0)
        self.assertEqual(run.wait(timeout=10), 76)

    def test_nobody_holds(self):
        self.assertEqual(self.run_in("true")[0], 0)
        self.assertEqual(self.operate("break", "jobs", "--yes"), (1, "nobody holds 'jobs'\n", ""))

    def test_it_asks(self):
        run, _ = self.hold()
        code, _, err = self.operate("break", "jobs")
        self.assertEqual(code, 2)
        self.assertRegex(err, r"--yes.*no terminal to ask on; .* holds it for")
        for answer, code in ((b"\n", 1), (b"n\n", 1), (b"y\n", 0)):
            ours, its = pty.openpty()
            asks = subprocess.Popen([PROGRAM, "break", "jobs", "--domain", DOMAIN], stdin=its,
                                    stdout=subprocess.PIPE, text=True)
            os.write(ours, answer)
            out, _ = asks.communicate(timeout=20)
            os.close(ours)
            os.close(its)
            self.assertIn("Break the hold of 'jobs', and kill a process that still holds after 10 s? "
                          "[y/N] ", out)
            self.assertEqual(asks.returncode, code)
            self.assertEqual(run.poll() is None, code == 1)
        self.assertEqual(run.wait(timeout=10), 76)

    def test_a_stopped_holder_is_killed(self):
        run, command = self.hold()
        run.send_signal(signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(run.pid) == "T"))
        code, out, _ = self.operate("break", "jobs", "--yes", "--grace", "0.3")
        self.assertEqual(code, 0)
        self.assertIn("was killed; the next holder is told that it died", out)
        self.assertTrue(gone(command))
        self.assertTrue(self.next_holder()[0])

    def test_two_at_once(self):
        run, _ = self.hold()
        both = [self.start("break", "jobs", "--yes", "--domain", DOMAIN) for _ in range(2)]
        codes = []
        for each in both:
            each.communicate(timeout=30)
            codes.append(each.returncode)
        self.assertIn(0, codes)
        self.assertLessEqual(set(codes), {0, 1}, "the second one may have come too late")
        self.assertEqual(run.wait(timeout=10), 76)
        self.assertEqual(self.run_in("true"), (0, "", ""), "no order is left for the next hold")

    def test_one_of_several_names(self):
        run = self.start("run", "--domain", DOMAIN, "a", "b", "--", "sh", "-c",
                         "echo; exec sleep 60")
        self.addCleanup(self.end, run)
        run.stdout.readline()
        self.assertEqual(self.operate("break", "b", "--yes")[0], 0)
        self.assertEqual(run.wait(timeout=10), 76)
        self.assertIn(b"locks 'a', 'b' of domain", run.stderr.read())
        self.assertFalse(self.who("a")["holders"])

    def test_all_that_share_and_all_units(self):
        for options, name in ((["--shared"], "jobs"), (["--units", "2"], "gpu")):
            runs = [self.hold(options=options, name=name)[0] for _ in range(2)]
            code, out, _ = self.operate("break", name, "--yes")
            self.assertEqual(code, 0)
            self.assertEqual(out.count("has ended its hold"), 2)
            for each in runs:
                self.assertEqual(each.wait(timeout=10), 76)

    def test_a_run_that_keeps_the_lock_for_inheritors(self):
        run, _ = self.hold("sleep 60 & exit 0", options=["--inherit"])
        self.assertEqual(run.wait(timeout=10), 0)
        self.assertTrue(self.who()["holders"])
        code, out, _ = self.operate("break", "jobs", "--yes", "--grace", "0.2")
        self.assertEqual(code, 0, out)
        self.assertTrue(self.next_holder()[0])

    def test_another_users_process(self):
        if os.geteuid() != 0:
            skip_visibly(self, "needs root, to be two users")
        group = 61001
        domain = ["--domain", DOMAIN, "--mode", "0660", "--group", str(group)]
        self.addCleanup(self.run_program, "domain", "remove", "--force", *domain)
        os.chmod(self.folder, 0o755)

        def as_user(user, *words):
            return subprocess.Popen([PROGRAM, *words], user=user, group=group, extra_groups=[group],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, cwd="/")

        # The command ignores SIGTERM for as long as the run gives it.
        run = as_user(61002, "run", *domain, "--grace", "60", "jobs", "--", "sh", "-c",
                      IGNORES_TERM + "echo $$; exec sleep 60")
        self.addCleanup(self.end, run)
        run.stdout.readline()
        breaks = as_user(61003, "break", *domain, "jobs", "--yes", "--grace", "1.5")
        out, err = breaks.communicate(timeout=30)
        self.assertEqual((breaks.returncode, err), (77, ""))
        self.assertIn("still holds it: this user may not kill it", out)
        self.assertIsNone(run.poll())
        code, out, _ = self.run_program("break", *domain, "jobs", "--yes", "--grace", "0.1")
        self.assertEqual(code, 0, out)

    def test_another_users_run_is_told_within_a_second(self):
        if os.geteuid() != 0:
            skip_visibly(self, "needs root, to be two users")
        group = 61001
        domain = ["--domain", DOMAIN, "--mode", "0660", "--group", str(group)]
        self.addCleanup(self.run_program, "domain", "remove", "--force", *domain)
        run = subprocess.Popen([PROGRAM, "run", *domain, "jobs", "--", "sh", "-c",
                                "echo; exec sleep 60"], user=61002, group=group,
                               extra_groups=[group], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd="/")
        self.addCleanup(self.end, run)
        run.stdout.readline()
        breaks = subprocess.run([PROGRAM, "break", *domain, "jobs", "--yes"], user=61003,
                                group=group, extra_groups=[group], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=30, cwd="/", check=False)
        self.assertEqual(breaks.returncode, 0, breaks.stdout)
        self.assertEqual(run.wait(timeout=10), 76)

    def test_a_holder_of_another_pid_namespace(self):
        inside = ["unshare", "--pid", "--fork", "--kill-child"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
            skip_visibly(self, "needs a PID namespace of its own")
        run = subprocess.Popen([*inside, PROGRAM, "run", "--domain", DOMAIN, "--grace", "60", "jobs",
                                "--", "sh", "-c", IGNORES_TERM + "echo; exec sleep 60"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(self.end, run)
        run.stdout.readline()
        code, out, _ = self.operate("break", "jobs", "--yes", "--grace", "1.5")
        self.assertEqual(code, 77, out)
        self.assertIn("it is in another PID namespace, where 'lockflight break' can kill it", out)

    def test_bad_input(self):
        self.hold()
        for words, says in ((["--grace", "-1", "--yes"], "--grace '-1'"),
                            (["--grace", "x", "--yes"], "--grace 'x'")):
            code, _, err = self.operate("break", "jobs", *words)
            self.assertEqual(code, 2)
            self.assertIn(says, err)
        code, _, err = self.run_program("break", "jobs", "--yes", "--domain", "no-such-domain")
        self.assertEqual(code, 2)
        self.assertIn("no-such-domain", err)
        self.assertTrue(self.who()["holders"])


class Hold(HoldsTest):
    def test_it_holds_until_it_is_released(self):
        code, out, err = self.operate("hold", "jobs", "--for", "1h", "--note", "kernel upgrade")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^\d+\n$")
        token = int(out)
        [holder] = self.who()["holders"]
        self.addCleanup(self.kill, holder["pid"])
        self.assertEqual((holder["token"], holder["note"], holder["ends_by"]),
                         (token, "kernel upgrade", "limit"))
        self.assertEqual(self.who()["token"], token)
        self.assertGreater(holder["ends_in"], 3_500)
        with open(f"/proc/{holder['pid']}/cmdline", encoding="utf-8") as file:
            self.assertIn("hold\0jobs\0--for\x001h\0--note\0kernel upgrade", file.read())
        self.assertEqual(os.getsid(holder["pid"]), holder["pid"])
        _, shown, _ = self.run_program("who", "jobs", "--domain", DOMAIN)
        self.assertRegex(shown, r"hold\s+in 59 min \d+ s\s+kernel upgrade")
        self.assertEqual(self.run_in("true", options=["--nonblock"])[0], 1)

        code, _, err = self.operate("release", "jobs", "--token", str(token + 1))
        self.assertEqual(code, 2)
        self.assertIn(f"that of the hold, which is {token}, 'kernel upgrade'", err)
        self.assertTrue(self.who()["holders"])
        self.assertEqual(self.operate("release", "jobs", "--token", str(token)), (0, "", ""))
        self.assertFalse(self.who()["holders"])
        died, next_token = self.next_holder()
        self.assertFalse(died)
        self.assertGreater(next_token, token)

    def test_it_ends_by_itself(self):
        begin = time.monotonic()
        code, _, _ = self.operate("hold", "jobs", "--for", "1s")
        self.assertEqual(code, 0)
        self.assertFalse(self.next_holder()[0])
        self.assertGreater(time.monotonic() - begin, 0.9)

    def test_an_old_token_does_not_end_a_later_hold(self):
        first, _ = self.keep()
        self.assertEqual(self.operate("release", "jobs", "--token", str(first))[0], 0)
        second, _ = self.keep()
        self.assertEqual(self.operate("release", "jobs", "--token", str(first))[0], 2)
        self.assertEqual(self.who()["holders"][0]["token"], second)

    def test_release_ends_no_run(self):
        run, _ = self.hold()
        code, _, err = self.operate("release", "jobs", "--token", str(self.who()["token"]))
        self.assertEqual(code, 2)
        self.assertRegex(err, "a lock that 'lockflight hold' holds; .* holds it, which "
                              "'lockflight break' ends")
        self.assertIsNone(run.poll())

    def test_a_release_of_nothing(self):
        self.run_in("true")
        self.assertEqual(self.operate("release", "jobs", "--token", "1"),
                         (1, "nobody holds 'jobs'\n", ""))

    def test_break_ends_it_as_a_death(self):
        _, pid = self.keep()
        self.assertEqual(self.operate("break", "jobs", "--yes")[0], 0)
        self.assertTrue(gone(pid))
        self.assertTrue(self.next_holder()[0])

    def test_a_keeper_ends_with_its_domain(self):
        _, pid = self.keep()
        self.assertEqual(self.run_program("domain", "remove", DOMAIN, "--force")[0], 0)
        self.assertTrue(wait_until(lambda: gone(pid)))

    def test_signals_to_the_keeper(self):
        for number, died in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
            _, pid = self.keep()
            os.kill(pid, number)
            self.assertEqual(self.next_holder()[0], died, number)

    def test_a_keeper_that_is_stopped(self):
        token, pid = self.keep()
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(pid) == "T"))
        code, out, _ = self.operate("release", "jobs", "--token", str(token))
        self.assertEqual(code, 77)
        self.assertIn("'lockflight break' ends it", out)
        os.kill(pid, signal.SIGCONT)
        self.assertFalse(self.next_holder()[0])

    def test_shared_holds_have_tokens_of_their_own(self):
        first, _ = self.keep("--shared")
        second, _ = self.keep("--shared")
        self.assertNotEqual(first, second)
        self.assertEqual(self.operate("release", "jobs", "--token", str(first))[0], 0)
        self.assertEqual([each["token"] for each in self.who()["holders"]], [second])

    def test_a_unit_is_held(self):
        token, _ = self.keep("--units", "2", name="gpu")
        code, out, _ = self.operate("hold", "gpu", "--for", "1h", "--units", "2", "--json")
        its = json.loads(out)
        self.addCleanup(self.kill, its["pid"])
        self.assertEqual((code, its["unit"]), (0, 1))
        self.assertEqual(self.run_in("true", options=["--units", "2", "--nonblock"],
                                     name="gpu")[0], 1)
        self.assertEqual(self.operate("release", "gpu", "--token", str(token))[0], 0)
        self.assertEqual([each["token"] for each in self.who("gpu")["holders"]], [its["token"]])

    def test_it_waits_as_a_run(self):
        run, _ = self.hold()
        self.assertEqual(self.operate("hold", "jobs", "--for", "1h", "--nonblock")[0], 1)
        self.assertEqual(
            self.operate("hold", "jobs", "--for", "1h", "--timeout", "0.1", "-E", "9")[0], 9)
        waits = self.start("hold", "jobs", "--for", "1h", "--domain", DOMAIN)
        self.addCleanup(self.end, waits)
        self.wait_for_waiters(1)
        run.kill()
        out, _ = waits.communicate(timeout=10)
        [holder] = self.who()["holders"]
        self.addCleanup(self.kill, holder["pid"])
        self.assertEqual(int(out), holder["token"])

    def test_a_command_that_is_interrupted_leaves_no_hold(self):
        for number in (signal.SIGINT, signal.SIGKILL):
            run, _ = self.hold()
            waits = self.start("hold", "jobs", "--for", "1h", "--domain", DOMAIN)
            self.addCleanup(self.end, waits)
            self.wait_for_waiters(1)
            waits.send_signal(number)
            self.assertEqual(waits.wait(timeout=10), -number)
            self.wait_for_waiters(0)
            run.kill()
            self.next_holder()  # and it gets the lock

    def test_a_token_that_cannot_be_printed_leaves_no_hold(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "hold", "jobs", "--for", "1h", "--domain", DOMAIN],
                                  stdout=full, stderr=subprocess.PIPE, timeout=30, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertFalse(self.next_holder()[0])

    def test_it_keeps_no_descriptor_of_its_caller(self):
        reads, writes = os.pipe()
        os.set_inheritable(writes, True)
        done = subprocess.run([PROGRAM, "hold", "jobs", "--for", "1h", "--json", "--domain", DOMAIN],
                              pass_fds=[writes], stdout=subprocess.PIPE, timeout=30, check=True)
        self.addCleanup(self.kill, json.loads(done.stdout)["pid"])
        os.close(writes)
        self.assertEqual(os.read(reads, 1), b"", "its end is there")
        os.close(reads)
        self.assertTrue(self.who()["holders"])

    def test_the_example(self):
        environment = dict(os.environ, LOCKFLIGHT_DOMAINS=self.folder,
                           PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}")
        done = subprocess.run(
            [os.path.join(SOURCES, "examples", "maintenance.sh"), "lockflight", "run", "--nonblock",
             "-E", "9", "backup", "--", "true"],
            env=environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (9, ""), done.stdout)
        self.assertRegex(done.stdout, r"the token is \d+\n.*\n.*maintenance: lockflight")
        users = subprocess.run([PROGRAM, "who", "backup"], env=environment, capture_output=True,
                               text=True, timeout=60, check=False)
        self.assertEqual(users.stdout, "nobody holds 'backup' or waits for it\n")

    def test_a_hold_inside_of_a_run_does_not_wait_for_it(self):
        code, _, err = self.run_in(PROGRAM, "hold", "jobs", "--for", "1h", "--domain", DOMAIN)
        self.assertEqual(code, 2)
        self.assertIn("a lock that no run around this one holds", err)

    def test_bad_input(self):
        self.run_in("true")
        for words, says in ((["hold", "jobs"], "--for ''"), (["hold", "jobs", "--for", "5"], "'5'"),
                            (["hold", "jobs", "--for", "1h", "--note", "n" * 129],
                             "at most 128 bytes"),
                            (["release", "jobs"], "--token ''"),
                            (["release", "jobs", "--token", "x"], "--token 'x'"),
                            (["release", "jobs", "--token", "0"], "--token '0'")):
            code, _, err = self.operate(*words)
            self.assertEqual(code, 2, words)
            self.assertIn(says, err)
            self.assertTrue(re.fullmatch(r"[^\n]+\n", err), err)


if __name__ == "__main__":
    unittest.main()
