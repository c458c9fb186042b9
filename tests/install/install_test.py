"""What `cmake --install` leaves is enough for others: for CMake, for pkg-config, in C++, C, Fortran,
under each MPI, on UCX, libfabric and OpenSHMEM, and from another place than it was installed to.

usage: install_test.py BUILD FORTRAN "ucx;libfabric" [MPI|oshmem LAUNCHER-WORD... --]...

If BUILD is --in=PREFIX, what is tested is what lies there, as a package manager has installed it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCES = os.environ["LOCKFLIGHT_SOURCE_DIR"]
EXAMPLES = os.path.join(SOURCES, "examples")
BUILD, FORTRAN, WIRED, *REST = sys.argv[1:]
HAS_FORTRAN = FORTRAN == "1"
ON_WIRED = [name for name in WIRED.split(";") if name]
HAS_UCX = "ucx" in ON_WIRED
LONG = "LOCKFLIGHT_LONG_TESTS" in os.environ
PREFIX = BUILD[len("--in="):] if BUILD.startswith("--in=") else None


def launchers_of(words):
    """{"openmpi": [command up to the number of ranks], …}"""
    found = {}
    while words:
        end = words.index("--")
        found[words[0]] = words[1:end]
        words = words[end + 1:]
    return found


LAUNCHERS = launchers_of(REST)
ON_OSHMEM = LAUNCHERS.pop("oshmem", None)
OSHMEM = "1" if ON_OSHMEM else "0"
# Not an MPI, but started like one.
RENDEZVOUS = [sys.executable, "-B", os.path.join(SOURCES, "tests", "fabric", "wired", "launch")]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lockflight-install-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = PREFIX or os.path.join(cls.folder, "moved")
        if not PREFIX:
            first = os.path.join(cls.folder, "installed")
            cls.checked(["cmake", "--install", BUILD, "--prefix", first])
            os.rename(first, cls.prefix)
        found = {os.path.basename(name): name for name in cls.files()}
        cls.libraries = os.path.dirname(found["liblockflight_shm.a"])
        cls.modules = os.path.dirname(found["lockflight.pc"])

    @classmethod
    def files(cls):
        """What was installed, if nothing else is there; else what has the name of lockflight."""
        for where, _, files in os.walk(cls.prefix):
            for path in (os.path.join(where, name) for name in files):
                if not PREFIX or "lockflight" in os.path.relpath(path, cls.prefix):
                    yield path

    @classmethod
    def checked(cls, command, **more):
        """Standard output of a command that must be fine."""
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                              cwd=cls.folder, **more)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def prints_4000(self, program, launcher=None, **environment):
        """The examples count to 1000 on each of four ranks."""
        start = [*launcher, "4"] if launcher else []
        out = self.checked([*start, program], env=dict(os.environ, **environment))
        self.assertIn("4000", out.split())

    # ---- CMake ----

    def configure(self, build, *options):
        build = os.path.join(self.folder, build)
        self.checked(["cmake", "-G", "Ninja", "-B", build, "-S",
                      os.path.join(os.path.dirname(os.path.abspath(__file__)), "project"),
                      f"-DEXAMPLES={EXAMPLES}", *options])
        return build

    def test_find_package(self):
        here = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        build = self.configure("found", here, f"-DMPIS={';'.join(LAUNCHERS)}",
                               f"-DWIRED={WIRED}", f"-DOSHMEM={OSHMEM}")
        self.checked(["cmake", "--build", build])
        for name in ["first", "named", "tuned", "counter"] + ["counter_fortran"] * HAS_FORTRAN:
            self.prints_4000(os.path.join(build, name))
        for name in [*(f"{fabric}_first" for fabric in ON_WIRED), *["ucx_counter"] * HAS_UCX]:
            self.prints_4000(os.path.join(build, name), RENDEZVOUS)
        if ON_OSHMEM:
            for name in ["shmem_shared_counts", "shmem_shared_counts_c"]:
                self.prints_4000(os.path.join(build, name), ON_OSHMEM)
        for mpi in LAUNCHERS:
            for name in ["mpi_first", "mpi_counter"]:
                self.prints_4000(os.path.join(build, f"{name}_{mpi}"), LAUNCHERS[mpi])
            if HAS_FORTRAN:
                program = os.path.join(build, f"mpi_shared_table_{mpi}")
                self.assertIn("always whole", self.checked([*LAUNCHERS[mpi], "4", program]))
        with self.assertRaisesRegex(AssertionError, r"component 'telegraph' \(accepted"):
            self.configure("found", here, "-DMPIS=telegraph")

    # The build contains all of it; compiling it is the build's own test.
    @unittest.skipIf(PREFIX, "a matter of the sources")
    def test_add_subdirectory(self):
        for options in [[], ["-DLOCKFLIGHT_C=ON", "-DLOCKFLIGHT_MPI=ON",
                             *(f"-DLOCKFLIGHT_{fabric.upper()}=ON" for fabric in ON_WIRED),
                             f"-DMPIS={';'.join(LAUNCHERS)}", f"-DWIRED={WIRED}",
                             f"-DLOCKFLIGHT_OSHMEM={OSHMEM}", f"-DOSHMEM={OSHMEM}"]]:
            build = self.configure("added", f"-DADDED={SOURCES}", *options)
            known = self.checked(["ninja", "-C", build, "-t", "targets", "all"])
            self.assertIn("/liblockflight_shm.a:", known)
            self.assertEqual("/liblockflight.so:" in known, bool(options))
            for fabric in ON_WIRED:
                self.assertEqual(f"/liblockflight_{fabric}.a:" in known, bool(options))
            self.assertEqual("/liblockflight_oshmem.a:" in known,
                             ON_OSHMEM is not None and bool(options))
            for mpi in LAUNCHERS:
                self.assertEqual(f"/liblockflight_{mpi}.so:" in known, bool(options))

    # ---- pkg-config alone ----
    #
    # The programs in C++ are compiled and linked above as well: once more for shared memory, and for
    # the networks with ./dev test --all.

    def flags(self, what, module):
        return self.checked(["pkg-config", what, module],
                            env=dict(os.environ, PKG_CONFIG_PATH=self.modules)).split()

    def compiled(self, compiler, source, module, output):
        program = os.path.join(self.folder, output)
        self.checked([*compiler, os.path.join(EXAMPLES, source), *self.flags("--cflags", module),
                      *self.flags("--libs", module), "-o", program])
        return program

    def test_pkg_config(self):
        # Programs in C++ need no library of lockflight at run time; the others find it like this.
        self.prints_4000(self.compiled(["g++", "-std=c++20"], "tuned.cpp", "lockflight", "tuned"))
        self.prints_4000(self.compiled(["g++", "-std=c++20"], "named.cpp", "lockflight", "named"))
        there = {"LD_LIBRARY_PATH": self.libraries}
        self.prints_4000(self.compiled(["gcc"], "counter.c", "lockflight", "c"), **there)
        if HAS_FORTRAN:
            self.prints_4000(
                self.compiled(["gfortran"], "counter_fortran.f90", "lockflight", "fortran"), **there)

    def test_pkg_config_on_wired_fabrics(self):
        for fabric in ON_WIRED if LONG else []:
            self.prints_4000(self.compiled(["g++", "-std=c++20"], f"{fabric}/first.cpp",
                                           f"lockflight-{fabric}", f"cpp-{fabric}"), RENDEZVOUS)
        if HAS_UCX:
            self.prints_4000(self.compiled(["gcc"], "ucx/counter.c", "lockflight-ucx", "c-ucx"),
                             RENDEZVOUS, LD_LIBRARY_PATH=self.libraries)

    @unittest.skipUnless(ON_OSHMEM, "built without OpenSHMEM")
    def test_pkg_config_on_oshmem(self):
        if LONG:
            self.prints_4000(self.compiled(["g++", "-std=c++20"], "shmem/shared_counts.cpp",
                                           "lockflight-oshmem", "cpp-oshmem"), ON_OSHMEM)
        self.prints_4000(self.compiled(["gcc"], "shmem/shared_counts.c", "lockflight-oshmem",
                                       "c-oshmem"), ON_OSHMEM, LD_LIBRARY_PATH=self.libraries)

    @unittest.skipUnless(LONG, "./dev test --all")
    def test_pkg_config_on_mpi(self):
        there = {"LD_LIBRARY_PATH": self.libraries}
        # Compiled once for all MPIs.
        compiled = os.path.join(self.folder, "mpi_first.o")
        self.checked(["g++", "-std=c++20", "-c", os.path.join(EXAMPLES, "mpi", "first.cpp"),
                      *self.flags("--cflags", "lockflight"), "-o", compiled])
        for mpi in LAUNCHERS:
            with self.subTest(mpi):
                module = f"lockflight-{mpi}"
                linked = os.path.join(self.folder, f"cpp-{mpi}")
                self.checked(["g++", compiled, *self.flags("--libs", module), "-o", linked])
                self.prints_4000(linked, LAUNCHERS[mpi])
                self.prints_4000(self.compiled(["gcc"], "mpi/counter.c", module, f"c-{mpi}"),
                                 LAUNCHERS[mpi], **there)
                if HAS_FORTRAN:
                    self.prints_4000(self.compiled([f"mpifort.{mpi}"], "mpi/counter_f08.f90", module,
                                                   f"fortran-{mpi}"), LAUNCHERS[mpi], **there)

    # ---- what else is there ----

    def test_programs_run(self):
        networks = [*LAUNCHERS, *ON_WIRED, *["oshmem"] * bool(ON_OSHMEM)]
        for name in ["lockflight", *(f"lockflight.{network}" for network in networks)]:
            program = os.path.join(self.prefix, "bin", name)
            self.assertRegex(self.checked([program, "--version"]), r"^lockflight \d")
            # Each finds its lab.
            out = self.checked([program, "bench", "--lock", "spin", "--procs", "1", "--ops", "10"])
            self.assertIn("ecsb on shm", out)
        out = self.checked([os.path.join(self.prefix, "bin", "lockflight-lab"), "--version"])
        self.assertRegex(out, r"^lockflight-lab \d")

    def test_the_lab_of_each_mpi_is_found(self):
        for mpi, launcher in LAUNCHERS.items():
            with self.subTest(mpi):
                out = self.checked([*launcher, "2", os.path.join(self.prefix, "bin", f"lockflight.{mpi}"),
                                    "bench", "--fabric", "mpi", "--lock", "d-mcs", "--ops", "100"])
                self.assertIn("ecsb on mpi", out)

    def test_manual_pages_and_completions(self):
        for name in ["man/man1/lockflight.1", "man/man1/lockflight-lab.1",
                     "bash-completion/completions/lockflight",
                     "bash-completion/completions/lockflight-lab",
                     "zsh/site-functions/_lockflight", "zsh/site-functions/_lockflight_lab",
                     "fish/vendor_completions.d/lockflight.fish",
                     "fish/vendor_completions.d/lockflight-lab.fish"]:
            path = os.path.join(self.prefix, "share", name)
            if not os.path.exists(path):
                path += ".gz"  # as packages of Debian have it
            self.assertGreater(os.path.getsize(path), 1000, name)

    # Each component by itself leaves what LockflightInstall.cmake says, and together they leave all.
    @unittest.skipIf(PREFIX, "a matter of the build")
    def test_components(self):
        fabrics = [*LAUNCHERS, *ON_WIRED, *["oshmem"] * bool(ON_OSHMEM), "abi"]
        of_component = {}
        for name in ["programs", "runtime", "development", "python", *fabrics]:
            to = os.path.join(self.folder, f"component-{name}")
            self.checked(["cmake", "--install", BUILD, "--prefix", to, "--component", name])
            of_component[name] = {os.path.relpath(os.path.join(where, file), to)
                                  for where, _, files in os.walk(to) for file in files}
        every = {os.path.relpath(path, self.prefix) for path in self.files()}
        self.assertEqual(sum(map(len, of_component.values())), len(every))
        self.assertEqual(set().union(*of_component.values()), every)
        self.assertIn("bin/lockflight", of_component["programs"])
        self.assertTrue(all("/liblockflight.so." in f for f in of_component["runtime"]))
        self.assertIn("include/lockflight/lockflight.h", of_component["development"])
        for name in [*LAUNCHERS, *ON_WIRED]:
            self.assertIn(f"bin/lockflight.{name}", of_component[name])
            self.assertTrue(any(f.endswith(f"lockflight-{name}.pc") for f in of_component[name]))

    def test_the_program_finds_those_with_other_fabrics(self):
        for fabric in ON_WIRED + ["oshmem"] * bool(ON_OSHMEM):
            out = self.checked([os.path.join(self.prefix, "bin", "lockflight"), "bench", "--fabric",
                                fabric, "--lock", "d-mcs", "--ops", "100"])
            self.assertIn(f"ecsb on {fabric}", out)

    def test_the_drop_in_is_loaded(self):
        for mpi, launcher in LAUNCHERS.items():
            with self.subTest(mpi):
                drop_in = os.path.join(self.libraries, "lockflight", mpi, "liblockflight-mpi.so")
                out = self.checked([*launcher, "1", "env", f"LD_PRELOAD={drop_in}", "grep", "-m1", "-o",
                                    "liblockflight-mpi.so", "/proc/self/maps"])
                self.assertEqual(out.strip(), "liblockflight-mpi.so")

    def test_no_path_of_the_build_is_left(self):
        for name in self.files():
            if not re.search(r"\.(cmake|pc|h|hpp)$", name):
                continue
            with open(name, encoding="utf-8") as file:
                text = file.read()
            for folder in [SOURCES, self.folder] + [BUILD] * (not PREFIX):
                self.assertNotIn(folder, text, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
