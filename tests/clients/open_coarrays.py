"""OpenCoarrays, the coarrays of gfortran: its library on MPI windows and its own tests. Its CMakeLists.txt
say how each program is compiled, and with how many images it is run."""

import re
import shutil

from client import Launch

# Programs that its CMakeLists.txt make by add_executable.
WITH_MODULES = {
    "co_heat": ["coarrayHeatSimplified/local_field.f90", "coarrayHeatSimplified/global_field.f90",
                "coarrayHeatSimplified/main.f90"],
    "coarray_burgers_pde": ["library/object_interface.F90", "library/ForTrilinos_assertion_utility.F90",
                            "library/co_object_interface.F90", "coarrayBurgers/local_field.F90",
                            "coarrayBurgers/global_field.F90", "coarrayBurgers/main.F90"],
}
LIMIT_S = 20
DEFINED = ["-DPREFIX_NAME=_gfortran_caf_", "-DGCC_GE_7", "-DGCC_GE_8", "-DHAVE_MPI",
           "-DMPI_WORKING_MODULE"]


def build(builder):
    runtime = builder.source / "src/runtime-libraries"
    flags = ["-g", "-O1", "-w", *DEFINED]
    in_c = [*flags, f"-I{builder.source}/src", f"-I{runtime}"]
    if builder.mpi == "openmpi":
        in_c.append("-DHAVE_MPI_EXT_H")
    coarrays = ["-fcoarray=lib", *flags]
    library = builder.library(
        "libcaf.a", [runtime / "mpi/mpi_caf.c", runtime / "common/caf_auxiliary.c"], *in_c)
    tests = builder.source / "src/tests"
    shared = [builder.object(source, *coarrays) for source in [
        runtime / "mpi/opencoarrays.F90", tests / "utilities/opencoarrays_object_interface.f90",
        tests / "utilities/oc_assertions_interface.F90",
        tests / "utilities/oc_assertions_implementation.F90"]]
    words = [*coarrays, f"-I{builder.folder}", *shared, library]
    solvers = tests / "integration/pde_solvers"
    shutil.copy(solvers / "include-files/gfortran_capabilities.txt",
                builder.folder / "compiler_capabilities.txt")
    recipes = {name: ([solvers / source for source in sources], words)
               for name, sources in WITH_MODULES.items()}
    for listing in sorted(tests.rglob("CMakeLists.txt")):
        for name, source in re.findall(r"^\s*caf_compile_executable\(\s*(\S+)\s+(\S+?)\s*\)",
                                       listing.read_text("utf-8"), re.MULTILINE):
            recipes[name] = ([listing.parent / source], words)
    wanted = {launch.program for launch in launches(builder.source, builder.mpi)}
    builder.programs({name: recipe for name, recipe in sorted(recipes.items()) if name in wanted})


def launches(source, _mpi):
    """The lines add_caf_test, with two ranks or with four."""
    found = []
    for images, program, arguments in re.findall(
            r"^\s*add_caf_test\(\s*\S+\s+(\d+)\s+([^\s)]+)([^)\n]*)\)",
            (source / "CMakeLists.txt").read_text("utf-8"), re.MULTILINE):
        # Collective calls use no windows, and images that fail are no part of the default build.
        if program.startswith(("co_min", "co_max", "co_sum", "co_broadcast", "co_reduce", "image_")):
            continue
        launch = Launch(program, 2 if int(images) <= 2 else 4, tuple(arguments.split()), LIMIT_S)
        if launch not in found:
            found.append(launch)
    return found
