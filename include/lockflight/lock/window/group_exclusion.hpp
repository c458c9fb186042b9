// Two rooms: any number may be in one of them, nobody is in both (group mutual exclusion). What
// lets a whole window be locked at once, against locks on single targets, with one operation.
//
// Source: the problem is Joung's ("Asynchronous Group Mutual Exclusion", 1998). The counts of both
// rooms in one word are those of foMPI's global counter (MPI passive target synchronization on a
// non-cache-coherent many-core, section 4.2), where whoever finds the other room occupied tries
// again for ever; here it stands in a queue, and those who come after it do too.
//
// Order: who finds the other room empty and nobody waiting enters at once; the others first come,
// first served.
// Network operations: enter 1 fetch-add, leave 1 add. Who must wait: 1 add to withdraw, the queue's
// operations (d_mcs.hpp), 2 adds, and a get for each look unless the word is on its node.
#pragma once

#include <cstdint>

#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

enum class room : std::uint8_t { first, second };

/// A handle is for one stay: enter, leave. It costs nothing to make.
template <rma::port Port>
class group_exclusion {
  using queue = d_mcs<Port>;

 public:
  struct cells {
    rma::nic_cell occupied;         // how many are in each room, and whether somebody waits
    typename queue::cells waiting;  // who waits stands here

    static cells place(rma::layout& in, const rma::topology& machine, rma::rank_t home) {
      return {in.take<rma::nic_cell>(1).at(home), queue::cells::place(in, machine, {}, home)};
    }
  };

  group_exclusion(rma::participant<Port>& me, const cells& where)
      : port_(me.port()),
        occupied_(where.occupied),
        here_(me.machine().same_node(where.occupied.home, me.rank())),
        queue_(me, where.waiting) {}

  void enter(room r) {
    const rma::word before = rma::fetch_add_now(port_, occupied_, one_in(r));
    rma::ensure(before < 2 * somebody_waits, "nobody leaves a room that has not entered");
    if (before < somebody_waits && in_other(before, r) == 0) return;
    add_now(0 - one_in(r));

    queue_.lock();
    // From here on nobody enters but those whose fetch-add came before, and they leave; the others
    // withdraw, and stand behind us.
    add_now(somebody_waits);
    const auto other_is_empty = [r](rma::word now) { return in_other(now, r) == 0; };
    if (here_)
      port_.await(occupied_, other_is_empty);
    else
      port_.poll(occupied_, other_is_empty, rma::backoff(500, 20'000));
    // In, before others may come: one operation, so that nobody sees neither.
    add_now(one_in(r) - somebody_waits);
    queue_.unlock();
  }

  void leave(room r) { add_now(0 - one_in(r)); }

 private:
  // The word: 30 bits for each room, then one.
  static constexpr int count_bits = 30;
  static constexpr rma::word somebody_waits = rma::word{1} << (2 * count_bits);

  [[nodiscard]] static constexpr rma::word one_in(room r) {
    return r == room::first ? 1 : rma::word{1} << count_bits;
  }
  [[nodiscard]] static constexpr rma::word in_other(rma::word occupied, room r) {
    const rma::word count = r == room::first ? occupied >> count_bits : occupied;
    return count & ((rma::word{1} << count_bits) - 1);
  }

  // Flushed, else others would see it only when we happen to flush something else.
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
