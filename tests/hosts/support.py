"""What the tests on several hosts share. A test's file ends with `support.main()`."""

import subprocess
import sys
import time
import unittest

import testbed

LAUNCHERS = sorted(testbed.LAUNCHERS)


def main():
    try:
        testbed.require()
    except testbed.Unavailable as why:
        print(f"SKIPPED: {sys.argv[0]}: {why}", file=sys.stderr)
        sys.exit(0)
    testbed.enter()
    unittest.main(verbosity=2)


def program(launcher):
    """lockflight for that MPI."""
    return str(testbed.ROOT / "build" / launcher / "lockflight")


def lab(launcher):
    """The program that it becomes for a bench."""
    return program(launcher) + "-lab"


def finished(launch, timeout=60):
    """(exit code, output, errors) of a launch that was started with `captured`."""
    try:
        out, err = launch.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        code = launch.poll()  # known if only a process that has its output is left
        launch.kill()
        out, err = launch.communicate()
        raise AssertionError(f"no end after {timeout} s, exit code {code}; it said: "
                             f"{out}{err}") from None
    return launch.returncode, out, err


def passed(launch, mark, timeout):
    """(whether it printed the mark, all that it printed). MPICH 4.0 over TCP may hang in
    MPI_Finalize (docs/mpi.md): a launch that has printed it and does not end is killed."""
    end = time.monotonic() + timeout
    while True:
        try:
            out, err = launch.communicate(timeout=2)
            return launch.returncode == 0 and mark in out, out + err
        except subprocess.TimeoutExpired as e:
            said = (e.stdout or b"").decode(errors="replace")
            if mark in said or time.monotonic() > end:
                time.sleep(2)
                launch.kill()
                launch.communicate()
                return mark in said, said


captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
