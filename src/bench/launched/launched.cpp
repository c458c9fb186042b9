#include "bench/launched/launched.hpp"

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

std::string microseconds(double value) {
  std::string text = std::to_string(value);
  text.resize(text.find('.') + (value < 100 ? 3 : 0));
  return text + " us";
}

}  // namespace lockflight::bench
