"""Casper, which makes some ranks of a launch ghosts that carry out the one-sided operations of the others:
a library between the program and the MPI. Its Makefile.am say how its tests are compiled, and testlist.in
which run. Its own build asks configure what this machine has; here that is written down below."""

import re
from pathlib import Path

import automake
from client import Launch

LIMIT_S = 20
OF_LOCKS = re.compile("lock|epoch|thread|no_check")
HERE = Path(__file__).resolve().parent
# A topology is no part of it: that takes a submodule, as its atomic operations do (opa_primitives.h).
LEFT_OUT = "src/common/topo/"
CONFIGURED = ["HAVE_STDLIB_H", "HAVE_GCC_ATTRIBUTE", "HAVE___TYPEOF", "CSP_ENABLE_RMA_ERR_CHECK",
              "CSP_ENABLE_THREAD_SAFE", "CSP_ENABLE_MPIO_WRAPPER", "HAVE_MPI_DOUBLE_COMPLEX"]
THREADS = "#define CSP_THREAD_CS_LOCK CSP_THREAD_CS_LOCK__PTHREAD_MUTEX\n"
OF_TESTS = ["HAVE_GCC_ATTRIBUTE", "CTEST_ENABLE_THREAD_TEST", "CTEST_ENABLE_RMA_ERRCHECK_TEST"]
# The prototypes of the MPI's functions, for which Casper's own script writes wrappers.
PROTOTYPES = {"mpich": ["mpi_proto.h", "mpio.h"], "openmpi": ["mpi.h"]}


def defined(names):
    return "".join(f"#define {name} 1\n" for name in names)


def build(builder):
    source, folder = builder.source, builder.folder
    (folder / "casperconf.h").write_text(defined(CONFIGURED) + THREADS, "utf-8")
    (folder / "ctestconf.h").write_text(defined(OF_TESTS), "utf-8")
    (folder / "casper.h").write_text(
        re.sub(r"@\w+@", "0", (source / "include/casper.h.in").read_text("utf-8")), "utf-8")
    wrap = folder / "mpi_wrap.c"
    more = []
    for header in PROTOTYPES[builder.mpi]:
        builder.needed("buildiface", "perl", source / "maint/buildiface", "--infile", builder.header(header),
                       "--outfile", wrap, *more)
        more = ["--append"]
    flags = ["-g", "-O1", "-w", f"-I{folder}", f"-I{HERE}", "-fPIC",
             *(f"-I{source}/src/{part}" for part in ("common/include", "common/util", "user/include",
                                                     "ghost/include"))]
    sources = [path for path in sorted((source / "src").rglob("*.c"))
               if not str(path.relative_to(source)).startswith(LEFT_OUT)]
    library = builder.shared_library("libcasper.so", [wrap, *sources], *flags)
    tests = source / "test"
    flags += [f"-I{tests}/include", library, f"-Wl,-rpath,{folder}", "-lpthread", "-lm"]
    how = automake.recipes((tests / "Makefile.am").read_text("utf-8"), "noinst_PROGRAMS", "THREAD_TESTS")
    builder.programs({program: ([tests / name for name in sources], [*macros, *flags])
                      for program, (sources, macros) in how.items()})


def launches(source, _mpi):
    """The lines of testlist.in except tests of messages, with one ghost among four ranks. Tests of locks run
    with no ghost, too: then Casper passes the calls on."""
    listed = (source / "test/testlist.in").read_text("utf-8")
    programs = [name for name in re.findall(r"^(\w+)", listed, re.MULTILINE) if not name.startswith("isend")]
    return [Launch(name, ranks, limit_s=LIMIT_S, environment=(("CSP_NG", ghosts),))
            for ranks, ghosts, some in ((2, "0", OF_LOCKS), (4, "1", re.compile(""))) for name in programs
            if some.search(name)]
