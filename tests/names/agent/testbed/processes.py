"""Processes that end with this one."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
BUILD = pathlib.Path(os.environ["LOCKFLIGHT_PROGRAM"]).parent if os.environ.get(
    "LOCKFLIGHT_PROGRAM") else ROOT / "build"

sys.path.insert(0, str(ROOT / "tests" / "support"))

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)

def before_exec():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child in a process group of its own, which is killed when this process ends."""

    def __init__(self, command, log, environment=None):
        self.command = [str(each) for each in command]
        self.is_stopped = False
        with open(log, "ab") as errors:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                env={**os.environ, **(environment or {})}, start_new_session=True,
                preexec_fn=before_exec)

    @property
    def pid(self):
        return self.child.pid

    def exit_code(self):
        """None while it runs."""
        return self.child.poll()

    def send(self, what):
        if self.exit_code() is None:
            os.killpg(self.pid, what)

    def stop(self):
        self.send(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self):
        self.send(signal.SIGCONT)
        self.is_stopped = False

    def kill(self):
        self.send(signal.SIGKILL)
        return self.child.wait()
