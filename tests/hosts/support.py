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


def finished(launch, timeout=60):
    """(exit code, output, errors) of a launch that was started with `captured`."""
    try:
        out, err = launch.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        launch.kill()
        raise
    return launch.returncode, out, err


captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
