// Data that a lock guards, with checks that notice when it does not.
#pragma once

#include <string>

#include "lockflight/rma/participant.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {

/// Two words that are equal whenever there is no writer. Accesses are not atomic with each other,
/// and where a port's cells are ordinary memory they are ordinary accesses, so that a sanitizer
/// sees the race that a broken lock lets happen. All participants construct it at the same point of
/// their layout.
template <rma::port Port>
class guarded {
 public:
  guarded(rma::participant<Port>& me, rma::rank_t home)
      : port_(me.port()),
        first_(me.cells().template take<rma::plain_cell>(1).at(home)),
        second_(me.cells().template take<rma::plain_cell>(1).at(home)) {}

  /// The work of an exclusive holder: a read-modify-write in steps. `widen` is called between them.
  template <class Widen>
  void write(Widen widen) {
    const rma::word before = read(first_);
    widen();
    require(read(second_) == before, "a writer shares the lock with another writer");
    set(first_, before + 1);
    widen();
    require(read(first_) == before + 1, "a writer lost its write to another writer");
    set(second_, before + 1);
  }

  /// The work of a shared holder. Returns how often the data were written.
  template <class Widen>
  rma::word look(Widen widen) {
    const rma::word before = read(first_);
    require(read(second_) == before, "a reader shares the lock with a writer");
    widen();
    require(read(second_) == before && read(first_) == before,
            "the data changed while a reader was in");
    return before;
  }

 private:
  [[nodiscard]] rma::word read(rma::plain_cell c) {
    if constexpr (rma::native_port<Port>)
      return *static_cast<volatile rma::word*>(port_.native_address(c));
    else
      return rma::get_now(port_, c);
  }
  void set(rma::plain_cell c, rma::word value) {
    if constexpr (rma::native_port<Port>)
      *static_cast<volatile rma::word*>(port_.native_address(c)) = value;
    else
      rma::put_now(port_, c, value);
  }

  Port& port_;
  rma::plain_cell first_;
  rma::plain_cell second_;
};

}  // namespace lockflight::test
