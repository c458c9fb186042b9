#!/usr/bin/env python3
"""Who serves other hosts while a rank computes (LOCKFLIGHT_PROGRESS)."""

import re
import unittest

import support
import testbed

COMPUTED_MS = 300  # as computing.cpp does


def launched(bed, mpi, progress):
    """computing.cpp on each host."""
    program = str(testbed.ROOT / "build" / "tests" / "hosts" / f"hosts_computing_{mpi}")
    return bed.launch(mpi, 1, [program], environment=[f"LOCKFLIGHT_PROGRESS={progress}"],
                      **support.captured)


class Progress(unittest.TestCase):
    def longest_ms(self, progress):
        with testbed.Hosts(2) as bed:
            passed, said = support.passed(launched(bed, "mpich", progress), "of_a_core", 60)
        self.assertTrue(passed, said)
        print(progress, said.split(), flush=True)
        return float(re.search(r"longest_ms (\S+)", said)[1])

    def test_without_a_thread_the_home_answers_when_it_has_computed(self):
        self.assertGreater(self.longest_ms("calls"), COMPUTED_MS / 2)

    def test_a_thread_answers_meanwhile(self):
        for progress in ("thread", "auto"):
            with self.subTest(progress):
                self.assertLess(self.longest_ms(progress), COMPUTED_MS / 2)


class BadInput(unittest.TestCase):
    def said(self, progress):
        """(exit code, errors). Not with MPICH, which over TCP may hang in MPI_Finalize."""
        with testbed.Hosts(2) as bed:
            code, _, err = support.finished(launched(bed, "openmpi", progress))
        return code, err

    def test_a_word_that_is_none(self):
        code, err = self.said("telepathy")
        self.assertEqual(code, 2, err)
        self.assertIn("LOCKFLIGHT_PROGRESS 'telepathy' (accepted: calls, thread, auto)", err)

    def test_open_mpi_has_no_windows_beside_threads_over_tcp(self):
        code, err = self.said("thread")
        self.assertEqual(code, 3, err)
        self.assertIn("(accepted: calls, auto)", err)


if __name__ == "__main__":
    support.main()
