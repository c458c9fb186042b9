"""The drop-in as users run it: LD_PRELOAD under programs that know nothing of it.

usage: drop_in_test.py DROP_IN WINDOW_LOCKS HANG LAUNCHER...
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from on_mpi import DEFAULT_LOCK, component, is_mpich

DROP_IN, WINDOW_LOCKS, HANG, *LAUNCHER = sys.argv[1:]

# MPICH's ranks never yield while they wait: more of them than cores take minutes. A launch of Open
# MPI takes half a second: what the drop-in says is the same with both.
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
MPICH = is_mpich(DROP_IN)
crowded = unittest.skipUnless(LONG or not MPICH,
                              "MPICH, and more ranks than cores: ./dev test --all")
same_with_mpich = unittest.skipUnless(LONG or MPICH, "the same with MPICH: ./dev test --all")


def launch(ranks, *command, on_one_core=False, **environment):
    """Exit code, standard output, standard error, of a launch under the drop-in."""
    # Open MPI's mpirun chooses cores for its ranks, whatever it may use itself.
    core = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))] if on_one_core else []
    done = subprocess.run(
        [*LAUNCHER, str(ranks), *core, "env", f"LD_PRELOAD={DROP_IN}",
         *(f"{name}={value}" for name, value in environment.items()), *command],
        capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
    return done.returncode, done.stdout, done.stderr


class Standard(unittest.TestCase):
    """What MPI says of windows, windows of all kinds."""

    def holds(self, ranks, *arguments, **environment):
        code, out, said = launch(ranks, WINDOW_LOCKS, *arguments, **environment)
        self.assertEqual((code, out.strip()), (0, "all holds"), said)
        return said

    # The window's side is the same for all; tests/lock tries every lock on MPI. One of each sort.
    def test_two_ranks_locks_of_all_sorts(self):
        for lock in ["spin-backoff", "rma-mcs", "alock", "fompi-rw", "rma-rw", "mcs-rw-fair",
                     "flight", "flight-rw"]:
            with self.subTest(lock):
                self.holds(2, lock)

    @crowded
    def test_more_ranks_than_cores(self):
        for lock in ["fompi-rw-backoff", "flight-rw"]:
            with self.subTest(lock):
                self.holds(4, lock)

    def test_the_default(self):
        said = self.holds(2, LOCKFLIGHT_MPI_STATS=1)
        self.assertIn(f"lock {DEFAULT_LOCK}, lock_all groups\n", said)

    @crowded
    def test_one_core(self):
        self.holds(2, on_one_core=True)

    @crowded
    def test_several_nodes(self):
        self.holds(4, LOCKFLIGHT_MPI_NODES=2, **component(LAUNCHER))

    def test_nodes_of_one_rank(self):
        for lock in ["fompi-rw-backoff", "flight-rw"]:
            with self.subTest(lock):
                self.holds(2, lock, LOCKFLIGHT_MPI_NODES=2, **component(LAUNCHER))

    @crowded
    def test_unequal_nodes(self):
        self.holds(3, "rma-rw", LOCKFLIGHT_MPI_NODES=2, **component(LAUNCHER))

    # Over hosts it is the default (tests/hosts/drop_in_test.py).
    def test_the_locks_of_mpi_behind_a_queue(self):
        for ranks, lock in [(2, "flight"), (3, "flight"), (3, "d-mcs")]:
            with self.subTest(lock, ranks=ranks):
                said = self.holds(ranks, lock, "", "mpi", LOCKFLIGHT_MPI_STATS=1)
                self.assertIn(f"lock {lock}, lock_all mpi\n", said)

    # The same with one lock for the whole window, in which lock_all is a reader.
    def test_a_global_lock_with_locks_of_all_sorts(self):
        for lock in ["fompi-rw", "rma-rw"]:
            with self.subTest(lock):
                self.holds(2, lock, "", "global")

    @crowded
    def test_a_global_lock_and_more_ranks_than_cores(self):
        said = self.holds(4, LOCKFLIGHT_MPI_LOCK_ALL="global", LOCKFLIGHT_MPI_STATS=1)
        self.assertIn(f"lock {DEFAULT_LOCK}, lock_all global\n", said)

    def test_a_global_lock_on_several_nodes(self):
        for ranks, lock in [(2, "d-mcs"), *([(3, "rma-rw")] if not MPICH or LONG else [])]:
            with self.subTest(lock):
                self.holds(ranks, lock, LOCKFLIGHT_MPI_LOCK_ALL="global", LOCKFLIGHT_MPI_NODES=2,
                           **component(LAUNCHER))

    def test_the_info_key_goes_before_the_environment(self):
        self.holds(2, "d-mcs", "", "global", LOCKFLIGHT_MPI_LOCK_ALL="rooms")
        self.holds(2, "d-mcs", "", "groups", LOCKFLIGHT_MPI_LOCK_ALL="global")


class Observed(unittest.TestCase):
    def test_statistics(self):
        code, _, said = launch(2, WINDOW_LOCKS, "d-mcs", LOCKFLIGHT_MPI_STATS=1)
        self.assertEqual(code, 0, said)
        first = said[said.index("lockflight: window"):]
        self.assertRegex(first, r"window .*, 2 ranks, lock d-mcs, lock_all groups\n")
        # 2 ranks, 2 targets, 50 rounds, and what the other parts of the program lock.
        times = int(re.search(r"exclusive +(\d+)", first).group(1))
        self.assertGreaterEqual(times, 200)
        for words in ["longest wait", "handoffs by level"]:
            self.assertIn(words, first)

    def test_who_waits_too_long_says_for_whom(self):
        code, _, said = launch(2, HANG, "2", LOCKFLIGHT_MPI_HANG=1)
        self.assertEqual(code, 0, said)
        self.assertIn("rank 1 has waited 1 s for an exclusive lock on target 0 of the window "
                      "'the table', for rank 0, which holds it exclusively", said)
        self.assertEqual(said.count("has waited"), 1, said)

    def test_who_waits_for_another_target_says_so(self):
        code, _, said = launch(2, HANG, "2", "1", LOCKFLIGHT_MPI_HANG=1,
                               LOCKFLIGHT_MPI_LOCK_ALL="global")
        self.assertEqual(code, 0, said)
        self.assertIn("rank 1 has waited 1 s for an exclusive lock on target 1 of the window "
                      "'the table', for rank 0, which holds target 0 exclusively", said)

    def test_who_waits_for_a_rank_that_shares_the_target_blames_nobody(self):
        code, _, said = launch(2, HANG, "2", "0", "shared", LOCKFLIGHT_MPI_HANG=1)
        self.assertEqual(code, 0, said)
        self.assertIn("rank 1 has waited 1 s for an exclusive lock on target 0 of the window "
                      "'the table'; no rank holds it exclusively\n", said)

    def test_in_groups_nobody_waits_for_another_target(self):
        code, out, said = launch(2, HANG, "2", "1", LOCKFLIGHT_MPI_HANG=1)
        self.assertEqual((code, out, said), (0, "", ""))

    def test_nobody_is_told_who_did_not_ask(self):
        code, out, said = launch(2, HANG, "2")
        self.assertEqual((code, out, said), (0, "", ""))


@same_with_mpich
class Profile(unittest.TestCase):
    """LOCKFLIGHT_PROFILE: parameters of the locks that serve."""

    PROFILE = "format = 1\n[rma-rw.parameters]\nT_DC = 1\nT_R = 64\n"

    def launch(self, text, program, *arguments, **environment):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            code, _, said = launch(2, program, *arguments, LOCKFLIGHT_PROFILE=file.name,
                                   LOCKFLIGHT_MPI_STATS=1, **environment)
        self.assertEqual(code, 0, said)
        return said

    # T_DC says how many words a lock has, and where they lie.
    def test_the_lock_has_its_parameters(self):
        said = self.launch(self.PROFILE, WINDOW_LOCKS, "rma-rw")
        self.assertIn("2 ranks, lock rma-rw with T_DC=1 T_R=64, lock_all groups\n", said)
        self.assertNotIn("ignored", said)

    def test_on_several_nodes(self):
        said = self.launch(self.PROFILE, WINDOW_LOCKS, "rma-rw", "", "global",
                           LOCKFLIGHT_MPI_NODES=2, **component(LAUNCHER))
        self.assertIn("lock rma-rw with T_DC=1 T_R=64, lock_all global\n", said)

    def test_other_locks_have_their_defaults(self):
        said = self.launch(self.PROFILE, HANG, LOCKFLIGHT_MPI_LOCK="d-mcs")
        self.assertIn("lock d-mcs, lock_all groups\n", said)

    def test_one_that_cannot_be_used_is_warned_of_once(self):
        for text, reason in [
                ("format = 1\n[rma-rw.parameters]\nT_R = 0\n",
                 r":3: rma-rw\.parameters\.T_R '0' \(accepted: a whole number, 1 to \d+\)\n"),
                ("formation", r":1: .+\n")]:
            said = self.launch(text, HANG, LOCKFLIGHT_MPI_LOCK="rma-rw")
            self.assertRegex(said, r"lockflight: LOCKFLIGHT_PROFILE is ignored: .*" + reason)
            self.assertEqual(said.count("ignored"), 1, said)
            self.assertIn("lock rma-rw, lock_all groups\n", said)

    def test_one_that_is_not_there(self):
        code, out, said = launch(2, HANG, LOCKFLIGHT_PROFILE="/nowhere.toml")
        self.assertEqual((code, out), (0, ""))
        self.assertEqual(said.count("LOCKFLIGHT_PROFILE is ignored: '/nowhere.toml' (accepted: a "
                                    "profile that can be read: No such file or directory)"), 1, said)


@same_with_mpich
class BadInput(unittest.TestCase):
    def test_an_unknown_lock_is_warned_of_once(self):
        for environment, arguments in [({"LOCKFLIGHT_MPI_LOCK": "spinn"}, []), ({}, ["spinn"])]:
            code, _, said = launch(2, HANG if environment else WINDOW_LOCKS, *arguments,
                                   **environment)
            # The program asks for the lock by name and finds the default: its own check fails.
            self.assertEqual(code == 0, bool(environment))
            warnings = [line for line in said.splitlines() if line.startswith("lockflight:")]
            self.assertEqual(len(warnings), 1, said)
            self.assertIn("'spinn'", warnings[0])
            self.assertIn("(accepted: spin, ", warnings[0])

    def test_an_unknown_mode_is_warned_of_though_the_lock_goes_before_it(self):
        code, _, said = launch(2, WINDOW_LOCKS, "d-mcs", "fairish")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("passive_sync_mode 'fairish' is ignored"), 1, said)
        self.assertIn("(accepted: writer-precedence, reader-precedence, fair,", said)

    def test_an_unknown_way_to_lock_all_is_warned_of_once(self):
        for environment, arguments in [({"LOCKFLIGHT_MPI_LOCK_ALL": "globe"}, []),
                                       ({}, ["", "", "globe"])]:
            code, _, said = launch(2, HANG if environment else WINDOW_LOCKS, *arguments,
                                   **environment)
            # As above: the program that asks by name finds the default.
            self.assertEqual(code == 0, bool(environment))
            warnings = [line for line in said.splitlines() if line.startswith("lockflight:")]
            self.assertEqual(len(warnings), 1, said)
            self.assertIn("'globe' is ignored; the default is groups (accepted: groups, global, mpi)",
                          warnings[0])

    def test_each_argument_is_warned_of(self):
        code, _, said = launch(2, HANG, LOCKFLIGHT_MPI_LOCK_ALL="globe", LOCKFLIGHT_MPI_LOCK="spinn")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("lockflight: "), 2, said)

    def test_seconds_that_are_none(self):
        code, _, said = launch(2, HANG, LOCKFLIGHT_MPI_HANG="soon")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("LOCKFLIGHT_MPI_HANG 'soon'"), 1, said)

    def test_off(self):
        code, out, said = launch(2, HANG, LOCKFLIGHT_MPI_OFF=1, LOCKFLIGHT_MPI_STATS=1)
        self.assertEqual((code, out, said), (0, "", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
