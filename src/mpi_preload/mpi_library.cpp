#include "mpi_preload/mpi_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/mpi_interface.hpp"

namespace lockflight::mpi_preload {
namespace {

#if defined(MPI_ABI)
constexpr mpi_interface own_interface = mpi_interface::standard;
#elif defined(OPEN_MPI)
constexpr mpi_interface own_interface = mpi_interface::open_mpi;
#else
constexpr mpi_interface own_interface = mpi_interface::mpich;
#endif

// Each MPI has it, and no tool and no drop-in replaces it. Behind the P it is MPI_Get_version.
constexpr const char* of_every_mpi = "PMPI_Get_version";

/// The name that a loaded library has in itself; empty if it has none.
[[nodiscard]] std::string_view soname_of(const link_map& library) {
  const char* names = nullptr;
  ElfW(Xword) at = 0;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    // The loader has made an address of it, but on a few machines only the offset is there.
    if (entry->d_tag == DT_STRTAB)
      names = reinterpret_cast<const char*>(entry->d_un.d_ptr < library.l_addr
                                                ? library.l_addr + entry->d_un.d_ptr
                                                : entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) at = entry->d_un.d_val;
  }
  return names != nullptr && at != 0 ? names + at : "";
}

/// The library that has a function; null if none has.
[[nodiscard]] const link_map* library_of(const void* function) {
  Dl_info found{};
  void* library = nullptr;
  if (function == nullptr || dladdr1(function, &found, &library, RTLD_DL_LINKMAP) == 0)
    return nullptr;
  return static_cast<const link_map*>(library);
}

/// A function in some loaded library whose names are local to those that have loaded it.
[[nodiscard]] void* local_function(const char* name) {
  // The names first: the loader's list must not change while it is walked.
  std::vector<std::string> files;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(library->dlpi_name);
        return 0;
      },
      &files);
  for (const std::string& file : files) {
    if (file.empty()) continue;
    void* const library = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const found = dlsym(library, name);
    dlclose(library);
    if (found != nullptr) return found;
  }
  return nullptr;
}

/// The drop-in for another interface, of the same build or installation.
[[nodiscard]] std::string drop_in_for(mpi_interface other) {
  std::string here = own_file();
  here.erase(here.find_last_of('/') == std::string::npos ? 0 : here.find_last_of('/') + 1);
  const std::string beside = here + "../" + std::string(details_of(other).drop_in);
  if (char* const there = realpath(beside.c_str(), nullptr); there != nullptr) {
    const std::string full = there;
    std::free(there);
    return full;
  }
  return std::string(details_of(other).drop_in) + " of lockflight";
}

void require_own_interface(const link_map& mpi) {
  const mpi_interface its = mpi_interface_of(soname_of(mpi));
  if (its == mpi_interface::unknown || its == own_interface) return;
  std::fprintf(
      stderr, "lockflight: the MPI of this program, %s, has %s: preload %s instead of %s\n",
      mpi.l_name, std::string(details_of(its).name).c_str(), drop_in_for(its).c_str(), own_file());
  // Nothing of the MPI's runs any more.
  std::fflush(nullptr);
  _exit(3);
}

[[gnu::constructor]] void refuse_other_interfaces() {
  if (const link_map* const mpi = library_of(dlsym(RTLD_NEXT, of_every_mpi)); mpi != nullptr)
    require_own_interface(*mpi);
}

}  // namespace

const char* own_file() {
  static const char anything_here = 0;
  Dl_info own{};
  return dladdr(&anything_here, &own) != 0 && own.dli_fname != nullptr ? own.dli_fname
                                                                       : "liblockflight-mpi.so";
}

const void* start_of_library(const void* function) {
  Dl_info found{};
  return function != nullptr && dladdr(function, &found) != 0 ? found.dli_fbase : nullptr;
}

void reach_mpi() {
  // PMPI_X may be in another library than MPI_X, which this library calls as well.
  for (const char* name : {of_every_mpi, of_every_mpi + 1}) {
    if (dlsym(RTLD_NEXT, name) != nullptr) continue;
    // The names of the MPI's library become global, behind those of this library.
    if (const link_map* const mpi = library_of(local_function(name)); mpi != nullptr)
      static_cast<void>(dlopen(mpi->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL));
    else if (own_interface == mpi_interface::standard)
      static_cast<void>(dlopen("libpmpi_abi.so.1", RTLD_LAZY | RTLD_GLOBAL));
  }
  refuse_other_interfaces();
}

}  // namespace lockflight::mpi_preload
