#include "names/life/time_limit.hpp"

#include <algorithm>

#include "fabric/shm/pause.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::detail {

void time_limit::check_interrupt() const {
  if (is_interrupted != nullptr && *is_interrupted && (*is_interrupted)())
    throw domain_error(domain_error::reason::interrupted, "an acquire was interrupted");
}

bool time_limit::sleep(std::uint64_t nanoseconds) const {
  check_interrupt();
  const std::uint64_t now = now_ns();
  if (now >= until_ns) return false;
  say_that_we_wait();
  shm::detail::sleep_for_ns(std::min(nanoseconds, until_ns - now));
  return true;
}

}  // namespace lockflight::detail
