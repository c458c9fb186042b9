// Makes a lock's entry out of its template.
#pragma once

#include <limits>

#include "bench/entry/entry.hpp"
#include "bench/shm/stage.hpp"

namespace lockflight::bench {

template <class Lock>
[[nodiscard]] std::int64_t most_ranks(const catalogue::parameter_values& set) {
  if constexpr (requires { Lock::most_ranks(typename Lock::parameters{}); })
    return Lock::most_ranks(lock::with_values(typename Lock::parameters{}, set));
  else
    return std::numeric_limits<std::int64_t>::max();
}

template <template <class> class Lock>
[[nodiscard]] constexpr lock_entry make_entry(const anywhere& through_any_port) {
  using on_shm = Lock<shm::port>;
  return {.about = on_shm::about,
          .parameters = catalogue::rows_of<typename on_shm::parameters>,
          .excludes = excludes<on_shm>,
          .most_ranks = most_ranks<on_shm>,
          .run_on_shm = run_on_shm<Lock>,
          .through_any_port = through_any_port};
}

}  // namespace lockflight::bench
