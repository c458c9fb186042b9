"""One drop-in serves every MPI that has its binary interface, and refuses others.

usage: interface_test.py DLOPENED SANITIZED OWN [OTHER...]

SANITIZED is unlocks.c with AddressSanitizer, for OWN; none where the compiler has none.

OWN and each OTHER is the name of an MPI, which `of` begins: of NAME DROP_IN UNLOCKS MODULE
LAUNCHER... UNLOCKS is the program unlocks.c, and MODULE the same as a module to load.
"""

import json
import os
import subprocess
import sys
import unittest

DLOPENED, SANITIZED, *REST = sys.argv[1:]
PROGRAM = os.environ["LOCKFLIGHT_PROGRAM"]
RANKS = 2
LOCKS = 15 * RANKS  # of each kind, in unlocks.c


class Mpi:
    def __init__(self, name, drop_in, unlocks, module, *launcher):
        self.name, self.drop_in, self.unlocks, self.module = name, drop_in, unlocks, module
        self.launcher = launcher

    def launch(self, *command, preload):
        """Exit code, and standard error."""
        done = subprocess.run(
            [*self.launcher, str(RANKS), "env", f"LD_PRELOAD={preload}", "LOCKFLIGHT_MPI_STATS=1",
             *command], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr


def mpis(words):
    begins = [i for i, word in enumerate(words) if word == "of"] + [len(words)]
    return [Mpi(*words[a + 1:b]) for a, b in zip(begins, begins[1:])]


OWN, *OTHERS = mpis(REST)


class Interface(unittest.TestCase):
    def serves(self, *command):
        code, said = OWN.launch(*command, preload=OWN.drop_in)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, rf"exclusive +{LOCKS} ")
        self.assertRegex(said, rf"shared +{LOCKS} ")

    def test_its_programs(self):
        self.serves(OWN.unlocks)

    @unittest.skipIf(OWN.name == "openmpi", "Open MPI's own parts need its names to be global")
    def test_an_mpi_whose_names_are_local(self):
        self.serves(DLOPENED, OWN.module)

    @unittest.skipIf(OWN.name == "openmpi", "Open MPI's handles are variables of its library")
    def test_it_needs_no_mpi_by_name(self):
        said = subprocess.run(["readelf", "--dynamic", OWN.drop_in], capture_output=True, text=True,
                              check=True).stdout
        needed = [line for line in said.splitlines() if "(NEEDED)" in line]
        self.assertTrue(needed)
        self.assertNotIn("mpi", " ".join(needed))

    def test_a_process_without_mpi(self):
        done = subprocess.run(["env", f"LD_PRELOAD={OWN.drop_in}", "sh", "-c", "echo fine"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "fine\n", ""))

    def test_doctor_names_it(self):
        for program, fits in [(OWN.unlocks, True), (OWN.module, True), (DLOPENED, False)]:
            with self.subTest(program):
                done = subprocess.run([PROGRAM, "doctor", "--program", program, "--json", "-"],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0 if fits else 1, done.stderr)
                found = json.loads(done.stdout)
                self.assertEqual((found["fits"], found["preload"]),
                                 (fits, OWN.drop_in if fits else ""))

    # The compiler's library of AddressSanitizer wants to be the first that is loaded.
    @unittest.skipIf(SANITIZED == "none", "this build has no AddressSanitizer for programs")
    def test_a_program_with_address_sanitizer(self):
        done = subprocess.run([PROGRAM, "doctor", "--program", SANITIZED, "--json", "-"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        is_first = found["preload"] != OWN.drop_in
        self.assertEqual("AddressSanitizer" in found["advice"], is_first)
        code, said = OWN.launch("env", "ASAN_OPTIONS=detect_leaks=0", SANITIZED,
                                preload=OWN.drop_in)
        self.assertEqual(code != 0, is_first, said)
        # A process without MPI, such as the launcher's, finds no leak in itself.
        self.serves("env", "ASAN_OPTIONS=detect_leaks=0", f"LD_PRELOAD={found['preload']}",
                    SANITIZED)

    def test_it_refuses_programs_of_others(self):
        for other in OTHERS:
            with self.subTest(other.name):
                code, said = other.launch(other.unlocks, preload=OWN.drop_in)
                self.assertEqual(code, 3, said)
                lines = [line for line in said.splitlines() if line.startswith("lockflight: ")]
                self.assertTrue(1 <= len(lines) <= RANKS, said)  # the launcher may end the second
                self.assertIn(f"preload {other.drop_in} instead of {OWN.drop_in}", lines[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
