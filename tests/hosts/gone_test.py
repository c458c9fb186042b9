#!/usr/bin/env python3
"""Ranks, hosts and links go in the middle of a run: the launch ends and names them."""

import os
import pathlib
import signal
import time
import unittest

import support
import testbed
from waiting import wait_until

LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
# What the launch's exit code is when a host is gone: ours. Open MPI's launcher is killed if it has
# not noticed that host in time, as on a busy machine; if it notices before we do, the code is its
# own, -51 for a daemon that it has lost.
ENDED = {"mpich": (3,), "openmpi": (3, -51 % 256, -signal.SIGKILL)}


def ranks_of(bed, host, mpi):
    found = []
    for pid in bed.processes(host):
        try:
            if os.readlink(f"/proc/{pid}/exe") == support.lab(mpi):
                found.append(pid)
        except OSError:  # it has ended
            pass
    return found


def watches(pid):
    """Whether a rank has the thread that watches the others."""
    try:
        return any(task.read_text() == "hosts-watch\n"
                   for task in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"))
    except OSError:  # one of its threads has ended
        return False


def started(bed, mpi, seconds):
    """A run whose ranks watch each other."""
    launch = bed.launch(mpi, 1, [support.program(mpi), "bench", "--fabric", "mpi", "--lock", "d-mcs",
                                 "--seconds", str(seconds)], **support.captured)

    def are_watched():
        ranks = [pid for host in bed.living() for pid in ranks_of(bed, host, mpi)]
        return len(ranks) == 2 and all(watches(pid) for pid in ranks)
    assert wait_until(are_watched, 20), support.finished(launch, 1)
    return launch


class Gone(unittest.TestCase):
    def loses_host(self, go):
        """Runs under all MPIs at once."""
        with testbed.Hosts(2) as bed:
            launches = [(mpi, started(bed, mpi, 60)) for mpi in support.LAUNCHERS]
            begun = time.monotonic()
            go(bed)
            for mpi, launch in launches:
                with self.subTest(mpi=mpi):
                    code, _, err = support.finished(launch, 25)
                    self.assertLess(time.monotonic() - begun, 13)
                    self.assertIn(code, ENDED[mpi], err)
                    self.assertIn("lockflight: rank 1 on host1 is gone: its host has not answered "
                                  "for 7 s", err)
                    for host in bed.living():
                        self.assertTrue(
                            wait_until(lambda: not ranks_of(bed, host, mpi), 10))

    def test_a_dead_host(self):
        self.loses_host(lambda bed: bed.kill(1))

    @unittest.skipUnless(LONG, "fifteen seconds each: ./dev test --all")
    def test_a_link_that_stays_cut(self):
        for host in range(2):
            self.loses_host(lambda bed, host=host: bed.cut(host))

    def test_a_dead_rank(self):
        # Both launchers notice by themselves, and may be the first.
        for mpi, words in (("mpich", "rank 1 on host1 is gone|RUNNING AT host1"),
                           ("openmpi", "rank 1 .*on (node )?host1")):
            with self.subTest(mpi=mpi), testbed.Hosts(2) as bed:
                launch = started(bed, mpi, 60)
                os.kill(ranks_of(bed, 1, mpi)[0], signal.SIGKILL)
                code, out, err = support.finished(launch, 15)
                self.assertIn(code, (3, 137, 255), err)
                self.assertRegex(out + err, words)

    @unittest.skipUnless(LONG, "some fifteen seconds each: ./dev test --all")
    def test_a_stopped_host_and_a_link_that_is_mended_are_waited_for(self):
        def stop(bed):
            bed.stop(1)
            time.sleep(10)
            bed.go_on(1)

        def cut(bed):
            bed.cut(1)
            time.sleep(3)
            bed.mend(1)

        for go in (stop, cut):
            with self.subTest(go.__name__), testbed.Hosts(2) as bed:
                launch = started(bed, "mpich", 5)
                go(bed)
                passed, said = support.passed(launch, "Latency is", 60)
                self.assertTrue(passed, said)


if __name__ == "__main__":
    support.main()
