// example-ticket: a participant draws a ticket by one fetch-add and polls until it is served.
//
// Source: Mellor-Crummey and Scott 1991, section 2.2.
//
// Invariant: SERVED is the ticket of the holder, or the next ticket of a free lock. Only the holder
// changes it.
//
// Order: first come, first served, by the order of the fetch-adds.
// Fairness: once its fetch-add has taken effect, a waiter is not overtaken.
//
// Cost in network operations; a waiter polls over the network:
// | acquire, free | 1 fetch-add, 1 get        |
// | acquire       | 1 fetch-add, 1 get a poll |
// | release       | 1 put                     |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct example_ticket_parameters {
  std::int64_t most_pause_ns = 64'000;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<example_ticket_parameters>{
            "most_pause_ns", [](auto& p) -> std::int64_t& { return p.most_pause_ns; }, 0,
            1'000'000'000, "longest pause between two polls"},
    };
  }
};

template <rma::port Port>
class example_ticket {
 public:
  static constexpr facts about{
      .name = "example-ticket",
      .what = kind::mutex,
      .source = "Mellor-Crummey and Scott 1991, section 2.2",
      .bytes_home = 16,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using parameters = example_ticket_parameters;

  /// This lock's words, all 0 while it is new.
  struct cells {
    rma::nic_cell drawn;   // DRAWN, at the home: the next ticket
    rma::nic_cell served;  // SERVED, at the home

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const rma::nic_cell first = in.take<rma::nic_cell>(2).at(home);
      return {.drawn = first, .served = first + 1};
    }
  };

  /// How often a waiter can be overtaken by later participants.
  [[nodiscard]] static constexpr std::int64_t most_overtaken(const rma::topology&,
                                                             const parameters&) {
    return 0;
  }

  example_ticket(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        words_(where),
        most_pause_ns_(static_cast<std::uint64_t>(set.most_pause_ns)) {}

  void lock() {
    ticket_ = rma::fetch_add_now(port_, words_.drawn, 1);
    port_.poll(words_.served, rma::equals(ticket_), rma::backoff(1'000, most_pause_ns_));
  }

  /// Draws a ticket only if it is served at once. 1 get and 1 compare-swap.
  [[nodiscard]] bool try_lock() {
    const rma::word served = rma::get_now(port_, words_.served);
    if (rma::compare_swap_now(port_, words_.drawn, served, served + 1) != served) return false;
    ticket_ = served;
    return true;
  }

  /// Flushed, else the next one would poll until we flush something else.
  void unlock() { rma::put_now(port_, words_.served, ticket_ + 1); }

 private:
  Port& port_;
  cells words_;
  std::uint64_t most_pause_ns_;
  rma::word ticket_ = 0;
};

}  // namespace lockflight::lock
