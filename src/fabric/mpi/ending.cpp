#include "fabric/mpi/ending.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace lockflight::mpi::detail {

#if defined(OPEN_MPI)

serving_at_the_end::serving_at_the_end() = default;
serving_at_the_end::~serving_at_the_end() = default;

}  // namespace lockflight::mpi::detail

#else

namespace {

using clock = std::chrono::steady_clock;
constexpr auto how_long = std::chrono::milliseconds(500);
constexpr auto between_polls = std::chrono::microseconds(100);

// One thread calls MPI_Finalize.
constinit bool is_ending = false;
constinit void* first_complete = nullptr;
clock::time_point since;

/// True if a rank may be on another host. The launcher of MPICH says how many are on this one.
[[nodiscard]] bool may_have_other_hosts() {
  const char* const here = std::getenv("MPI_LOCALNRANKS");
  int ranks = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return here == nullptr || std::strtol(here, nullptr, 10) != ranks;
}

/// True if MPICH is to make progress once more before it may see that a request is complete.
[[nodiscard]] bool is_to_go_on(void* complete) {
  if (first_complete == nullptr) {
    first_complete = complete;
    since = clock::now();
  }
  if (clock::now() - since >= how_long) return false;
  // Once a round: other ranks may need the core.
  if (complete == first_complete) std::this_thread::sleep_for(between_polls);
  return true;
}

}  // namespace

serving_at_the_end::serving_at_the_end() { is_ending = may_have_other_hosts(); }
serving_at_the_end::~serving_at_the_end() { is_ending = false; }

}  // namespace lockflight::mpi::detail

// UCX's, for the whole process. MPICH asks it in MPI_Finalize, after each round of progress,
// whether a rank is disconnected.
extern "C" __attribute__((visibility("default"))) int ucp_request_is_completed(void* request);
extern "C" int ucp_request_is_completed(void* request) {
  using function = int (*)(void*);
  static const auto ucx = reinterpret_cast<function>(dlsym(RTLD_NEXT, "ucp_request_is_completed"));
  const int is_complete = ucx != nullptr ? ucx(request) : 1;
  if (is_complete == 0) return 0;
  using namespace lockflight::mpi::detail;
  return is_ending && is_to_go_on(request) ? 0 : is_complete;
}

#endif
