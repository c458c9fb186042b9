// cql: a reader-writer lock with a queue in the memory of its home. A waiter writes itself into the
// queue and waits in its own memory; a holder that leaves reads the next entry there and notifies
// that waiter.
//
// Source: "DecLock: A Case of Decoupled Locking for Disaggregated Memory" (DecLock paper, arXiv
// 2505.17641), the cooperative queue-notify lock (CQL) without the hierarchy above it. The header
// has the number of places in the queue (size there), of those of writers (excl), and of places
// that were served (head). Places are numbered in the order of arrival. The ring has entries, and
// that of place i is in slot i modulo their number. A participant that finds the lock free for it
// writes none.
//
// Differences from the text:
// Q1  The ring has a slot for each rank, so it never overflows. (The paper's has 512. If it is
//     full, all participants are notified and acquire again.)
// Q2  A flaw is corrected: in the text an entry can be overwritten before it is read. While a
//     leaving writer is about to notify the readers behind it, no writer is in the queue, so other
//     readers enter without waiting. Each of them that leaves serves a place, so places go
//     on, and a later waiter writes its entry into the slot of a reader that was not notified yet,
//     or that reader's entry arrives late and overwrites the later one. The holder that looks for
//     the lost entry waits for ever. Here each waiter also writes its entry into a word of its own
//     at the home, which only its own next wait overwrites. An entry that does not come into its
//     slot is looked for there. cql_listing.hpp has the ring alone.
// Q3  A holder that leaves and finds no entry for a place reads the header again. If that place is
//     served, nobody waits there for this holder: a reader was already in, or, behind readers that
//     this holder notified, the last of them has notified the writer that comes next, and that one
//     has left and waits at a later place. (The paper's client looks at the entries alone, and
//     resets the lock if it finds one of a later place.)
// Q4  An entry has the number of its place in 32 bits. (The paper's has a number of the round of
//     the ring, in 24 bits or fewer.) An entry of an earlier place is taken for a present one only
//     if its word was not written for 2^32 acquires, and then read before it is. Where the numbers
//     wrap around, two waiters share a slot unless the number of ranks is a power of two. The one
//     whose entry is overwritten is found by its own word (Q2).
// Q5  What the paper sends as a message to a waiter is a put into its queue node. There is no reset
//     after a timeout: a participant that is killed is the business of lock::robust, or ends the
//     run (C36).
// Q6  try_lock and try_lock_shared, which the text does not have.
//
// Invariants:
// - Each release serves the first place of the queue, also if that is another reader's. So as many
//   places are served as holders have left, and the one whose release makes a waiting writer's
//   place the first is the last of the holders before it. It notifies the writer, and no place is
//   served before it has.
// - A writer that leaves notifies the waiter of the next place, and if that is a reader's, also the
//   readers behind it up to the next writer. All of these have written entries or are about to,
//   since the writer was in the queue when they came. No other participant notifies them.
// - The own word of a waiter has its entry from when it was written until the waiter is notified.
// - A reader that leaves finds for the first place either an entry, or nothing: then it is a
//   reader's that did not wait, unless the entry of a writer is late. If it is a reader's, either
//   it is served, which the header shows, or all writers that the header counted write their
//   entries, for places behind it.
//
// Order: first come, first served, by the order of the fetch-adds; neighbouring readers are in
// together, and a reader that finds no writer in the queue enters at once. Fairness: once its
// fetch-add has taken effect, a waiter is overtaken only by readers that came before the next
// writer.
//
// Cost in network operations; waiting is local:
// | acquire, free          | 1 fetch-add                                                      |
// | acquire, else          | 1 fetch-add, 2 puts in one round trip                            |
// | release, no waiter     | 1 fetch-add; a writer also 1 get if posts are ordered            |
// | handoff by a writer    | 1 fetch-add, 1 get, 1 put; to readers 1 get and 1 put for each   |
// | release beside writers | of a reader: 1 fetch-add, 1 get; also 1 for each place in the    |
// |                        | queue if the first one has no entry; the last reader 1 put       |
// | an entry that is lost  | 1 get for each rank                                              |
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/cql_entries.hpp"
#include "lockflight/lock/part/cql_words.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct cql_parameters {
  std::int64_t slot_reads = 8;

  [[nodiscard]] static constexpr auto all() {
    return std::array{parameter<cql_parameters>{
        "slot_reads", [](auto& p) -> std::int64_t& { return p.slot_reads; }, 0, 1'000'000,
        "reads of a slot whose entry is late, before the words of all ranks are read"}};
  }
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
      .bytes_home_per_rank = 16,
  };
  using parameters = cql_parameters;
  static_assert(rma::participant<Port>::most_nested < 64, "an entry names a queue node in 6 bits");

  /// This lock's words, at the home.
  struct cells {
    rma::nic_cell header;
    rma::plain_cell ring;  // of each rank a slot
    rma::plain_cell own;   // of each rank its last entry (Q2)

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      const auto ranks = static_cast<std::uint32_t>(machine.ranks());
      const auto entries = in.take<rma::plain_cell>(2 * ranks).at(home);
      return {in.take<rma::nic_cell>(1).at(home), entries, entries + ranks};
    }
  };

  /// How many ranks can use a lock.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters&) {
    return static_cast<std::int64_t>(cql_header::size.most());
  }

  /// Throws std::invalid_argument if there are more ranks than the header can count.
  cql(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me),
        port_(me.port()),
        header_(where.header),
        entries_(me, where.header, where.ring, where.own),
        slot_reads_(set.slot_reads) {
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
    port_.fetch_add(header_, cql_header::release(/*exclusive=*/true), before);
    // A writer has the first place, so it knows the one behind it. If posts are ordered the entry
    // comes in the same round trip, whether there is a waiter or not.
    const bool ordered = rma::orders_posts(port_);
    if (ordered) port_.get(entries_.slot_of(place_ + 1), first);
    port_.flush(header_.home);
    const auto was = cql_header::from(before);
    if (was.get(cql_header::size) == 1) return;
    notify_from(place_ + 1, was, cql_entry::from(first));
  }

  void unlock_shared() {
    const auto was = cql_header::from(
        rma::fetch_add_now(port_, header_, cql_header::release(/*exclusive=*/false)));
    if (was.get(cql_header::writers) == 0) return;
    const auto first = static_cast<std::uint32_t>(was.get(cql_header::head)) + 1;
    const cql_entry next = find_writer_at(first, was);
    if (next.has(cql_entry::exclusive)) notify(next);
  }

  // ---- for locks that are made of this one ----

  /// A writer's place in the queue, while it is in.
  [[nodiscard]] std::uint32_t place() const { return place_; }
  /// Another writer has the lock, and passes it to us with its place: unlock() is ours to call.
  void take_over(std::uint32_t place) { place_ = place; }
  /// For a holder: whether another participant is in the queue, or for a reader whether a writer
  /// is. 1 get.
  [[nodiscard]] bool is_awaited(bool by_writers_alone) {
    const auto now = cql_header::from(rma::get_now(port_, header_));
    return by_writers_alone ? now.get(cql_header::writers) != 0 : now.get(cql_header::size) > 1;
  }

 private:
  // The word of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t granted = 0;  // 1 when its owner is in

  using batch = typename cql_entries<Port>::batch;

  [[nodiscard]] static constexpr rma::backoff poll_schedule() { return {200, 20'000}; }
  void acquire(bool exclusive) {
    const auto before =
        cql_header::from(rma::fetch_add_now(port_, header_, cql_header::arrival(exclusive)));
    place_ = before.end();
    if (before.admits(exclusive)) return;
    rma::ensure(before.get(cql_header::size) < entries_.ranks(), "Q1: a slot for each participant");
    const rma::queue_node node = me_.take_queue_node();
    // Flushed: the participant that is to notify us may be waiting for it.
    entries_.write(place_, cql_entry::of(node.first, exclusive, place_));
    port_.await(node[granted], rma::equals(1));
    port_.store(node[granted], 0);
    me_.give_back(node);
  }

  // Q6
  [[nodiscard]] bool try_to_acquire(bool exclusive) {
    for (auto now = cql_header::from(rma::get_now(port_, header_)); now.admits(exclusive);
         port_.pause(0)) {
      const auto seen = cql_header::from(rma::compare_swap_now(
          port_, header_, now.bits(), now.bits() + cql_header::arrival(exclusive)));
      if (seen == now) {
        place_ = now.end();
        return true;
      }
      now = seen;
    }
    return false;
  }

  // ---- what a holder that left does for those behind it ----

  // Of a writer: all places from `place` on that the header counted are those of waiters. Notifies
  // the first one, and if that is a reader, the readers behind it.
  void notify_from(std::uint32_t place, cql_header was, cql_entry next) {
    if (!next.is_of(place)) next = find_waiter_at(place, was);
    rma::ensure(next.has(cql_entry::written), "the next place is not served before we notify it");
    port_.put(next.waiter(), 1);
    if (!next.has(cql_entry::exclusive)) notify_readers_from(place + 1, was);
    port_.flush();
  }

  void notify_readers_from(std::uint32_t place, cql_header was) {
    for (batch read{}; place != was.end();) {
      const std::uint32_t count = entries_.read_slots(place, was.end(), read);
      for (std::uint32_t i = 0; i < count; ++i, ++place) {
        auto next = cql_entry::from(read[i]);
        if (!next.is_of(place)) {
          port_.flush();  // readers that were notified must not wait for the others
          next = find_waiter_at(place, was);
        }
        if (!next.has(cql_entry::written) || next.has(cql_entry::exclusive)) return;
        port_.put(next.waiter(), 1);
      }
    }
  }

  void notify(cql_entry waiter) {
    // Flushed, else the waiter would wait until we flush something else.
    rma::put_now(port_, waiter.waiter(), 1);
  }

  // Of a writer that has notified all readers before `place`: the entry of the waiter there, which
  // has written it or is about to. No entry if that was a writer and has left (Q3). As long as a
  // reader waits there and a writer behind it, no other participants enter than the readers before
  // it, so the place is not served.
  [[nodiscard]] cql_entry find_waiter_at(std::uint32_t place, cql_header was) {
    const bool may_be_served = was.get(cql_header::writers) > 1;
    std::int64_t reads = 0;
    for (rma::backoff b = poll_schedule();; port_.pause(b.next())) {
      const cql_entry found = reads++ < slot_reads_
                                  ? entries_.read_slot(place)
                                  : entries_.search_own_words(place, place + 1).at_first;
      if (found.is_of(place)) return found;
      if (may_be_served && entries_.is_served(place)) return {};
    }
  }

  // Of a reader that left and made `first` the first place: the entry of the writer that waits
  // there; another entry, or none, if no writer does.
  [[nodiscard]] cql_entry find_writer_at(std::uint32_t first, cql_header was) {
    auto next = entries_.read_slot(first);
    std::int64_t reads = 1;
    for (rma::backoff b = poll_schedule(); !next.is_of(first); port_.pause(b.next())) {
      const auto found = reads++ < slot_reads_ ? entries_.search_slots(first, was.end())
                                               : entries_.search_own_words(first, was.end());
      next = found.at_first;
      if (next.is_of(first)) break;
      if (found.writers_behind == was.get(cql_header::writers)) return {};
      if (entries_.is_served(first)) return {};  // Q3
    }
    return next;
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::nic_cell header_;
  cql_entries<Port> entries_;
  std::int64_t slot_reads_;
  std::uint32_t place_ = 0;  // ours, while we are in
};

}  // namespace lockflight::lock
