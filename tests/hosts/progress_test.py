#!/usr/bin/env python3
"""Who serves other hosts while a rank computes (LOCKFLIGHT_PROGRESS)."""

import re
import unittest

import support
import testbed

COMPUTED_MS = 300  # as computing.cpp does


def run(mpi, progress):
    """(exit code, output, errors) of computing.cpp over two hosts."""
    program = str(testbed.ROOT / "build" / "tests" / "hosts" / f"hosts_computing_{mpi}")
    with testbed.Hosts(2) as bed:
        launch = bed.launch(mpi, 1, [program], environment=[f"LOCKFLIGHT_PROGRESS={progress}"],
                            **support.captured)
        return support.finished(launch)


class Progress(unittest.TestCase):
    def longest_ms(self, progress):
        code, out, err = run("mpich", progress)
        self.assertEqual((code, err), (0, ""), out)
        print(progress, out.split(), flush=True)
        return float(re.search(r"longest_ms (\S+)", out)[1])

    def test_without_a_thread_the_home_answers_when_it_has_computed(self):
        self.assertGreater(self.longest_ms("calls"), COMPUTED_MS / 2)

    def test_a_thread_answers_meanwhile(self):
        for progress in ("thread", "auto"):
            with self.subTest(progress):
                self.assertLess(self.longest_ms(progress), COMPUTED_MS / 2)


class BadInput(unittest.TestCase):
    def test_a_word_that_is_none(self):
        # Not MPICH, which over TCP now and then hangs in MPI_Finalize (docs/mpi.md).
        code, _, err = run("openmpi", "telepathy")
        self.assertEqual(code, 2)
        self.assertIn("LOCKFLIGHT_PROGRESS 'telepathy' (accepted: calls, thread, auto)", err)

    def test_open_mpi_has_no_windows_beside_threads_over_tcp(self):
        code, _, err = run("openmpi", "thread")
        self.assertEqual(code, 3)
        self.assertIn("(accepted: calls, auto)", err)


if __name__ == "__main__":
    support.main()
