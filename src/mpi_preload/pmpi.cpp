#include "mpi_preload/pmpi.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "mpi_preload/bindings.hpp"
#include "mpi_preload/mpi_library.hpp"

namespace lockflight::mpi_preload {

constinit calls_behind detail::all_calls{};

namespace {

[[noreturn]] void ends_without(const char* name) {
  std::fprintf(stderr,
               "lockflight: no %s behind %s: it must be preloaded, or linked before a shared MPI "
               "library\n",
               name, own_file());
  std::exit(3);
}

// POSIX lets a function be looked up as a void pointer.
template <class Function>
void look_up(Function& call, const char* name) {
  call = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  if (call == nullptr) ends_without(name);
}

/// The value of a call that an MPI of an earlier version of the standard lacks. Programs compiled
/// for such an MPI never make it.
template <class Result, class... Arguments>
Result (*ends_in(Result (*)(Arguments...)))(Arguments...) {
  return [](Arguments...) -> Result { ends_without("function with large counts (MPI 4)"); };
}

template <class Function>
void look_up_large(Function& call, const char* name) {
  call = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  if (call == nullptr) call = ends_in(call);
}

using detail::all_calls;
constinit bool has_tool = false;

// The next function behind us is a tool's, unless it lies in the MPI's library. That library is the
// one with a call that tools do not replace; a tool may replace PMPI_X as well.
template <class Function>
void look_up_next(Function& next, Function own, const char* name) {
  next = own;
  void* const found = dlsym(RTLD_NEXT, name);
  const void* const its = start_of_library(found);
  if (its == nullptr || its == start_of_library(reinterpret_cast<const void*>(own)) ||
      its == start_of_library(dlsym(RTLD_NEXT, "PMPI_Get_version")) ||
      its == start_of_library(dlsym(RTLD_NEXT, "MPI_Get_version")))
    return;
  next = reinterpret_cast<Function>(found);
  has_tool = true;
}

bool look_up_all() {
  reach_mpi();
#define LOCKFLIGHT_LOOK_UP(how, call)     \
  how(all_calls.own.call, "PMPI_" #call); \
  look_up_next(all_calls.next.call, all_calls.own.call, "MPI_" #call);
#define LOCKFLIGHT_LOOK_UP_ONE(call) LOCKFLIGHT_LOOK_UP(look_up, call)
#define LOCKFLIGHT_LOOK_UP_LARGE(call) LOCKFLIGHT_LOOK_UP(look_up_large, call)
  LOCKFLIGHT_INTERPOSED(LOCKFLIGHT_LOOK_UP_ONE)
  LOCKFLIGHT_INTERPOSED_LARGE(LOCKFLIGHT_LOOK_UP_LARGE)
#undef LOCKFLIGHT_LOOK_UP_LARGE
#undef LOCKFLIGHT_LOOK_UP_ONE
#undef LOCKFLIGHT_LOOK_UP
  // Before the calls are known: a thread that locks a window knows them, so that this cannot undo
  // its check_calls().
  leave_calls_to_mpi();
  detail::looked_up.store(&all_calls, std::memory_order_release);
  return true;
}

}  // namespace

namespace detail {

constinit std::atomic<const calls_behind*> looked_up{nullptr};

// Cold, so that its callers save no registers for it.
[[gnu::cold]] const calls_behind& look_up() {
  [[maybe_unused]] static const bool once = look_up_all();
  return all_calls;
}

}  // namespace detail

bool has_tool_behind() { return has_tool; }

}  // namespace lockflight::mpi_preload
