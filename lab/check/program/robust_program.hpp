// The check program for a lock made to outlive its holders: the rounds of lock_program. A
// participant that lives when all have left must get the lock.
#pragma once

#include <algorithm>

#include "lab/check/program/lock_program.hpp"
#include "lockflight/lock/robust/generation.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight::check {

template <class Lock>
class robust_program : public program_base<robust_program<Lock>, typename Lock::parameters,
                                           typename Lock::participant>,
                       lock_calls<Lock> {
  using base =
      program_base<robust_program<Lock>, typename Lock::parameters, typename Lock::participant>;
  using base::set_, base::what_;
  using lock_calls<Lock>::play;

 public:
  robust_program(scenario what, const typename Lock::parameters& set, const model& how)
      : base(std::move(what), set), deaths_(how.deaths), stops_(how.stops) {
    rma::layout in(base::words);
    static_cast<void>(in.take<rma::plain_cell>(base::line_words));
    static_cast<void>(in.take<rma::plain_cell>(count()));
    repairer_ = Lock::cells::place(in, what_.machine, set_).repairer();
  }

  // Each generation has its tables.
  static constexpr std::size_t private_bytes = 2048;
  /// The number of records of each participant: one for the lock, one for an attempt whose queue
  /// node is not out yet, one for a hold that is ended from outside, and one for each generation
  /// that it may have left.
  [[nodiscard]] int records() const {
    const bool is_timed = std::ranges::any_of(
        what_.parts, [](part p) { return p == part::timed_writer || p == part::timed_reader; });
    return 1 + (is_timed ? 1 : 0) + (abandons() ? 1 : 0) + std::min(3, deaths_ + 2 * stops_);
  }

  [[nodiscard]] program operator()() const {
    program made = base::operator()();
    const auto any_record = [count = count()](const engine& e, rank_t rank, auto is_so) {
      for (std::uint32_t i = 0; i < count; ++i)
        if (is_so(lock::record::from(e.value(first_record(count).at(rank) + i)))) return true;
      return false;
    };
    made.says_that_it_holds = [any_record](const engine& e, rank_t rank) {
      return any_record(e, rank, [](lock::record r) {
        return r.get(lock::record::phase) == lock::record::holding;
      });
    };
    made.says_that_it_holds_any = [any_record](const engine& e, rank_t rank) {
      return any_record(e, rank, [](lock::record r) { return r.holds(); });
    };
    made.repairs = [at = repairer_](const engine& e, rank_t rank) {
      return static_cast<std::uint32_t>(e.value(rma::plain_cell{at.home, at.index})) ==
             static_cast<std::uint32_t>(rank) + 1;
    };
    made.is_free_to_take = [any_record](const engine& e, rank_t rank) {
      return !any_record(e, rank, [](lock::record r) { return r.bits() != 0; });
    };
    return made;
  }

  void describe_cells(engine& e) const {
    rma::layout in(base::words);
    const auto lines = in.take<rma::plain_cell>(base::line_words);
    e.name_cells(lines.index, base::line_words, "line");
    e.name_cells(in.take<rma::plain_cell>(count()).index, count(), "record");
    const auto cells = Lock::cells::place(in, what_.machine, set_);
    e.name_cells(cells.generation().index, 1, "generation");
    e.name_cells(cells.token().index, 1, "token");
    e.name_cells(cells.died().index, 1, "died");
    e.name_cells(cells.inherited().index, 1, "inherited");
    e.name_cells(cells.repairer().index, 1, "repairer");
    for (int i = 0; i < lock::generation_cells::instances; ++i)
      e.name_cells(cells.instance_begin(i), cells.instance_end(i) - cells.instance_begin(i),
                   std::string(1, static_cast<char>('a' + i)));
    e.set_places(lines.index, base::line_words);
    e.allow_cells(lines.index, in.used());
    if (what_.endless) e.set_counter(cells.token());
  }

  void run(engine& e, port_of<typename Lock::participant>& p,
           typename Lock::participant& me) const {
    const auto where = Lock::cells::place(me.cells(), what_.machine, set_);
    Lock lock(me, where, set_);
    const rank_t rank = me.rank();
    const auto play_part = [&] {
      if (base::part_of(rank) == part::abandoner)
        abandon(e, me, where, lock);
      else
        play(e, rank, lock, base::part_of(rank));
    };
    while (what_.endless) {
      p.idle();
      if (base::rounds(rank) > 0) play_part();
    }
    for (int round = 0; round < base::rounds(rank); ++round) play_part();
    const auto lost = me.nodes_since({}, no_place);
    if ((lost.in_use | lost.abandoned) != 0)
      e.fail("lost queue node", base::text_of_nodes(rank, lost.in_use | lost.abandoned));
    if (p.rendezvous() != rank) return;
    if (abandons()) free_places(e, p, lock);
    play(e, rank, lock, part::writer);
    if constexpr (lock::shared<Lock>) play(e, rank, lock, part::reader);
  }

 private:
  static constexpr int no_place = 31;  // there are fewer records

  // A round in which the handle goes away while it holds, as that of a thread that ends, and
  // another handle of the process ends the hold.
  [[gnu::noinline]] void abandon(engine& e, typename Lock::participant& me,
                                 const typename Lock::cells& where, Lock& other) const {
    const rank_t rank = me.rank();
    if constexpr (requires { other.abandon_for(rank, 0); }) {
      other.abandon_for(rank, hold_and_go(e, me, where));
      e.released(rank);
    }
  }

  // Handles the deaths that concern the lock, as code that ends participants does. No living
  // participant is in the lock any more, so each place whose owner died before is free to take
  // (C46).
  [[gnu::noinline]] void free_places(engine& e, port_of<typename Lock::participant>& p,
                                     Lock& lock) const {
    if constexpr (requires { lock.repair_if_needed(); }) {
      const rma::word known = p.deaths();
      if (known == 0) return;
      if (!lock.repair_if_needed())
        e.fail("vain attempt",
               "rank " + std::to_string(p.rank()) + " has all the time to repair, and gives up");
      bool all_are_free = true;
      for (rank_t r = 0; r < what_.machine.ranks(); ++r)
        for (std::uint32_t i = 0; i < count(); ++i)
          if (p.load(first_record(count()).at(r) + i) != 0 && p.is_dead(r)) all_are_free = false;
      // A stopped participant may be in a generation for ever.
      if (!all_are_free && known == static_cast<rma::word>(deaths_) && stops_ == 0)
        e.fail("lost place",
               "no participant is in the lock, and the record of a dead one is not idle");
    }
  }

  [[nodiscard]] bool abandons() const {
    return std::ranges::count(what_.parts, part::abandoner) > 0;
  }
  // Returns the number of the record that says that the participant holds.
  [[nodiscard, gnu::noinline]] int hold_and_go(engine& e, typename Lock::participant& me,
                                               const typename Lock::cells& where) const {
    const rank_t rank = me.rank();
    Lock gone(me, where, set_);
    e.begin_acquire(rank);
    gone.lock();
    e.enter(rank, true);
    e.check_token(rank, gone.token());
    e.check_told(rank, gone.owner_died());
    e.act(rank, action::critical);
    e.abandon(rank);
    return gone.place();
  }

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(records()); }
  [[nodiscard]] static rma::plain_cell first_record(std::uint32_t count) {
    rma::layout in(base::words);
    static_cast<void>(in.take<rma::plain_cell>(base::line_words));
    return in.take<rma::plain_cell>(count);
  }

  int deaths_, stops_;
  rma::cpu_cell repairer_;
};

}  // namespace lockflight::check
