"""The stub of the module in C++ has what the module has. (bindings/python/types has what type checkers find.)"""

import ast
import pathlib

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
