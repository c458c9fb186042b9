#include "lab/bench/launched/launched.hpp"

#include <cstring>
#include <type_traits>

namespace lockflight::bench {

std::vector<launch::word_from_rank> launched::gather(const std::string& mine) {
  const std::vector<int> first = first_of_host();
  std::vector<word_from_rank> all;
  for (std::string& text : texts(mine)) all.push_back({first[all.size()], std::move(text)});
  return all;
}

// Results are merged in ticks. Time-stamp counters of different hosts may tick differently.
const tick_clock& launched::clock() {
  if (clock_ == nullptr) {
    clock_ = &tick_clock::calibrated();
    const double rate = clock_->base().ticks_per_us;
    const double slowest = least(rate);
    if (!alike(slowest, -least(-rate))) clock_ = &tick_clock::in_nanoseconds();
  }
  return *clock_;
}

moment start_of_run(const tick_clock& clock, const run_results& results) {
  const std::uint64_t ticks = results.common().started;
  const double us = clock.base().us(static_cast<double>(clock.now() - ticks));
  return {ticks, tick_clock::in_nanoseconds().now() - static_cast<std::uint64_t>(us * 1e3)};
}

void move_times(rank_result& of, std::span<fabric::trace_event> events, moment by) {
  of.begun += by.ticks;
  of.ended += by.ticks;
  for (fabric::trace_event& e : events.first(of.trace_used)) e.at_ns += by.ns;
}

void launched::bring_to_first(const run_plan& plan, const run_results& results, moment start) {
  static_assert(std::is_trivially_copyable_v<rank_result>);
  std::string mine;
  if (rank() < plan.machine.ranks() && results.leader() != 0) {
    rank_result& of = results.of(rank());
    const auto events = results.trace_room(rank());
    move_times(of, events, -start);
    mine.append(reinterpret_cast<const char*>(&of), sizeof of);
    mine.append(reinterpret_cast<const char*>(events.data()),
                events.empty() ? 0 : of.trace_used * sizeof events[0]);
  }
  const std::vector<std::string> all = texts(mine);
  if (rank() != 0) return;
  for (rma::rank_t r = 1; r < plan.machine.ranks(); ++r) {
    const std::string& said = all[static_cast<std::size_t>(r)];
    if (said.empty()) continue;
    rank_result& of = results.of(r);
    std::memcpy(static_cast<void*>(&of), said.data(), sizeof of);
    const auto events = results.trace_room(r);
    if (said.size() > sizeof of)
      std::memcpy(static_cast<void*>(events.data()), said.data() + sizeof of,
                  said.size() - sizeof of);
    move_times(of, events, start);
  }
}

}  // namespace lockflight::bench
