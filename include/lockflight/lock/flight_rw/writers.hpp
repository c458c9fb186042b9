// The writers of flight-rw: they agree by flight, and who has had it tells the next one by a note
// what it knows of the gates.
//
// That they are idle is told while nobody has the lock, too, so who finds it free need not look at
// a gate then, nor wait for what the directory says, and to write takes as long as flight.
#pragma once

#include <cstdint>

#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/writers_turn.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class writers {
 public:
  // Idle gates are what the home's word notes in memory full of zeroes, and so where writers come
  // from that node alone it need not change. On several nodes that tells nothing until the tail
  // says the same.
  writers(rma::participant<Port>& me, const typename flight<Port>::cells& where,
          const flight_parameters& set, const reader_cells& readers)
      : flight_(me, where, set,
                readers.starts_open && me.machine().nodes() == 1 ? 0 : writers_turn::are_idle) {}

  // As flight has them.

  template <class Until, class Look>
  [[nodiscard]] bool lock_until(Until until, Look look) {
    return flight_.lock_until(until, look);
  }
  [[nodiscard]] bool try_lock() { return flight_.try_lock(); }
  [[nodiscard]] bool has_looked() const { return flight_.has_looked(); }

  [[nodiscard]] std::uint16_t note() const { return flight_.note(); }
  /// False, and it is still ours, if nobody waits whom flight would go to.
  [[nodiscard]] bool pass(std::uint16_t note) { return flight_.pass(note); }
  void unlock(std::uint16_t note = 0) {
    // The readers' turn may be long past when somebody finds the lock free.
    flight_.unlock_with(note, note == writers_turn::are_idle ? note : std::uint16_t{0});
  }

 private:
  flight<Port> flight_;
};

}  // namespace lockflight::lock
