// Robust locks whose waits the caller's program may end (C45, capability `interrupts`).
#pragma once

#include <cstdint>

#include "lab/check/engine/port.hpp"
#include "lab/check/program/robust_program.hpp"
#include "lab/check/program/subject.hpp"
#include "lockflight/lock/robust.hpp"

namespace lockflight::check {

/// The checker's port, with an interrupt that may come at any moment of an acquire. Any deadline is
/// over from then on, until the acquire has ended.
class interrupted_port : public port {
 public:
  static constexpr rma::capability_set capabilities = [] {
    rma::capability_set of = port::capabilities;
    of.messages = false;
    of.interrupts = true;
    return of;
  }();
  using port::port;

  void accept_interrupts(bool on) {
    accepts_ = on;
    was_interrupted_ = false;
    if (on) static_cast<void>(port::deadline_in(shortest_of_acquire));  // it is not over
  }

  [[nodiscard]] bool is_over(rma::deadline until) {
    if (was_interrupted_) return true;
    if (until.at != never) return port::is_over(until);
    return was_interrupted_ = accepts_ && port::is_over(interrupt());
  }
  [[nodiscard]] rma::deadline earlier(rma::deadline a, rma::deadline b) const {
    return port::earlier(of(a), of(b));
  }
  template <class Cell, class Predicate>
  word await_until(Cell on, Predicate done, rma::deadline until) {
    return of(until).at == 0 ? port::await(on, done) : port::await_until(on, done, of(until));
  }
  template <class Cell, class Predicate>
  word await_until_or_death(Cell on, Predicate done, rma::deadline until,
                            const rma::lifeline& line) {
    // Also the wait of a lock that knows no deadline.
    const rma::deadline end = accepts_ ? port::earlier(of(until), interrupt()) : of(until);
    return port::await_until_or_death(on, done, end, line);
  }

 private:
  static constexpr std::uint64_t never = UINT64_MAX;
  /// In place of an acquire's deadline, of which there is none where an acquire can be interrupted.
  [[nodiscard]] static rma::deadline interrupt() { return {of_acquire}; }
  [[nodiscard]] rma::deadline of(rma::deadline given) const {
    if (given.at != never) return given;
    return accepts_ ? interrupt() : rma::deadline{0};
  }

  bool accepts_ = false, was_interrupted_ = false;
};

/// A robust lock whose timed acquires are those that may be interrupted.
template <template <class> class Inside>
class interrupted {
  using robust = lock::robust<Inside, interrupted_port>;

 public:
  static constexpr lock::facts about = robust::about;
  using parameters = typename robust::parameters;
  using participant = typename robust::participant;
  using cells = typename robust::cells;

  interrupted(participant& me, const cells& where, const parameters& set)
      : port_(me.port()), its_(me, where, set) {}

  void lock() { its_.lock(); }
  bool try_lock() { return its_.try_lock(); }
  [[nodiscard]] bool try_lock_within(std::uint64_t) {
    port_.accept_interrupts(true);
    const bool has = its_.lock_unless_interrupted();
    port_.accept_interrupts(false);
    return has;
  }
  void unlock() { its_.unlock(); }
  [[nodiscard]] std::uint64_t token() const { return its_.token(); }
  [[nodiscard]] bool owner_died() { return its_.owner_died(); }
  void mark_consistent() { its_.mark_consistent(); }
  [[nodiscard]] int place() const { return its_.place(); }
  void abandon_for(rank_t owner, int place) { its_.abandon_for(owner, place); }

 private:
  interrupted_port& port_;
  robust its_;
};

/// For check::run, with deaths or stops.
template <template <class> class Inside>
[[nodiscard]] subject interrupted_subject() {
  subject made = make_subject<Inside<port>>();
  made.lacks = [](part what) -> const char* {
    return what == part::writer || what == part::timed_writer || what == part::try_writer
               ? nullptr
               : "such calls";
  };
  made.make_mortal = make_mortal<interrupted<Inside>>;
  return made;
}

}  // namespace lockflight::check
