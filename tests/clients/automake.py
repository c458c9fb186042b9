"""What a Makefile.am says of programs: their sources in C, and the macros that are defined for them."""

import re


def recipes(text, *programs):
    """`programs` are the names of the variables that list the programs."""
    values = {}
    for name, value in re.findall(r"^(\w+)[ \t]*\+?=(.*)$", text.replace("\\\n", " "), re.MULTILINE):
        values.setdefault(name, []).extend(value.partition("#")[0].split())
    found = {}
    for program in [word for name in programs for word in values[name]]:
        if program.startswith("$"):
            continue
        prefix = re.sub(r"\W", "_", program)
        found[program] = ([word for word in values.get(f"{prefix}_SOURCES", [f"{program}.c"])
                           if word.endswith(".c")],
                          [word for word in values.get(f"{prefix}_CPPFLAGS", [])
                           if word.startswith("-D")])
    return found
