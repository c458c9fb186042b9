"""What the tests on several hosts share. A test's file ends with `support.main()`."""

import subprocess
import sys
import time
import unittest

import testbed

sys.path.insert(0, str(testbed.ROOT / "tests" / "support"))

LAUNCHERS = sorted(testbed.LAUNCHERS)
SKIPPED = 77


def main():
    try:
        testbed.require()
    except testbed.Unavailable as why:
        print(f"SKIPPED: {sys.argv[0]}: {why}", file=sys.stderr)
        sys.exit(SKIPPED)
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
    # Open MPI's launcher says so when a child has started before it could set its group.
    err = "".join(line for line in err.splitlines(keepends=True)
                  if "plm:rsh: Warning: setpgid" not in line)
    return launch.returncode, out, err


def passed(launch, mark, timeout):
    """(whether it printed the mark and exited with 0, all that it printed). MPICH 4.0 over TCP may
    hang in MPI_Finalize (docs/mpi-details.md): a launch of MPICH that has printed the mark and does
    not end is killed, and counts as one that has exited with 0."""
    may_hang = testbed.LAUNCHERS["mpich"] in launch.args
    end = time.monotonic() + timeout
    while True:
        try:
            out, err = launch.communicate(timeout=2)
            return launch.returncode == 0 and mark in out, out + err
        except subprocess.TimeoutExpired as e:
            said = (e.stdout or b"").decode(errors="replace")
            is_done = may_hang and mark in said
            if is_done or time.monotonic() > end:
                try:
                    out, err = launch.communicate(timeout=2)
                    return launch.returncode == 0 and mark in out, out + err
                except subprocess.TimeoutExpired:
                    launch.kill()
                    return is_done, "".join(launch.communicate())


captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
