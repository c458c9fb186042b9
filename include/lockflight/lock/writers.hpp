// The writers of flight-rw: they agree by flight, and who has had it tells the next one by a note
// what it knows of the gates.
//
// On a single node whoever changes the gates has its word, so that they are idle may be told there
// too while nobody has the lock: who finds it free looks at no gate then, and to write costs what
// flight costs.
#pragma once

#include <cstdint>

#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/reader_cells.hpp"
#include "lockflight/lock/writers_turn.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class writers {
 public:
  writers(rma::participant<Port>& me, const typename flight<Port>::cells& where,
          const flight_parameters& set, const reader_cells& readers)
      : flight_(me, where, set),
        zero_(readers.starts_open || me.machine().nodes() > 1 ? 0 : writers_turn::are_idle) {}

  // As flight has them.

  template <class Until, class Look>
  [[nodiscard]] bool lock_until(Until until, Look look) {
    return flight_.lock_until(until, look);
  }
  [[nodiscard]] bool try_lock() { return flight_.try_lock(); }
  [[nodiscard]] bool has_looked() const { return flight_.has_looked(); }

  [[nodiscard]] std::uint16_t note() const { return in_memory(flight_.note()); }
  /// False, and it is still ours, if nobody waits whom flight would go to.
  [[nodiscard]] bool pass(std::uint16_t note) { return flight_.pass(in_memory(note)); }
  void unlock(std::uint16_t note = 0) {
    // The readers' turn may be long past when somebody finds the word free.
    const std::uint16_t when_free = note == writers_turn::are_idle ? note : 0;
    flight_.unlock_with(in_memory(note), in_memory(when_free));
  }

 private:
  // And back.
  [[nodiscard]] std::uint16_t in_memory(std::uint16_t note) const {
    return static_cast<std::uint16_t>(note ^ zero_);
  }

  flight<Port> flight_;
  std::uint16_t zero_;  // the note that zeroed memory is, where flight keeps one for who finds it
};

}  // namespace lockflight::lock
