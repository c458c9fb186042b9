// What the writer that closes or opens the gates of flight-rw has to do with its deputies: it
// wishes for one in each branch but its own, looks what they have done, and does without those who
// do not come. flight_rw/gate_tree.hpp has the protocol, flight_rw/deputy.hpp the other side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/gate_tree.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class deputies {
 public:
  /// Does without one that has not come after so many looks and another one.
  deputies(rma::participant<Port>& me, const reader_cells& where, std::int64_t patience)
      : me_(me),
        port_(me.port()),
        where_(where),
        patience_(patience),
        own_(where.tree.branch_of(me.machine().node_of(me.rank()))),
        branches_(me.memory()) {}

  [[nodiscard]] bool have_some() const {
    return std::ranges::any_of(branches_,
                               [](const branch& b) { return b.left_to != doer::writer; });
  }
  [[nodiscard]] int own_branch() const { return own_; }

  /// 1 put for each branch but the own one, to be flushed.
  void wish_for(gate to) {
    wished_ = to;
    looks_ = 0;
    branches_.assign(static_cast<std::size_t>(where_.tree.branches()), {.left_to = doer::deputy});
    branches_[static_cast<std::size_t>(own_)].left_to = doer::writer;
    for_each_left([&](int b, branch&) { port_.put(first_gate(b), wished_.with_deputy().bits()); });
  }

  /// 1 get for each branch that a deputy may still have; whether there are any. To be flushed
  /// before `settle`.
  [[nodiscard]] bool post() {
    bool posted = false;
    for_each_left([&](int b, branch& of) {
      port_.get(where_.errand_of(me_.machine(), where_.tree.first_node(b)), of.errand);
      posted = true;
    });
    return posted;
  }
  /// After another look. Calls with each branch that the writer has to do itself, what of those is
  /// posted being the caller's to flush, and for each that a deputy has done. Up to 2 round trips,
  /// 1 put and 1 get for each deputy that is dismissed.
  template <class Do, class Done>
  void settle(Do do_it, Done done) {
    if (!judge(do_it, done, looks_++ >= patience_)) return;
    port_.flush();
    // Who came before it was dismissed has the errand.
    if (post()) port_.flush();
    static_cast<void>(judge(do_it, done, true));
  }

  /// Until no deputy does anything any more, whether it is done or not: takes them as long as a
  /// look at the readers, or the puts of a branch.
  void dismiss_all() {
    if (!have_some()) return;
    for_each_left([&](int b, branch& of) { dismiss(b, of); });
    port_.flush();
    for (rma::backoff b = where_.tree.between_looks(); post(); port_.pause(b.next())) {
      port_.flush();
      for_each_left([&](int, branch& of) {
        if (errand::from(of.errand) != errand{wished_.wish(), true}) of.left_to = doer::writer;
      });
    }
  }

  /// Calls with the branches that a deputy may still have.
  template <class Visit>
  void for_each_left(Visit visit) {
    for (int b = 0; b < static_cast<int>(branches_.size()); ++b)
      if (branch& of = branches_[static_cast<std::size_t>(b)]; of.left_to != doer::writer)
        visit(b, of);
  }

 private:
  enum class doer : std::uint8_t {
    writer,
    deputy,
    dismissed,  // a deputy that has the errand by now, or nobody yet
  };
  struct branch {
    rma::word errand = 0;  // as seen last
    doer left_to = doer::writer;
  };

  // Whether it has dismissed somebody.
  template <class Do, class Done>
  [[nodiscard]] bool judge(Do do_it, Done done, bool is_impatient) {
    bool dismissed = false;
    for_each_left([&](int b, branch& of) {
      const auto seen = errand::from(of.errand);
      if (seen == errand{wished_.wish(), true}) return;
      if (seen == errand{wished_.wish(), false}) {
        of.left_to = doer::writer;
        done();
      } else if (of.left_to == doer::dismissed) {
        of.left_to = doer::writer;
        do_it(b);
      } else if (is_impatient) {
        dismiss(b, of);
        dismissed = true;
      }
    });
    return dismissed;
  }
  void dismiss(int b, branch& of) {
    port_.put(where_.dismissal_of(me_.machine(), where_.tree.first_node(b)), wished_.wish());
    of.left_to = doer::dismissed;
  }
  [[nodiscard]] rma::cpu_cell first_gate(int b) const {
    const rma::topology& machine = me_.machine();
    return where_.gate_of(machine, machine.leader(machine.node_level(), where_.tree.first_node(b)));
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_cells where_;
  std::int64_t patience_;
  int own_;
  gate wished_;
  std::int64_t looks_ = 0;
  std::pmr::vector<branch> branches_;
};

}  // namespace lockflight::lock
