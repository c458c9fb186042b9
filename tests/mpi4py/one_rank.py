"""One rank of a run of mpi4py's own tests. Each rank says in a file of its own what became of each
test case, as it goes, so that a launch that is ended still tells how far its ranks came.

usage: one_rank.py TESTS_OF_MPI4PY FOLDER THREAD_LEVEL MODULE[.CLASS]...

FOLDER/RANK gets a line "lock NAME", with the lock that the drop-in puts on windows, or none; then
"CASE began", and "CASE ok", "failed" or "skipped", for each test case.
"""

import sys
import unittest

TESTS, FOLDER, THREAD_LEVEL, *WANTED = sys.argv[1:]
sys.path.insert(0, TESTS)

import mpi4py  # noqa: E402  must be told its thread level before MPI is initialised

mpi4py.rc.thread_level = THREAD_LEVEL
from mpi4py import MPI  # noqa: E402
import mpiunittest  # noqa: E402

# Its modules disable the tests that do not work on a communicator of one process, a class at a
# time. Open MPI makes no window there, so no test would be left.
mpiunittest.disable = lambda what, _: what


def lock_of_windows():
    """What a window says of its lock."""
    # A multiple of 64 bytes: MPICH 4.0 misses the memory of the other ranks with fewer.
    window = MPI.Win.Allocate(64, comm=MPI.COMM_WORLD)
    said = window.Get_info()
    name = said.Get("lockflight_lock")
    said.Free()
    window.Free()
    return name or "none"


class Told(unittest.TextTestResult):
    """Writes each verdict down when it falls."""

    def __init__(self, stream, descriptions, verbosity):
        super().__init__(stream, descriptions, verbosity)
        self.verdict = ""
        self.told = open(f"{FOLDER}/{MPI.COMM_WORLD.rank}", "w", buffering=1, encoding="utf-8")
        print("lock", lock_of_windows(), file=self.told)

    def startTest(self, test):
        super().startTest(test)
        self.verdict = "ok"
        print(test.id(), "began", file=self.told)

    def stopTest(self, test):
        super().stopTest(test)
        print(test.id(), self.verdict, file=self.told)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.verdict = "failed"

    def addError(self, test, err):
        super().addError(test, err)
        self.verdict = "failed"

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.verdict = "failed"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.verdict = "skipped"


suite = unittest.defaultTestLoader.loadTestsFromNames(WANTED)
unittest.TextTestRunner(stream=sys.stderr, verbosity=0, resultclass=Told).run(suite)
