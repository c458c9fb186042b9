"""The annotations of the package hold together, and users' programs get the types that they expect."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import lockflight

PACKAGE = pathlib.Path(lockflight.__file__).parent.parent
USES = pathlib.Path(__file__).with_name("uses.py")
WRONG = {number for number, line in enumerate(USES.read_text(encoding="utf-8").splitlines(), 1)
         if line.endswith("# wrong")}


def errors_of(*words):
    """The lines with errors that a module of Python prints."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=PACKAGE, capture_output=True, text=True, check=False,
        timeout=300, env=dict(os.environ, PYTHONPATH=str(PACKAGE), MYPYPATH=str(PACKAGE),
                              MYPY_CACHE_DIR=os.devnull),
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if re.search("error: | - error", line)]


def lines_in(errors):
    return {int(re.search(r"uses\.py:(\d+):", line).group(1)) for line in errors}


def test_mypy_finds_nothing_in_the_package():
    assert errors_of("mypy", "--strict", "-p", "lockflight") == []


# Of nanobind, and not of this package: its classes and functions have types of their own.
OF_NANOBIND = ("metaclass differs", "is a disjoint base at runtime", "is not a function")


def test_stubtest_finds_nothing():
    errors = errors_of("mypy.stubtest", "lockflight")
    assert [line for line in errors if not any(known in line for known in OF_NANOBIND)] == []


@pytest.mark.parametrize("checker", [["mypy", "--strict"], ["pyright"]], ids=["mypy", "pyright"])
def test_a_checker_refuses_what_is_wrong_and_nothing_else(checker):
    errors = errors_of(*checker, str(USES))
    assert lines_in(errors) == WRONG, "\n".join(errors)
