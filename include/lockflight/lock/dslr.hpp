// dslr: a reader-writer lock with the tickets of Lamport's bakery in one word. A participant draws
// a ticket by one fetch-add and polls the word until its ticket is served.
//
// Source: "Distributed Lock Management with RDMA: Decentralization without Starvation" (DSLR
// paper), SIGMOD 2018, the protocol and its polling interval. Four counters share the word: the
// shared and the exclusive tickets that were drawn (max_S and max_X there), and those that were
// served (n_S and n_X). A reader waits until all writers that drew before it are served, a writer
// until all readers and all writers that drew before it are.
//
// Differences from the text:
// D1  Counters wrap around behind a guard bit. (In the text, the participant that draws the last
//     ticket of a counter resets the whole word as soon as no participant uses the lock, and
//     participants that draw beyond it withdraw and come again. They have lost their place then,
//     and as long as they come the reset does not succeed.)
// D2  There are no leases. A participant that is killed is the business of lock::robust, or ends
//     the run (C36). (In the text, a waiter advances the counters past a holder that is late.)
// D3  try_lock and try_lock_shared, which the text does not have.
//
// Invariants:
// - A counter of b bits has a guard bit above it. The participant that adds the 2^b-th one, which
//   sets the guard bit, subtracts it at once. A participant that draws while a guard bit is set
//   does not enter before it has read the word without that bit. Until the bit is subtracted, each
//   participant therefore adds at most one to the counter. There are at most 2^b participants, so a
//   counter never carries into the next one.
// - The exclusive tickets that were served lie on top. Their carry leaves the word, so they need no
//   guard bit.
// - Tickets that are not served yet are at most as many as there are participants, so tickets are
//   distinct.
//
// Order: first come, first served, by the order of the fetch-adds; readers between two writers are
// in together. Fairness: once the fetch-add of a waiter has taken effect, no later writer enters
// before it. A writer never starves. A reader that draws while a guard bit is set polls until it
// reads the word without; it misses that if it polls only while later guard bits are set, each of
// them 2^b acquires after the last.
//
// Cost in network operations; a waiter polls over the network:
// | acquire, free | 1 fetch-add                       |
// | acquire       | 1 fetch-add, 1 get a poll         |
// | release       | shared 1 fetch-add, exclusive 1 add |
// Every 2^b-th one of a counter costs 1 add more.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct dslr_parameters {
  std::int64_t wait_ns = 5'000;  // omega of the paper
  std::int64_t counter_bits = 15;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<dslr_parameters>{
            "wait_ns", [](auto& p) -> std::int64_t& { return p.wait_ns; }, 0, 1'000'000'000,
            "pause between two polls, for each ticket that is served before the waiter's"},
        parameter<dslr_parameters>{
            "counter_bits", [](auto& p) -> std::int64_t& { return p.counter_bits; }, 3, 15,
            "bits of a counter; with fewer it wraps around sooner, and fewer ranks can lock"},
    };
  }
};

/// How four counters share a word.
class ticket_format {
 public:
  explicit constexpr ticket_format(const dslr_parameters& set)
      : bits_(static_cast<unsigned>(set.counter_bits)) {}

  [[nodiscard]] constexpr rma::field drawn_shared() const { return counter(0); }
  [[nodiscard]] constexpr rma::field drawn_exclusive() const { return counter(1); }
  [[nodiscard]] constexpr rma::field served_shared() const { return counter(2); }
  [[nodiscard]] constexpr rma::field served_exclusive() const { return counter(3); }

  [[nodiscard]] static constexpr rma::word one(rma::field of) { return rma::word{1} << of.at; }
  [[nodiscard]] static constexpr rma::word guard(rma::field of) {
    return rma::word{1} << (of.at + of.bits);
  }
  /// A counter modulo 2^b, whatever its guard bit says.
  [[nodiscard]] static constexpr rma::word count(rma::word in, rma::field of) {
    return in >> of.at & of.most();
  }
  /// The guard bits that are set: those counters are about to be made smaller by 2^b.
  [[nodiscard]] constexpr rma::word guards(rma::word in) const {
    return in & (guard(drawn_shared()) | guard(drawn_exclusive()) | guard(served_shared()));
  }

  [[nodiscard]] constexpr std::int64_t most_participants() const {
    return std::int64_t{1} << bits_;
  }

 private:
  // The last one ends with the word.
  [[nodiscard]] constexpr rma::field counter(unsigned number) const {
    return {.at = 64 - (4 - number) * (bits_ + 1), .bits = bits_};
  }

  unsigned bits_;
};

static_assert(ticket_format({}).drawn_shared().at == 0 &&
                  ticket_format({}).served_exclusive().at == 48,
              "by default the counters lie as in the paper");

template <rma::port Port>
class dslr {
 public:
  static constexpr facts about{
      .name = "dslr",
      .what = kind::rw,
      .source = "DSLR: Distributed Lock Management with RDMA, SIGMOD 2018",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using parameters = dslr_parameters;

  /// This lock's words.
  struct cells {
    rma::nic_cell tickets;  // at the home: the four counters

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home)};
    }
  };

  /// How many ranks can use a lock with these parameters.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters& set) {
    return ticket_format(set).most_participants();
  }

  /// Throws std::invalid_argument if there are more ranks than a counter can tell apart.
  dslr(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        tickets_(where.tickets),
        format_(set),
        wait_ns_(static_cast<std::uint64_t>(set.wait_ns)) {
    if (me.machine().ranks() > most_ranks(set))
      throw std::invalid_argument("dslr with counter_bits=" + std::to_string(set.counter_bits) +
                                  ": " + std::to_string(me.machine().ranks()) +
                                  " ranks (accepted: 1 to " + std::to_string(most_ranks(set)) +
                                  ", as many as its counters can tell apart)");
  }

  // ---- readers ----

  void lock_shared() {
    const rma::word ticket = count_one(format_.drawn_shared());
    await_turn(ticket, [&](rma::word now) { return writers_before(ticket, now); });
  }

  /// Enters unless a writer is in or waits. 1 get and 1 compare-swap, more if other participants
  /// change the word meanwhile.
  [[nodiscard]] bool try_lock_shared() {
    return try_to_draw(format_.drawn_shared(),
                       [&](rma::word now) { return writers_before(now, now) == 0; });
  }

  void unlock_shared() { static_cast<void>(count_one(format_.served_shared())); }

  // ---- writers ----

  void lock() {
    const rma::word ticket = count_one(format_.drawn_exclusive());
    await_turn(ticket, [&](rma::word now) {
      return writers_before(ticket, now) + readers_before(ticket, now);
    });
  }

  /// Enters if nobody is in or waits. 1 get and 1 compare-swap, more if other participants come and
  /// go meanwhile.
  [[nodiscard]] bool try_lock() {
    return try_to_draw(format_.drawn_exclusive(), [&](rma::word now) {
      return writers_before(now, now) + readers_before(now, now) == 0;
    });
  }

  /// Flushed, else the next one would wait until we flush something else.
  void unlock() {
    port_.add(tickets_, ticket_format::one(format_.served_exclusive()));
    port_.flush(tickets_.home);
  }

 private:
  // `ticket` is the word as it was before the ticket was drawn: all that had drawn then are served
  // before.
  [[nodiscard]] rma::word writers_before(rma::word ticket, rma::word now) const {
    return difference(ticket, format_.drawn_exclusive(), now, format_.served_exclusive());
  }
  [[nodiscard]] rma::word readers_before(rma::word ticket, rma::word now) const {
    return difference(ticket, format_.drawn_shared(), now, format_.served_shared());
  }
  [[nodiscard]] static rma::word difference(rma::word drawn, rma::field drawn_of, rma::word served,
                                            rma::field served_of) {
    return (ticket_format::count(drawn, drawn_of) - ticket_format::count(served, served_of)) &
           drawn_of.most();
  }

  // Adds one to a counter, and returns the word before.
  rma::word count_one(rma::field counter) {
    const rma::word before = rma::fetch_add_now(port_, tickets_, ticket_format::one(counter));
    take_guard_back(before, counter);
    return before;
  }

  // D1: after we have counted one. Flushed before anything else, since participants that meet the
  // guard bit wait.
  void take_guard_back(rma::word before, rma::field counter) {
    if (ticket_format::count(before, counter) != counter.most()) return;
    rma::ensure((before & ticket_format::guard(counter)) == 0, "a counter never overflows");
    port_.add(tickets_, 0 - ticket_format::guard(counter));
    port_.flush(tickets_.home);
  }

  template <class Ahead>
  void await_turn(rma::word ticket, Ahead ahead) {
    // D1: guard bits that were set when we drew must have been taken back once.
    for (rma::word now = ticket; ahead(now) != 0 || format_.guards(ticket & now) != 0;
         now = rma::get_now(port_, tickets_))
      port_.pause(wait_ns_ * ahead(now));
  }

  // D3: draws a ticket only while it is served at once.
  template <class MayEnter>
  [[nodiscard]] bool try_to_draw(rma::field counter, MayEnter may_enter) {
    for (rma::word now = rma::get_now(port_, tickets_); may_enter(now) && format_.guards(now) == 0;
         port_.pause(0)) {
      const rma::word seen =
          rma::compare_swap_now(port_, tickets_, now, now + ticket_format::one(counter));
      if (seen == now) {
        take_guard_back(now, counter);
        return true;
      }
      now = seen;
    }
    return false;
  }

  Port& port_;
  rma::nic_cell tickets_;
  ticket_format format_;
  std::uint64_t wait_ns_;
};

}  // namespace lockflight::lock
