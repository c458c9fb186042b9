"""The one-sided programs of the Parallel Research Kernels (PRK). Each checks its result."""

from client import Launch

# What the launches of scripts/small/runmpirma and runmpishm have as arguments, with smaller sizes.
LAUNCHES = [
    ("rma_stencil", "10 400"),
    ("rma_p2p", "4 100 20"),
    # The fourth argument chooses fences (0), flushes in lock_all, or a lock of each target.
    *(("rma_transpose", f"10 400 64 {passive} {local} {bundle}")
      for passive, local, bundle in [(0, 0, 1), (1, 0, 1), (1, 1, 2), (2, 0, 1)]),
    ("shm_stencil", "2 10 400"),
    ("shm_p2p", "4 100 20"),
    ("shm_transpose", "2 10 400 64"),
    ("cxx_transpose-get-mpi", "10 400"),
    ("cxx_nstream-mpi", "10 100000"),
    ("fortran_transpose-get-mpi", "10 400"),
    ("fortran_transpose-acc-mpi", "10 400"),
]
SOURCES = {
    "rma_stencil": "MPIRMA/Stencil/stencil.c",
    "rma_p2p": "MPIRMA/Synch_p2p/p2p.c",
    "rma_transpose": "MPIRMA/Transpose/transpose.c",
    "shm_stencil": "MPISHM/Stencil/stencil.c",
    "shm_p2p": "MPISHM/Synch_p2p/p2p.c",
    "shm_transpose": "MPISHM/Transpose/transpose.c",
    "cxx_transpose-get-mpi": "Cxx11/transpose-get-mpi.cc",
    "cxx_nstream-mpi": "Cxx11/nstream-mpi.cc",
    "fortran_transpose-get-mpi": "FORTRAN/transpose-get-mpi.F90",
    "fortran_transpose-acc-mpi": "FORTRAN/transpose-acc-mpi.F90",
}
# The defaults of the Makefiles of MPIRMA and MPISHM.
DEFINED = ["-DMPI", "-DVERBOSE=0", "-DRESTRICT_KEYWORD=0", "-DRADIUS=2", "-DLOOPGEN=0", "-DDOUBLE=1",
           "-DSTAR=1", "-DLONG_IS_64BITS", "-DPRKVERSION=\"pinned\""]


def build(builder):
    source = builder.source
    flags = ["-g", "-O1", "-w"]
    in_c = [*flags, *DEFINED, f"-I{source}/include"]
    common = [builder.object(source / f"common/{name}.c", *in_c) for name in ("MPI_bail_out", "wtime")]
    fortran = [builder.object(source / f"FORTRAN/{name}.F90", *flags) for name in ("prk_mod", "prk_mpi")]
    ways = {".c": [*in_c, *common, "-lm"],
            ".cc": [*flags, "-std=c++17", f"-I{source}/Cxx11", "-DPRKVERSION=\"pinned\""],
            ".F90": [*flags, f"-I{builder.folder}", *fortran]}
    builder.programs({name: ([source / path], ways[(source / path).suffix])
                      for name, path in SOURCES.items()})


def launches(_source, _mpi):
    return [Launch(program, ranks, tuple(arguments.split()))
            for program, arguments in LAUNCHES for ranks in (2, 4)]
