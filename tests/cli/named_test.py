"""Named locks on the command line: run, who, top and domain."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM, skip_visibly
from waiting import gone, state_of, wait_until


class ExitCodes(NamedTest):
    def test_that_of_the_command(self):
        self.assertEqual(self.run_in("true"), (0, "", ""))
        self.assertEqual(self.run_in("sh", "-c", "exit 7"), (7, "", ""))
        self.assertEqual(self.run_in("sh", "-c", "kill -9 $$")[0], 137)
        self.assertEqual(self.run_in("echo", "--", "-h"), (0, "-- -h\n", ""))

    def test_a_command_that_does_not_run(self):
        self.write("text", "no program")
        for word, code in [("no-such-program", 127), ("./no/such/program", 127), ("./text", 126)]:
            found, out, err = self.run_in(word)
            self.assertEqual((found, out, err.count("\n")), (code, "", 1))
            self.assertIn(f"COMMAND '{word}'", err)
        self.assertEqual(self.run_in("true"), (0, "", ""), "the lock is free")

    def test_conflicts(self):
        self.hold()
        self.assertEqual(self.run_in("true", options=["--nonblock"]), (1, "", ""))
        self.assertEqual(self.run_in("true", options=["--nonblock", "-E", "75"]), (75, "", ""))
        start = time.monotonic()
        code = self.run_in("true", options=["--timeout", "0.2", "--conflict-exit-code", "9"])[0]
        self.assertEqual(code, 9)
        self.assertTrue(0.2 <= time.monotonic() - start < 5)
        self.assertEqual(self.run_in("true", name="another"), (0, "", ""))

    def test_shared(self):
        self.hold(options=["--shared"])
        shared = ["--shared", "--nonblock"]
        self.assertEqual(self.run_in("true", options=shared), (0, "", ""))
        self.assertEqual(self.run_in("true", options=["--nonblock"])[0], 1)

    def test_the_lock_comes_within_the_time(self):
        process, _ = self.hold("sleep 0.3")
        self.assertEqual(self.run_in("true", options=["--timeout", "20"]), (0, "", ""))
        self.assertTrue(wait_until(lambda: process.poll() == 0))

    def test_one_at_a_time(self):
        self.write("count", "0")
        script = "n=$(cat count); sleep 0.01; echo $((n + 1)) > count"
        all_of_them = [self.start("run", "--domain", DOMAIN, "jobs", "--", "sh", "-c", script)
                       for _ in range(12)]
        for process in all_of_them:
            self.assertEqual((process.communicate(timeout=30), process.returncode), ((b"", b""), 0))
        self.assertEqual(self.read("count"), "12\n")


class Environment(NamedTest):
    SHOW = ("sh", "-c",
            'echo "$LOCKFLIGHT_LOCK ${LOCKFLIGHT_TOKEN-none} ${LOCKFLIGHT_OWNER_DIED-none}"')

    def shown(self, *options, name="jobs"):
        code, out, err = self.run_in(*self.SHOW, options=options, name=name)
        self.assertEqual((code, err), (0, ""))
        name, token, died = out.rsplit(" ", 2)
        return name, token, died.strip()

    def test_name_and_token(self):
        name, first, died = self.shown()
        self.assertEqual((name, died), ("jobs", "none"))
        self.assertGreater(int(self.shown()[1]), int(first))
        self.assertEqual(self.shown("--shared"), ("jobs", "none", "none"))
        self.assertEqual(self.shown(name="with a space")[0], "with a space")

    def test_the_successor_of_one_who_died_is_told_until_one_succeeds(self):
        token = int(self.shown()[1])
        process, _ = self.hold()
        process.kill()
        process.wait(timeout=10)
        code, out, _ = self.run_in("sh", "-c", "echo $LOCKFLIGHT_OWNER_DIED; exit 5")
        self.assertEqual((code, out), (5, "1\n"))
        _, later, died = self.shown()
        self.assertEqual(died, "1")
        self.assertGreater(int(later), token)
        self.assertEqual(self.shown()[2], "none")


class WhoTopDomain(NamedTest):
    def test_nobody(self):
        self.run_in("true")
        code, out, err = self.run_program("who", "jobs", "--domain", DOMAIN)
        self.assertEqual((code, err), (1, ""))
        self.assertIn("nobody holds 'jobs'", out)
        self.assertEqual(self.who("never made")["holders"], [])

    def test_a_holder_and_a_waiter(self):
        holder, command = self.hold()
        waiter = self.start("run", "--domain", DOMAIN, "jobs", "--", "true")
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        self.assertTrue(wait_until(lambda: self.who()["holders"][0]["command"] == "sleep"))
        state = self.who()
        self.assertEqual(set(state), {"name", "kind", "parameters", "token", "acquires", "repairs",
                                      "owner_died", "holders", "waiters", "domain"})
        self.assertEqual((state["name"], state["kind"], state["domain"], state["owner_died"]),
                         ("jobs", "flight-rw", DOMAIN, False))
        for users, process, use in [("holders", holder, "holds"), ("waiters", waiter, "waits")]:
            [user] = state[users]
            self.assertEqual(set(user), {"pid", "slot", "dead", "stopped", "use", "seconds",
                                         "guarded_pid", "command"})
            self.assertEqual((user["pid"], user["use"], user["dead"], user["stopped"]),
                             (process.pid, use, False, False))
            self.assertTrue(0 <= user["seconds"] < 60)
        [holds], [waits] = state["holders"], state["waiters"]
        self.assertEqual((holds["guarded_pid"], holds["command"]), (command, "sleep"))
        self.assertEqual((waits["guarded_pid"], waits["command"]), (0, "true"),
                         "what it is to run")
        code, out, _ = self.run_program("who", "jobs", "--domain", DOMAIN)
        self.assertEqual(code, 0)
        self.assertRegex(out, rf"(?m)^ *{holder.pid}  holds .* s +{command}  sleep$")
        self.assertRegex(out, rf"(?m)^ *{waiter.pid}  waits .* s +true$")
        self.see_top(holder, waiter, command)
        self.see_domain(holder, waiter, command)

    def see_top(self, holder, waiter, command):
        top = json.loads(self.run_well("top", DOMAIN, "--once", "--json"))
        self.assertEqual(set(top), {"domain", "participants", "slots", "locks_made", "repairs",
                                    "longest_wait_seen_s", "locks"})
        self.assertEqual([lock["name"] for lock in top["locks"]], ["jobs"])
        self.assertGreater(top["longest_wait_seen_s"], 0)
        out = self.run_well("top", DOMAIN, "--once")
        self.assertRegex(out, rf"(?m)^jobs: {holder.pid} holds for .*, sleep \({command}\)$")
        self.assertRegex(out, rf"(?m)^jobs: {waiter.pid} waits for ")
        lines = self.run_well("top", DOMAIN, "--seconds", "2", "--json").splitlines()
        self.assertEqual([json.loads(line)["domain"] for line in lines], [DOMAIN, DOMAIN])

    def see_domain(self, holder, waiter, command):
        shown = json.loads(self.run_well("domain", "show", DOMAIN, "--json"))
        self.assertEqual(set(shown), {"name", "slots", "names", "mode", "names_taken", "participants",
                                      "locks"})
        found = {participant["pid"]: participant for participant in shown["participants"]}
        self.assertEqual(set(found), {holder.pid, waiter.pid})
        for process, guarded in [(holder, command), (waiter, 0)]:
            self.assertEqual(set(found[process.pid]), {"slot", "pid", "thread", "dead", "stopped",
                                                       "guarded_pid", "command"})
            self.assertEqual(found[process.pid]["guarded_pid"], guarded)
        self.assertEqual((shown["mode"], shown["slots"], shown["names_taken"]), ("0600", 4095, 1))
        out = self.run_well("domain", "show", DOMAIN)
        self.assertRegex(out, rf"(?m)^ *\d+ +{holder.pid} +{holder.pid} +{command}  sleep$")
        self.assertRegex(out, rf"(?m)^jobs +flight-rw +\d+ +\d+ +{holder.pid} +{waiter.pid}")
        [mine] = [d for d in json.loads(self.run_well("domain", "list", "--json"))["domains"]
                  if d["name"] == DOMAIN]
        self.assertEqual(set(mine), {"name", "participants", "slots", "locks", "names", "mode"})
        self.assertIn(DOMAIN, self.run_well("domain", "list", "--names").splitlines())
        self.assertRegex(self.run_well("domain", "list"), rf"(?m)^{DOMAIN} ")

    def test_text_has_no_control_characters(self):
        name = "a\x1b[31m\x07\x7f\x9b\t\u00e9b"
        shown = r"a\x1b[31m\x07\x7f\xc2\x9b\x09" + "\u00e9b"
        os.symlink("/bin/sleep", self.path("s\x1b[1m\x9bp"))
        process = self.start("run", "--domain", DOMAIN, name, "--",
                             os.path.join(".", "s\x1b[1m\x9bp"), "60")
        self.addCleanup(self.end, process)
        self.assertTrue(wait_until(lambda: self.who(name)["holders"]
                                   and self.who(name)["holders"][0]["command"].startswith("s")))
        self.assertEqual(self.who(name)["name"], name)
        command = r"s\x1b[1m\xc2\x9bp"
        for line, words in [(["who", name, "--domain", DOMAIN], [command]),
                            (["top", DOMAIN, "--once"], [shown, command]),
                            (["domain", "show", DOMAIN], [shown, command]),
                            (["who", name, "--domain", DOMAIN, "--json"], []),
                            (["top", DOMAIN, "--once", "--json"], []),
                            (["domain", "show", DOMAIN, "--json"], [])]:
            out = self.run_well(*line)
            self.assertNotRegex(out, "[\x00-\x09\x0b-\x1f\x7f-\x9f]", line)
            for word in words:
                self.assertIn(word, out)
        process.terminate()
        process.wait(timeout=10)
        out = self.run_program("who", name, "--domain", DOMAIN)[1]
        self.assertEqual(out, f"nobody holds '{shown}' or waits for it\n")
        err = self.run_in("/no/\x1b[1m\x9bp")[2]
        self.assertIn(r"COMMAND '/no/\x1b[1m\xc2\x9bp'", err)

    def test_names_that_are_not_utf8(self):
        """Each is another one in JSON, and can be read from it."""
        names = [b"\xff", b"\xfe", b"\\xff", b"\\x5cxff", b"\xe0\x80\x80", b"\xed\xa0\x80", b"ok\\x"]
        for name in names:
            self.run_in("true", name=name)
        locks = json.loads(self.run_well("domain", "show", DOMAIN, "--json"))["locks"]
        read = [re.sub(rb"\\x([0-9a-f]{2})", lambda each: bytes([int(each[1], 16)]),
                       lock["name"].encode()) for lock in locks]
        self.assertEqual(sorted(read), sorted(names))
        self.assertEqual(len({lock["name"] for lock in locks}), len(names))

    def test_a_long_name_does_not_pad_all_rows(self):
        self.hold(name="n" * 250)
        self.hold()
        for line in (["domain", "show", DOMAIN], ["top", DOMAIN, "--once"]):
            [row] = [row for row in self.run_well(*line).splitlines() if row.startswith("jobs")]
            self.assertLess(len(row), 160)

    def test_milliseconds_are_enough(self):
        self.hold()
        for line in (["who", "jobs", "--domain", DOMAIN, "--json"],
                     ["top", DOMAIN, "--once", "--json"]):
            out = self.run_well(*line)
            self.assertNotRegex(out, r"[0-9]\.[0-9]{4}")

    def test_a_domain_is_named_in_both_ways(self):
        self.run_in("true")
        self.hold(name="held")
        for ways in ([["who", "held", DOMAIN], ["who", "held", "--domain", DOMAIN]],
                     [["top", DOMAIN, "--once"], ["top", "--domain", DOMAIN, "--once"]],
                     [["domain", "show", DOMAIN], ["domain", "show", "--domain", DOMAIN]],
                     [["domain", "forget", "--domain", DOMAIN, "jobs"]]):
            for line in ways:
                self.run_well(*line)
        self.assertEqual(self.run_well("domain", "remove", "--force", "--domain", DOMAIN),
                         f"removed {DOMAIN}\n")

    def test_forget_with_a_waiter(self):
        """It is stopped, so it does not take the lock when that becomes free."""
        holder, _ = self.hold()
        waiter = self.start("run", "--domain", DOMAIN, "jobs", "--", "true")
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        waiter.send_signal(signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(waiter.pid) == "T"))
        holder.terminate()
        self.assertTrue(wait_until(lambda: not self.who()["holders"]))
        code, _, err = self.run_program("domain", "forget", DOMAIN, "jobs")
        self.assertEqual(code, 2)
        self.assertIn(f"; true (pid {waiter.pid}, stopped) waits for it)", err)

    def test_forget(self):
        process, command = self.hold()
        code, out, err = self.run_program("domain", "forget", DOMAIN, "jobs")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1))
        self.assertRegex(err, r"NAME 'jobs' \(accepted: a lock that nobody holds or awaits; "
                         rf"\w+ \(pid {command}\) holds it\)")
        self.end(process)
        self.run_in("true")
        self.run_in("true", name="other")
        self.assertEqual(self.run_well("domain", "forget", DOMAIN, "jobs"), "forgot jobs\n")
        locks = json.loads(self.run_well("domain", "show", DOMAIN, "--json"))["locks"]
        self.assertEqual([lock["name"] for lock in locks], ["other"])
        code, out, err = self.run_program("domain", "forget", DOMAIN, "jobs")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1))
        self.assertIn("NAME 'jobs' (accepted: a lock of the domain", err)
        self.assertEqual(self.run_in("true"), (0, "", ""), "it is made anew")

    def test_remove(self):
        self.run_in("true")
        process, command = self.hold()
        code, out, err = self.run_program("domain", "remove", DOMAIN)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1))
        self.assertIn("--force", err)
        self.end(process)
        self.assertTrue(wait_until(lambda: gone(command)))
        self.assertEqual(self.run_well("domain", "remove", DOMAIN), f"removed {DOMAIN}\n")
        self.assertNotIn(DOMAIN, self.run_well("domain", "list", "--names").splitlines())

    def test_top_goes_on_in_the_next_domain(self):
        self.run_in("true")
        top = self.start("top", DOMAIN, "--seconds", "3", "--json")
        self.addCleanup(self.end, top)
        self.assertEqual(json.loads(top.stdout.readline())["locks"], [])
        self.run_well("domain", "remove", DOMAIN)
        self.hold(name="later")
        found = [json.loads(line)["locks"] for line in top.stdout]
        self.assertEqual([[lock["name"] for lock in locks] for locks in found], [["later"]] * 2)

    def test_top_on_a_terminal(self):
        self.hold()
        for keys in [b"q", b"\x03"]:
            pid, terminal = pty.fork()
            if pid == 0:
                os.environ["TERM"] = "xterm"
                os.execv(PROGRAM, [PROGRAM, "top", DOMAIN])
            seen = b""
            while b"q ends" not in seen and select.select([terminal], [], [], 10)[0]:
                seen += os.read(terminal, 65536)
            self.assertIn(b"jobs", seen)
            os.write(terminal, keys)
            rest = b""
            try:
                while select.select([terminal], [], [], 10)[0] and b"\x1b[?1049l" not in rest:
                    rest += os.read(terminal, 65536)
            except OSError:
                pass  # it has ended
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
            os.close(terminal)
            self.assertIn(b"\x1b[?1049l", rest, "the terminal is left as it was")


class Modes(NamedTest):
    def mode_of(self, mode=()):
        return json.loads(self.run_well("domain", "show", DOMAIN, *mode, "--json"))["mode"]

    def test_a_domain_is_used_as_it_exists(self):
        self.assertEqual(self.run_in("true", options=["--mode", "0660"]), (0, "", ""))
        self.assertEqual(self.mode_of(), "0660")
        for options in [[], ["--mode", "660"],
                        ["--mode", "0660", "--group", str(os.getegid())]]:
            self.assertEqual(self.run_in("true", options=options),
                             (0, "", ""))
        self.assertEqual(self.mode_of(["--mode", "0660"]), "0660")
        self.assertEqual(self.run_well("domain", "remove", DOMAIN), f"removed {DOMAIN}\n")
        self.assertEqual(self.run_in("true"), (0, "", ""))
        self.assertEqual(self.mode_of(), "0600", "its user's own if nothing else is asked for")

    def test_a_private_domain_and_one_of_a_group(self):
        """Another user of the group may have made the second one."""
        both = [["--mode", mode] for mode in ["0600", "0660"]]
        for mode in both:
            self.addCleanup(self.run_program, "domain", "remove", DOMAIN, "--force", *mode)
        self.assertEqual(self.run_in("true", options=both[1]), (0, "", ""))
        folder = os.environ.get("LOCKFLIGHT_DOMAINS", "/dev/shm")
        path = f"{folder}/lockflight-g{os.getegid()}-{DOMAIN}.lf4"
        os.rename(path, path + ".aside")
        self.assertEqual(self.run_in("true", options=both[0]), (0, "", ""))
        os.rename(path + ".aside", path)
        # Else members of a group could keep a user from what is the user's own.
        self.assertEqual(self.mode_of(), "0600")
        self.hold(options=both[1])
        self.assertEqual(self.run_in("true", options=["--nonblock"]),
                         (0, "", ""))
        self.assertEqual(self.run_in("true", options=["--nonblock", *both[0]]), (0, "", ""))
        self.assertEqual(self.run_in("true", options=["--nonblock", *both[1]])[0], 1)
        for mode, code in zip(both, [1, 0]):
            self.assertEqual(self.run_program("who", "jobs", "--domain", DOMAIN, *mode)[0], code)
        domains = json.loads(self.run_well("domain", "list", "--json"))["domains"]
        listed = [each["mode"] for each in domains if each["name"] == DOMAIN]
        self.assertEqual(sorted(listed), ["0600", "0660"])
        self.assertEqual(self.run_well("domain", "forget", DOMAIN, "jobs", *both[0]),
                         "forgot jobs\n")
        self.run_well("domain", "remove", DOMAIN, *both[0])
        self.assertEqual(self.mode_of(), "0660")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes domains of two groups")
    def test_domains_of_two_groups(self):
        """What the message says to give tells them apart, for each command."""
        of_group = {group: ["--mode", "0660", "--group", group] for group in ("61001", "61002")}
        for options in of_group.values():
            self.addCleanup(self.run_program, "domain", "remove", DOMAIN, "--force", *options)
            self.assertEqual(self.run_in("true", options=options), (0, "", ""))
        self.hold(options=of_group["61002"])
        listed = json.loads(self.run_well("domain", "list", "--json"))["domains"]
        self.assertEqual([(each["mode"], each["group"]) for each in listed
                          if each["name"] == DOMAIN], [("0660", "61001"), ("0660", "61002")])
        for line in (["who", "jobs", DOMAIN], ["top", DOMAIN, "--once"], ["domain", "show", DOMAIN],
                     ["domain", "forget", DOMAIN, "jobs"], ["domain", "remove", DOMAIN],
                     ["run", "--nonblock", "--domain", DOMAIN, "jobs", "--", "true"]):
            options = ["--mode", "0660"]
            if line[0] == "run":
                line, options = line[:1] + options + line[1:], []
            code, out, err = self.run_program(*line, *options)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertIn("(accepted: --mode 0660 --group 61001 or --mode 0660 --group 61002)", err)
        for group, code in (("61001", 1), ("61002", 0)):
            self.assertEqual(self.run_program("who", "jobs", DOMAIN, *of_group[group])[0], code)
            shown = json.loads(self.run_well("domain", "show", DOMAIN, "--json", *of_group[group]))
            self.assertEqual(shown["group"], group)
            self.assertEqual(self.run_program("top", DOMAIN, "--once", *of_group[group])[0], 0)
        self.assertEqual(self.run_well("domain", "forget", DOMAIN, "jobs", *of_group["61001"]),
                         "forgot jobs\n")
        code, _, err = self.run_program("domain", "forget", DOMAIN, "jobs", *of_group["61001"])
        self.assertEqual(code, 2)
        self.assertIn(f"; 'lockflight domain show {DOMAIN} --mode 0660 --group 61001' lists them", err)
        self.run_well("domain", "remove", DOMAIN, *of_group["61001"])
        self.assertEqual(self.run_program("who", "jobs", DOMAIN, "--mode", "0660")[0], 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes a domain of a group that it is not in")
    def test_a_domain_of_a_group_that_root_is_not_in(self):
        of_group = ["--mode", "0660", "--group", "61001"]
        self.addCleanup(self.run_program, "domain", "remove", DOMAIN, "--force", *of_group)
        self.assertEqual(self.run_in("true", options=of_group), (0, "", ""))
        code, _, err = self.run_program("who", "jobs", DOMAIN)
        self.assertEqual(code, 2)
        self.assertIn(f"DOMAIN '{DOMAIN}' (accepted: with --mode 0660 --group 61001)", err)
        code, _, err = self.run_in("true")
        self.assertEqual((code, err), (0, f"lockflight run: makes domain '{DOMAIN}', which is of this user "
                                          "alone; group 61001, which this user is not in, has another "
                                          "one, with mode 0660\n"))
        self.assertEqual(self.run_in("true"), (0, "", ""))
        self.assertEqual(self.run_in("true", options=["--mode", "0660"]), (0, "", ""))

    def test_another_mode_than_that_of_the_domain(self):
        self.run_in("true")
        code, out, err = self.run_program("who", "jobs", "--domain", DOMAIN, "--mode", "0660")
        self.assertEqual((code, out, err.count("\n")), (2, "", 1))
        self.assertIn("0660", err)


BAD = [
    (["run"], ["NAME", "''", "255 bytes"]),
    (["run", "a"], ["COMMAND", "''", "--"]),
    (["run", "a", "--"], ["COMMAND", "''", "--"]),
    (["run", "a", "b", "a", "--", "true"], ["NAME", "'a'", "each name once"]),
    (["run", "", "--", "true"], ["NAME", "''", "255"]),
    (["run", "x" * 256, "--", "true"], ["NAME", "255"]),
    (["run", "a\nb", "--", "true"], ["NAME", "a\\x0ab", "new line"]),
    (["run", "--timeout", "-1", "a", "--", "true"], ["--timeout", "'-1'", "from 0"]),
    (["run", "--timeout", "soon", "a", "--", "true"], ["--timeout", "'soon'", "a number of seconds from 0"]),
    (["run", "--timeout", "nan", "a", "--", "true"], ["--timeout", "'nan'", "from 0"]),
    (["run", "--timeout", "inf", "a", "--", "true"], ["--timeout", "'inf'", "from 0"]),
    (["run", "--timeout", "1", "--nonblock", "a", "--", "true"], ["--timeout", "not both"]),
    (["run", "-E", "256", "a", "--", "true"], ["--conflict-exit-code", "'256'", "0 to 255"]),
    (["run", "-E", "-1", "a", "--", "true"], ["--conflict-exit-code", "'-1'", "0 to 255"]),
    (["run", "-E", "x", "a", "--", "true"], ["--conflict-exit-code", "'x'", "0 to 255"]),
    (["run", "--mode", "0644", "a", "--", "true"], ["--mode", "'0644'", "0600 or 0660"]),
    (["run", "--mode", "", "a", "--", "true"], ["--mode", "''", "0600 or 0660"]),
    (["run", "--mode", "0660", "--mode", "0660", "a", "--", "true"], ["--mode", "more than once"]),
    (["run", "--group", "root", "a", "--", "true"], ["--group", "'root'", "--mode 0660"]),
    (["run", "--mode", "0600", "--group", "0", "a", "--", "true"], ["--group", "--mode 0660"]),
    (["run", "--mode", "0660", "--group", "no such", "--domain", DOMAIN, "a", "--", "true"],
     ["--group", "'no such'", "name or the number of a group"]),
    (["run", "--mode", "0660", "--group", str(2**32 - 1), "--domain", DOMAIN, "a", "--", "true"],
     ["--group", "name or the number of a group"]),
    (["run", "--domain", "a", "--domain", "b", "a", "--", "true"], ["--domain", "more than once"]),
    (["run", "--shred", "a", "--", "true"], ["'--shred'", "nearest: --shared"]),
    (["run", "--domain", "a/b", "a", "--", "true"], ["'a/b'", "a-z"]),
    (["run", "--domain", ".a", "a", "--", "true"], ["'.a'", "a-z"]),
    (["run", "--domain", "x" * 65, "a", "--", "true"], ["64"]),
    (["who"], ["NAME", "''", "255"]),
    (["who", "a", "--domain", "a/b"], ["'a/b'", "a-z"]),
    (["top", "a", "b"], ["'b'", "DOMAIN"]),
    (["top", "--seconds", "0"], ["--seconds", "'0'", "0.001"]),
    (["top", "--seconds", "1", "--once"], ["--seconds", "not both"]),
    (["top", "--prometheus", "a", "--json"], ["--prometheus", "'a'", "--json"]),
    (["top", "--prometheus", "-", "--seconds", "1"], ["--seconds", "'1'", "prints once"]),
    (["top", "--prometheus"], ["--prometheus", "FILE"]),
    (["who", "a", "--mode", "x"], ["--mode", "'x'", "0600 or 0660"]),
    (["top", "--mode", "x"], ["--mode", "'x'", "0600 or 0660"]),
    (["domain"], ["ACTION", "''", "list, show, remove, forget"]),
    (["domain", "lsit"], ["ACTION", "'lsit'", "nearest: list"]),
    (["domain", "list", "a"], ["DOMAIN", "'a'", "show"]),
    (["domain", "show"], ["DOMAIN", "''", "list"]),
    (["domain", "remove"], ["DOMAIN", "''", "list"]),
    (["domain", "forget"], ["DOMAIN", "''", "list"]),
    (["domain", "forget", "a"], ["NAME", "''", "255 bytes"]),
    (["domain", "forget", "a", "b", "c"], ["'c'"]),
    (["domain", "show", "a", "b"], ["NAME", "'b'", "forget"]),
    (["domain", "forget", "a", "b", "--json"], ["--json", "list and show"]),
    (["domain", "show", "a", "--mode", "1"], ["--mode", "'1'", "0600 or 0660"]),
    (["domain", "list", "--mode", "0600"], ["--mode", "'0600'", "show"]),
    (["domain", "show", "a/b"], ["'a/b'", "a-z"]),
    (["domain", "show", "a", "--force"], ["--force", "remove"]),
    (["domain", "show", "a", "--names"], ["--names", "list"]),
    (["who", "a", "b", "--domain", "c"], ["--domain", "'c'", "not both", "'b'"]),
    (["top", "a", "--domain", "b"], ["--domain", "'b'", "not both", "'a'"]),
    (["domain", "show", "a", "--domain", "b"], ["--domain", "'b'", "not both", "'a'"]),
    (["domain", "list", "--domain", "b"], ["--domain", "'b'", "no name after list"]),
    (["domain", "forget", "--domain", "b"], ["NAME", "''", "255 bytes"]),
    (["who", "a", "--group", "root"], ["--group", "'root'", "--mode 0660"]),
    (["domain", "show", "a", "--mode", "0660", "--group", "no such"], ["--group", "'no such'"]),
    (["domain", "list", "--group", "root"], ["--group", "--mode 0660"]),
    (["run", "--wait-anyway", "--nonblock", "a", "--", "true"], ["--wait-anyway", "--nonblock"]),
    # Options of flock(1).
    (["run", "-n", "a", "--", "true"], ["'-n'", "accepted: --nonblock)"]),
    (["run", "-w", "3", "a", "--", "true"], ["'-w'", "accepted: --timeout S)"]),
    (["run", "a", "-c", "true", "--", "true"], ["'-c'", "sh -c"]),
    (["run", "-x", "a", "--", "true"], ["'-x'", "nothing", "--shared"]),
    (["run", "--wait=3", "a", "--", "true"], ["'--wait=3'", "accepted: --timeout 3)"]),
    (["run", "-w5", "a", "--", "true"], ["'-w5'", "accepted: --timeout 5)"]),
    (["run", "-nx", "a", "--", "true"],
     ["'-nx'", "accepted: for -n: --nonblock; for -x: nothing, since a run without --shared"]),
    (["run", "-xn", "a", "--", "true"], ["'-xn'", "for -x: nothing", "for -n: --nonblock)"]),
    (["run", "-sE3", "a", "--", "true"],
     ["'-sE3'", "for -s: --shared; for -E: --conflict-exit-code 3)"]),
    (["run", "-nz", "a", "--", "true"], ["in '-nz', option '-z'", "accepted: --help, --shared"]),
    (["run", "--command=it's me", "a"], ["accepted: -- sh -c 'it'\\''s me')"]),
    # Abbreviations, and a word that a switch does not take.
    (["run", "--non", "a", "--", "true"], ["'--non'", "nearest: --nonblock;"]),
    (["run", "--time=3", "a", "--", "true"], ["'--time'", "nearest: --timeout;"]),
    (["run", "--no", "a", "--", "true"], ["'--no'", "nearest: --nonblock or --no-wait-message;"]),
    (["run", "--leader", "yes", "a", "--", "true"],
     ["option '--leader'", "only with one NAME, not with a and yes"]),
    (["who", "--", "-a", "b", "c"], ["argument 'c'", "one DOMAIN"]),
    (["run", "-F", "a", "--", "true"], ["'-F'", "nothing", "until it has ended"]),
    (["run", "--no-fork", "a", "--", "true"], ["'--no-fork'", "nothing", "until it has ended"]),
    (["run", "--unlock", "a", "--", "true"], ["'--unlock'", "nothing", "is free when"]),
    (["run", "-v", "a", "--", "true"], ["'-v'", "accepted: --verbose)"]),
    (["who", "-x"], ["'-x'", "--json); an argument that begins with '-' stands after --"]),
    (["run", "-q", "a", "--", "true"], ["'-q'", "that begins with '-' stands between two --"]),
    (["run", "-V"], ["'-V'", "accepted: 'lockflight --version')"]),
    (["run", "--version"], ["'--version'", "accepted: 'lockflight --version')"]),
]


class NoRoom(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a small /dev/shm")
    def test_a_full_dev_shm_is_an_error(self):
        """Whatever is left of it: a domain, a slot or a lock finds no room, and nothing crashes."""
        script = """mount -t tmpfs -o size=64k tmpfs /dev/shm || exit 77
                    for size in 200 400 600 800; do
                      mount -o remount,size=${size}k /dev/shm
                      "$0" run jobs -- true 2> /dev/null || echo $?
                    done
                    find /dev/shm -type f  # no domain that has room for nothing"""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, str(PROGRAM)],
                              env=dict(os.environ, LOCKFLIGHT_DOMAINS="/dev/shm"),
                              capture_output=True, text=True, timeout=30)
        if done.returncode == 77 or "unshare:" in done.stderr:
            skip_visibly(self, "this system mounts nothing")
        self.assertEqual(done.stdout.split(), ["3"] * 4)


class NamesThatLookLikeOptions(NamedTest):
    def test_they_stand_after_two_dashes(self):
        inside = ('echo "$LOCKFLIGHT_LOCK"; for name in -x --help; do "$1" who --domain "$2" -- $name; '
                  'done; "$1" who -- -x "$2" > /dev/null')
        code, out, err = self.run_program("run", "--domain", DOMAIN, "--", "-x", "--help", "--", "sh",
                                          "-c", inside, "--", str(PROGRAM), DOMAIN)
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.startswith("--help\n-x\n"), out)
        self.assertEqual(out.count("holds"), 2, out)
        self.assertEqual(self.run_well("domain", "forget", DOMAIN, "--", "-x"), "forgot -x\n")
        self.assertEqual(self.run_well("domain", "forget", "--domain", DOMAIN, "--", "--help"),
                         "forgot --help\n")

    def test_two_dashes_of_the_command_are_its_own(self):
        self.assertEqual(self.run_in("echo", "--", "a", "--"), (0, "-- a --\n", ""))


class BadInput(NamedTest):
    def assert_refused(self, arguments, words):
        with self.subTest(arguments=arguments):
            code, out, err = self.run_program(*arguments)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
            self.assertTrue(err.startswith(f"lockflight {arguments[0]}: "), err)
            for word in [*words, "accepted"]:
                self.assertIn(word, err)

    def test_one_line_says_what_is_accepted(self):
        for arguments, words in BAD:
            self.assert_refused(arguments, words)

    def test_a_domain_that_is_not_there(self):
        self.run_in("true")
        near = DOMAIN + "x"
        for arguments in [["who", "a", "--domain", near], ["top", near],
                          ["domain", "show", near], ["domain", "remove", near],
                          ["domain", "forget", near, "a"]]:
            self.assert_refused(arguments, [f"'{near}'", f"nearest: {DOMAIN}"])

    def test_a_refused_line_makes_nothing(self):
        self.assertEqual(self.run_program("run", "--domain", DOMAIN, "jobs")[0], 2)
        self.assertNotIn(DOMAIN, self.run_well("domain", "list", "--names").splitlines())


if __name__ == "__main__":
    unittest.main()
