// Group mutual exclusion of two groups: any number of participants may be in one group, and while
// one is in, no participant is in the other group. With it one operation locks a whole window
// against locks on single targets.
//
// Source: the problem is Joung's ("Asynchronous Group Mutual Exclusion", 1998). The counts of both
// groups in one word are those of foMPI's global counter (MPI passive target synchronization on a
// non-cache-coherent many-core, section 4.2). There a participant that finds the other group in
// retries for ever; here it waits in a queue, and later participants wait behind it.
//
// Invariants: a participant is in its group when its fetch-add found the other group's count 0 and
// no waiter's flag, or when it is the head of the queue and has seen the other group's count 0.
// While the flag is set no participant enters but the head.
//
// Order: a participant enters at once if the other group is empty and there is no waiter. The
// others enter first come, first served, as long as none has waited at the head for `patience`.
//
// Patience: a program may let a participant that is in wait for another one that wants to enter the
// same group, and MPI's own locks let that one in. Behind the head, which waits for the first one
// to leave, it would wait for ever. So a head that has waited for `patience` goes to the end of the
// queue, and the next waiter enters if it can; a head that is alone gives way to participants that
// come at that moment. A participant is thus bypassed by the other group without a bound in number,
// but only by those that come or have waited while it gives way, once in each `patience`. One whose
// rivals leave sooner than that enters the first time that it is the head.
//
// Cost in network operations:
// | enter                 | 1 fetch-add                                                          |
// | leave                 | 1 add                                                                |
// | enter, having to wait | 3 adds and the queue's operations more (d_mcs.hpp), 1 get a poll (*) |
// | … once a patience     | 2 adds and the queue's operations more                               |
// (*) None on the node of the word.
#pragma once

#include <cstdint>

#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

enum class group : std::uint8_t { first, second };

/// Far longer than a lock is held, and short beside a program that stands still.
inline constexpr std::uint64_t usual_patience_ns = 100'000'000;

/// A handle: enter, then leave. It costs nothing to make. `Patience` in nanoseconds; 0: a head
/// never gives way.
template <rma::port Port, std::uint64_t Patience = usual_patience_ns>
class group_exclusion {
  using queue = d_mcs<Port>;

 public:
  struct cells {
    rma::nic_cell occupied;         // how many are in each group, and a waiter's flag
    typename queue::cells waiting;  // the waiters' queue

    static cells place(rma::layout& in, const rma::topology& machine, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home), queue::cells::place(in, machine, {}, home)};
    }
  };

  group_exclusion(rma::participant<Port>& me, const cells& where)
      : port_(me.port()),
        occupied_(where.occupied),
        here_(me.machine().same_node(where.occupied.home, me.rank())),
        queue_(me, where.waiting) {}

  void enter(group g) {
    const rma::word before = rma::fetch_add_now(port_, occupied_, one_in(g));
    rma::ensure(before < 2 * somebody_waits,
                "a participant leaves only a group that it has entered");
    if (before < somebody_waits && in_other(before, g) == 0) return;
    add_now(0 - one_in(g));

    queue_.lock();
    // From here on a participant enters only if its fetch-add came before, and such participants
    // leave again; the others withdraw and queue behind us.
    add_now(somebody_waits);
    while (!other_has_left(g)) {
      // Flag first: the next head has one of its own.
      add_now(0 - somebody_waits);
      queue_.unlock();
      port_.pause(0);  // the next waiter may need our processor
      queue_.lock();
      add_now(somebody_waits);
    }
    // This is one operation, so that no participant sees the word with neither our flag nor our
    // count.
    add_now(one_in(g) - somebody_waits);
    queue_.unlock();
  }

  void leave(group g) { add_now(0 - one_in(g)); }

 private:
  // The word: 30 bits for the count of each group, then one bit for the waiter's flag.
  static constexpr int count_bits = 30;
  static constexpr rma::word somebody_waits = rma::word{1} << (2 * count_bits);

  [[nodiscard]] static constexpr rma::word one_in(group g) {
    return g == group::first ? 1 : rma::word{1} << count_bits;
  }
  [[nodiscard]] static constexpr rma::word in_other(rma::word occupied, group g) {
    const rma::word count = g == group::first ? occupied >> count_bits : occupied;
    return count & ((rma::word{1} << count_bits) - 1);
  }

  // Waits until the other group is empty. False if that takes longer than our patience.
  [[nodiscard]] bool other_has_left(group g) {
    const auto other_is_empty = [g](rma::word now) { return in_other(now, g) == 0; };
    const rma::backoff pauses(500, 20'000);
    if constexpr (Patience == 0) {
      here_ ? port_.await(occupied_, other_is_empty)
            : port_.poll(occupied_, other_is_empty, pauses);
      return true;
    } else {
      const rma::deadline until = port_.deadline_in(Patience);
      if (here_) return other_is_empty(port_.await_until(occupied_, other_is_empty, until));
      for (rma::backoff next = pauses;; port_.pause(next.next())) {
        if (other_is_empty(rma::get_now(port_, occupied_))) return true;
        if (port_.is_over(until)) return false;
      }
    }
  }

  // Flushed, else a waiter would see it only when we flush something else.
  void add_now(rma::word value) {
    port_.add(occupied_, value);
    port_.flush(occupied_.home);
  }

  Port& port_;
  rma::nic_cell occupied_;
  bool here_;
  queue queue_;
};

}  // namespace lockflight::lock
