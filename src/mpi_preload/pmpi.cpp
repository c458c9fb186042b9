#include "mpi_preload/pmpi.hpp"

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

constinit mpi_calls looked_up{};

// Cold, so that pmpi() saves no registers for it.
[[gnu::cold, gnu::noinline]] bool look_up_all() {
#define LOCKFLIGHT_LOOK_UP(call) look_up(looked_up.call, "PMPI_" #call);
  LOCKFLIGHT_INTERPOSED(LOCKFLIGHT_LOOK_UP)
  LOCKFLIGHT_INTERPOSED_LARGE(LOCKFLIGHT_LOOK_UP)
#undef LOCKFLIGHT_LOOK_UP
  // A lock calls pmpi() before a_lock_comes(), so this cannot undo that.
  detail::straight.store(&looked_up, std::memory_order_release);
  return true;
}

}  // namespace

constinit std::atomic<const mpi_calls*> detail::straight{nullptr};

const mpi_calls& pmpi() {
  [[maybe_unused]] static const bool once = look_up_all();
  return looked_up;
}

}  // namespace lockflight::mpi_preload
