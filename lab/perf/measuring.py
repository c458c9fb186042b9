"""Running programs and reading what they print, for lab/perf/perf."""

import json
import os
import pathlib
import resource
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("LOCKFLIGHT_PROGRAM", str(ROOT / "build" / "lockflight"))


class Failed(Exception):
    """A program that is measured cannot be run, or fails."""


class NotMeasured(Exception):
    """What a goal is compared with is not installed; the text says how to install it."""


def text_of(command, folder=None, seconds=120):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False,
                              cwd=folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def output_of(command, seconds=120):
    return json.loads(text_of(command, seconds=seconds))


def processor_seconds(run):
    """What run() returns, and how long its programs computed, the kernel's part apart."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    result = run()
    return result, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def largest_program_gib():
    """The most memory that one of the programs so far took."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
