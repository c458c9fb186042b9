// The check program for a lock made to outlive its holders: the rounds of lock_program. Whoever
// lives when all have left must get the lock.
#pragma once

#include "check/program/lock_program.hpp"
#include "lockflight/lock/robust/participant.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight::check {

template <class Lock>
class robust_program
    : public program_base<robust_program<Lock>, typename Lock::parameters,
                          lock::robust_participant<port>>,
      lock_calls<Lock> {
  using base = program_base<robust_program<Lock>, typename Lock::parameters,
                            lock::robust_participant<port>>;
  using base::set_, base::what_;
  using lock_calls<Lock>::play;

 public:
  using base::base;

  // Each generation has its tables.
  static constexpr std::size_t private_bytes = 2048;
  // One for the lock, and those of attempts whose queue nodes are not out yet.
  static constexpr int records = 2;

  [[nodiscard]] program operator()() const {
    program made = base::operator()();
    made.says_that_it_holds = [](const engine& e, rank_t rank) {
      for (std::uint32_t i = 0; i < records; ++i)
        if (lock::record::from(e.value(places().at(rank) + i)).get(lock::record::phase) ==
            lock::record::holding)
          return true;
      return false;
    };
    return made;
  }

  void describe_cells(engine& e) const {
    rma::layout in(base::words);
    const auto lines = in.take<rma::plain_cell>(base::line_words);
    e.name_cells(lines.index, base::line_words, "line");
    e.name_cells(in.take<rma::plain_cell>(records).index, records, "record");
    const auto cells = Lock::cells::place(in, what_.machine, set_);
    const std::uint32_t first = cells.line.index;
    e.name_cells(first, 1, "generation");
    e.name_cells(first + 1, 1, "token");
    e.name_cells(first + 2, 1, "died");
    e.name_cells(first + 3, 1, "inherited");
    e.name_cells(first + 4, 1, "repairer");
    e.name_cells(first + rma::line_words, in.used() - first - rma::line_words, "lock");
    e.allow_cells(lines.index, in.used());
  }

  void run(engine& e, port& p, lock::robust_participant<port>& me) const {
    Lock lock(me, Lock::cells::place(me.cells(), what_.machine, set_), set_);
    const rank_t rank = me.rank();
    for (int round = 0; round < base::rounds(rank); ++round)
      play(e, rank, lock, base::part_of(rank));
    if (p.rendezvous() != rank) return;
    play(e, rank, lock, part::writer);
    if constexpr (lock::shared<Lock>) play(e, rank, lock, part::reader);
  }

 private:
  [[nodiscard]] static rma::plain_cell places() {
    rma::layout in(base::words);
    static_cast<void>(in.take<rma::plain_cell>(base::line_words));
    return in.take<rma::plain_cell>(records);
  }
};

}  // namespace lockflight::check
