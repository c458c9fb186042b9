// What the gates and counters of flight-rw say. flight_rw.hpp has the protocol,
// flight_rw/reader_side.hpp the cells that hold these.
#pragma once

#include <cstdint>

#include "lockflight/rma/cell.hpp"

namespace lockflight::lock {

/// What a gate says. All zeroes are open. Who has parked at e enters at odd distances from it:
/// nobody waits longer than until such a gate is closed, since its writer waits for who has.
class gate {
 public:
  enum class state : std::uint8_t {
    open = 0,
    closed = 1,    // a writer is in or coming, and will open it
    idle = 2,      // no writer need be there: who wants it open must take flight
    unlisted = 3,  // writers do not look here: who wants it open must list its node
    coming = 4,    // somebody is about to
    listed = 5,    // somebody waits until the others are open, and will open it
  };

  constexpr gate() = default;
  friend constexpr bool operator==(gate, gate) = default;
  [[nodiscard]] static constexpr gate from(rma::word bits) {
    gate g;
    g.bits_ = bits;
    return g;
  }
  [[nodiscard]] constexpr rma::word bits() const { return bits_; }
  [[nodiscard]] constexpr state what() const { return static_cast<state>(get(of_state)); }
  /// Whether it stays as it is until a reader does something about it.
  [[nodiscard]] constexpr bool needs_reader() const {
    return what() == state::idle || what() == state::unlisted;
  }
  /// Turns in a row that no reader came to.
  [[nodiscard]] constexpr rma::word quiet() const { return get(of_quiet); }
  [[nodiscard]] constexpr rma::word epoch() const { return get(of_epoch); }
  /// Whether readers count themselves in the cells that more of them share.
  [[nodiscard]] constexpr bool gathered() const { return get(of_gathered) != 0; }
  /// Whether those who parked in the phase before are counted in the other cells.
  [[nodiscard]] constexpr bool moved() const { return get(of_moved) != 0; }
  /// Whether readers may count themselves by a store, with no fence before their look at the gate.
  [[nodiscard]] constexpr bool biased() const { return get(of_bias) != 0; }
  [[nodiscard]] constexpr bool open_and_biased() const {
    return (bits_ & (mask(of_state) << of_state.at | mask(of_bias) << of_bias.at)) ==
           mask(of_bias) << of_bias.at;
  }
  /// Whether only the gates of some nodes say this, those that the directory has.
  [[nodiscard]] constexpr bool few() const { return get(of_few) != 0; }
  /// Whether it lets those in who have parked at that epoch. No writer waits for who is behind a
  /// gate that is idle or unlisted.
  [[nodiscard]] constexpr bool lets_in(rma::word parked_at) const {
    return (what() == state::open || what() == state::closed) && (epoch() - parked_at) % 2 != 0;
  }
  /// Whether a reader that has parked here shall see to the other gates of the branch, and the
  /// number of the last wish for that.
  [[nodiscard]] constexpr bool wants_deputy() const { return get(of_deputy) != 0; }
  [[nodiscard]] constexpr rma::word wish() const { return get(of_wish); }
  /// How often T_W is halved.
  [[nodiscard]] constexpr rma::word halved() const { return get(of_halved); }
  /// Turns in a row after which readers would better have been counted in the other cells.
  [[nodiscard]] constexpr rma::word against() const { return get(of_against); }

  // The same gate, but for what is said.
  [[nodiscard]] constexpr gate as(state s) const {
    return with(of_state, static_cast<rma::word>(s));
  }
  [[nodiscard]] constexpr gate with_quiet(rma::word turns) const { return with(of_quiet, turns); }
  [[nodiscard]] constexpr gate with_halved(rma::word n) const { return with(of_halved, n); }
  [[nodiscard]] constexpr gate with_against(rma::word n) const { return with(of_against, n); }
  [[nodiscard]] constexpr gate of_few_nodes() const { return with(of_few, 1); }
  [[nodiscard]] constexpr gate of_all_nodes() const { return with(of_few, 0); }
  [[nodiscard]] constexpr gate with_bias() const { return with(of_bias, 1); }
  /// With a wish that is new, for all gates but those where a deputy is wanted.
  [[nodiscard]] constexpr gate with_next_wish() const { return with(of_wish, wish() + 1); }
  [[nodiscard]] constexpr gate with_deputy() const { return with(of_deputy, 1); }
  [[nodiscard]] constexpr gate without_deputy() const { return with(of_deputy, 0); }
  /// Open for the phase after this one.
  [[nodiscard]] constexpr gate next_phase() const {
    return as(state::open).with(of_epoch, epoch() + 1).with(of_moved, 0).with(of_bias, 0);
  }
  /// The next phase, in which readers count themselves in the other cells: for an epoch's first
  /// gate only, and after a writer has seen all readers of the phase before leave or park.
  [[nodiscard]] constexpr gate in_the_other_cells() const {
    return with(of_gathered, gathered() ? 0 : 1).with(of_moved, 1).with_against(0);
  }

 private:
  struct field {
    int at;
    int bits;
  };
  static constexpr field of_state{0, 3};
  static constexpr field of_quiet{3, 2};
  static constexpr field of_epoch{5, 2};
  static constexpr field of_gathered{7, 1};
  static constexpr field of_moved{8, 1};
  static constexpr field of_halved{9, 4};
  static constexpr field of_against{13, 2};
  static constexpr field of_bias{15, 1};
  static constexpr field of_deputy{16, 1};
  static constexpr field of_few{17, 1};
  static constexpr field of_wish{18, 46};  // one a microsecond is new for two years

  [[nodiscard]] static constexpr rma::word mask(field f) { return (rma::word{1} << f.bits) - 1; }
  [[nodiscard]] constexpr rma::word get(field f) const { return bits_ >> f.at & mask(f); }
  [[nodiscard]] constexpr gate with(field f, rma::word value) const {
    return from((bits_ & ~(mask(f) << f.at)) | (value & mask(f)) << f.at);
  }

  rma::word bits_ = 0;
};

/// The readers of a cell, in one word: how many are active, how many are left of those who parked
/// in the even and in the odd phases, and how many of these wait until they get in; 12 bits each.
namespace reader_count {
constexpr int bits = 12;
constexpr rma::word most = (rma::word{1} << bits) - 1;
constexpr rma::word active = 1;
[[nodiscard]] constexpr rma::word parked(rma::word epoch) {
  return rma::word{1} << (epoch % 2 == 0 ? bits : 2 * bits);
}
[[nodiscard]] constexpr rma::word patient(rma::word epoch) {
  return rma::word{1} << (epoch % 2 == 0 ? 3 * bits : 4 * bits);
}
[[nodiscard]] constexpr rma::word of(rma::word one, rma::word counts) {
  return counts / one & most;
}
/// All of them.
[[nodiscard]] constexpr rma::word sum(rma::word counts) {
  return of(active, counts) + of(parked(0), counts) + of(parked(1), counts);
}
/// Whether the writer that has closed the gates for `epoch` may enter.
[[nodiscard]] constexpr bool gone(rma::word counts, rma::word epoch) {
  return of(active, counts) == 0 && of(parked(epoch - 1), counts) == 0;
}
}  // namespace reader_count

}  // namespace lockflight::lock
