"""Named locks whose users are in other namespaces, or do not see each other in /proc: what is known of
their deaths, and what is shown of them."""

import json
import os
import subprocess
import sys
import unittest

from named_support import DOMAIN, NamedTest
from support import PROGRAM, ProgramTest, skip_visibly
from waiting import wait_until

# The first process of a namespace, which waits for nobody but those that it has started itself. So
# COMMAND of a killed run stays a zombie.
FIRST = """
import os, subprocess, sys, time

program, domain = sys.argv[1:]
if subprocess.call(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"]) != 0:
    sys.exit(77)

def as_user(user):
    def become():
        os.setgroups([61001])
        os.setgid(user)
        os.setuid(user)
    return become

run = [program, "run", "--domain", domain, "--mode", "0660", "--group", "61001"]
holder = subprocess.Popen([*run, "jobs", "--", "sh", "-c", "echo $$; exec sleep 60"],
                          stdout=subprocess.PIPE, preexec_fn=as_user(61001))
command = int(holder.stdout.readline())
refused = subprocess.call([*run, "--nonblock", "jobs", "--", "true"], preexec_fn=as_user(61002))
holder.kill()
holder.wait()

def state():
    with open(f"/proc/{command}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]

while state() != "Z":
    time.sleep(0.005)
print(refused, flush=True)
told = subprocess.call([*run, "--timeout", "10", "jobs", "--", "sh", "-c",
                        "echo ${LOCKFLIGHT_OWNER_DIED-none}"], preexec_fn=as_user(61002))
subprocess.call([program, "domain", "remove", domain, "--mode", "0660"],
                stdout=subprocess.DEVNULL, preexec_fn=as_user(61001))
sys.exit(told)
"""


class WithoutProc(NamedTest):
    @unittest.skipUnless(os.geteuid() == 0, "only root mounts")
    def test_a_run_still_shows_as_its_command(self):
        script = """mount -t tmpfs tmpfs /proc || exit 77
                    "$0" run --domain "$1" jobs -- sh -c 'echo; exec sleep 60' > "$2" &
                    while ! [ -s "$2" ]; do sleep 0.01; done
                    "$0" run --domain "$1" --timeout 0.1 jobs -- true
                    kill $!; wait"""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, PROGRAM, DOMAIN,
                               self.path("began")], capture_output=True, text=True, timeout=30,
                              check=False)
        if done.returncode == 77 or "unshare:" in done.stderr:
            skip_visibly(self, "this system mounts nothing")
        self.assertRegex(done.stderr, r"(?m)^lockflight run: lock 'jobs' was not free in time: held "
                                      r"by sh \(pid \d+\) for \d\.\d s$")


class Hidden(ProgramTest):
    @unittest.skipUnless(os.geteuid() == 0, "only root mounts, and can be two users")
    def test_a_command_that_nobody_waits_for_is_dead(self):
        done = subprocess.run(
            ["unshare", "-p", "-f", "-m", sys.executable, "-c", FIRST, PROGRAM,
             f"hidden-{os.getpid()}"],
            capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77 or "unshare:" in done.stderr:
            skip_visibly(self, "this system makes no namespaces")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("1\n1\n", "", 0))

@unittest.skipUnless(os.geteuid() == 0, "only root makes namespaces")
class Shown(NamedTest):
    RUN = (PROGRAM, "run", "--domain", DOMAIN)
    FOREIGN = "in another PID namespace"

    def hold_in(self, *spaces):
        """A run in namespaces of its own, whose command has begun; it ends with the test."""
        holder = subprocess.Popen(
            ["unshare", *spaces, "--fork", "--kill-child", *self.RUN, "jobs", "--", "sh", "-c",
             "echo begun; exec sleep 60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, holder)
        if holder.stdout.readline() != b"begun\n":
            skip_visibly(self, "this system makes no such namespaces")
        return holder

    def test_a_number_of_another_namespace_is_called_one(self):
        self.hold_in("--pid", "--mount-proc")
        waiter = self.start(*self.RUN[1:], "jobs", "--", "true")
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        state = self.who()
        [holder], [waits] = state["holders"], state["waiters"]
        self.assertEqual((holder["pid"], holder["foreign_pid"]), (1, True))
        self.assertNotIn("foreign_pid", waits)
        foreign = {user["pid"]: user.get("foreign_pid") for user in json.loads(
            self.run_well("domain", "show", DOMAIN, "--json"))["participants"]}
        self.assertEqual(foreign, {1: True, waiter.pid: None})
        _, out, _ = self.run_program("who", "jobs", "--domain", DOMAIN)
        self.assertRegex(out, rf"(?m)^ *1  holds +\d.* s  {self.FOREIGN} ")
        self.assertRegex(out, rf"(?m)^ *{waiter.pid}  waits +\d\.\d s +true$")
        self.assertIn(f"jobs: 1 holds ({self.FOREIGN}) for ",
                      self.run_well("top", DOMAIN, "--once"))
        self.assertIn(f" 1 ({self.FOREIGN}) ", self.run_well("domain", "show", DOMAIN))
        code, _, err = self.run_in("true", options=["--timeout", "0.1"])
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"held by \w+ \(pid \d+, {self.FOREIGN}\) for \d\.\d s\n$")
        code, _, err = self.run_program("domain", "remove", DOMAIN)
        self.assertEqual(code, 2, err)

    def test_the_kernel_tells_of_a_death_in_the_other_namespace(self):
        """The waiter relies on the holder: a second thread of it sleeps until the hold ends."""
        holder = self.hold_in("--pid", "--mount-proc")
        waiter = self.start(*self.RUN[1:], "jobs", "--", "sh", "-c",
                            "echo ${LOCKFLIGHT_OWNER_DIED-none}")
        self.addCleanup(self.end, waiter)
        self.assertTrue(wait_until(lambda: len(os.listdir(f"/proc/{waiter.pid}/task")) == 2))
        holder.kill()
        self.assertEqual(waiter.communicate(timeout=30)[0], b"1\n")

    def test_seen_from_the_other_namespace(self):
        process, _ = self.hold()
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", PROGRAM, "who", "jobs", "--domain",
             DOMAIN, "--json"], capture_output=True, text=True, timeout=30, check=False)
        [holder] = json.loads(done.stdout)["holders"]
        self.assertEqual((holder["pid"], holder["foreign_pid"]), (process.pid, True))

    def test_another_clock(self):
        """The numbers are those of our namespace, and the time is that of the machine."""
        self.hold_in("--time", "--monotonic", "100000")
        # The kernel lets no clock go back to before the machine's start.
        waiter = subprocess.Popen(["unshare", "--time", "--monotonic", "-50", "--fork",
                                   "--kill-child", *self.RUN, "jobs", "--", "true"])
        self.addCleanup(self.end, waiter)
        self.wait_for_waiters(1)
        state = self.who()
        for user in (*state["holders"], *state["waiters"]):
            self.assertNotIn("foreign_pid", user)
            self.assertTrue(0 < user["seconds"] < 60, user)


if __name__ == "__main__":
    unittest.main()
