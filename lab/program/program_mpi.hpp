// The MPI that a program is linked with, and the drop-in that fits it.
#pragma once

#include <string>
#include <vector>

#include "base/mpi_interface.hpp"

namespace lockflight::lab {

struct program_mpi {
  bool is_dynamic = false;
  bool is_privileged = false;  ///< set-user-ID or set-group-ID: the loader preloads nothing
  mpi_interface interface = mpi_interface::unknown;
  std::string library;               ///< that of the MPI, as it is needed by name
  std::string needed_by;             ///< the file that needs it: the program, or a library of it
  std::vector<std::string> missing;  ///< libraries that were not found, and so not searched
  std::string drop_in;               ///< the file that fits; empty if it is not here
  /// The library of AddressSanitizer that the program needs, which refuses to start behind another
  /// library that is preloaded; empty if it needs none.
  std::string address_sanitizer;

  /// The value of LD_PRELOAD; empty if no drop-in is here.
  [[nodiscard]] std::string preload() const {
    if (drop_in.empty() || address_sanitizer.empty()) return drop_in;
    return address_sanitizer + ":" + drop_in;
  }
};

/// Reads the program, and the libraries that it needs as the loader would find them here with the
/// environment of this process, until one of them is an MPI's. Runs nothing of the program. Throws
/// unreadable_elf if the program itself cannot be read.
[[nodiscard]] program_mpi mpi_of_program(const std::string& path);

}  // namespace lockflight::lab
