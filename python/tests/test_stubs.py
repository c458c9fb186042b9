"""The stub of the module in C++ has what the module has, and the annotations of the package hold
together."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

import lockflight
from lockflight import _core


def names_of(body):
    """Names of functions, classes and variables, and those of classes by theirs."""
    found = {}
    for each in body:
        if isinstance(each, ast.ClassDef):
            found[each.name] = set(names_of(each.body))
        elif isinstance(each, ast.FunctionDef):
            found[each.name] = None
        elif isinstance(each, ast.AnnAssign):
            found[each.target.id] = None
    return found


def is_public(name):
    return not name.startswith("__") or name in ("__init__", "__enter__", "__exit__")


def test_the_stub_is_true():
    stub = pathlib.Path(lockflight.__file__).with_name("_core.pyi")
    written = names_of(ast.parse(stub.read_text(encoding="utf-8")).body)
    assert set(written) == {name for name in vars(_core) if is_public(name)}
    for name, members in written.items():
        if members is None or issubclass(getattr(_core, name), Exception):
            continue
        assert members == {each for each in vars(getattr(_core, name)) if is_public(each)}, name


# Of nanobind, and not of this package: its classes and functions have types of their own.
OF_NANOBIND = ("metaclass differs", "is a disjoint base at runtime", "is not a function")


def run_mypy(*words):
    pytest.importorskip("mypy", reason="mypy is not installed")
    package = pathlib.Path(lockflight.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=package, capture_output=True, text=True, check=False,
        env=dict(os.environ, PYTHONPATH=str(package), MYPY_CACHE_DIR=os.devnull),
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if "error: " in line]


def test_mypy_finds_nothing():
    assert run_mypy("mypy", "--strict", "-p", "lockflight") == []


def test_stubtest_finds_nothing():
    errors = run_mypy("mypy.stubtest", "lockflight")
    assert [line for line in errors if not any(known in line for known in OF_NANOBIND)] == []
