// Makes the functions of a lock that serve all fabrics out of its template.
#pragma once

#include <type_traits>

#include "lab/bench/entry/entry.hpp"
#include "lab/bench/entry/measured.hpp"
#include "lab/bench/port/any_clock.hpp"
#include "lab/bench/port/any_port.hpp"
#include "lab/bench/workload/anywhere.hpp"
#include "lab/bench/workload/run_rank.hpp"

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

template <std::size_t Part, std::size_t Parts>
void make_all_anywhere(std::span<lock_entry> all) {
  measured::for_each_in_part<Part, Parts>(
      [&]<template <class> class Lock>(lock::family<Lock>, std::size_t number) {
        all[number].through_any_port = make_anywhere<Lock>();
      });
}

}  // namespace lockflight::bench
