// What the readers of flight-rw do: they count themselves, read the gate of their node, and wait
// there, by their CPU's atomics and loads alone. flight_rw.hpp has the protocol.
//
// Listing. Writers leave gates of nodes alone that are not in the directory, a set at the lock's
// home. The first reader that finds its gate unlisted claims it, adds its node's bit to the set,
// and then reads the home's gate; a writer closes the home's gate and then reads the set. So, as in
// Dekker's algorithm, the reader sees that the gates are closed, or the writer sees the node (R4).
// The bit is added, not set, so it must not be there: it is taken away only by a writer that has
// closed the node's gate and seen no active reader behind it, and the claimer is active until it
// has added the bit.
//
// Where ranks share cores a parked reader need not run when its phase comes, and writers wait for
// it. There a reader that finds the gate closed takes its count back, awaits the end of the phase
// and comes anew, and parks only when that was in vain `overtaking` times.
#pragma once

#include <concepts>
#include <cstdint>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class reader_side {
  using state = gate::state;

 public:
  enum class arrival : std::uint8_t {
    in,
    must_open,  // the gates are idle, ours says `opening`, and we are not counted
    gave_up,
  };

  reader_side(rma::participant<Port>& me, const reader_layout& where,
              const flight_rw_parameters& set)
      : port_(me.port()),
        gate_(rma::resolve(port_, where.gate_of(me.machine(), me.rank()))),
        counter_(rma::resolve(port_, where.counter_of(me.machine(), me.rank()))),
        is_alone_(where.is_alone(me.machine())),
        asks_home_(where.has_directory && !me.machine().same_node(where.gates.home, me.rank())),
        overtaking_(set.overtaking_on(me.port())),
        zero_(where.zero_of_gate(where.gate_of(me.machine(), me.rank()).home)),
        home_gate_(where.gates),
        listed_(where.listed),
        own_(set_of(me.machine().node_of(me.rank()))) {}

  [[nodiscard, gnu::always_inline]] gate read_gate() {
    return gate::from(port_.load(gate_) ^ zero_);
  }

  /// Enters, as flight_rw.hpp has it; `held` is what the reader is then counted as. 1 CPU fetch-add
  /// and a load at an open gate.
  template <class Until>
  [[nodiscard]] arrival enter(Until until, rma::word& held) {
    // A reader that gives up and comes again must not seem to be in each time that a writer scans.
    if constexpr (!is_patient<Until>)
      if (const gate found = read_gate(); found.is(state::closed) && !await_change(found, until))
        return arrival::gave_up;
    held = active;
    const gate found = come();
    if (found.is(state::open)) [[likely]]
      return arrival::in;
    return wait(found, until, held);
  }

  /// Leaves. 1 CPU fetch-add, or a store if the counter is the reader's own.
  [[gnu::always_inline]] void leave(rma::word held) {
    if (is_alone_)
      port_.store(counter_, 0);  // after all that was done meanwhile (C11)
    else
      static_cast<void>(port_.cpu_fetch_add(counter_, 0 - held));
  }

  /// Enters if the gate is open, or can be opened without waiting.
  [[nodiscard]] arrival try_enter(rma::word& held) {
    const gate found = read_gate();
    // A reader that keeps trying must not seem to be in each time that a writer scans.
    if (!found.is(state::open) && !found.needs_reader()) return arrival::gave_up;
    held = active;
    gate now = come();
    if (now.needs_reader()) {
      if (!open_gate(now, port_.deadline_in(0))) {
        leave(held);
        return arrival::must_open;
      }
      now = read_gate();
    }
    if (now.is(state::open)) return arrival::in;
    leave(held);
    return arrival::gave_up;
  }

  /// For the holder of flight while the home's gate is open (R5).
  void enter_with_flight(rma::word& held) {
    held = active;
    for (gate now = come(); !now.is(state::open); now = read_gate())
      if (now.is(state::claimed))
        static_cast<void>(await_change(now, rma::forever{}));
      else
        static_cast<void>(open_gate(now, rma::forever{}));
  }

  /// For a reader that was to open the gates and does not: another one may. If the gate's `opening`
  /// is another reader's by now, both will.
  void leave_idle() {
    const gate now = read_gate();
    if (now.is(state::opening)) static_cast<void>(replace(now, now.as(state::idle)));
  }

 private:
  static constexpr rma::word active = reader_count::one(reader_count::active);
  template <class Until>
  static constexpr bool is_patient = std::same_as<Until, rma::forever>;

  // Counts us as active, and then reads the gate (R1): later loads come after the atomic (C14).
  [[nodiscard]] gate come() {
    static_cast<void>(port_.cpu_fetch_add(counter_, active));
    return read_gate();
  }
  void count_as(rma::word now, rma::word& held) {
    static_cast<void>(port_.cpu_fetch_add(counter_, now - held));
    held = now;
  }

  // False if time was over first; `seen` is the gate then.
  template <class Predicate, class Until>
  [[nodiscard]] bool await_gate(Predicate done, Until until, gate& seen) {
    rma::word bits = 0;
    const bool came = rma::await(
        port_, gate_, [=, zero = zero_](rma::word now) { return done(gate::from(now ^ zero)); },
        until, bits);
    seen = gate::from(bits ^ zero_);
    return came;
  }
  template <class Until>
  [[nodiscard]] bool await_change(gate found, Until until) {
    gate now;
    return await_gate([=](gate g) { return g != found; }, until, now);
  }

  // A reader that is counted as active, and has found its gate not open. Not inlined: a reader that
  // finds it open goes by in a few instructions.
  template <class Until>
  [[nodiscard, gnu::noinline]] arrival wait(gate found, Until until, rma::word& held) {
    for (std::int64_t comes_anew = overtaking_; !found.is(state::open);) {
      if (found.needs_reader()) {
        if (!open_gate(found, until)) {
          leave(held);
          return arrival::must_open;
        }
      } else if (is_patient<Until> && comes_anew > 0) {
        --comes_anew;
        leave(held);
        static_cast<void>(await_change(found, until));
        found = come();
        continue;
      } else if (park(found.epoch(), until, held)) {
        return arrival::in;
      }
      if (rma::is_over(port_, until)) {
        leave(held);
        return arrival::gave_up;
      }
      if (held != active) count_as(active, held);
      found = read_gate();
    }
    return arrival::in;
  }

  // Whether the gate has let us in (R3). If not it needs a reader, or is open for the same epoch
  // again since a writer gave up, or time is over: then we come anew.
  template <class Until>
  [[nodiscard]] bool park(rma::word epoch, Until until, rma::word& held) {
    count_as(reader_count::one(reader_count::parked(epoch)), held);
    gate now;
    static_cast<void>(await_gate(
        [=](gate g) { return g.lets_in(epoch) || g.is(state::open) || g.needs_reader(); }, until,
        now));
    return now.lets_in(epoch);
  }

  // For a reader that is counted as active at a gate that needs one: claims the gate, lists the
  // node, and opens the gate if the others are open. False if those are idle: the gate is ours
  // then, and flight must be taken to open them. 1 CPU compare-swap and 1 more to open; off the
  // home's node 1 add and 1 get, in one round trip where posts are ordered, and 1 get for each poll
  // while they are closed, with back-off.
  template <class Until>
  [[nodiscard]] bool open_gate(gate found, Until until) {
    if (!asks_home_) return !replace(found, found.as(state::opening));
    const gate claimed = found.as(state::claimed);
    if (!replace(found, claimed)) return true;
    if (found.is(state::unlisted)) {
      port_.add(listed_, own_);
      if (!rma::orders_posts(port_)) port_.flush(listed_.home);  // the read comes after it (R4)
    }
    for (rma::backoff b(1'000, 8'000);; port_.pause(b.next())) {
      // Opened with the others' epoch: a writer waits for readers that parked before that.
      const gate they = gate::from(rma::get_now(port_, home_gate_));
      if (they.is_idle()) return !replace(claimed, claimed.as(state::opening));
      if (they.is(state::open)) return static_cast<void>(replace(claimed, they)), true;
      // Closed: the writer sees our node and opens our gate too, or we see the others open.
      if (read_gate() != claimed) return true;
      // Listed, and for another reader.
      if (rma::is_over(port_, until))
        return static_cast<void>(replace(claimed, claimed.as(state::idle))), true;
    }
  }
  [[nodiscard]] bool replace(gate from, gate to) {
    const rma::word was = from.bits() ^ zero_;
    return port_.cpu_compare_swap(gate_, was, to.bits() ^ zero_) == was;
  }

  Port& port_;
  rma::resolved<Port, rma::cpu_cell> gate_;     // of our node
  rma::resolved<Port, rma::cpu_cell> counter_;  // that we are counted in
  bool is_alone_;                               // in that counter
  bool asks_home_;                              // there is a directory, and not on our node
  std::int64_t overtaking_;
  rma::word zero_;
  rma::cpu_cell home_gate_;
  rma::nic_cell listed_;
  node_set own_;
};

}  // namespace lockflight::lock
