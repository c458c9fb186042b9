// Makes a lock's entry out of its template.
#pragma once

#include "bench/entry.hpp"
#include "bench/stage_shm.hpp"

namespace lockflight::bench {

template <template <class> class Lock>
[[nodiscard]] lock_entry make_entry() {
  using on_shm = Lock<shm::port>;
  return {.row = {.about = on_shm::about,
                  .fabrics = {"shm"},
                  .parameters = rows_of<typename on_shm::parameters>()},
          .excludes = excludes<on_shm>,
          .run_on_shm = run_on_shm<Lock>};
}

}  // namespace lockflight::bench
