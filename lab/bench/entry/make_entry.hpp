// Makes a lock's entry out of its template.
#pragma once

#include <limits>

#include "lab/bench/entry/entry.hpp"
#include "lab/bench/entry/measured.hpp"
#include "lab/bench/shm/stage.hpp"

namespace lockflight::bench {

template <class Lock>
[[nodiscard]] std::int64_t most_ranks(const catalogue::parameter_values& set) {
  if constexpr (requires { Lock::most_ranks(typename Lock::parameters{}); })
    return Lock::most_ranks(lock::with_values(typename Lock::parameters{}, set));
  else
    return std::numeric_limits<std::int64_t>::max();
}

template <std::size_t Part, std::size_t Parts>
void make_entries(std::span<lock_entry> all) {
  measured::for_each_in_part<Part, Parts>(
      [&]<template <class> class Lock>(lock::family<Lock>, std::size_t number) {
        using on_shm = Lock<shm::port>;
        lock_entry& made = all[number];
        made.about = on_shm::about;
        made.parameters = catalogue::rows_of<typename on_shm::parameters>;
        made.excludes = excludes<on_shm>;
        made.most_ranks = most_ranks<on_shm>;
        if constexpr (!on_shm::about.as_printed) made.run_on_shm = run_on_shm<Lock>;
      });
}

}  // namespace lockflight::bench
