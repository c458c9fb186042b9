"""ARMCI-MPI, the one-sided operations of Global Arrays and NWChem on MPI windows: its own tests, with the
library of Debian's package libarmci-mpi-dev, which is of the same version. Its Makefile.mk say how each
program is compiled, and which are tests."""

import re

import automake
from client import Launch

LIMIT_S = 20
LIMITS_S = {"armci-test": 60}
# Measurements, and programs that take long with more ranks than cores.
LEFT_OUT = {"armci-perf", "ARMCI_PutS_latency", "ARMCI_AccS_latency", "transp1D-c", "test_mpi_dim",
            "lu-block", ("mpich", "armci-test")}
# Programs with many locks, and with groups of ranks, have four ranks as well.
FOUR_RANKS = re.compile("mutex|rmw|group|ctree|onesided|parmci|lu-b-bc")


def listings(source):
    return "\n".join(path.read_text("utf-8") for path in sorted((source / "tests").rglob("Makefile.mk")))


def name_of(program):
    return program.rpartition("/")[2]


def build(builder):
    source = builder.source
    words = ["-g", "-O1", "-w", f"-I{source}/src", f"-larmci-{builder.mpi}", "-lm"]
    how = automake.recipes(listings(source), "check_PROGRAMS")
    wanted = {launch.program for launch in launches(source, builder.mpi)}
    builder.programs({name_of(program): ([source / name for name in sources], words)
                      for program, (sources, _) in how.items() if name_of(program) in wanted})


def launches(source, mpi):
    """Its tests, without those that are expected to fail."""
    tests, fail = (automake.recipes(listings(source), name) for name in ("TESTS", "XFAIL_TESTS"))
    names = [name_of(test) for test in tests if test not in fail]
    return [Launch(name, ranks, limit_s=LIMITS_S.get(name, LIMIT_S))
            for name in names if name not in LEFT_OUT and (mpi, name) not in LEFT_OUT
            for ranks in ((2, 4) if FOUR_RANKS.search(name) else (2,))]
