// Makes a lock's entry out of its template.
#pragma once

#include <limits>

#include "bench/entry/entry.hpp"
#include "bench/shm/stage.hpp"

namespace lockflight::bench {

template <class Lock>
[[nodiscard]] std::int64_t most_ranks(const std::map<std::string, std::int64_t>& set) {
  if constexpr (requires { Lock::most_ranks(typename Lock::parameters{}); })
    return Lock::most_ranks(parameters_from<typename Lock::parameters>(set));
  else
    return std::numeric_limits<std::int64_t>::max();
}

template <template <class> class Lock>
[[nodiscard]] lock_entry make_entry(const anywhere& through_any_port) {
  using on_shm = Lock<shm::port>;
  return {.row = {.about = on_shm::about,
                  .fabrics = {},
                  .parameters = rows_of<typename on_shm::parameters>()},
          .most_ranks = most_ranks<on_shm>,
          .excludes = excludes<on_shm>,
          .run_on_shm = run_on_shm<Lock>,
          .through_any_port = through_any_port};
}

}  // namespace lockflight::bench
