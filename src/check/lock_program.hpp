// The program that a lock is checked with: everybody acquires and releases, a few rounds, and when
// all have left the lock must be free.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <string>
#include <vector>

#include "check/port.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::check {

/// What one participant does in each round.
enum class part : std::uint8_t { writer, reader, try_writer, try_reader };

/// What is checked.
struct scenario {
  rma::topology machine = rma::topology::flat(1);
  std::vector<part> parts;  ///< of each rank
  std::vector<int> rounds;  ///< of each rank
};

template <class Lock>
class lock_program {
 public:
  using parameters = typename Lock::parameters;

  lock_program(scenario what, const parameters& set) : what_(std::move(what)), set_(set) {}

  /// The program, and the names of the lock's cells for `e`'s traces.
  [[nodiscard]] program operator()() const {
    return {what_.machine, [*this](engine& e, rank_t me) { run(e, me); }};
  }

  /// Tells the engine which cells are the lock's.
  void describe_cells(engine& e) const {
    rma::layout in(words);
    const auto lines = in.take<rma::plain_cell>(most_nested * rma::line_words);
    e.name_cells(lines.index, most_nested * rma::line_words, "line");
    static_cast<void>(in.take<rma::plain_cell>(1));  // the lock before
    const std::uint32_t first = in.used();
    static_cast<void>(Lock::cells::place(in, what_.machine, set_, 0));
    e.name_cells(first, in.used() - first, "lock");
    e.allow_cells(lines.index, in.used());
  }

 private:
  static constexpr std::uint32_t words = 4096;
  static constexpr std::uint32_t most_nested = rma::participant<port>::most_nested;
  static constexpr std::size_t private_bytes = 1024;

  // Everything that a participant has is on its stack, private tables of the lock included, so that
  // a copy of the stack is a copy of the participant.
  void run(engine& e, rank_t rank) const {
    std::array<std::byte, private_bytes> bytes;
    std::pmr::monotonic_buffer_resource memory(bytes.data(), bytes.size(),
                                               std::pmr::null_memory_resource());
    port p(e, rank);
    rma::participant<port> me(p, words, &memory);
    static_cast<void>(me.cells().template take<rma::plain_cell>(1));
    Lock lock(me, Lock::cells::place(me.cells(), what_.machine, set_, 0), set_);

    const auto i = static_cast<std::size_t>(rank);
    for (int round = 0; round < what_.rounds[i]; ++round) play(e, rank, lock, what_.parts[i]);
    p.rendezvous();
    // Nobody is left: whoever comes now must get it.
    if (rank == 0) {
      play(e, rank, lock, part::writer);
      if constexpr (lock::shared<Lock>) play(e, rank, lock, part::reader);
    }
  }

  static void play(engine& e, rank_t rank, Lock& lock, part what) {
    const bool exclusive = what == part::writer || what == part::try_writer;
    e.begin_acquire(rank);
    if (!acquire(lock, what)) return e.give_up_acquire(rank);
    e.enter(rank, exclusive);
    e.act(rank, action::critical);
    e.leave(rank, exclusive);
    if constexpr (lock::shared<Lock>) {
      exclusive ? lock.unlock() : lock.unlock_shared();
    } else {
      lock.unlock();
    }
    e.released(rank);
  }

  [[nodiscard]] static bool acquire(Lock& lock, part what) {
    if constexpr (lock::can_try<Lock>)
      if (what == part::try_writer) return lock.try_lock();
    if constexpr (lock::can_try_shared<Lock>)
      if (what == part::try_reader) return lock.try_lock_shared();
    if constexpr (lock::shared<Lock>)
      if (what == part::reader) {
        lock.lock_shared();
        return true;
      }
    lock.lock();
    return true;
  }

  scenario what_;
  parameters set_;
};

}  // namespace lockflight::check
