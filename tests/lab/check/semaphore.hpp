// A semaphore for the checker: the steps of lock/robust/semaphore.hpp over robust locks, and the
// program that checks it. The lock inside of the robust ones is as small as can be, since their own
// searches check them with every lock of the table.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "lab/check/engine/port.hpp"
#include "lab/check/program/lock_program.hpp"
#include "lab/check/program/subject.hpp"
#include "lockflight/lock/robust.hpp"
#include "lockflight/lock/robust/semaphore.hpp"

namespace lockflight::check {

/// One word of the CPU's class, and a waiter that sleeps on it.
template <rma::port Port>
class one_word {
 public:
  static constexpr lock::facts about{.name = "one-word",
                                     .what = lock::kind::mutex,
                                     .source = "tests/lab/check/semaphore.hpp",
                                     .bytes_home = 8,
                                     .bytes_per_node = 0,
                                     .bytes_per_participant = 0};
  struct parameters {
    [[nodiscard]] static constexpr std::array<lock::parameter<parameters>, 0> all() { return {}; }
  };
  struct cells {
    rma::cpu_cell taken;
    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      return {in.take<rma::cpu_cell>(1).at(home)};
    }
  };

  one_word(rma::participant<Port>& me, const cells& where, const parameters&)
      : port_(me.port()), taken_(where.taken) {}
  void lock() {
    while (!try_lock()) port_.await(taken_, rma::equals(0));
  }
  bool try_lock() { return port_.cpu_compare_swap(taken_, 0, 1) == 0; }
  void unlock() { static_cast<void>(port_.cpu_swap(taken_, 0)); }

 private:
  Port& port_;
  rma::cpu_cell taken_;
};

/// The order of the steps as it is. Mutants have other ones.
struct steps_of_semaphore {
  static constexpr bool has_queue = true;
  /// The last unit is not there before an operator sets it.
  static constexpr bool grows = false;
  template <class Head>
  [[nodiscard]] static lock::head_step wait_as_head(Head& head) {
    return lock::wait_as_head(head);
  }
  template <class Holder>
  static void release_units(Holder& holder) {
    lock::release_units(holder);
  }
};

/// The same, and rank 0 sets the last unit while it holds another one.
struct steps_of_growing_semaphore : steps_of_semaphore {
  static constexpr bool grows = true;
  template <class Operator>
  static void set_units(Operator& by) {
    lock::set_units(by);
  }
};

/// `Units` units, of which rank 0 takes `Take` and each other rank takes `Others`. With one it is a
/// mutex.
template <int Units, int Take = 1, int Others = Take, class Steps = steps_of_semaphore>
class semaphore {
 public:
  using part = lock::robust<one_word, port>;
  using participant = typename part::participant;
  using parameters = typename part::parameters;
  static constexpr lock::facts about{.name = "semaphore",
                                     .what = lock::kind::mutex,
                                     .source = "tests/lab/check/semaphore.hpp",
                                     .bytes_home = 0,
                                     .bytes_per_node = 0,
                                     .bytes_per_participant = 0};
  static constexpr int units = Units;
  static constexpr bool grows = Steps::grows;
  struct cells {
    typename part::cells queue;
    std::array<typename part::cells, Units> unit;
    rma::cpu_cell released;
    rma::cpu_cell is_grown;  // not 0: the last unit is there
    rma::cpu_cell has_come;  // not 0: another rank than 0 has had a unit

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set) {
      cells made{};
      made.queue = part::cells::place(in, machine, set);
      for (auto& each : made.unit) each = part::cells::place(in, machine, set);
      made.released = in.take<rma::cpu_cell>(1).at(0);
      made.is_grown = in.take<rma::cpu_cell>(1).at(0);
      made.has_come = in.take<rma::cpu_cell>(1).at(0);
      return made;
    }
  };

  semaphore(participant& me, const cells& where, const parameters& set)
      : port_(me.port()),
        where_(where),
        wanted_(me.rank() == 0 ? Take : Others),
        queue_(me, where.queue, set) {
    for (std::size_t i = 0; i < Units; ++i) units_[i].emplace(me, where.unit[i], set);
  }

  void lock() { static_cast<void>(acquire(false)); }
  [[nodiscard]] bool try_lock() { return acquire(true); }
  void unlock() { Steps::release_units(*this); }

  /// The units that the participant has, in the order in which it took them.
  [[nodiscard]] const std::array<int, Units>& units_held() const { return has_; }
  [[nodiscard]] int count_held() const { return count_; }
  [[nodiscard]] std::uint64_t token() const { return ours().token(); }
  [[nodiscard]] bool owner_died() { return ours().owner_died(); }
  void mark_consistent() { ours().mark_consistent(); }

  // ---- what the steps ask for ----

  [[nodiscard]] lock::release_mark mark() {
    return {.released = port_.load(where_.released), .deaths = port_.deaths()};
  }
  [[nodiscard]] bool try_units() {
    const int units = present_units();
    for (int i = 0; i < units && count_ < wanted_; ++i)
      if (!has(i) && units_[static_cast<std::size_t>(i)]->try_lock()) add(i);
    return count_ == wanted_;
  }
  void give_back() { free_units(); }
  [[nodiscard]] lock::head_step before_wait() const {
    return only_tries_ ? lock::head_step::late : lock::head_step::wait;
  }
  /// The domain's port has a deadline of a second as well, so that a release is never missed for
  /// longer. Here there is none: what the steps miss is a deadlock.
  [[nodiscard]] lock::head_step await_release(lock::release_mark seen) {
    // A word that nobody changes: the domain's is the serial number of the lock.
    const rma::lifeline line{where_.queue.beside(), 0, seen.deaths};
    static_cast<void>(
        port_.await_or_death(where_.released, rma::differs_from(seen.released), line));
    return lock::head_step::try_again;
  }
  void free_units() {
    while (count_ > 0) units_[static_cast<std::size_t>(at(--count_))]->unlock();
  }
  void note_release() { static_cast<void>(port_.cpu_fetch_add(where_.released, 1)); }
  void take_without_lock(int unit) { add(unit); }
  void store_units() { static_cast<void>(port_.cpu_swap(where_.is_grown, 1)); }

  /// Called by a holder of a semaphore that grows: rank 0 goes on when another rank has had a unit,
  /// which must not wait for a release.
  void stay_while_it_grows(rank_t rank) {
    if (rank != 0) return static_cast<void>(port_.cpu_swap(where_.has_come, 1));
    Steps::set_units(*this);
    const rma::lifeline line{where_.queue.beside(), 0, 0};  // until somebody has died
    static_cast<void>(port_.await_or_death(where_.has_come, rma::differs_from(0), line));
  }

  /// From now on this participant takes all units.
  void want_all() { wanted_ = present_units(); }

 private:
  [[nodiscard]] bool acquire(bool only_tries) {
    only_tries_ = only_tries;
    if constexpr (Steps::has_queue)
      if (only_tries ? !queue_.try_lock() : (queue_.lock(), false)) return false;
    const bool had = Steps::wait_as_head(*this) == lock::head_step::had;
    if constexpr (Steps::has_queue) queue_.unlock();
    return had;
  }
  [[nodiscard]] int present_units() {
    if constexpr (Steps::grows) return port_.load(where_.is_grown) != 0 ? Units : Units - 1;
    return Units;
  }
  [[nodiscard]] int& at(int i) { return has_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] bool has(int unit) const {
    return std::find(has_.begin(), has_.begin() + count_, unit) != has_.begin() + count_;
  }
  void add(int unit) { at(count_++) = unit; }
  [[nodiscard]] part& ours() { return *units_[static_cast<std::size_t>(has_.front())]; }
  [[nodiscard]] const part& ours() const { return *units_[static_cast<std::size_t>(has_.front())]; }

  port& port_;
  cells where_;
  int wanted_;
  part queue_;
  std::array<std::optional<part>, Units> units_;
  std::array<int, Units> has_{};
  int count_ = 0;
  bool only_tries_ = false;
};

/// The rounds of robust_program. With one unit the engine checks a mutex: exclusion, tokens, what
/// holders are told. With several it checks that no two hold the same unit, and each rule about
/// going on.
template <class Semaphore>
class semaphore_program
    : public program_base<semaphore_program<Semaphore>, typename Semaphore::parameters,
                          typename Semaphore::participant> {
  using base = program_base<semaphore_program<Semaphore>, typename Semaphore::parameters,
                            typename Semaphore::participant>;
  using base::set_, base::what_;
  static constexpr bool is_mutex = Semaphore::units == 1;

 public:
  semaphore_program(scenario what, const typename Semaphore::parameters& set, const model& how)
      : base(std::move(what), set), deaths_(how.deaths) {
    rma::layout in(base::words);
    static_cast<void>(in.take<rma::plain_cell>(base::line_words));
    static_cast<void>(in.take<rma::plain_cell>(count()));
    where_ = Semaphore::cells::place(in, what_.machine, set_);
  }

  static constexpr std::size_t private_bytes = 2048;
  /// Of the queue, of units, and of generations that it may have left.
  [[nodiscard]] int records() const { return 1 + Semaphore::units + deaths_; }

  [[nodiscard]] program operator()() const {
    program made = base::operator()();
    // A participant that dies as the head, or as a waiter, guards nothing.
    made.says_that_it_holds = [self = *this](const engine& e, rank_t rank) {
      return self.holds_one_of(e, rank, 0, Semaphore::units);
    };
    made.says_that_it_holds_any = made.says_that_it_holds;
    made.repairs = [](const engine&, rank_t) { return false; };
    made.is_free_to_take = [self = *this](const engine& e, rank_t rank) {
      return !self.any_record(e, rank, [](lock::record r) { return r.bits() != 0; });
    };
    return made;
  }

  void describe_cells(engine& e) const {
    rma::layout in(base::words);
    const auto lines = in.take<rma::plain_cell>(base::line_words);
    e.name_cells(lines.index, base::line_words, "line");
    e.name_cells(in.take<rma::plain_cell>(count()).index, count(), "record");
    const auto cells = Semaphore::cells::place(in, what_.machine, set_);
    name(e, cells.queue, "queue");
    for (int i = 0; i < Semaphore::units; ++i)
      name(e, cells.unit[static_cast<std::size_t>(i)], "unit" + std::to_string(i));
    e.name_cells(cells.released.index, 1, "released");
    e.name_cells(cells.is_grown.index, 1, "is_grown");
    e.name_cells(cells.has_come.index, 1, "has_come");
    e.set_places(lines.index, base::line_words);
    e.allow_cells(lines.index, in.used());
  }

  void run(engine& e, port& p, typename Semaphore::participant& me) const {
    Semaphore its(me, Semaphore::cells::place(me.cells(), what_.machine, set_), set_);
    const rank_t rank = me.rank();
    for (int round = 0; round < base::rounds(rank); ++round)
      play(e, rank, its, base::part_of(rank));
    if (p.rendezvous() != rank) return;
    // All that live have left: the first of them must get all units.
    its.want_all();
    play(e, rank, its, part::writer);
  }

 private:
  [[gnu::noinline]] void play(engine& e, rank_t rank, Semaphore& its, part what) const {
    const bool only_tries = what == part::try_writer;
    e.begin_acquire(rank, only_tries);
    if (only_tries ? !its.try_lock() : (its.lock(), false)) return e.give_up_acquire(rank);
    e.enter(rank, is_mutex);
    if constexpr (Semaphore::grows) its.stay_while_it_grows(rank);
    if constexpr (is_mutex)
      stay_alone(e, rank, its);
    else
      stay(e, rank, its);
    e.leave(rank, is_mutex);
    its.unlock();
    e.released(rank);
  }
  void stay_alone(engine& e, rank_t rank, Semaphore& its) const {
    e.check_token(rank, its.token());
    const bool told = its.owner_died();
    e.check_told(rank, told);
    e.act(rank, action::critical);
    if (!told) return;
    its.mark_consistent();
    e.mark_consistent();
  }
  void stay(engine& e, rank_t rank, Semaphore& its) const {
    for (int i = 0; i < its.count_held(); ++i)
      stay_with(e, rank, its.units_held()[static_cast<std::size_t>(i)]);
    e.act(rank, action::critical);
  }
  void stay_with(engine& e, rank_t rank, int unit) const {
    if (!holds_one_of(e, rank, unit, unit + 1))
      e.fail("mutual exclusion", "rank " + std::to_string(rank) + " enters without a unit");
    for (rank_t other = 0; other < what_.machine.ranks(); ++other)
      if (other != rank && e.where(other) == stage::inside_shared &&
          holds_one_of(e, other, unit, unit + 1))
        e.fail("mutual exclusion", "ranks " + std::to_string(rank) + " and " +
                                       std::to_string(other) + " hold unit " +
                                       std::to_string(unit));
  }

  template <class Is>
  [[nodiscard]] bool any_record(const engine& e, rank_t rank, Is is_so) const {
    rma::layout in(base::words);
    static_cast<void>(in.take<rma::plain_cell>(base::line_words));
    const auto first = in.take<rma::plain_cell>(count());
    for (std::uint32_t i = 0; i < count(); ++i)
      if (is_so(lock::record::from(e.value(first.at(rank) + i)))) return true;
    return false;
  }
  /// True if its records say that it holds one of the units from `first` to before `end`.
  [[nodiscard]] bool holds_one_of(const engine& e, rank_t rank, int first, int end) const {
    return any_record(e, rank, [&](lock::record r) {
      if (r.get(lock::record::phase) != lock::record::holding) return false;
      for (int i = first; i < end; ++i)
        if (r.get(lock::record::lock) ==
            where_.unit[static_cast<std::size_t>(i)].line.index / rma::line_words)
          return true;
      return false;
    });
  }
  template <class Cells>
  static void name(engine& e, const Cells& of, const std::string& as) {
    e.name_cells(of.generation().index, 1, as + ".generation");
    e.name_cells(of.token().index, 1, as + ".token");
    e.name_cells(of.died().index, 1, as + ".died");
    e.name_cells(of.inherited().index, 1, as + ".inherited");
    e.name_cells(of.repairer().index, 1, as + ".repairer");
    for (int i = 0; i < lock::generation_cells::instances; ++i)
      e.name_cells(of.instance_begin(i), of.instance_end(i) - of.instance_begin(i),
                   as + "." + static_cast<char>('a' + i));
  }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(records()); }

  int deaths_;
  typename Semaphore::cells where_{};
};

/// For check::run, with deaths.
template <class Semaphore>
[[nodiscard]] subject semaphore_subject() {
  return {
      .about = Semaphore::about,
      .shared = false,
      .lacks = [](part what) -> const char* {
        return what == part::writer || what == part::try_writer ? nullptr : "such calls";
      },
      .make = nullptr,
      .make_mortal =
          [](const scenario& what, const settings& set, model how) {
            const semaphore_program<Semaphore> runs(
                what, parameters_for<typename Semaphore::parameters>(set), how);
            auto made = std::make_unique<engine>(runs(), how);
            runs.describe_cells(*made);
            return made;
          },
  };
}

}  // namespace lockflight::check
