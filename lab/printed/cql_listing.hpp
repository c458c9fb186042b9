// cql-listing: the cooperative queue-notify lock as its paper describes it, with the flaw that cql
// corrects. It is for the checker and for simulated runs; cql.hpp is the lock to use.
//
// Source: "DecLock: A Case of Decoupled Locking for Disaggregated Memory" (DecLock paper, arXiv
// 2505.17641), CQL.
//
// How it differs from cql: a waiter writes its entry into its slot of the ring and nowhere else,
// and a holder that looks for an entry reads that slot until it is there. A reader that leaves
// decides by the entries alone whether a writer waits for it: an entry of a later place in the slot
// says that the queue has moved on. (The paper's client resets the lock then.)
//
// The flaw (Q2 of cql.hpp): while a writer that leaves is still about to notify the readers behind
// it, other readers enter without waiting. Each that leaves serves a place, so places go on, and a
// later waiter writes its entry into the slot of a reader that was not notified yet. The writer
// that leaves waits for that reader's entry for ever.
//
// Differences from the text: Q1, Q4, Q5 and Q6 of cql.hpp. The ring has a slot for each rank and
// not 512, which makes the flaw more frequent and is not its cause: any number of readers may come
// and go before the next waiter is notified. (The paper's client gives up after some reads and
// resets the lock, and all that wait or hold acquire again.) Where the 32 bits of a place's number
// wrap around, two waiters share a slot unless the number of ranks is a power of two, as 512 is.
// The flaw shows there as well.
//
// Order, fairness and cost: as cql, where the flaw does not show; a waiter makes one put.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/cql_words.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct cql_listing_parameters {
  [[nodiscard]] static constexpr std::array<parameter<cql_listing_parameters>, 0> all() {
    return {};
  }
};

template <rma::port Port>
class cql_listing {
 public:
  static constexpr facts about{
      .name = "cql-listing",
      .what = kind::rw,
      .source = "CQL of DecLock: A Case of Decoupled Locking for Disaggregated Memory, as printed",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 8,
      .bytes_home_per_rank = 8,
      .as_printed = true,
  };
  using parameters = cql_listing_parameters;
  static_assert(rma::participant<Port>::most_nested < 64, "an entry names a queue node in 6 bits");

  /// This lock's words, at the home.
  struct cells {
    rma::nic_cell header;
    rma::plain_cell ring;  // of each rank a slot; the entry of place i is in slot i mod ranks

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      const auto ranks = static_cast<std::uint32_t>(machine.ranks());
      return {in.take<rma::nic_cell>(1).at(home), in.take<rma::plain_cell>(ranks).at(home)};
    }
  };

  /// How many ranks can use a lock.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters&) {
    return static_cast<std::int64_t>(cql_header::size.most());
  }

  /// Throws std::invalid_argument if there are more ranks than the header can count.
  cql_listing(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), cells_(where) {
    if (me.machine().ranks() > most_ranks({}))
      throw std::invalid_argument("cql-listing: " + std::to_string(me.machine().ranks()) +
                                  " ranks (accepted: 1 to " + std::to_string(most_ranks({})) +
                                  ", as many as its header can count)");
  }

  void lock() { acquire(/*exclusive=*/true); }
  void lock_shared() { acquire(/*exclusive=*/false); }

  /// Takes the lock if the queue is empty. 1 get and 1 compare-swap, more if others come and go
  /// meanwhile.
  [[nodiscard]] bool try_lock() { return try_to_acquire(/*exclusive=*/true); }
  /// Takes the lock if no writer is in the queue. 1 get and 1 compare-swap, more if readers come
  /// and go meanwhile.
  [[nodiscard]] bool try_lock_shared() { return try_to_acquire(/*exclusive=*/false); }

  void unlock() {
    rma::word before = 0;
    rma::word first = 0;
    port_.fetch_add(cells_.header, cql_header::release(/*exclusive=*/true), before);
    // A writer has the first place, so it knows the one behind it. If posts are ordered the entry
    // comes in the same round trip, whether there is a waiter or not.
    const bool ordered = rma::orders_posts(port_);
    if (ordered) port_.get(entry_of(place_ + 1), first);
    port_.flush(cells_.header.home);
    const auto was = cql_header::from(before);
    if (was.get(cql_header::size) == 1) return;
    notify_from(place_ + 1, was.end(), cql_entry::from(first));
  }

  void unlock_shared() {
    const auto was = cql_header::from(
        rma::fetch_add_now(port_, cells_.header, cql_header::release(/*exclusive=*/false)));
    if (was.get(cql_header::writers) == 0) return;
    const auto first = static_cast<std::uint32_t>(was.get(cql_header::head)) + 1;
    for (rma::backoff b = poll_schedule();; port_.pause(b.next())) {
      const cql_entry next = read(first);
      if (next.is_of(first)) {
        if (next.has(cql_entry::exclusive)) notify(next);
        return;  // that of a reader which is or was in: we are not the last reader
      }
      if (next.is_after(first) || all_writers_are_seen(first, was)) return;
    }
  }

 private:
  // The word of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t granted = 0;  // 1 when its owner is in

  using entries = std::array<rma::word, rma::line_words>;

  [[nodiscard]] static constexpr rma::backoff poll_schedule() { return {200, 20'000}; }
  [[nodiscard]] rma::plain_cell entry_of(std::uint32_t place) const {
    return cells_.ring + place % static_cast<std::uint32_t>(me_.machine().ranks());
  }
  [[nodiscard]] cql_entry read(std::uint32_t place) {
    return cql_entry::from(rma::get_now(port_, entry_of(place)));
  }
  /// The entries from `place` on, as many as there are before `end` and room is, in one round trip.
  /// Returns how many.
  [[nodiscard]] std::uint32_t read_entries(std::uint32_t place, std::uint32_t end, entries& into) {
    const auto count = std::min(end - place, static_cast<std::uint32_t>(into.size()));
    for (std::uint32_t i = 0; i < count; ++i) port_.get(entry_of(place + i), into[i]);
    port_.flush(cells_.ring.home);
    return count;
  }

  void acquire(bool exclusive) {
    const auto before =
        cql_header::from(rma::fetch_add_now(port_, cells_.header, cql_header::arrival(exclusive)));
    place_ = before.end();
    if (before.admits(exclusive)) return;
    rma::ensure(static_cast<std::int64_t>(before.get(cql_header::size)) < me_.machine().ranks(),
                "Q1: a place for each participant");
    const rma::queue_node node = me_.take_queue_node();
    // Flushed: the participant that is to notify us may be waiting for it.
    rma::put_now(port_, entry_of(place_), cql_entry::of(node.first, exclusive, place_).bits());
    port_.await(node[granted], rma::equals(1));
    port_.store(node[granted], 0);
    me_.give_back(node);
  }

  // Q6
  [[nodiscard]] bool try_to_acquire(bool exclusive) {
    for (auto now = cql_header::from(rma::get_now(port_, cells_.header)); now.admits(exclusive);
         port_.pause(0)) {
      const auto seen = cql_header::from(rma::compare_swap_now(
          port_, cells_.header, now.bits(), now.bits() + cql_header::arrival(exclusive)));
      if (seen == now) {
        place_ = now.end();
        return true;
      }
      now = seen;
    }
    return false;
  }

  // Of a writer: all places from `place` to `end` are those of waiters. Notifies the first one, and
  // if that is a reader, the readers behind it.
  void notify_from(std::uint32_t place, std::uint32_t end, cql_entry next) {
    if (!next.is_of(place)) next = await_entry(place);
    port_.put(next.waiter(), 1);
    if (!next.has(cql_entry::exclusive)) notify_readers_from(place + 1, end);
    port_.flush();
  }

  void notify_readers_from(std::uint32_t place, std::uint32_t end) {
    for (entries batch{}; place != end;) {
      const std::uint32_t count = read_entries(place, end, batch);
      for (std::uint32_t i = 0; i < count; ++i, ++place) {
        auto next = cql_entry::from(batch[i]);
        if (!next.is_of(place)) {
          port_.flush();  // nothing is pending when we wait (C9)
          next = await_entry(place);
        }
        if (next.has(cql_entry::exclusive)) return;
        port_.put(next.waiter(), 1);
      }
    }
  }

  // Of a waiter that has its place and is about to write its entry.
  [[nodiscard]] cql_entry await_entry(std::uint32_t place) {
    return cql_entry::from(port_.poll(
        entry_of(place), [=](rma::word now) { return cql_entry::from(now).is_of(place); },
        poll_schedule()));
  }

  void notify(cql_entry waiter) {
    // Flushed, else the waiter would wait until we flush something else.
    rma::put_now(port_, waiter.waiter(), 1);
  }

  // Of a reader that left: whether no writer's entry is late, or the queue has moved on. In both
  // cases no writer at `first` waits for us.
  [[nodiscard]] bool all_writers_are_seen(std::uint32_t first, cql_header was) {
    rma::word writers = 0;
    entries batch{};
    for (std::uint32_t place = first; place != was.end();) {
      const std::uint32_t count = read_entries(place, was.end(), batch);
      for (std::uint32_t i = 0; i < count; ++i, ++place) {
        const auto entry = cql_entry::from(batch[i]);
        if (entry.is_after(place)) return true;
        if (entry.is_of(place) && entry.has(cql_entry::exclusive)) {
          if (place == first) return false;  // the waiter came meanwhile, and we must notify it
          ++writers;
        }
      }
    }
    return writers == was.get(cql_header::writers);
  }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  std::uint32_t place_ = 0;  // ours, while we are in
};

}  // namespace lockflight::lock
