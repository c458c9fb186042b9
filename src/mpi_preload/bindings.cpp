#include "mpi_preload/bindings.hpp"

namespace lockflight::mpi_preload {

// At first, while nothing is known of what is behind the drop-in, calls are checked: a check finds
// that out.
#define LOCKFLIGHT_INITIALLY(call) .call{checks::LOCKFLIGHT_OF::call},
#define LOCKFLIGHT_OF of_name
constinit bindings::pointers bindings::of_name{
    LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_INITIALLY) LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_INITIALLY)};
#undef LOCKFLIGHT_OF
#define LOCKFLIGHT_OF of_profiling_name
constinit bindings::pointers bindings::of_profiling_name{
    LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_INITIALLY) LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_INITIALLY)};
#undef LOCKFLIGHT_OF
#undef LOCKFLIGHT_INITIALLY
constinit std::atomic<bool> bindings::are_straight{false};

#define LOCKFLIGHT_BIND(call)                                                      \
  bindings::of_name.call.store(LOCKFLIGHT_NAMED(call), std::memory_order_relaxed); \
  bindings::of_profiling_name.call.store(LOCKFLIGHT_PROFILED(call), std::memory_order_relaxed);

void leave_calls_to_mpi() {
#define LOCKFLIGHT_NAMED(call) detail::all_calls.next.call
#define LOCKFLIGHT_PROFILED(call) detail::all_calls.own.call
  LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_BIND)
  LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_BIND)
#undef LOCKFLIGHT_PROFILED
#undef LOCKFLIGHT_NAMED
  bindings::are_straight.store(true, std::memory_order_relaxed);
}

void check_all_calls() {
#define LOCKFLIGHT_NAMED(call) checks::of_name::call
#define LOCKFLIGHT_PROFILED(call) checks::of_profiling_name::call
  LOCKFLIGHT_PASSED_ON(LOCKFLIGHT_BIND)
  LOCKFLIGHT_PASSED_ON_LARGE(LOCKFLIGHT_BIND)
#undef LOCKFLIGHT_PROFILED
#undef LOCKFLIGHT_NAMED
  bindings::are_straight.store(false, std::memory_order_relaxed);
}

#undef LOCKFLIGHT_BIND

}  // namespace lockflight::mpi_preload
