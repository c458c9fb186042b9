// Makes the functions of a lock that serve all fabrics out of its template.
#pragma once

#include <type_traits>

#include "bench/port/any_clock.hpp"
#include "bench/port/any_port.hpp"
#include "bench/workload/anywhere.hpp"
#include "bench/workload/run_rank.hpp"

namespace lockflight::bench {

template <template <class> class Lock>
[[nodiscard]] constexpr anywhere make_anywhere() {
  // A baseline runs only on fabrics whose ports are native.
  constexpr bool everywhere = requires { typename Lock<any_port>::parameters; };
  using port = std::conditional_t<everywhere, any_port, any_native_port>;
  return {.words = words_for<Lock<port>>,
          .run_rank = [](any_port& on, std::uint32_t words, const run_plan& plan,
                         const any_clock& clock, const run_results& results) {
            rma::participant<port> me(static_cast<port&>(on), words);
            run_rank<Lock>(me, plan, clock, results);
          }};
}

}  // namespace lockflight::bench
