"""Named locks where /proc does not show the processes of other users."""

import os
import subprocess
import sys
import unittest

from support import PROGRAM, ProgramTest, skip_visibly

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


class HiddenTest(ProgramTest):
    @unittest.skipUnless(os.geteuid() == 0, "only root mounts, and can be two users")
    def test_a_command_that_nobody_waits_for_is_dead(self):
        done = subprocess.run(
            ["unshare", "-p", "-f", "-m", sys.executable, "-c", FIRST, PROGRAM,
             f"hidden-{os.getpid()}"],
            capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 77 or "unshare:" in done.stderr:
            skip_visibly(self, "this system makes no namespaces")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("1\n1\n", "", 0))


if __name__ == "__main__":
    unittest.main()
