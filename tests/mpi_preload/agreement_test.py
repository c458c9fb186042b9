"""Whether the ranks agree who locks a window when one of them fails, or has other settings.

usage: agreement_test.py DROP_IN PROGRAM LAUNCHER...
"""

import os
import re
import subprocess
import sys
import unittest

from on_mpi import component

DROP_IN, PROGRAM, *LAUNCHER = sys.argv[1:]

BETWEEN_NODES = {"LOCKFLIGHT_MPI_NODES": 2, **component(LAUNCHER)}

ON_RANK_1 = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && export "$1"; shift; exec "$@"'


class Agreement(unittest.TestCase):
    # More ranks than cores would take MPICH seconds a window.
    def launch(self, *arguments, ranks=2, on_rank_1="", **environment):
        """How many windows keep MPI's locks, how many have others, and what is said of them."""
        # sh first: a shell with the drop-in under it would be no rank of MPI's.
        done = subprocess.run(
            [*LAUNCHER, str(ranks), "sh", "-c", ON_RANK_1, "sh", on_rank_1 or "_=",
             "env", f"LD_PRELOAD={DROP_IN}", *(f"{n}={v}" for n, v in environment.items()),
             PROGRAM, *arguments],
            capture_output=True, text=True, timeout=240, check=False, env=dict(os.environ))
        found = re.fullmatch(r"(\d+) keep MPI's locks, (\d+) have others\n", done.stdout)
        self.assertEqual((done.returncode, found is not None), (0, True),
                         done.stdout + done.stderr)
        return int(found[1]), int(found[2]), done.stderr

    def keeps(self, reason, *arguments, **environment):
        """All ranks keep MPI's locks, and one line says why."""
        theirs, ours, said = self.launch(*arguments, **environment)
        self.assertEqual((theirs, ours), (1, 0), said)
        lines = [line for line in said.splitlines() if line.startswith("lockflight: ")]
        self.assertEqual(len(lines), 1, said)
        self.assertRegex(lines[0], "^lockflight: this window keeps the locks of MPI: " + reason)

    def test_none_fails(self):
        self.assertEqual(self.launch("nothing"), (0, 1, ""))

    # The ranks agree about later windows through their memory.
    def test_how_many_collective_calls_a_window_takes(self):
        theirs, ours, said = self.launch("calls")
        self.assertEqual((theirs, ours, said), (0, 1, "collective calls: 8, 0, 0\n"))

    # Then the fabric's memory, which is MPI's, is good enough.
    def test_a_rank_that_cannot_open_the_first_ones_memory(self):
        self.assertEqual(self.launch("share"), (0, 1, ""))

    # The windows that are open stay where they are, and those to come have the fabric's memory.
    def test_a_rank_that_cannot_open_more_memory_while_windows_are_open(self):
        self.assertEqual(self.launch("later", **component(LAUNCHER)), (0, 1, ""))

    def test_a_first_rank_without_a_descriptor_once(self):
        theirs, ours, said = self.launch("offer")
        self.assertEqual((theirs, ours), (1, 1), said)
        self.assertRegex(said, "keeps the locks of MPI: memfd_create, ftruncate: Too many open")

    def test_the_memory_of_one_rank_between_nodes(self):
        self.keeps(r"MPI_Win_create failed: .* \(on rank 1\)$", "create", **BETWEEN_NODES)

    def test_each_allocation_of_one_rank(self):
        theirs, ours, said = self.launch("memory")
        self.assertGreater(theirs, 5, "else nothing was tried")
        # The last one, for which there is memory; and where only the first rank's word counts.
        self.assertGreaterEqual(ours, 1)
        self.assertEqual(said.count("keeps the locks of MPI: "), theirs, said)
        self.assertEqual(said.count("(on rank 1)\n"), theirs, said)

    def test_a_bad_setting_of_one_rank(self):
        self.keeps(r"LOCKFLIGHT_MPI_NODES 'some' \(accepted: .*\) \(on rank 1\)$",
                   on_rank_1="LOCKFLIGHT_MPI_NODES=some")

    def test_a_bad_setting_of_all(self):
        self.keeps(r"LOCKFLIGHT_MPI_NODES 'some' \(accepted: [^)]*\)$", LOCKFLIGHT_MPI_NODES="some")

    def test_one_rank_switches_it_off(self):
        self.keeps(r"LOCKFLIGHT_MPI_OFF is set \(on rank 1\)$", on_rank_1="LOCKFLIGHT_MPI_OFF=1")

    def test_all_switch_it_off(self):
        self.assertEqual(self.launch(LOCKFLIGHT_MPI_OFF=1), (1, 0, ""))

    def test_one_rank_wants_statistics(self):
        theirs, ours, said = self.launch(on_rank_1="LOCKFLIGHT_MPI_STATS=1")
        self.assertEqual((theirs, ours), (0, 1), said)
        # All count: 2 ranks, 20 rounds.
        self.assertRegex(said, r"exclusive +40 ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
