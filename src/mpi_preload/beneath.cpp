#include "mpi_preload/beneath.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace lockflight::mpi_preload {
namespace {

// POSIX lets a function be looked up as a void pointer.
template <class Function>
void look_up(Function& call, const char* name) {
  call = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  if (call != nullptr) return;
  std::fprintf(stderr,
               "lockflight: no %s behind liblockflight-mpi.so: it must be preloaded, or linked "
               "before a shared MPI library\n",
               name);
  std::exit(3);
}

[[nodiscard]] mpi_calls look_up_all() {
  mpi_calls found{};
#define LOCKFLIGHT_LOOK_UP(call) look_up(found.call, "PMPI_" #call);
  LOCKFLIGHT_STOOD_IN_FOR(LOCKFLIGHT_LOOK_UP)
  LOCKFLIGHT_STOOD_IN_FOR_LARGE(LOCKFLIGHT_LOOK_UP)
#undef LOCKFLIGHT_LOOK_UP
  return found;
}

}  // namespace

const mpi_calls& beneath() {
  static const mpi_calls found = look_up_all();
  return found;
}

}  // namespace lockflight::mpi_preload
