// spin, spin-backoff: one word, taken by compare-and-swap. A waiter polls it over the network;
// spin-backoff doubles the pause after each failed attempt.
//
// Source: foMPI-Spin, the comparison target of "High-Performance Distributed RMA Locks", section 5
// (Comparison Targets). The RDMA spinlock of "ALock: Asymmetric Lock Primitive for RDMA Systems",
// section 6, is the same algorithm. Every access is nic class, from the home node as loopback.
//
// Order: none. Fairness: none; a participant may be overtaken for ever.
//
// Cost in network operations:
// | acquire | 1 compare-swap an attempt |
// | release | 1 put                     |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct spin_parameters {
  [[nodiscard]] static constexpr std::array<parameter<spin_parameters>, 0> all() { return {}; }

  [[nodiscard]] static constexpr rma::backoff back_off() { return rma::backoff::none(); }
};

struct spin_backoff_parameters {
  std::int64_t first_ns = 1'000;
  std::int64_t most_ns = 64'000;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<spin_backoff_parameters>{
            "backoff_first_ns", [](auto& p) -> std::int64_t& { return p.first_ns; }, 0,
            1'000'000'000, "pause after the first failed attempt; it doubles from there"},
        parameter<spin_backoff_parameters>{"backoff_most_ns",
                                           [](auto& p) -> std::int64_t& { return p.most_ns; }, 0,
                                           1'000'000'000, "longest pause between two attempts"},
    };
  }

  [[nodiscard]] constexpr rma::backoff back_off() const {
    return {static_cast<std::uint64_t>(first_ns), static_cast<std::uint64_t>(most_ns)};
  }
};

template <rma::port Port, class Parameters>
class basic_spin {
 public:
  using parameters = Parameters;

  /// This lock's words.
  struct cells {
    rma::nic_cell taken;  // at the home: 0 free, 1 taken

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home)};
    }
  };

  basic_spin(rma::participant<Port>& me, const cells& where, const parameters& set)
      : port_(me.port()), taken_(where.taken), set_(set) {}

  void lock() {
    for (rma::backoff back_off = set_.back_off(); !try_lock();) port_.pause(back_off.next());
  }

  [[nodiscard]] bool try_lock() {
    return rma::compare_swap_now(port_, taken_, /*expected=*/0, /*desired=*/1) == 0;
  }

  /// Flushed, else the lock could stay taken until its last holder flushes something else.
  void unlock() { rma::put_now(port_, taken_, 0); }

 private:
  Port& port_;
  rma::nic_cell taken_;
  parameters set_;
};

template <rma::port Port>
class spin : public basic_spin<Port, spin_parameters> {
 public:
  static constexpr facts about{
      .name = "spin",
      .what = kind::mutex,
      .source = "foMPI-Spin: High-Performance Distributed RMA Locks, section 5",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using basic_spin<Port, spin_parameters>::basic_spin;
};

template <rma::port Port>
class spin_backoff : public basic_spin<Port, spin_backoff_parameters> {
 public:
  static constexpr facts about{
      .name = "spin-backoff",
      .what = kind::mutex,
      .source = "foMPI-Spin with truncated exponential back-off; ALock, section 6",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using basic_spin<Port, spin_backoff_parameters>::basic_spin;
};

}  // namespace lockflight::lock
