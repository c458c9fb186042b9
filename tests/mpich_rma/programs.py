"""What MPICH's tests of one-sided operations say of themselves: Makefile.am how each program is
compiled, testlist.in how it is run."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """One line of testlist.in: a program, its arguments, and what it needs."""

    program: str
    ranks: int
    arguments: tuple[str, ...]
    limit_s: float

    def name(self):
        return " ".join([self.program, *self.arguments])


def launches(source, most_ranks, most_s):
    """The lines of testlist.in. Lines of tests that their authors leave out unless asked (they are
    marked with @) are left out here too, and what they allow more time than `most_s` gets that."""
    found = []
    for line in (source / "rma" / "testlist.in").read_text("utf-8").splitlines():
        if not re.match(r"\w", line):
            continue
        program, ranks, *options = line.split()
        values = [option.partition("=")[::2] for option in options]
        limits = [float(value) for name, value in values if name == "timeLimit"]
        launch = Launch(program, min(int(ranks), most_ranks),
                        tuple(value for name, value in values if name == "arg"),
                        min([most_s, *limits]))
        # With fewer ranks than it names a line may be the same as another one.
        if launch not in found:
            found.append(launch)
    return found


def recipes(source):
    """For each program its sources in C, and the macros that are defined for it."""
    makefile = (source / "rma" / "Makefile.am").read_text("utf-8").replace("\\\n", " ")
    values = {}
    for name, value in re.findall(r"^(\w+)\s*\+?=(.*)$", makefile, re.MULTILINE):
        values.setdefault(name, []).extend(value.split())
    return {program: ([word for word in values.get(f"{program}_SOURCES", [f"{program}.c"])
                       if word.endswith(".c")],
                      [word for word in values.get(f"{program}_CPPFLAGS", [])
                       if word.startswith("-D")])
            for program in values["noinst_PROGRAMS"]}
