"""MPICH's tests of one-sided operations: Makefile.am says how each program is compiled, testlist.in how
it is run. MPICH's own build asks configure what this machine has; here that is written down below, as
the tests ask little."""

import re

import automake
from client import Launch

MOST_RANKS = 4
LIMIT_S = 60
FOLDER = "test/mpi/rma"
CONFIGURED = ["HAVE_LONG_DOUBLE", "HAVE_LONG_LONG", "HAVE_MPI_WIN_CREATE", "HAVE_MPI_INIT_THREAD",
              "HAVE_GETRUSAGE", "HAVE_PTHREAD_H", "HAVE_STDARG_H", "HAVE_STDINT_H", "HAVE_STDLIB_H", "HAVE_STRING_H",
              "HAVE_SYS_RESOURCE_H", "HAVE_SYS_TIME_H", "HAVE_UNISTD_H"]
# With more ranks than cores MPICH takes 10 ms for a flush, and minutes for some tests. Those of locks
# have four ranks anyway; so have those that fail with fewer ranks than they are meant for.
NOT_OF_LOCKS = re.compile(
    r"^(?!.*(lock|mutex|contention|linked_list|mimic|fetchandadd|flush$|reqops))")


def launches(source, _mpi):
    """The lines of testlist.in. Lines of tests that their authors leave out unless asked (they are
    marked with @) are left out here too, and what they allow more time than LIMIT_S gets that."""
    found = []
    for line in (source / FOLDER / "testlist.in").read_text("utf-8").splitlines():
        if not re.match(r"\w", line):
            continue
        program, ranks, *options = line.split()
        values = [option.partition("=")[::2] for option in options]
        limits = [float(value) for name, value in values if name == "timeLimit"]
        launch = Launch(program, min(int(ranks), MOST_RANKS),
                        tuple(value for name, value in values if name == "arg"),
                        min([LIMIT_S, *limits]))
        # With fewer ranks than it names a line may be the same as another one.
        if launch not in found:
            found.append(launch)
    return found


def build(builder):
    tests = builder.source / "test/mpi"
    # Extensions of MPICH are no part of what another MPI must have.
    configured = CONFIGURED + ([] if builder.mpi == "mpich" else ["USE_STRICT_MPI"])
    (builder.folder / "mpitestconf.h").write_text(
        "".join(f"#define {name} 1\n" for name in configured) +
        "#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX\n", "utf-8")
    flags = ["-O1", "-w", f"-I{builder.folder}", f"-I{tests}/include", f"-I{tests}/rma"]
    shared = [builder.object(tests / "util" / f"{name}.c", *flags)
              for name in ("mtest", "mtest_common", "mtest_single")]
    how = automake.recipes((tests / "rma/Makefile.am").read_text("utf-8"), "noinst_PROGRAMS")
    builder.programs({
        program: ([tests / "rma" / source for source in how[program][0]],
                  [*flags, *how[program][1], *shared, "-lm"])
        for program in sorted({launch.program for launch in launches(builder.source, builder.mpi)}
                              & how.keys())})
