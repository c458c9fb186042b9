// The dynamic section of an executable file or a shared library, read without a tool such as
// readelf.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace lockflight::lab {

/// A file that cannot be read, or is no ELF file of this machine. what() says which, without the
/// file's name.
struct unreadable_elf : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct elf_file {
  bool is_dynamic = false;           ///< false of a program that is linked statically
  std::vector<std::string> needed;   ///< DT_NEEDED, in order
  std::vector<std::string> rpath;    ///< the folders of DT_RPATH, $ORIGIN replaced
  std::vector<std::string> runpath;  ///< the folders of DT_RUNPATH, $ORIGIN replaced
};

/// Reads a file. Every offset in it is checked: it may be damaged, or made to deceive. Throws
/// unreadable_elf.
[[nodiscard]] elf_file read_elf(const std::string& path);

}  // namespace lockflight::lab
