"""The binary interface of the libraries for C, beside what it was: interface.txt.

A program that was compiled yesterday must run with the library of today. So each function that
interface.txt lists must still be exported, with the same version, and its declaration must be the
same. layout.c, which the build compiles, does the same for structures and numbers.

A function that is new has to be added to the list, so that it is known from then on: --update does
that, and refuses to take anything away. What was taken away on purpose, because the minor version of
lockflight has changed and with it the name of the library, --replace writes anew.

usage: abi_test.py BUILD CC INCLUDE [--update | --replace]

Exit codes: 0 fine, 1 the interface has changed, 2 bad usage.
"""

import os
import re
import subprocess
import sys
import tempfile

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interface.txt")
HEADER = """\
# The exported functions of the libraries for C: library, function and version, declaration.
# abi_test.py checks and writes it.
"""
# Folder of the build, file. A build has those of the fabrics that it was built with.
LIBRARIES = [
    (".", "liblockflight.so"),
    (".", "liblockflight_c_ucx.so"),
    (".", "liblockflight_c_libfabric.so"),
    ("openmpi", "liblockflight_openmpi.so"),
    ("mpich", "liblockflight_mpich.so"),
    ("oshmem", "liblockflight_shmem.so"),
]
PRIVATE = "LOCKFLIGHT_PRIVATE"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def declarations(compiler, include):
    """{function: its declaration}, as the compiler reads the header."""
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as told:
        header = os.path.join(include, "lockflight", "lockflight.h")
        subprocess.run([compiler, "-std=c11", "-x", "c", f"-I{include}", "-fsyntax-only", "-aux-info",
                        told.name, header], check=True)
        lines = told.read().splitlines()
    found = {}
    for line in lines:
        match = re.match(r"/\* .*lockflight\.h:\d+:NC \*/ extern (.*?(\w+) \(.*)$", line)
        if match:
            found[match.group(2)] = match.group(1)
    return found


def exported(library):
    """The names with versions that a library exports, and its name for the loader."""
    names = set()
    for line in output_of("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        kind, name = line.split()[1:3]
        if kind in "TWBDR" and not name.endswith("@@" + PRIVATE):
            names.add(name.replace("@@", "@"))
    soname = re.search(r"SONAME.*\[(.*)\]", output_of("readelf", "-d", library)).group(1)
    # A version definition is itself a symbol without a section.
    return {name for name in names if "@" in name}, soname


def lines_of(build, compiler, include):
    """The list as this build would have it, and the libraries that the build lacks."""
    declared = declarations(compiler, include)
    lines, missing = [], []
    for folder, file in LIBRARIES:
        path = os.path.join(build, folder, file)
        if not os.path.exists(path):
            missing.append(file)
            continue
        names, soname = exported(path)
        for name in sorted(names):
            function = name.split("@")[0]
            declaration = declared.get(function)
            if declaration is None:
                raise SystemExit(f"{file} exports {function}, which no header declares")
            lines.append("  ".join([soname, name, declaration]))
    return lines, missing


def compare(before, now, missing):
    """What a program would miss, and what is new. Libraries that were not built miss nothing."""
    # "liblockflight.so" is not built; its lines have "liblockflight.so.0.1".
    built = [line for line in before if not any(line.startswith(m + ".") for m in missing)]
    return [line for line in built if line not in now], [line for line in now if line not in before]


def see_it_fail():
    before = ["liblockflight.so.0.1  a@V  int a (void);", "liblockflight.so.0.1  b@V  int b (int);",
              "liblockflight_c_ucx.so.0.1  c@V  int c (void);"]
    changed = ["liblockflight.so.0.1  a@V  int a (void);", "liblockflight.so.0.1  b@V  int b (long);"]
    gone, new = compare(before, changed, ["liblockflight_c_ucx.so"])
    assert gone == [before[1]] and new == [changed[1]], (gone, new)
    assert compare(before, before[:2], []) == ([before[2]], [])
    assert compare(before, before, []) == ([], [])


def main(arguments):
    if len(arguments) not in (3, 4) or arguments[3:] not in ([], ["--update"], ["--replace"]):
        print(__doc__, file=sys.stderr)
        return 2
    see_it_fail()
    now, missing = lines_of(*arguments[:3])
    for library in missing:
        print(f"skipped: {library}, which is not built")
    with open(LIST, encoding="utf-8") as file:
        before = [line.rstrip("\n") for line in file if not line.startswith("#")]
    gone, new = compare(before, now, missing)
    if arguments[3:] == ["--replace"] or (arguments[3:] == ["--update"] and not gone):
        kept = [line for line in before if line not in now and line not in gone]
        with open(LIST, "w", encoding="utf-8") as file:
            file.write(HEADER + "".join(line + "\n" for line in sorted({*now, *kept})))
        print(f"{LIST}: {len(new)} added, {len(gone)} taken away")
        return 0
    for line in gone:
        print(f"GONE, or declared in another way: {line}")
    for line in new:
        print(f"not in tests/bindings/c/abi/interface.txt: {line}")
    if new and not gone:
        print("new functions: `cmake --build build --target update_abi` adds them to the list")
    return 1 if gone or new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
