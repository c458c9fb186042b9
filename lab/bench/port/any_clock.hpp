// A clock that is known at run time only: the clock of a fabric behind any_port.
#pragma once

#include <cstdint>

namespace lockflight::bench {

/// Refers to a clock; as cheap to copy as one.
class any_clock {
 public:
  template <class Clock>
  [[nodiscard]] static any_clock on(const Clock& of) {
    static constexpr calls through{
        .now = [](const void* c) { return static_cast<const Clock*>(c)->now(); },
        .now_ordered = [](const void* c) { return static_cast<const Clock*>(c)->now_ordered(); },
        .busy_until =
            [](const void* c, std::uint64_t tick) {
              return static_cast<const Clock*>(c)->busy_until(tick);
            },
        .ticks = [](const void* c,
                    double seconds) { return static_cast<const Clock*>(c)->ticks(seconds); },
        .share_core =
            [](const void* c, std::uint32_t others) {
              if constexpr (requires(const Clock& of_sim) { of_sim.share_core(others); })
                static_cast<const Clock*>(c)->share_core(others);
            },
        .a_moment_ns = Clock::a_moment_ns,
        .look_up_seconds = Clock::look_up_seconds};
    return any_clock(&of, through);
  }

  [[nodiscard]] double look_up_seconds() const { return calls_->look_up_seconds(); }
  [[nodiscard]] std::uint64_t a_moment_ns(int ranks) const { return calls_->a_moment_ns(ranks); }
  [[nodiscard]] std::uint64_t now() const { return calls_->now(of_); }
  [[nodiscard]] std::uint64_t now_ordered() const { return calls_->now_ordered(of_); }
  std::uint64_t busy_until(std::uint64_t tick) const { return calls_->busy_until(of_, tick); }
  [[nodiscard]] std::uint64_t ticks(double seconds) const { return calls_->ticks(of_, seconds); }
  /// Has an effect where the time is virtual only.
  void share_core(std::uint32_t others) const { calls_->share_core(of_, others); }

 private:
  struct calls {
    std::uint64_t (*now)(const void*);
    std::uint64_t (*now_ordered)(const void*);
    std::uint64_t (*busy_until)(const void*, std::uint64_t tick);
    std::uint64_t (*ticks)(const void*, double seconds);
    void (*share_core)(const void*, std::uint32_t others);
    std::uint64_t (*a_moment_ns)(int ranks);
    double (*look_up_seconds)();
  };

  any_clock(const void* of, const calls& through) : of_(of), calls_(&through) {}

  const void* of_;
  const calls* calls_;
};

}  // namespace lockflight::bench
