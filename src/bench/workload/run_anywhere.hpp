// What is compiled of a lock for all fabrics together.
#pragma once

#include "bench/port/any_clock.hpp"
#include "bench/port/any_port.hpp"
#include "bench/workload/anywhere.hpp"
#include "bench/workload/run_rank.hpp"

namespace lockflight::bench {

template <template <class> class Lock, class Port>
[[nodiscard]] anywhere run_anywhere_on() {
  return {.words = words_for<Lock<Port>>,
          .run_rank = [](any_port& port, std::uint32_t words, const run_plan& plan,
                         const any_clock& clock, const run_results& results) {
            rma::participant<Port> me(static_cast<Port&>(port), words);
            run_rank<Lock>(me, plan, clock, results);
          }};
}

template <template <class> class Lock>
[[nodiscard]] anywhere run_anywhere() {
  if constexpr (requires { typename Lock<any_port>::parameters; })
    return run_anywhere_on<Lock, any_port>();
  else  // a baseline: only on a fabric whose ports are native
    return run_anywhere_on<Lock, any_native_port>();
}

}  // namespace lockflight::bench
