"""A build as packagers make it: with BUILD_SHARED_LIBS=OFF, with parts left out, into a prefix of its
own, and without a network. What is missing is an error, and so are values that are not accepted.

usage: options_test.py [MPI...]    those that are installed, of openmpi and mpich
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from spack_recipe import Recipe

SOURCES = os.environ["LOCKFLIGHT_SOURCE_DIR"]
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(SOURCES, "examples")
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
MPIS = sys.argv[1:]
# The libraries on shared memory, and nothing that needs another library.
SMALL = ["-DLOCKFLIGHT_PROGRAM=OFF", "-DLOCKFLIGHT_MPI=OFF", "-DLOCKFLIGHT_UCX=OFF",
         "-DLOCKFLIGHT_LIBFABRIC=OFF", "-DLOCKFLIGHT_OSHMEM=OFF", "-DLOCKFLIGHT_FORTRAN=OFF",
         "-DLOCKFLIGHT_PYTHON=OFF", "-DLOCKFLIGHT_EXAMPLES=OFF", "-DLOCKFLIGHT_REQUIRE_ALL=ON"]


class Options(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockflight-options-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = os.path.join(self.folder, "prefix")

    def run_in(self, command, **more):
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=900,
                              cwd=self.folder, **more)

    def checked(self, command, **more):
        done = self.run_in(command, **more)
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def configure(self, *options, tree=SOURCES):
        return ["cmake", "-G", "Ninja", "-S", tree, "-B", os.path.join(self.folder, "build"),
                f"-DCMAKE_INSTALL_PREFIX={self.prefix}", *options]

    def refused(self, *options):
        done = self.run_in(self.configure(*options))
        self.assertNotEqual(done.returncode, 0)
        return " ".join(done.stderr.split())

    def test_what_is_not_accepted(self):
        said = self.refused(*SMALL, "-DLOCKFLIGHT_MPI=ON", "-DLOCKFLIGHT_MPIS=lam")
        self.assertIn("LOCKFLIGHT_MPIS=lam: 'lam' is not one of openmpi, mpich", said)

    def test_what_is_missing(self):
        missing = ["-DLOCKFLIGHT_OSHMEM=ON", "-DLOCKFLIGHT_OSHCC=/nonexistent/oshcc"]
        said = self.refused(*SMALL, *missing)
        self.assertIn("No OpenSHMEM", said)
        self.assertIn("LOCKFLIGHT_REQUIRE_ALL is ON", said)
        self.checked(self.configure(*SMALL, *missing, "-DLOCKFLIGHT_REQUIRE_ALL=OFF"))

    def test_there_is_one_version(self):
        found = {}
        for file, pattern in [("CMakeLists.txt", r"^  VERSION ([\d.]+)$"),
                              ("pyproject.toml", r'^version = "([\d.]+)"$'),
                              ("bindings/python/src/lockflight/__init__.py", r'^__version__ = "([\d.]+)"$')]:
            with open(os.path.join(SOURCES, file), encoding="utf-8") as text:
                found[file] = re.findall(pattern, text.read(), re.MULTILINE)
        self.assertEqual([len(versions) for versions in found.values()], [1, 1, 1], found)
        self.assertEqual(len({versions[0] for versions in found.values()}), 1, found)

    def test_the_product_without_the_laboratory(self):
        """The libraries, the drop-in, named locks, the agent and lockflight, where there is no lab/."""
        tree = os.path.join(self.folder, "tree")
        os.mkdir(tree)
        for name in ["CMakeLists.txt", "LICENSE", "NOTICE", "bindings", "cmake", "include", "packaging", "src"]:
            os.symlink(os.path.join(SOURCES, name), os.path.join(tree, name))
        self.checked(self.configure("-DLOCKFLIGHT_LAB=OFF", "-DLOCKFLIGHT_EXAMPLES=OFF", "-DLOCKFLIGHT_PYTHON=OFF",
                                    "-DLOCKFLIGHT_TESTS=OFF", tree=tree))
        # Without --all nothing is compiled: that each file of the build exists is seen so as well.
        planned = self.checked(["cmake", "--build", "build", *([] if LONG else ["--", "-n", "-v"])])
        self.assertNotRegex(planned, r"\blab/|lockflight-lab")
        if LONG:
            program = os.path.join(self.folder, "build", "lockflight")
            self.assertIn("lockflight ", self.checked([program, "--version"]))
            self.assertEqual(self.run_in([program, "bench"]).returncode, 3)

    # Spack itself is not asked: whether the recipe's options are options of the tree, and complete.
    def test_the_options_of_the_spack_recipe(self):
        recipe = Recipe()
        folder = os.path.join(self.folder, "mpi")
        for mpi in MPIS:
            # As Spack installs an MPI: its programs have their usual names.
            programs = os.path.join(folder, mpi)
            os.makedirs(programs)
            for program in ["mpirun", "mpifort", "oshcc", "oshrun"]:
                found = shutil.which(f"{program}.{mpi}") or shutil.which(program)
                if found:
                    os.symlink(found, os.path.join(programs, program))
            little = dict.fromkeys(["mpi", "fortran", "programs"], False)
            for variants in [{}, little]:
                with self.subTest(mpi=mpi, variants=variants):
                    options = recipe.options(mpi, programs, variants)
                    done = self.run_in([*self.configure(*options), "--fresh"])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    # CMake calls options of parts unused that are left out.
                    if variants != little:
                        self.assertNotIn("not used by the project", done.stderr)
            done = self.run_in([*self.configure(*recipe.options(mpi, programs, {})), "-DLOCKFLIGHT_LAP=OFF"])
            self.assertIn("not used by the project", done.stderr, "nothing would be noticed")

    @unittest.skipUnless(LONG, "./dev test --all")
    def test_static_libraries(self):
        mpi = ["-DLOCKFLIGHT_MPI=ON", f"-DLOCKFLIGHT_MPIS={MPIS[0]}"] if MPIS else []
        self.checked(self.configure(*SMALL, *mpi, "-DBUILD_SHARED_LIBS=OFF",
                                    "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_INSTALL_LIBDIR=lib/some"))
        # As root, in a namespace that has no network.
        alone = ["unshare", "--net"] if os.geteuid() == 0 else []
        self.checked([*alone, "cmake", "--build", "build"])
        self.checked([*alone, "cmake", "--install", "build"])
        libraries = os.listdir(os.path.join(self.prefix, "lib", "some"))
        self.assertIn("liblockflight.a", libraries)
        self.assertFalse([name for name in libraries if ".so" in name])

        there = dict(os.environ, PKG_CONFIG_PATH=f"{self.prefix}/lib/some/pkgconfig")
        flags = self.checked(["pkg-config", "--cflags", "--libs", "lockflight"], env=there).split()
        self.checked(["gcc", os.path.join(EXAMPLES, "counter.c"), *flags, "-o", "counter"])
        self.assertEqual(self.checked([os.path.join(self.folder, "counter")]), "4000\n")
        # The library on an MPI shares files with the other one: each must be in one of them.
        for mpi in MPIS[:1]:
            flags = self.checked(["pkg-config", "--cflags", "--libs", f"lockflight-{mpi}"],
                                 env=there).split()
            self.checked(["gcc", os.path.join(EXAMPLES, "mpi", "counter.c"), *flags, "-o", "on_mpi"])

        self.checked(["cmake", "-G", "Ninja", "-S", os.path.join(HERE, "project"), "-B", "user",
                      f"-DEXAMPLES={EXAMPLES}",
                      f"-Dlockflight_DIR={self.prefix}/lib/some/cmake/lockflight"])
        self.checked(["cmake", "--build", "user"])
        for name in ["counter", "first", "named"]:
            out = self.checked([os.path.join(self.folder, "user", name)])
            self.assertIn("4000", out.split(), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
