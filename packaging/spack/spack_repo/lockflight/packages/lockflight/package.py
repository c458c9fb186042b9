"""How Spack builds lockflight. In a clone:

spack repo add packaging/spack/spack_repo/lockflight
spack dev-build lockflight@main
"""

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Lockflight(CMakePackage):
    """Distributed locks over shared memory and one-sided networks, a drop-in for MPI_Win_lock, and
    named locks for processes that come, go and die."""

    # The sources are the clone that this file is a part of: its branch `main`, or with dev-build its
    # files as they are.
    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("shared", default=True, description="Shared libraries for C and Fortran")
    variant("programs", default=True,
            description="The program lockflight and, with an MPI, the drop-in for MPI_Win_lock")
    variant("agent", default=False, when="+programs", description="The agent of clusters")
    variant("fortran", default=True, description="The library for Fortran")
    variant("mpi", default=True, description="The libraries on MPI, and the drop-in")
    variant("ucx", default=False, description="The libraries on UCX")
    variant("libfabric", default=False, description="The libraries on libfabric")
    variant("openshmem", default=False, description="The libraries on Open MPI's OpenSHMEM")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("hwloc@2:")
    depends_on("tomlplusplus@3.2:")
    depends_on("fmt@9:", when="+programs")
    depends_on("nlohmann-json@3.11:", type="build", when="+programs")
    depends_on("asio@1.22:", type="build", when="+agent")
    depends_on("curl@7.68:", when="+agent")
    depends_on("openssl@3:", when="+agent")

    depends_on("mpi@3:", when="+mpi")
    requires("^[virtuals=mpi] openmpi@4:", "^[virtuals=mpi] mpich@4:", policy="one_of", when="+mpi",
             msg="lockflight is built with Open MPI or MPICH; its drop-in for MPICH also serves the "
                 "MPIs that have MPICH's binary interface")
    depends_on("ucx@1.13:", when="+ucx")
    depends_on("libfabric@1.17:", when="+libfabric")
    depends_on("pmix@4:", when="+ucx")
    depends_on("pmix@4:", when="+libfabric")
    depends_on("openmpi+openshmem", when="+openshmem")

    def cmake_args(self):
        args = [
            # A part that lacks what it needs is an error, and not left out.
            self.define("LOCKFLIGHT_REQUIRE_ALL", True),
            self.define("LOCKFLIGHT_EXAMPLES", False),
            self.define("LOCKFLIGHT_TESTS", False),
            # pip installs the Python package, from its own sources.
            self.define("LOCKFLIGHT_PYTHON", False),
            # It needs Chart.js, which Spack has not.
            self.define("LOCKFLIGHT_LAB", False),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("LOCKFLIGHT_PROGRAM", "programs"),
            self.define("LOCKFLIGHT_AGENT", self.spec.satisfies("+agent")),
            self.define_from_variant("LOCKFLIGHT_FORTRAN", "fortran"),
            self.define_from_variant("LOCKFLIGHT_MPI", "mpi"),
            self.define_from_variant("LOCKFLIGHT_UCX", "ucx"),
            self.define_from_variant("LOCKFLIGHT_LIBFABRIC", "libfabric"),
            self.define_from_variant("LOCKFLIGHT_OSHMEM", "openshmem"),
        ]
        if self.spec.satisfies("+mpi"):
            mpi = "openmpi" if self.spec["mpi"].name == "openmpi" else "mpich"
            programs = self.spec["mpi"].prefix.bin
            args.append(self.define("LOCKFLIGHT_MPIS", mpi))
            args.append(self.define(f"LOCKFLIGHT_MPIRUN_{mpi}", join_path(programs, "mpirun")))
            if self.spec.satisfies("+fortran"):
                args.append(self.define(f"LOCKFLIGHT_MPIFORT_{mpi}", join_path(programs, "mpifort")))
        if self.spec.satisfies("+openshmem"):
            programs = self.spec["openmpi"].prefix.bin
            args.append(self.define("LOCKFLIGHT_OSHCC", join_path(programs, "oshcc")))
            args.append(self.define("LOCKFLIGHT_OSHRUN", join_path(programs, "oshrun")))
        return args
