// The shared library of the MPI that is behind the drop-in.
#pragma once

namespace lockflight::mpi_preload {

/// Makes the MPI's functions reachable: by dlsym(RTLD_NEXT), and for the calls of this library,
/// which names no MPI that it needs. Does nothing if they are so already. A program that has loaded
/// its MPI by dlopen, as Python does, may have kept its names local. The standard's binary
/// interface lets an MPI have PMPI_X in a library of its own, libpmpi_abi.
///
/// Ends the process with exit code 3, and one line that names the library to take instead, if the
/// MPI has another binary interface than this library. An MPI that is loaded with the program is
/// refused when the process begins, since one that has been initialised would leave files behind.
void reach_mpi();

/// The start of the shared library that a function is in; null if there is none.
[[nodiscard]] const void* start_of_library(const void* function);

/// The file of this library, as it was loaded.
[[nodiscard]] const char* own_file();

}  // namespace lockflight::mpi_preload
