"""What tests must know of the MPI that they run on."""

import os

# Of the drop-in on one host, as its statistics name it.
DEFAULT_LOCK = "flight-rw"


def is_mpich(drop_in):
    """Whether it is MPICH, or one that descends from it: all but Open MPI, so far."""
    return os.path.basename(os.path.dirname(drop_in)) != "openmpi"


def component(launcher):
    """The environment for windows between nodes of one machine, where Open MPI 4.1's osc/rdma
    crashes (docs/mpi-details.md). Open MPI 5 has no osc/pt2pt."""
    is_open_mpi_4 = any(word.endswith("mpirun.openmpi") for word in launcher)
    return {"OMPI_MCA_osc": "sm,pt2pt"} if is_open_mpi_4 else {}
