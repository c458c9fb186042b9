#!/usr/bin/env python3
"""Ranks, hosts and links go in the middle of a run: the launch ends and names them."""

import os
import re
import signal
import time
import unittest

import support
import testbed

LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
# What the launch's exit code is when a host is gone (docs/mpi.md): ours, but Open MPI's launcher
# does not end by itself and is killed.
ENDED = {"mpich": (3,), "openmpi": (-signal.SIGKILL, 128 + signal.SIGKILL)}


def ranks_of(bed, host, mpi):
    found = []
    for pid in bed.processes(host):
        try:
            if os.readlink(f"/proc/{pid}/exe") == support.program(mpi):
                found.append(pid)
        except OSError:  # it has ended
            pass
    return found


class Gone(unittest.TestCase):
    def started(self, bed, mpi, seconds):
        """A run whose ranks watch each other."""
        launch = bed.launch(mpi, 1, [support.program(mpi), "bench", "--fabric", "mpi", "--lock",
                                     "d-mcs", "--seconds", str(seconds)], **support.captured)

        def is_watched():
            out, _ = bed.start(1, ["ss", "-tnoH"], **support.captured).communicate()
            return re.search(r"keepalive,[0-9.]+m?s", out) is not None
        self.assertTrue(support.wait_until(is_watched, 20))
        time.sleep(1)  # its last step is a thread of each rank
        return launch

    def ends(self, mpi, go, codes, words):
        with testbed.Hosts(2) as bed:
            launch = self.started(bed, mpi, 60)
            begun = time.monotonic()
            go(bed)
            code, out, err = support.finished(launch, 25)
            self.assertLess(time.monotonic() - begun, 12)
            self.assertIn(code, codes, err)
            self.assertRegex(out + err, words)
            for host in bed.living():
                self.assertTrue(support.wait_until(lambda: not ranks_of(bed, host, mpi), 10))

    def loses_host(self, mpi, go):
        self.ends(mpi, go, ENDED[mpi],
                  "lockflight: rank 1 on host1 is gone: its host has not answered for 7 s")

    def test_a_dead_host(self):
        self.loses_host("mpich", lambda bed: bed.kill(1))

    def test_a_cut_link(self):
        self.loses_host("openmpi", lambda bed: bed.cut(1))

    @unittest.skipUnless(LONG, "ten seconds each: ./dev test --all")
    def test_the_other_way_round(self):
        self.loses_host("openmpi", lambda bed: bed.kill(1))
        self.loses_host("mpich", lambda bed: bed.cut(0))

    def test_a_dead_rank(self):
        # Both launchers notice by themselves, and may be the first.
        for mpi, words in (("mpich", "rank 1 on host1 is gone|RUNNING AT host1"),
                           ("openmpi", "rank 1 .*on (node )?host1")):
            with self.subTest(mpi=mpi):
                self.ends(mpi, lambda bed, mpi=mpi: os.kill(ranks_of(bed, 1, mpi)[0],
                                                            signal.SIGKILL),
                          (3, 137, 255), words)

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
                launch = self.started(bed, "mpich", 5)
                go(bed)
                passed, said = support.passed(launch, "Latency is", 60)
                self.assertTrue(passed, said)


if __name__ == "__main__":
    support.main()
