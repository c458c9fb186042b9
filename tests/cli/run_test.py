"""lockflight run as a process among others: signals, job control, deaths, containers, and what it
leaves to its command."""

import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM, skip_visibly
from waiting import gone, state_of, wait_until

INTERRUPTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


class RunTest(NamedTest):
    def wait(self, *options, name="jobs", command=("true",), **more):
        """A run that waits for a lock which somebody holds."""
        before = len(self.who(name)["waiters"])
        waiter = self.start("run", "--domain", DOMAIN, *options, name, "--", *command, **more)
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(before + 1, name)
        return waiter

    def owner_died(self):
        code, out, _ = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-none}; exit 1")
        self.assertEqual(code, 1)
        return out != "none\n"


class Signals(RunTest):
    def test_they_reach_the_command(self):
        for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"]:
            with self.subTest(signal=name):
                process, _ = self.hold("while :; do sleep 0.01; done",
                                       first=f"trap 'exit 33' {name}; ")
                process.send_signal(getattr(signal, f"SIG{name}"))
                self.assertEqual(process.wait(timeout=10), 33)

    def test_a_command_that_dies_of_one(self):
        process, _ = self.hold()
        process.terminate()
        self.assertEqual(process.wait(timeout=10), 128 + signal.SIGTERM)
        self.assertEqual(self.run_in("true", options=["--nonblock"]), (0, "", ""))

    def test_a_waiter_may_be_interrupted(self):
        self.hold()
        for options in [[], ["--timeout", "60"], ["--shared"], ["--shared", "--timeout", "60"]]:
            for each in INTERRUPTS:
                with self.subTest(options=options, signal=each):
                    waiter = self.wait(*options)
                    start = time.monotonic()
                    waiter.send_signal(each)
                    self.assertEqual(waiter.wait(timeout=10), -each)
                    self.assertLess(time.monotonic() - start, 0.8)
                    self.assertEqual(len(self.who()["waiters"]), 0)
        self.assertEqual(os.listdir(self.folder), [], "no core file")

    def test_a_waiter_may_be_interrupted_at_any_moment(self):
        self.hold()
        for i in range(40):
            waiter = self.start("run", "--domain", DOMAIN, "jobs", "--", "true")
            time.sleep(i * 0.0002)
            waiter.send_signal(signal.SIGINT)
            self.assertEqual(waiter.wait(timeout=1), -signal.SIGINT)
            waiter.communicate()
        self.assertEqual(len(self.who()["waiters"]), 0)

    def test_no_signal_makes_a_death(self):
        codes = set()
        for i in range(80):
            process = self.start("run", "--domain", DOMAIN, "jobs", "--", "true")
            time.sleep(i * 0.0001)
            process.send_signal([signal.SIGINT, signal.SIGTERM, signal.SIGTSTP][i % 3])
            if i % 3 == 2:
                process.send_signal(signal.SIGCONT)
            codes.add(process.wait(timeout=5))
            process.communicate()
        self.assertLessEqual(codes, {0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGTERM})
        self.assertFalse(self.owner_died())

    def test_an_ignored_signal_does_not_end_a_waiter(self):
        holder, _ = self.hold()
        waiter = self.wait(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        waiter.send_signal(signal.SIGHUP)
        time.sleep(0.05)
        self.assertIsNone(waiter.poll())
        self.end(holder)
        self.assertEqual(waiter.wait(timeout=10), 0)

    def test_a_run_ends_as_its_command_did(self):
        for each, code in [(signal.SIGINT, -signal.SIGINT), (signal.SIGQUIT, -signal.SIGQUIT),
                           (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)]:
            with self.subTest(signal=each):
                process, command = self.hold()
                process.send_signal(each)
                self.assertEqual(process.wait(timeout=10), code)
                self.assertTrue(gone(command))
        for own, code in [("INT", 130), ("QUIT", 131)]:
            self.assertEqual(self.run_in("sh", "-c", f"ulimit -c 0; kill -{own} $$")[0], code)
        self.assertFalse(self.owner_died())

    def test_an_interrupt_that_the_command_deals_with(self):
        process, _ = self.hold("while :; do sleep 0.01; done", first="trap 'exit 0' INT; ")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), 0)

    def test_a_run_that_is_killed_frees_the_lock_and_ends_the_command(self):
        process, command = self.hold()
        process.kill()
        self.assertEqual(self.run_in("true", options=["--timeout", "10"]), (0, "", ""))
        self.assertTrue(wait_until(lambda: gone(command)), "the command goes on unguarded")

    def test_a_command_that_is_killed_frees_the_lock(self):
        process, command = self.hold()
        os.kill(command, signal.SIGKILL)
        self.assertEqual(process.wait(timeout=10), 137)
        self.assertEqual(self.run_in("true", options=["--nonblock"]), (0, "", ""))


class Deaths(RunTest):
    def test_a_command_that_outlives_its_run_keeps_the_lock(self):
        """Such as one that has changed its credentials, which the kernel does not kill with the
        run."""
        script = ("import ctypes, os, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); "
                  "print(os.getpid(), flush=True); time.sleep(60)")
        process = self.start("run", "--domain", DOMAIN, "jobs", "--", sys.executable, "-c", script)
        self.addCleanup(self.end, process)
        command = int(process.stdout.readline())
        self.addCleanup(lambda: gone(command) or os.kill(command, signal.SIGKILL))
        process.kill()
        process.wait(timeout=10)
        self.assertEqual(self.run_in("true", options=["--nonblock"])[0], 1)
        self.assertEqual(self.run_in("true", options=["--timeout", "0.3"])[0], 1)
        [holder] = self.who()["holders"]
        self.assertEqual((holder["guarded_pid"], holder["dead"]), (command, False))
        self.assertFalse(gone(command))
        os.kill(command, signal.SIGKILL)
        code, out, _ = self.run_in("sh", "-c", "echo $LOCKFLIGHT_OWNER_DIED",
                                   options=["--timeout", "10"])
        self.assertEqual((code, out), (0, "1\n"))

    def test_a_kill_is_reported(self):
        code, out, err = self.run_in("sh", "-c", "kill -9 $$")
        self.assertEqual((code, out, err.count("\n")), (137, "", 1))
        self.assertIn("COMMAND 'sh' was killed (SIGKILL)", err)

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount")
    def test_a_kill_for_want_of_memory_is_reported(self):
        """The counter of our cgroup goes up, in a folder that takes its place."""
        with open("/proc/self/cgroup", encoding="ascii") as file:
            [path] = [line.strip()[3:] for line in file if line.startswith("0::")] or [None]
        if path is None:
            skip_visibly(self, "no cgroup v2")
        folder = self.path("cgroup") + path
        os.makedirs(folder)
        counter = os.path.join(folder, "memory.events")
        for after, said in [(4, "by the kernel's OOM killer"), (3, "(SIGKILL)")]:
            with open(counter, "w", encoding="ascii") as file:
                file.write("low 0\nhigh 7\nmax 9\noom 5\noom_kill 3\n")
            inner = (f"sleep 0.1; echo oom_kill {after} > /sys/fs/cgroup/{path}/memory.events; "
                     "kill -9 $$")
            done = subprocess.run(
                ["unshare", "-m", "sh", "-c",
                 'mount --bind "$0" /sys/fs/cgroup || exit 77; shift 0; exec "$@"',
                 self.path("cgroup"), PROGRAM, "run", "--domain", DOMAIN, "jobs", "--", "sh", "-c",
                 inner], capture_output=True, text=True, timeout=30, check=False)
            if done.returncode == 77 or "unshare:" in done.stderr:
                skip_visibly(self, "this system mounts nothing")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (137, 1))
            self.assertIn(said, done.stderr)

    def test_a_domain_that_is_removed_under_a_waiter(self):
        self.hold()
        waiter = self.wait(command=["echo", "in the new one"])
        self.run_well("domain", "remove", DOMAIN, "--force")
        out, err = waiter.communicate(timeout=10)
        self.assertEqual((waiter.returncode, out, err), (0, b"in the new one\n", b""))


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, test, *words, **environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(environment, TERM="xterm", PS1="$ ")
            os.chdir(test.folder)
            os.execvp(words[0], words)
        self.seen = b""
        self.status = None
        test.addCleanup(self.close)

    def close(self):
        if not self.has_ended():
            for each in [signal.SIGCONT, signal.SIGKILL]:
                os.kill(self.pid, each)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def keys(self, text):
        os.write(self.terminal, text)

    def read(self):
        try:
            while select.select([self.terminal], [], [], 0)[0]:
                self.seen += os.read(self.terminal, 65536)
        except OSError:
            pass  # it has ended

    def shows(self, text):
        def is_there():
            self.read()
            return text in self.seen
        return wait_until(is_there)

    def has_ended(self):
        self.read()
        if self.status is None:
            which, status = os.waitpid(self.pid, os.WNOHANG)
            if which != 0:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None


class JobControl(RunTest):
    RUN = (PROGRAM, "run", "--domain", DOMAIN)

    def setUp(self):
        super().setUp()
        self.run_in("true")  # so that 'who' finds a domain

    def shell(self, *words):
        """An interactive shell, which has the variable run."""
        if shutil.which("bash") is None:
            skip_visibly(self, "no bash")
        return Terminal(self, "bash", "--norc", "--noprofile", *words, run=" ".join(self.RUN))

    def holder(self):
        self.assertTrue(wait_until(lambda: self.who()["holders"]))
        return self.who()["holders"][0]

    def test_ctrl_c_ends_a_loop_of_runs(self):
        loop = "for i in 1 2 3; do $run jobs -- sleep 60; echo again; done; echo after"
        for waits in [False, True]:
            with self.subTest(waits=waits):
                if waits:
                    process, _ = self.hold()
                shell = self.shell("-c", loop)
                if waits:
                    self.wait_for_waiters(1)
                else:
                    self.holder()
                shell.keys(b"\x03")
                self.assertTrue(wait_until(shell.has_ended))
                self.assertEqual(shell.status, -signal.SIGINT)
                self.assertNotIn(b"a", shell.seen.replace(b"^C", b""))
                if waits:
                    self.end(process)

    def test_ctrl_c_reaches_a_command_once(self):
        script = "trap 'echo hit' INT; echo begun; while :; do sleep 0.05; done"
        run = Terminal(self, *self.RUN, "jobs", "--", "sh", "-c", script)
        self.assertTrue(run.shows(b"begun"))
        run.keys(b"\x03")
        self.assertTrue(run.shows(b"hit"))
        time.sleep(0.3)
        run.read()
        self.assertEqual(run.seen.count(b"hit"), 1)

    def test_ctrl_c_reaches_a_command_in_another_session(self):
        run = Terminal(self, *self.RUN, "jobs", "--", "setsid", "sh", "-c",
                       "echo begun $$.; exec sleep 60")
        self.assertTrue(run.shows(b".\r\n"))
        command = int(run.seen.split()[1].rstrip(b"."))
        run.keys(b"\x03")
        self.assertTrue(wait_until(run.has_ended))
        self.assertEqual(run.status, -signal.SIGINT)
        self.assertTrue(wait_until(lambda: gone(command)))

    def test_ctrl_z_stops_run_and_command_which_keep_the_lock(self):
        shell = self.shell("-i")
        shell.keys(b"$run jobs -- sleep 60\n")
        both = [self.holder()["pid"], self.holder()["guarded_pid"]]
        self.assertTrue(wait_until(lambda: self.holder()["command"] == "sleep"))
        shell.keys(b"\x1a")
        self.assertTrue(wait_until(lambda: [state_of(pid) for pid in both] == ["T", "T"]))
        self.assertTrue(shell.shows(b"Stopped"))
        self.assertTrue(self.holder()["stopped"])
        code, out, _ = self.run_program("who", "jobs", "--domain", DOMAIN)
        self.assertEqual(code, 0)
        self.assertRegex(out, rf"(?m)^ *{both[0]}  holds .* stopped +{both[1]}  sleep$")
        self.assertRegex(self.run_well("top", DOMAIN, "--once"),
                         r"holds \(stopped\) for .*sleep \(")
        self.assertRegex(self.run_well("domain", "show", DOMAIN), rf"{both[0]} \(stopped\)")
        self.assertEqual(self.run_in("true", options=["--nonblock"])[0], 1)
        shell.keys(b"fg\n")
        self.assertTrue(wait_until(lambda: "T" not in [state_of(pid) for pid in both]))
        self.assertFalse(self.holder()["stopped"])
        shell.keys(b"\x03")
        self.assertTrue(wait_until(lambda: gone(both[0]) and gone(both[1])))
        self.assertFalse(self.owner_died())

    def test_a_command_that_stops_itself_stops_the_run(self):
        shell = self.shell("-i")
        shell.keys(b"$run jobs -- sh -c 'kill -STOP $$; echo con''tinued'\n")
        self.assertTrue(shell.shows(b"Stopped"))
        shell.keys(b"fg\n")
        self.assertTrue(shell.shows(b"continued"))

    def test_a_command_that_somebody_stops_and_continues(self):
        """Without a terminal nobody would continue the run."""
        process, command = self.hold("sleep 0.3")
        os.kill(command, signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(command) == "T"))
        time.sleep(0.05)
        self.assertNotEqual(state_of(process.pid), "T")
        os.kill(command, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=10), 0)

    def test_stop_and_continue_are_passed_on(self):
        # A group of its own, whose parent is in another: in an orphaned group nothing stops by SIGTSTP.
        process, command = self.hold(process_group=0)
        process.send_signal(signal.SIGTSTP)
        both = [process.pid, command]
        self.assertTrue(wait_until(lambda: [state_of(pid) for pid in both] == ["T", "T"]))
        process.send_signal(signal.SIGCONT)
        self.assertTrue(wait_until(lambda: "T" not in [state_of(pid) for pid in both]))
        process.terminate()
        self.assertEqual(process.wait(timeout=10), 143)

    def test_ctrl_z_takes_a_waiter_out_of_the_queue(self):
        process, _ = self.hold()
        shell = self.shell("-i")
        shell.keys(b"$run jobs -- echo had'' it\n")
        self.wait_for_waiters(1)
        shell.keys(b"\x1a")
        self.assertTrue(shell.shows(b"Stopped"))
        self.wait_for_waiters(0)
        shell.keys(b"fg\n")
        self.wait_for_waiters(1)
        self.end(process)
        self.assertTrue(shell.shows(b"had it"))

    def test_time_goes_on_while_a_waiter_is_stopped(self):
        self.hold()
        shell = self.shell("-i")
        shell.keys(b"$run --timeout 1 -E 9 jobs -- true; echo code''d $?\n")
        self.wait_for_waiters(1)
        shell.keys(b"\x1a")
        self.assertTrue(shell.shows(b"Stopped"))
        time.sleep(1)
        shell.keys(b"fg; echo it ended with $?.\n")
        self.assertTrue(shell.shows(b"with 9."))


class Containers(RunTest):
    def unshare(self, *words, **more):
        done = subprocess.run(["unshare", *words], capture_output=True, text=True, timeout=30,
                              check=False, cwd=self.folder, **more)
        if "unshare:" in done.stderr:
            skip_visibly(self, "this system makes no namespaces")
        return done.returncode, done.stdout, done.stderr

    RUN = (PROGRAM, "run", "--domain", DOMAIN)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes PID namespaces")
    def test_process_1_waits_for_orphans(self):
        script = """for i in 1 2 3; do sh -c 'sleep 0.05 & true'; done; sleep 0.5
                    grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"""
        self.assertEqual(self.unshare("-p", "-f", "--mount-proc", *self.RUN, "jobs", "--", "sh",
                                      "-c", script), (0, "0\n", ""))

    @unittest.skipUnless(os.geteuid() == 0, "only root makes PID namespaces")
    def test_process_1_ends_by_signals(self):
        self.hold()
        waiter = subprocess.Popen(["unshare", "-p", "-f", *self.RUN, "jobs", "--", "true"])
        self.addCleanup(waiter.kill)
        self.wait_for_waiters(1)
        with open(f"/proc/{waiter.pid}/task/{waiter.pid}/children", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGTERM)
        self.assertEqual(waiter.wait(timeout=10), 143)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes PID namespaces")
    def test_a_command_is_the_first_process_of_a_namespace(self):
        self.assertEqual(self.unshare("-p", *self.RUN, "jobs", "--", "sh", "-c", "echo $$"),
                         (0, "1\n", ""))

    @unittest.skipUnless(os.geteuid() == 0, "only root makes namespaces, and has credentials to lose")
    def test_a_command_is_guarded_in_other_namespaces(self):
        """The kernel does not kill it with its run, since it has changed its credentials."""
        for maker in [(), ("unshare", "-p")]:
            run = subprocess.Popen([*maker, *self.RUN, "jobs", "--", "setpriv", "--reuid", "61001",
                                    "--clear-groups", "sleep", "3"])
            self.addCleanup(run.kill)
            self.assertTrue(wait_until(lambda: self.who()["holders"]))
            time.sleep(0.3)
            run.kill()
            run.wait()
            for spaces in [("--time", "--fork"), ("--pid", "--fork", "--mount-proc"),
                           ("--pid", "--fork")]:
                self.assertEqual(self.unshare(*spaces, *self.RUN, "--timeout", "0.3", "jobs", "--",
                                              "true")[0], 1, (maker, spaces))
            self.assertEqual(self.unshare("--time", "--fork", *self.RUN, "--timeout", "5", "jobs",
                                          "--", "true"), (0, "", ""))

    @unittest.skipUnless(os.geteuid() == 0, "only root makes PID namespaces")
    def test_a_command_is_guarded_that_may_have_few_descriptors(self):
        run = subprocess.Popen(
            [*self.RUN, "jobs", "--", "setpriv", "--pdeathsig", "clear", "sleep", "3"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10)))
        self.addCleanup(run.kill)
        self.assertTrue(wait_until(lambda: self.who()["holders"]))
        time.sleep(0.3)
        run.kill()
        run.wait()
        spaces = ("--pid", "--fork", "--mount-proc")
        self.assertEqual(self.unshare(*spaces, *self.RUN, "--timeout", "0.3", "jobs", "--",
                                      "true")[0], 1)
        self.assertEqual(self.unshare(*spaces, *self.RUN, "--timeout", "9", "jobs", "--",
                                      "true")[0], 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes PID namespaces")
    def test_a_namespace_that_is_over(self):
        code, out, err = self.unshare("-p", "sh", "-c", '/bin/true; exec "$@"', "sh", *self.RUN,
                                      "jobs", "--", "true")
        self.assertEqual((code, out, err.count("\n")), (3, "", 1), err)
        self.assertIn("COMMAND cannot be started: Cannot allocate memory", err)
        self.assertIn("--fork", err)

    def test_a_parent_that_ignores_the_ends_of_children(self):
        process = self.start("run", "--domain", DOMAIN, "jobs", "--", "sh", "-c", "exit 7",
                             preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual((process.communicate(timeout=10), process.returncode), ((b"", b""), 7))


class Descriptors(RunTest):
    def test_messages_go_into_no_file(self):
        self.run_in("true")
        for closed in ["2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"]:
            rest = closed if "1>" in closed else closed + " > /dev/null"
            for line, code in [(f"run --domain {DOMAIN} jobs -- /nonexistent", 127),
                               (f"run --domain {DOMAIN} jobs -- sh -c 'kill -9 $$'", 137),
                               (f"who jobs --domain {DOMAIN} --mode 0644", 2),
                               (f"who jobs --domain {DOMAIN} --json", 3 if "1>" in closed else 1),
                               (f"domain forget {DOMAIN} none", 2)]:
                found = subprocess.run(["sh", "-c", f"'{PROGRAM}' {line} {rest}"], check=False,
                                       timeout=30).returncode
                self.assertEqual(found, code, line + rest)
        self.assertEqual(self.run_in("true"), (0, "", ""))

    def test_a_command_finds_them_as_they_were(self):
        script = ("for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && found=$found$i; done; "
                  "echo $found > found")
        for closed, found in [("", "012"), ("0<&-", "12"), ("2>&-", "01"), ("0<&- 2>&-", "1"),
                              ("0<&- 1>&- 2>&-", "")]:
            line = f"'{PROGRAM}' run --domain {DOMAIN} jobs -- sh -c '{script}' {closed}"
            subprocess.run(["sh", "-c", line], cwd=self.folder, check=True, timeout=30)
            self.assertEqual(self.read("found").strip(), found)


if __name__ == "__main__":
    unittest.main()
