// cql: a reader-writer lock with a queue in the memory of its home. A waiter writes itself into the
// queue and waits in its own memory; a holder that leaves reads the next entry there and notifies
// that waiter.
//
// Source: "DecLock: A Case of Decoupled Locking for Disaggregated Memory" (DecLock paper, arXiv
// 2505.17641), the cooperative queue-notify lock (CQL) without the hierarchy above it. The header
// has the number of places in the queue (size there), of those of writers (excl), and of places
// that were served (head). Places are numbered in the order of arrival. The ring has an entry for
// each place that is in the queue, and a participant that finds the lock free for it writes none.
//
// What differs from the text:
// Q1  The ring has an entry for each participant (rounded up to a power of two), so it never
//     overflows. (The paper's has 512 entries; if they do not suffice, all participants are
//     notified and acquire again.)
// Q2  An entry has the number of its place in 32 bits. (The paper's has a number of the round of
//     the ring, in 24 bits or fewer.) An entry of an earlier place is taken for a present one only
//     if its slot was not written for 2^32 acquires, and then read before it is.
// Q3  A reader that reads an entry of a later place knows that the queue has moved on, so another
//     participant has notified the next one. (The paper's client resets the lock then.)
// Q4  What the paper sends as a message to a waiter is a put into its queue node. There is no reset
//     after a timeout: a participant that is killed is the business of lock::robust, or ends the
//     run (C36).
// Q5  try_lock and try_lock_shared, which the text does not have.
//
// Invariants:
// - Each release serves the first place of the queue, also if that is another reader's. Readers
//   that are in have the first places together. So the one whose release makes a writer's place the
//   first is the last of them, and it notifies the writer.
// - A writer that leaves notifies the waiter of the next place, and if that is a reader's, also the
//   readers behind it up to the next writer. All of these have written entries or are about to,
//   since the writer was in the queue when they came.
// - A reader that leaves finds at the first place either an entry, or nothing: then it is a
//   reader's that did not wait, unless the entry of a writer is late. It is late as long as fewer
//   entries of writers are there than the header counted.
//
// Order: first come, first served, by the order of the fetch-adds; neighbouring readers are in
// together, and a reader that finds no writer in the queue enters at once. Fairness: once its
// fetch-add has taken effect, a waiter is overtaken only by readers that came before the next
// writer.
//
// Cost in network operations; waiting is local:
// | acquire, free          | 1 fetch-add                                                      |
// | acquire, else          | 1 fetch-add, 1 put                                               |
// | release, no waiter     | 1 fetch-add; a writer also 1 get if posts are ordered            |
// | handoff by a writer    | 1 fetch-add, 1 get, 1 put; to readers 1 get and 1 put for each   |
// | release beside writers | of a reader: 1 fetch-add, 1 get; also 1 for each place in the    |
// |                        | queue if the first one has no entry; the last reader 1 put       |
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/cql_words.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct cql_parameters {
  [[nodiscard]] static constexpr std::array<parameter<cql_parameters>, 0> all() { return {}; }
};

template <rma::port Port>
class cql {
 public:
  static constexpr facts about{
      .name = "cql",
      .what = kind::rw,
      .source =
          "CQL: DecLock: A Case of Decoupled Locking for Disaggregated Memory, arXiv 2505.17641",
      .bytes_home = 8,
      .bytes_per_node = 0,
      .bytes_per_participant = 8,
      .bytes_home_per_rank = 8,
  };
  using parameters = cql_parameters;
  static_assert(rma::participant<Port>::most_nested < 64, "an entry names a queue node in 6 bits");

  /// This lock's words, at the home.
  struct cells {
    rma::nic_cell header;
    rma::plain_cell ring;    // `places` entries; place i has entry i mod `places`
    std::uint32_t places{};  // a power of two, so that numbers may wrap around

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      const auto count = std::bit_ceil(static_cast<std::uint32_t>(machine.ranks()));
      return {in.take<rma::nic_cell>(1).at(home), in.take<rma::plain_cell>(count).at(home), count};
    }
  };

  /// How many ranks can use a lock.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters&) {
    return static_cast<std::int64_t>(cql_header::size.most());
  }

  /// Throws std::invalid_argument if there are more ranks than the header can count.
  cql(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : me_(me), port_(me.port()), cells_(where) {
    if (me.machine().ranks() > most_ranks({}))
      throw std::invalid_argument("cql: " + std::to_string(me.machine().ranks()) +
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

  // ---- for locks that are made of this one ----

  /// A writer's place in the queue, while it is in.
  [[nodiscard]] std::uint32_t place() const { return place_; }
  /// Another writer has the lock, and passes it to us with its place: unlock() is ours to call.
  void take_over(std::uint32_t place) { place_ = place; }
  /// For a holder: whether another participant is in the queue, or for a reader whether a writer
  /// is. 1 get.
  [[nodiscard]] bool is_awaited(bool by_writers_alone) {
    const auto now = cql_header::from(rma::get_now(port_, cells_.header));
    return by_writers_alone ? now.get(cql_header::writers) != 0 : now.get(cql_header::size) > 1;
  }

 private:
  // The word of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t granted = 0;  // 1 when its owner is in

  using entries = std::array<rma::word, rma::line_words>;

  [[nodiscard]] static constexpr rma::backoff poll_schedule() { return {200, 20'000}; }
  [[nodiscard]] rma::plain_cell entry_of(std::uint32_t place) const {
    return cells_.ring + (place & (cells_.places - 1));
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
    rma::ensure(before.get(cql_header::size) < cells_.places, "Q1: a place for each participant");
    const rma::queue_node node = me_.take_queue_node();
    // Flushed: the participant that is to notify us may be waiting for it.
    rma::put_now(port_, entry_of(place_), cql_entry::of(node.first, exclusive, place_).bits());
    port_.await(node[granted], rma::equals(1));
    port_.store(node[granted], 0);
    me_.give_back(node);
  }

  // Q5
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
          if (place == first) return false;  // it came meanwhile, and we must notify it
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
