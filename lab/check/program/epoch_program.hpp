// The check program for a lock that guards only the operations that go through it: epochs of puts
// and gets, large and small in turn. The values that readers get show whether epochs excluded each
// other.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "lab/check/program/lock_program.hpp"

namespace lockflight::check {

template <class Lock>
class epoch_program : public program_base<epoch_program<Lock>, typename Lock::parameters> {
  using base = program_base<epoch_program<Lock>, typename Lock::parameters>;
  using base::set_, base::what_;

 public:
  using base::base;

  static constexpr std::size_t private_bytes = 2048;  // an epoch's list of operations is among them

  /// Names the program's cells for `e`'s traces.
  void describe_cells(engine& e) const {
    rma::layout in(base::words);
    static_cast<void>(in.take<rma::plain_cell>(base::line_words));
    const std::uint32_t first = in.used();
    static_cast<void>(Lock::cells::place(in, what_.machine, set_, 0));
    e.name_cells(first, in.used() - first, "lock");
    const auto all = data::place(in);
    e.name_cells(all.pair.index, 2, "pair");
    e.name_cells(all.one.index, 1, "one");
    e.allow_cells(first, in.used());
  }

  void run(engine&, port& p, rma::participant<port>& me) const {
    Lock lock(me, Lock::cells::place(me.cells(), what_.machine, set_, 0), set_);
    const data cells = data::place(me.cells());
    const rank_t rank = me.rank();
    bool small = false;
    while (what_.endless) {
      p.idle();
      play(lock, cells, rank, std::exchange(small, !small));
    }
    for (int round = 0; round < base::rounds(rank); ++round)
      play(lock, cells, rank, std::exchange(small, !small));
    p.rendezvous();
    // All participants have left: the next participant must get the lock.
    if (rank == 0) {
      read(lock, cells, false);
      write(lock, cells, rank, false);
      write(lock, cells, rank, true);
      read(lock, cells, true);
    }
  }

 private:
  /// The cells of the epochs, at the lock's home.
  struct data {
    rma::plain_cell pair;  // two that are written together
    rma::plain_cell one;   // written by itself

    static data place(rma::layout& in) {
      return {in.take<rma::plain_cell>(2).at(0), in.take<rma::plain_cell>(1).at(0)};
    }
  };

  // The function has a frame of its own, so that nothing of an epoch is left on the stack after it.
  [[gnu::noinline]] void play(Lock& lock, const data& cells, rank_t rank, bool small) const {
    base::part_of(rank) == part::writer ? write(lock, cells, rank, small)
                                        : read(lock, cells, small);
  }

  static void write(Lock& lock, const data& cells, rank_t rank, bool small) {
    const auto mine = static_cast<rma::word>(rank) + 1;
    lock.lock();
    if (small) {
      lock.put(cells.one, mine);
    } else {
      lock.put(cells.pair, mine);
      lock.put(cells.pair + 1, mine);
    }
    lock.unlock();
  }

  // In a large epoch nothing changes between two reads.
  static void read(Lock& lock, const data& cells, bool small) {
    rma::word pair[2] = {};
    rma::word one[2] = {};
    lock.lock_shared();
    lock.get(cells.one, one[0]);
    if (!small) {
      lock.get(cells.one, one[1]);
      lock.get(cells.pair, pair[0]);
      lock.get(cells.pair + 1, pair[1]);
    }
    lock.unlock_shared();
    if (pair[0] != pair[1]) throw std::logic_error("a reader saw half of an epoch");
    if (!small && one[0] != one[1]) throw std::logic_error("a cell changed within an epoch");
  }
};

}  // namespace lockflight::check
