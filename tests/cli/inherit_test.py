"""`lockflight run --inherit`: what COMMAND leaves running keeps the lock."""

import os
import resource
import signal
import subprocess
import sys
import time
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM
from waiting import gone, state_of, wait_until

# A child in the background, which has its own standard output, and says who it is.
DAEMON = "sleep 60 >/dev/null 2>&1 & echo $!; "


class InheritTest(NamedTest):
    def setUp(self):
        super().setUp()
        self.daemons = []
        # Before the domain is removed.
        self.addCleanup(lambda: [self.kill(each) for each in self.daemons])

    def run_inherit(self, script, options=(), **more):
        """Returns (exit code, the numbers that the script has printed, standard error)."""
        done = subprocess.run(
            [PROGRAM, "run", "--domain", DOMAIN, "--inherit", *options, "jobs", "--", "sh", "-c",
             script], cwd=self.folder, capture_output=True, text=True, timeout=30, check=False,
            **more)
        printed = [int(each) for each in done.stdout.split()]
        self.daemons += printed
        return done.returncode, printed, done.stderr

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def is_free(self):
        return self.run_in("true", options=["--nonblock"])[0] == 0

    def kept_by(self):
        """The process that 'who' shows."""
        [holder] = self.who()["holders"]
        return holder["guarded_pid"], holder["command"]

    def supervisor(self):
        [holder] = self.who()["holders"]
        return holder["pid"]

    def owner_died(self):
        code, out, err = self.run_in("sh", "-c", "echo ${LOCKFLIGHT_OWNER_DIED-none}; exit 1",
                                     options=["--timeout", "10"])
        self.assertEqual((code, err), (1, ""))
        return out != "none\n"


class Heirs(InheritTest):
    def test_a_child_keeps_the_lock(self):
        start = time.monotonic()
        code, [child], err = self.run_inherit(DAEMON + "exit 7")
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual((code, err), (7, ""))
        self.assertFalse(self.is_free())
        self.assertTrue(wait_until(lambda: self.kept_by() == (child, "sleep")), self.kept_by())
        self.kill(child)
        self.assertTrue(wait_until(self.is_free))
        self.assertFalse(self.owner_died())

    def test_the_last_of_several(self):
        code, children, _ = self.run_inherit(DAEMON + DAEMON + "(" + DAEMON + ")")
        self.assertEqual((code, len(children)), (0, 3))
        for i, child in enumerate(children):
            self.assertFalse(self.is_free())
            self.assertTrue(wait_until(lambda i=i: self.kept_by()[0] in children[i:]))
            self.kill(child)
        self.assertTrue(wait_until(self.is_free))

    def test_without_children_it_is_as_any_run(self):
        for code in (0, 3):
            self.assertEqual(self.run_inherit(f"exit {code}"), (code, [], ""))
            self.assertEqual(self.who()["holders"], [])
        _, out, _ = self.run_in("sh", "-c", "echo $LOCKFLIGHT_LOCK $LOCKFLIGHT_UNIT",
                                options=["--inherit", "--units", "2"], name="s")
        self.assertEqual(out, "s 0\n")

    def test_a_child_that_closes_its_descriptors_lets_go(self):
        script = ("sh -c 'for fd in $(ls /proc/$$/fd); do [ $fd -gt 2 ] && eval \"exec $fd<&-\"; "
                  "done; echo $$; exec sleep 60 >/dev/null 2>&1' & sleep 0.5")
        self.assertEqual(self.run_inherit(script)[0], 0)
        self.assertTrue(wait_until(self.is_free))

    def test_few_descriptors(self):
        """The one that is passed on cannot have a number above those that programs use."""
        code = subprocess.call(
            [PROGRAM, "run", "--domain", DOMAIN, "--inherit", "jobs", "--", "setsid", "-f", "sleep",
             "2"], cwd=self.folder, stdout=subprocess.DEVNULL, timeout=30,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10)))
        self.assertEqual((code, self.is_free()), (0, False))
        self.assertTrue(wait_until(self.is_free))

    def test_what_is_written_to_the_descriptor_does_not_matter(self):
        writes = ("import os; [os.write(int(n), b'x' * 100) for n in os.listdir('/proc/self/fd') "
                  "if int(n) > 9 and os.readlink('/proc/self/fd/' + n).startswith('pipe:')]")
        code, [child], _ = self.run_inherit(DAEMON + f'{sys.executable} -c "{writes}"')
        self.assertEqual(code, 0)
        self.assertFalse(self.is_free())
        self.kill(child)
        self.assertTrue(wait_until(self.is_free))

    def test_a_unit_of_a_semaphore(self):
        for unit in (0, 1):
            code, out, _ = self.run_in("sh", "-c", "sleep 60 >/dev/null 2>&1 & "
                                       "echo $! $LOCKFLIGHT_UNIT",
                                       options=["--inherit", "--units", "2"], name="s")
            self.daemons.append(int(out.split()[0]))
            self.assertEqual((code, out.split()[1]), (0, str(unit)))
        self.assertEqual(self.run_in("true", options=["--units", "2", "--nonblock"], name="s")[0],
                         1)
        self.kill(self.daemons[0])
        self.assertEqual(self.run_in("sh", "-c", "exit $LOCKFLIGHT_UNIT",
                                     options=["--units", "2", "--timeout", "10"], name="s"),
                         (0, "", ""))

    def test_shared_and_several_names(self):
        self.assertEqual(self.run_inherit(DAEMON, options=["--shared"])[0], 0)
        self.assertEqual(self.run_in("true", options=["--shared", "--nonblock"])[0], 0)
        self.assertFalse(self.is_free())

    def test_at_least_goes_on_behind(self):
        code, [child], _ = self.run_inherit(DAEMON, options=["--at-least", "2s"])
        start = time.monotonic()
        self.kill(child)
        time.sleep(0.3)
        self.assertFalse(self.is_free())
        self.assertTrue(wait_until(self.is_free))
        self.assertEqual(code, 0)
        self.assertLess(time.monotonic() - start, 8)

    def test_the_supervisor_keeps_nothing_of_its_caller(self):
        reading, writing = os.pipe()
        # The child closes it, and the supervisor has to.
        code, _, _ = self.run_inherit(f"sh -c 'exec {writing}>&-; echo $$; exec sleep 60 "
                                      ">/dev/null 2>&1' & sleep 0.3", pass_fds=[writing])
        os.close(writing)
        self.assertEqual(os.read(reading, 1), b"")
        os.close(reading)
        self.assertEqual(code, 0)
        supervisor = self.supervisor()
        self.assertEqual(os.readlink(f"/proc/{supervisor}/cwd"), "/")
        for each in (0, 1, 2):
            self.assertEqual(os.readlink(f"/proc/{supervisor}/fd/{each}"), "/dev/null")
        self.assertEqual(os.getsid(supervisor), supervisor)


class Ends(InheritTest):
    def start_inherit(self, script, **more):
        process = self.start("run", "--domain", DOMAIN, "--inherit", "jobs", "--", "sh", "-c",
                             "echo $$; " + script, **more)
        self.addCleanup(self.end, process)
        pid = int(process.stdout.readline())
        self.addCleanup(self.kill, pid)  # it has the standard output of the run
        return process, pid

    def test_signals_reach_the_command(self):
        for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"]:
            process, _ = self.start_inherit(f"trap 'exit 33' {name}; "
                                            "while :; do sleep 0.01; done")
            time.sleep(0.1)
            process.send_signal(getattr(signal, f"SIG{name}"))
            self.assertEqual(process.wait(timeout=10), 33, name)
            process.communicate()

    def test_a_run_ends_as_its_command_did(self):
        for each, code in [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)]:
            process, command = self.start_inherit("exec sleep 60")
            process.send_signal(each)
            self.assertEqual(process.wait(timeout=10), code)
            self.assertTrue(gone(command))
            self.assertTrue(self.is_free())
        self.assertFalse(self.owner_died())

    def test_a_run_that_waits(self):
        self.hold()
        code, out, err = self.run_inherit("true", options=["--nonblock", "-E", "75"])
        self.assertEqual((code, out, err), (75, [], ""))
        for each in (signal.SIGTERM, signal.SIGINT):
            waiter = self.start("run", "--domain", DOMAIN, "--inherit", "jobs", "--", "true")
            self.addCleanup(self.end, waiter)
            self.wait_for_waiters(1)
            waiter.send_signal(each)
            self.assertEqual(waiter.wait(timeout=10), -each)
            self.wait_for_waiters(0)

    def test_a_run_that_is_killed_while_it_waits(self):
        holder, _ = self.hold()
        waiter = self.start("run", "--domain", DOMAIN, "--inherit", "jobs", "--", "touch",
                            self.path("ran"))
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        waiter.kill()
        waiter.wait(timeout=10)
        self.wait_for_waiters(0)
        self.end(holder)
        self.assertEqual(self.run_in("true", options=["--timeout", "10"]), (0, "", ""))
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_stop_and_continue(self):
        # A group of its own, since in an orphaned one nothing stops by SIGTSTP.
        process, command = self.start_inherit("exec sleep 60", process_group=0)
        supervisor = self.supervisor()
        process.send_signal(signal.SIGTSTP)
        self.assertTrue(wait_until(lambda: all(
            state_of(each) == "T" for each in (process.pid, supervisor, command))))
        process.send_signal(signal.SIGCONT)
        self.assertTrue(wait_until(lambda: all(
            state_of(each) == "S" for each in (process.pid, supervisor, command))))

    def test_a_run_that_is_killed_leaves_the_command_with_the_lock(self):
        process, command = self.start_inherit("exec sleep 60")
        process.kill()
        process.wait(timeout=10)
        self.assertEqual(self.run_in("true", options=["--timeout", "0.3"])[0], 1)
        self.assertFalse(gone(command))
        os.kill(command, signal.SIGTERM)
        self.assertTrue(wait_until(self.is_free))
        self.assertFalse(self.owner_died())

    def test_a_supervisor_that_is_killed_is_a_death(self):
        process, command = self.start_inherit("exec sleep 60")
        os.kill(self.supervisor(), signal.SIGKILL)
        self.assertEqual(process.wait(timeout=10), 137)
        self.assertIn(b"the process that held the lock for COMMAND has ended by signal 9",
                      process.stderr.read())
        self.assertTrue(wait_until(lambda: gone(command)))
        self.assertTrue(self.owner_died())

    def test_a_supervisor_that_is_killed_behind(self):
        code, [child], _ = self.run_inherit(DAEMON)
        self.assertTrue(wait_until(lambda: self.kept_by()[0] == child))
        os.kill(self.supervisor(), signal.SIGKILL)
        self.assertEqual(self.run_in("true", options=["--timeout", "0.3"])[0], 1)
        self.assertEqual((code, gone(child)), (0, False))
        self.kill(child)
        self.assertTrue(self.owner_died())

    def test_signals_do_not_end_the_supervisor_behind(self):
        _, [child], _ = self.run_inherit(DAEMON)
        supervisor = self.supervisor()
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(supervisor, each)
        time.sleep(0.1)
        self.assertEqual(self.supervisor(), supervisor)
        self.kill(child)
        self.assertTrue(wait_until(lambda: gone(supervisor)))
        self.assertFalse(self.owner_died())

    def test_a_command_that_cannot_run(self):
        code, _, err = self.run_in("/no/such", options=["--inherit"])
        self.assertEqual(code, 127)
        self.assertIn("COMMAND '/no/such' cannot be run", err)
        self.assertTrue(self.is_free())

    def test_a_cluster_is_refused(self):
        code, _, err = self.run_program("run", "--inherit", "--domain", "etcd:d", "a", "--", "true")
        self.assertEqual(code, 2)
        self.assertIn("--domain 'etcd:d' (accepted: a domain of this machine beside --inherit", err)


if __name__ == "__main__":
    unittest.main()
