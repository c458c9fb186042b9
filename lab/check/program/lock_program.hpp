// The check program for a lock: each participant acquires and releases a few times, and when all
// have left the lock must be free.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lab/check/engine/port.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::check {

/// The part of a participant: its calls in each round.
enum class part : std::uint8_t {
  writer,
  reader,
  try_writer,
  try_reader,
  timed_writer,  ///< waits, but may give up at any moment
  timed_reader,
  upgrader,          ///< takes the upgrade lock, becomes a writer, then a reader, then leaves
  upgrading_reader,  ///< reads, tries to become a writer, and leaves as what it is then
  abandoner,         ///< writes, and its hold is ended for it (robust::abandon_for)
};

/// The participants of a check.
struct scenario {
  rma::topology machine = rma::topology::flat(1);
  std::vector<part> parts;  ///< of each rank
  std::vector<int> rounds;  ///< of each rank
  bool endless = false;     ///< participants with at least one round come without end instead
};

/// The port of a participant: the checker's, or one that a test has made of it.
template <class Participant>
using port_of = std::remove_reference_t<decltype(std::declval<Participant&>().port())>;

/// The common base of programs: a participant on each fiber, for which `Program::run(engine, port,
/// participant)` is called. Everything that a participant has is on its stack,
/// private tables of the lock included, so that a copy of the stack is a copy of the participant.
/// `Program::private_bytes` is room for those tables, and copied with every state.
template <class Program, class Parameters, class Participant = rma::participant<port>>
class program_base {
 public:
  program_base(scenario what, const Parameters& set) : what_(std::move(what)), set_(set) {}

  [[nodiscard]] program operator()() const {
    return {what_.machine, [self = static_cast<const Program&>(*this)](engine& e, rank_t rank) {
              std::array<std::byte, Program::private_bytes> bytes;
              std::pmr::monotonic_buffer_resource memory(bytes.data(), bytes.size(),
                                                         std::pmr::null_memory_resource());
              port_of<Participant> p(e, rank);
              if constexpr (requires { self.records(); }) {
                Participant me(p, words, self.records(), &memory);
                self.run(e, p, me);
              } else {
                Participant me(p, words, &memory);
                self.run(e, p, me);
              }
            }};
  }

 protected:
  static constexpr std::uint32_t words = 4096;
  static constexpr std::uint32_t line_words =
      rma::participant<port>::most_nested * std::uint32_t{rma::line_words};

  [[nodiscard]] int rounds(rank_t rank) const {
    return what_.rounds[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] part part_of(rank_t rank) const {
    return what_.parts[static_cast<std::size_t>(rank)];
  }

  /// Queue nodes that are in use when their participant has left.
  [[nodiscard]] static std::string text_of_nodes(rank_t rank, std::uint32_t nodes) {
    return "rank " + std::to_string(rank) + " has left, and " +
           std::to_string(std::popcount(nodes)) + " of its queue nodes never come back";
  }

  scenario what_;
  Parameters set_;
};

/// The calls of a participant in a round, with the announcements to the engine.
template <class Lock>
class lock_calls {
 public:
  // The function has a frame of its own, so that nothing of a round is left on the stack after it.
  [[gnu::noinline]] static void play(engine& e, rank_t rank, Lock& lock, part what) {
    const bool exclusive =
        what == part::writer || what == part::try_writer || what == part::timed_writer;
    if (what == part::upgrader || what == part::upgrading_reader) {
      if constexpr (lock::can_upgrade<Lock>)
        what == part::upgrader ? upgrade(e, rank, lock) : try_to_upgrade(e, rank, lock);
      return;
    }
    e.begin_acquire(rank, what != part::writer && what != part::reader);
    if (!acquire(e, rank, lock, what)) {
      const bool only_tried = what == part::try_writer || what == part::try_reader;
      if (only_tried && e.machine().ranks() == 1)
        e.fail("vain attempt", "the only participant tries, and does not get the lock");
      const bool waited = what == part::timed_writer || what == part::timed_reader;
      if (waited && e.where(rank) != stage::giving_up && !may_end_early)
        e.fail("vain attempt", "rank " + std::to_string(rank) +
                                   " waits for a limited time, which is not over, and gives up");
      return e.give_up_acquire(rank);
    }
    if constexpr (is_mortal)
      stay_among_mortals(e, rank, lock, exclusive);
    else
      stay(e, rank, exclusive);
    if constexpr (lock::shared<Lock>) {
      exclusive ? lock.unlock() : lock.unlock_shared();
    } else {
      lock.unlock();
    }
    e.released(rank);
  }

 private:
  static constexpr bool is_mortal = requires(Lock& l) { l.owner_died(); };
  static constexpr bool may_end_early = requires { requires Lock::timed_waits_end_early; };

  static void stay(engine& e, rank_t rank, bool exclusive) {
    e.enter(rank, exclusive);
    e.act(rank, action::critical);
    e.leave(rank, exclusive);
  }

  // Checks the values that the lock returns to a holder. The exclusive holder repairs the guarded
  // data after a death.
  static void stay_among_mortals(engine& e, rank_t rank, Lock& lock, bool exclusive) {
    e.enter(rank, exclusive);
    if (exclusive) e.check_token(rank, lock.token());
    const bool told = lock.owner_died();
    e.check_told(rank, told);
    e.act(rank, action::critical);
    if (told && exclusive) {
      lock.mark_consistent();
      e.mark_consistent();
    }
    e.leave(rank, exclusive);
  }

  static void upgrade(engine& e, rank_t rank, Lock& lock) {
    e.begin_acquire(rank);
    lock.lock_upgrade();
    stay(e, rank, false);
    e.begin_acquire(rank);
    lock.unlock_upgrade_and_lock();
    stay(e, rank, true);
    lock.unlock_and_lock_upgrade();
    stay(e, rank, false);
    lock.unlock_upgrade_and_lock_shared();
    stay(e, rank, false);
    lock.unlock_shared();
    e.released(rank);
  }

  static void try_to_upgrade(engine& e, rank_t rank, Lock& lock) {
    e.begin_acquire(rank);
    lock.lock_shared();
    stay(e, rank, false);
    if (lock.try_unlock_shared_and_lock()) {
      stay(e, rank, true);
      lock.unlock_and_lock_shared();
    }
    stay(e, rank, false);
    lock.unlock_shared();
    e.released(rank);
  }

  [[nodiscard]] static bool acquire(engine& e, rank_t rank, Lock& lock, part what) {
    if constexpr (lock::can_try<Lock>)
      if (what == part::try_writer) return lock.try_lock();
    if constexpr (lock::can_try_shared<Lock>)
      if (what == part::try_reader) return lock.try_lock_shared();
    constexpr std::uint64_t some_time = port::shortest_of_acquire;  // the checker ends it
    if constexpr (lock::can_time<Lock>)
      if (what == part::timed_writer) return lock.try_lock_within(some_time);
    if constexpr (lock::can_time_shared<Lock>)
      if (what == part::timed_reader) return lock.try_lock_shared_within(some_time);
    if constexpr (lock::shared<Lock>)
      if (what == part::reader) {
        lock.lock_shared();
        return true;
      }
    if constexpr (lock::has_doorway<Lock>) {
      lock.take_ticket();
      e.begin_waiting(rank);
      lock.await_turn();
    } else {
      lock.lock();
    }
    return true;
  }
};

template <class Lock>
class lock_program : public program_base<lock_program<Lock>, typename Lock::parameters>,
                     lock_calls<Lock> {
  using base = program_base<lock_program<Lock>, typename Lock::parameters>;
  using lock_calls<Lock>::play;
  using base::set_, base::what_;

 public:
  using base::base;

  static constexpr std::size_t private_bytes = 1024;

  /// Tells the engine which cells are the lock's.
  void describe_cells(engine& e) const {
    rma::layout in(base::words);
    const auto lines = in.take<rma::plain_cell>(base::line_words);
    e.name_cells(lines.index, base::line_words, "line");
    static_cast<void>(in.take<rma::plain_cell>(1));  // the lock before
    const std::uint32_t first = in.used();
    static_cast<void>(Lock::cells::place(in, what_.machine, set_, 0));
    e.name_cells(first, in.used() - first, "lock");
    e.allow_cells(lines.index, in.used());
  }

  void run(engine& e, port& p, rma::participant<port>& me) const {
    static_cast<void>(me.cells().template take<rma::plain_cell>(1));
    Lock lock(me, Lock::cells::place(me.cells(), what_.machine, set_, 0), set_);
    const rank_t rank = me.rank();
    while (what_.endless) {
      p.idle();
      if (base::rounds(rank) > 0) play(e, rank, lock, base::part_of(rank));
    }
    const std::uint32_t kept = me.taken();  // by the handle, for as long as it exists
    for (int round = 0; round < base::rounds(rank); ++round)
      play(e, rank, lock, base::part_of(rank));
    if (me.taken() != kept)
      e.fail("lost queue node", base::text_of_nodes(rank, me.taken() & ~kept));
    p.rendezvous();
    // All participants have left: the next participant must get the lock.
    if (rank == 0) {
      play(e, rank, lock, part::writer);
      if constexpr (lock::shared<Lock>) play(e, rank, lock, part::reader);
    }
  }
};

}  // namespace lockflight::check
