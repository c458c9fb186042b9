// The bytes in a lock's facts are those of the cells that it touches. In virtual time, since the
// order of the queue decides which cells are touched, and here it is the same each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "lab/sim/run.hpp"
#include "lockflight/fabric/decorator.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/barrier.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

/// The cells that were touched, by all ranks.
class touched_cells {
 public:
  void note(rma::rank_t home, std::uint32_t index) { touched_[home].insert(index); }
  /// How many bytes of `rank`'s segment were touched among [from, to).
  [[nodiscard]] int bytes(rma::rank_t rank, std::uint32_t from, std::uint32_t to) const {
    const auto at = touched_.find(rank);
    if (at == touched_.end()) return 0;
    const auto count = std::distance(at->second.lower_bound(from), at->second.lower_bound(to));
    return static_cast<int>(count * static_cast<std::ptrdiff_t>(sizeof(rma::word)));
  }

 private:
  std::map<rma::rank_t, std::set<std::uint32_t>> touched_;
};

/// A decorator that records every cell that it accesses.
template <rma::port Inner>
class noting : public fabric::decorator<Inner> {
  using base = fabric::decorator<Inner>;

 public:
  noting(Inner& inner, touched_cells& notes) : base(inner), notes_(notes) {}

  void put(auto to, rma::word value) { base::put(note(to), value); }
  void get(auto from, rma::word& result) { base::get(note(from), result); }
  void add(rma::nic_cell to, rma::word value) { base::add(note(to), value); }
  void fetch_add(rma::nic_cell at, rma::word value, rma::word& before) {
    base::fetch_add(note(at), value, before);
  }
  void swap(rma::nic_cell at, rma::word value, rma::word& before) {
    base::swap(note(at), value, before);
  }
  void compare_swap(rma::nic_cell at, rma::word expected, rma::word desired, rma::word& before) {
    base::compare_swap(note(at), expected, desired, before);
  }
  [[nodiscard]] rma::word load(auto from) { return base::load(note(from)); }
  void store(auto to, rma::word value) { base::store(note(to), value); }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell at, rma::word value) {
    return base::cpu_fetch_add(note(at), value);
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at, rma::word value) {
    return base::cpu_swap(note(at), value);
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at, rma::word expected,
                                           rma::word desired) {
    return base::cpu_compare_swap(note(at), expected, desired);
  }
  rma::word await(auto on, auto done) { return base::await(note(on), done); }
  rma::word poll(auto from, auto done, rma::backoff back_off) {
    return base::poll(note(from), done, back_off);
  }

 private:
  template <class Cell>
  Cell note(Cell c) {
    notes_.note(c.home, c.index);
    return c;
  }

  touched_cells& notes_;
};

using noting_port = noting<sim::port>;

/// The bytes of a lock on a machine of 2 nodes of 3 ranks, its home a rank that leads no node.
struct taken {
  static constexpr rma::rank_t home = 4;
  touched_cells cells;
  std::uint32_t begin = 0, end = 0;  // the lock's part of the layout
  std::uint32_t lines_end = 0;       // the queue nodes' part starts where the layout does
  int coming = 0;                    // ranks that are about to call lock()
};

template <class Lock>
void use(taken& notes) {
  const sim::setting what{.profile = made_up_machine(),
                          .machine = rma::topology::balanced({2, 3}),
                          .words_per_rank = 4096};
  sim::run_ports(what, [&](sim::port& bare) {
    noting_port p(bare, notes.cells);
    rma::participant<noting_port> me(p, what.words_per_rank);
    std::minstd_rand draw(static_cast<unsigned>(me.rank()) + 1);
    const std::uint32_t lines_end = me.cells().used();
    const auto where =
        Lock::cells::place(me.cells(), me.machine(), typename Lock::parameters{}, taken::home);
    if (me.rank() == 0) {
      notes.lines_end = lines_end;
      notes.begin = lines_end;
      notes.end = me.cells().used();
    }
    Lock lock(me, where, {});
    rma::barrier all(me);
    const auto exclusive = [&] { lock.lock(); };
    const auto end_exclusive = [&] { lock.unlock(); };
    // One holds the lock while all others want it.
    const auto meet = [&](rma::rank_t holder, auto hold, auto release, auto take, auto give) {
      if (me.rank() == holder) {
        hold();
        notes.coming = 0;
      }
      all.arrive_and_wait();
      if (me.rank() == holder) {
        while (notes.coming != me.machine().ranks() - 1) me.port().pause(1000);
        for (int i = 0; i < 4; ++i) me.port().pause(50'000);
        release();
      } else {
        me.port().pause(draw() % 5'000);
        ++notes.coming;
        take();
        give();
      }
      all.arrive_and_wait();
    };
    // Each rank in turn, since a rank that never waits touches less; and several times, since the
    // order of a node's waiters is random.
    for (int turn = 0; turn < 6 * me.machine().ranks(); ++turn) {
      const rma::rank_t holder = turn % me.machine().ranks();
      // One acquire more, so that holders do not always have the same place modulo the ranks.
      if (me.rank() == holder) {
        lock.lock();
        lock.unlock();
      }
      all.arrive_and_wait();
      meet(holder, exclusive, end_exclusive, exclusive, end_exclusive);
      if constexpr (lock::shared<Lock>) {
        const auto shared = [&] { lock.lock_shared(); };
        const auto end_shared = [&] { lock.unlock_shared(); };
        meet(holder, exclusive, end_exclusive, shared, end_shared);
        meet(holder, shared, end_shared, exclusive, end_exclusive);
        meet(holder, shared, end_shared, shared, end_shared);
      }
      if constexpr (lock::can_time<Lock>) {
        bool in_time = false;
        const auto for_a_moment = [&] { in_time = lock.try_lock_within(draw() % 20'000); };
        const auto end_if_held = [&] {
          if (in_time) lock.unlock();
        };
        meet(holder, exclusive, end_exclusive, for_a_moment, end_if_held);
      }
    }
  });
}

TEST(touched_bytes, are_what_the_locks_say) {
  lock::all::for_each([]<class Family>(Family) {
    using lock_type = typename Family::template on<noting_port>;
    const lock::facts about = lock_type::about;
    SCOPED_TRACE(about.name);
    taken notes;
    ASSERT_NO_THROW(use<lock_type>(notes));
    int most_of_lines = 0;
    for (rma::rank_t rank = 0; rank < 6; ++rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank);
      const bool leads_node = rank == 0 || (rank == 3 && !about.node_at_home);
      EXPECT_EQ(notes.cells.bytes(rank, notes.begin, notes.end),
                (rank == taken::home ? about.bytes_home + 6 * about.bytes_home_per_rank : 0) +
                    (leads_node ? about.bytes_per_node : 0));
      // A rank that never waited behind another one of its node touched less.
      const int of_lines = notes.cells.bytes(rank, 0, notes.lines_end);
      EXPECT_LE(of_lines, about.bytes_per_participant);
      most_of_lines = std::max(most_of_lines, of_lines);
    }
    EXPECT_EQ(most_of_lines, about.bytes_per_participant);
  });
}

}  // namespace
}  // namespace lockflight::test
