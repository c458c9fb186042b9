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

constinit calls_behind looked_up{};
constinit mpi_calls of_tools{};

/// The start of the library in which a function lies.
[[nodiscard]] const void* library_of(const void* function) {
  Dl_info found{};
  return function != nullptr && dladdr(function, &found) != 0 ? found.dli_fbase : nullptr;
}

// What comes next behind us is a tool's, unless it lies in the MPI's library. Which library that is
// a call says that tools do not replace; a tool may replace PMPI_X as well.
template <class Function>
void look_up_tool(Function& tool, Function& next, Function own, const char* name) {
  next = own;
  void* const found = dlsym(RTLD_NEXT, name);
  const void* const its = library_of(found);
  if (its == nullptr || its == library_of(reinterpret_cast<const void*>(own)) ||
      its == library_of(dlsym(RTLD_NEXT, "PMPI_Get_version")) ||
      its == library_of(dlsym(RTLD_NEXT, "MPI_Get_version")))
    return;
  tool = reinterpret_cast<Function>(found);
  next = tool;
}

// Cold, so that pmpi() saves no registers for it.
[[gnu::cold, gnu::noinline]] bool look_up_all() {
#define LOCKFLIGHT_LOOK_UP(call)              \
  look_up(looked_up.own.call, "PMPI_" #call); \
  look_up_tool(of_tools.call, looked_up.next.call, looked_up.own.call, "MPI_" #call);
  LOCKFLIGHT_INTERPOSED(LOCKFLIGHT_LOOK_UP)
  LOCKFLIGHT_INTERPOSED_LARGE(LOCKFLIGHT_LOOK_UP)
#undef LOCKFLIGHT_LOOK_UP
  // A lock calls pmpi() before a_lock_comes(), so this cannot undo that.
  detail::straight.store(&looked_up, std::memory_order_release);
  return true;
}

}  // namespace

constinit std::atomic<const calls_behind*> detail::straight{nullptr};

const mpi_calls& pmpi() {
  [[maybe_unused]] static const bool once = look_up_all();
  return looked_up.own;
}

const mpi_calls& tools() {
  static_cast<void>(pmpi());
  return of_tools;
}

}  // namespace lockflight::mpi_preload
