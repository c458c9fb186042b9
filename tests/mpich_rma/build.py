"""Builds MPICH's tests of one-sided operations with one MPI. Programs that are there are kept.

usage: build.py SOURCE FOLDER MPICC

SOURCE is the folder test/mpi of MPICH. FOLDER gets a program for each line of rma/testlist.in, and
the output of the compiler, PROGRAM.log, for those that do not compile with this MPI. MPICH's own
build asks configure what this machine has; here that is written down below, as the tests ask little.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import launches, recipes

SOURCE, FOLDER, MPICC = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
CONFIGURED = ["HAVE_LONG_DOUBLE", "HAVE_LONG_LONG", "HAVE_MPI_WIN_CREATE", "HAVE_MPI_INIT_THREAD",
              "HAVE_GETRUSAGE", "HAVE_PTHREAD_H", "HAVE_STDARG_H", "HAVE_STDINT_H", "HAVE_STDLIB_H", "HAVE_STRING_H",
              "HAVE_SYS_RESOURCE_H", "HAVE_SYS_TIME_H", "HAVE_UNISTD_H"]
# Extensions of MPICH are no part of what another MPI must have.
IS_MPICH = MPICC.rpartition("/")[2].startswith("mpicc.mpich")
FLAGS = ["-O1", "-w", f"-I{FOLDER}", f"-I{SOURCE}/include", f"-I{SOURCE}/rma"]


def mpicc(log, *words):
    with open(log, "w", encoding="utf-8") as output:
        done = subprocess.run([MPICC, *FLAGS, *words], stdout=output, stderr=output, timeout=120,
                              check=False)
    if done.returncode == 0:
        log.unlink()
    return done.returncode == 0


def build(program, sources, macros, shared):
    target = FOLDER / program
    log = FOLDER / f"{program}.log"
    if target.exists() or log.exists():
        return target.exists()
    made = FOLDER / f"{program}.made"
    if not mpicc(log, *macros, *(str(SOURCE / "rma" / source) for source in sources), *shared,
                 "-lm", "-o", str(made)):
        return False
    made.rename(target)
    return True


def main():
    FOLDER.mkdir(exist_ok=True)
    configured = CONFIGURED + ([] if IS_MPICH else ["USE_STRICT_MPI"])
    (FOLDER / "mpitestconf.h").write_text(
        "".join(f"#define {name} 1\n" for name in configured) +
        "#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX\n", "utf-8")
    shared = []
    for source in ["mtest", "mtest_common", "mtest_single"]:
        shared.append(str(FOLDER / f"{source}.o"))
        if not Path(shared[-1]).exists() and not mpicc(
                FOLDER / f"{source}.log", "-c", str(SOURCE / "util" / f"{source}.c"), "-o",
                shared[-1]):
            print(f"{source}.c does not compile: {FOLDER}/{source}.log")
            return 1
    how = recipes(SOURCE)
    programs = sorted({launch.program for launch in launches(SOURCE, 4, 60)} & how.keys())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        built = list(pool.map(lambda program: build(program, *how[program], shared), programs))
    failed = [program for program, done in zip(programs, built) if not done]
    print(f"{sum(built)} programs; {len(failed)} do not compile: {' '.join(failed) or '-'}")
    return 0 if any(built) else 1


if __name__ == "__main__":
    sys.exit(main())
