#!/usr/bin/env python3
"""The contract's suite and every lock's stress, over hosts: the binaries of tests/mpi."""

import json
import os
import unittest

import support
import testbed

BINARIES = testbed.ROOT / "build" / "tests" / "mpi"

# (MPI, hosts, ranks on each). With Open MPI an operation between hosts takes 5 ms, and the suites
# take minutes.
SHAPES = [("mpich", 2, 1), ("mpich", 2, 2)]


@unittest.skipUnless(os.environ.get("LOCKFLIGHT_LONG_TESTS"),
                     "long: MPICH 4.0 over TCP may hang in MPI_Finalize (docs/mpi.md)")
class Locks(unittest.TestCase):
    def run_over_hosts(self, what):
        for mpi, hosts, each in SHAPES:
            with self.subTest(mpi=mpi, hosts=hosts, ranks_on_each=each), \
                    testbed.Hosts(hosts) as bed:
                launch = bed.launch(mpi, each, [str(BINARIES / f"mpi_{what}_{mpi}")],
                                    **support.captured)
                code, out, err = support.finished(launch, 600)
                self.assertEqual(code, 0, out[-4000:] + err[-4000:])
                self.assertIn("[  PASSED  ]", out)

    def test_contract(self):
        self.run_over_hosts("contract")

    def test_stress(self):
        self.run_over_hosts("lock")


class Program(unittest.TestCase):
    """What a user would try first."""

    def test_open_mpi_makes_windows_over_tcp(self):
        with testbed.Hosts(2) as bed:
            launch = bed.launch("openmpi", 1, [support.program("openmpi"), "bench", "--fabric",
                                               "mpi", "--lock", "d-mcs,flight-rw", "--ops", "20",
                                               "--json", "-"], **support.captured)
            code, out, err = support.finished(launch)
            self.assertEqual((code, err), (0, ""), out)
            runs = json.loads(out)["runs"]
            self.assertEqual([(r["lock"], r["procs"], r["violations"]) for r in runs],
                             [("d-mcs", 2, 0), ("flight-rw", 2, 0)])

    def test_a_component_without_windows_is_named_with_what_helps(self):
        with testbed.Hosts(2) as bed:
            launch = bed.launch("openmpi", 1, [support.program("openmpi"), "doctor", "--fabric",
                                               "mpi"], environment=["OMPI_MCA_osc=rdma"],
                                **support.captured)
            code, out, _ = support.finished(launch)
            self.assertEqual(code, 1)
            self.assertIn("OMPI_MCA_osc=sm,pt2pt", out)


if __name__ == "__main__":
    support.main()
