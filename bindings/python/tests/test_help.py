"""Every public name says what it is: help() has a text and one signature for it, and the annotations
are types."""

import dataclasses
import inspect
import pydoc
import re
import typing

import pytest

import lockflight

SPECIAL = ("__enter__", "__exit__", "__aenter__", "__aexit__", "__call__")
CLASSES = [each for each in vars(lockflight).values() if inspect.isclass(each)]
# (owner, name): the public functions and properties of each class, and the functions of the module.
MEMBERS = sorted(
    {
        (cls, name)
        for cls in CLASSES
        for base in cls.__mro__
        if base.__module__.startswith("lockflight")
        for name in vars(base)
        if name in SPECIAL or not name.startswith("_")
    }
    | {(lockflight, name) for name in lockflight.__all__},
    key=str,
)


def is_field(owner, name):
    """A field of a data class has no text of its own: that of the class names it."""
    return dataclasses.is_dataclass(owner) and name in owner.__dataclass_fields__


def ids(given):
    return given if isinstance(given, str) else given.__name__


@pytest.mark.parametrize(("owner", "name"), MEMBERS, ids=ids)
def test_a_public_name_has_a_docstring(owner, name):
    # A method that overrides another one may leave the text to it.
    assert is_field(owner, name) or inspect.getdoc(getattr(owner, name))


@pytest.mark.parametrize("cls", list(filter(dataclasses.is_dataclass, CLASSES)), ids=ids)
def test_a_data_class_explains_its_fields(cls):
    for field in dataclasses.fields(cls):
        assert f"`{field.name}`" in cls.__doc__, field.name


EXCEPTIONS_OF_CPP = (lockflight.DomainError, lockflight.LockLost, lockflight.OwnerDied)


def has_signature(what):
    """Python has none for an exception that is made as RuntimeError is."""
    return callable(what) and what not in EXCEPTIONS_OF_CPP


@pytest.mark.parametrize(("owner", "name"), MEMBERS, ids=ids)
def test_a_public_callable_has_one_signature(owner, name):
    what = getattr(owner, name)
    if is_field(owner, name) or not has_signature(what):
        return
    inspect.signature(what)
    if inspect.isfunction(what):
        typing.get_type_hints(what)  # raises an error if an annotation is no type
        assert not [each for each in what.__annotations__.values() if each[0] in "'\""]
    if not inspect.isclass(what):
        text = pydoc.plain(pydoc.render_doc(what))
        assert len(re.findall(rf"^ *(?:async )?{name}\(", text, re.MULTILINE)) == 1, text


@pytest.mark.parametrize("cls", [lockflight.Mutex, lockflight.Semaphore, lockflight.AllOf], ids=ids)
def test_what_is_awaited_and_entered_has_its_type(cls):
    returned = typing.get_type_hints(cls.__aenter__)["return"]
    assert typing.get_origin(returned) is typing.get_origin(typing.Coroutine[int, int, int])
    assert returned.__args__[-1].__bound__ is not None
    assert typing.get_type_hints(cls.__aexit__)["return"].__args__[-1] is type(None)
