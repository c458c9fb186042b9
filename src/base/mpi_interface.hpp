// The binary interfaces of MPI, by the names of the libraries that have them. A program and the
// drop-in must be compiled for the same one: handles are pointers in some and numbers in others.
#pragma once

#include <array>
#include <string_view>

namespace lockflight {

enum class mpi_interface { unknown, standard, mpich, open_mpi };

/// The description of a binary interface in messages to the user.
struct about_mpi_interface {
  mpi_interface is;
  std::string_view name;
  std::string_view library;  ///< of the MPIs that have it
  /// The drop-in for the interface, in the folder of a build, or in lib/lockflight if installed.
  std::string_view drop_in;
};
inline constexpr std::array<about_mpi_interface, 3> mpi_interfaces{{
    {mpi_interface::standard, "the standard ABI", "libmpi_abi.so.1",
     "abi/liblockflight-mpi-abi.so"},
    {mpi_interface::mpich, "the ABI of MPICH", "libmpi.so.12", "mpich/liblockflight-mpi.so"},
    {mpi_interface::open_mpi, "the ABI of Open MPI", "libmpi.so.40",
     "openmpi/liblockflight-mpi.so"},
}};

/// The entry of a known interface.
[[nodiscard]] constexpr const about_mpi_interface& details_of(mpi_interface one) {
  for (const about_mpi_interface& each : mpi_interfaces)
    if (each.is == one) return each;
  return mpi_interfaces.front();  // not reached: `unknown` has no entry
}

/// The interface that a shared library has for C, by its name in DT_SONAME or DT_NEEDED.
///
/// MPICH 3 and later, Intel MPI and MVAPICH are libmpi.so.12 (Debian: libmpich.so.12), Cray MPICH
/// is libmpi_cray.so.12 or has another compiler in its name. PMPI_X may be in a library of its own.
[[nodiscard]] constexpr mpi_interface mpi_interface_of(std::string_view soname) {
  const auto begins = [&](std::string_view with) { return soname.starts_with(with); };
  if (begins("libmpi_abi.so") || begins("libpmpi_abi.so")) return mpi_interface::standard;
  // Bindings of other languages call C's.
  if (begins("libmpifort") || begins("libmpicxx") || begins("libmpi_cxx") ||
      begins("libmpi_mpifh") || begins("libmpi_usempi") || begins("libmpijava"))
    return mpi_interface::unknown;
  const bool is_mpi = begins("libmpi.so") || begins("libmpi_") || begins("libpmpi.so") ||
                      begins("libmpich.so") || begins("libmvapich");
  if (!is_mpi) return mpi_interface::unknown;
  if (soname.ends_with(".so.12")) return mpi_interface::mpich;
  if (begins("libmpi.so.") || begins("libpmpi.so.")) return mpi_interface::open_mpi;
  return mpi_interface::unknown;
}

}  // namespace lockflight
