#include "mpi_preload/yields.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace lockflight::mpi_preload {
namespace {

// Reached without a call: this library is loaded with the program (preloaded or linked).
[[gnu::tls_model("initial-exec")]] constinit thread_local bool skip_next = false;

}  // namespace

keeping_the_processor::keeping_the_processor() { skip_next = true; }
keeping_the_processor::~keeping_the_processor() { skip_next = false; }

}  // namespace lockflight::mpi_preload

// The C library's sched_yield, for the whole process.
extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  using lockflight::mpi_preload::skip_next;
  if (!skip_next) return static_cast<int>(syscall(SYS_sched_yield));
  skip_next = false;
  return 0;
}
