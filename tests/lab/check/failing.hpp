// Robust locks on a port of which one operation throws: any one, in an acquire or a release.
#pragma once

#include <array>
#include <cstdint>

#include "lab/check/engine/port.hpp"
#include "lab/check/program/robust_program.hpp"
#include "lab/check/program/subject.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/robust.hpp"
#include "tests/support/throwing.hpp"

namespace lockflight::check {

class holds_port {
 public:
  holds_port(engine& e, rank_t rank) : its_(e, rank) {}

 protected:
  port its_;
};

class failing_port : holds_port, public test::throwing<port> {
 public:
  static constexpr rma::capability_set capabilities = [] {
    rma::capability_set of = port::capabilities;
    of.messages = false;
    return of;
  }();
  static constexpr bool examines_nothing = port::examines_nothing;

  failing_port(engine& e, rank_t rank) : holds_port(e, rank), throwing(its_) {}

  void fence_node() { return begin(), its_.fence_node(); }
  [[nodiscard]] word deaths() { return begin(), its_.deaths(); }
  [[nodiscard]] bool is_dead(rank_t rank) { return begin(), its_.is_dead(rank); }
  void acknowledge_death(rank_t rank) { return begin(), its_.acknowledge_death(rank); }
  void examine(rank_t rank) { its_.examine(rank); }
  void wake(rank_t rank) { return begin(), its_.wake(rank); }
  [[nodiscard]] int participants() const { return its_.participants(); }
  [[nodiscard]] rank_t participant(int number) const { return its_.participant(number); }
  [[nodiscard]] rma::deadline grant_deadline() { return its_.grant_deadline(); }
  [[nodiscard]] rma::deadline earlier(rma::deadline a, rma::deadline b) const {
    return its_.earlier(a, b);
  }
  template <class Cell, class Predicate>
  word await_or_death(Cell on, Predicate done, const rma::lifeline& line) {
    begin();
    return its_.await_or_death(on, done, line);
  }
  template <class Cell, class Predicate>
  word await_until_or_death(Cell on, Predicate done, rma::deadline until,
                            const rma::lifeline& line) {
    begin();
    return its_.await_until_or_death(on, done, until, line);
  }
  rank_t rendezvous() { return its_.rendezvous(); }
  void idle() { its_.idle(); }
};

struct failing_parameters {
  std::int64_t failing = 0;

  static constexpr std::array<lock::parameter<failing_parameters>, 1> all() {
    return {{{"failing", [](failing_parameters& p) -> std::int64_t& { return p.failing; }, 0, 1'000,
              "the operation that throws, of a timed round; 0: none"}}};
  }
};

/// A robust lock whose timed rounds are those in which an operation throws.
template <template <class> class Inside>
class failing {
  using robust = lock::robust<Inside, failing_port>;

 public:
  static constexpr lock::facts about = robust::about;
  static constexpr bool timed_waits_end_early = true;  // by an exception
  using parameters = failing_parameters;
  using participant = typename robust::participant;
  struct cells : robust::cells {
    static cells place(rma::layout& in, const rma::topology& machine, const parameters&) {
      return {robust::cells::place(in, machine, {})};
    }
  };

  failing(participant& me, const cells& where, const parameters& set)
      : port_(me.port()), failing_(static_cast<std::uint64_t>(set.failing)), its_(me, where) {}

  void lock() { its_.lock(); }
  bool try_lock() { return its_.try_lock(); }
  /// False if an operation threw.
  [[nodiscard]] bool try_lock_within(std::uint64_t) {
    port_.throw_at(failing_);
    const bool has = returns([this] { its_.lock(); });
    port_.count(false);
    return has;
  }
  /// Complete, also if an operation throws.
  void unlock() {
    port_.count(true);
    static_cast<void>(returns([this] { its_.unlock(); }));
    port_.throw_at(0);
  }
  [[nodiscard]] std::uint64_t token() const { return its_.token(); }
  [[nodiscard]] bool owner_died() { return its_.owner_died(); }
  void mark_consistent() { its_.mark_consistent(); }

 private:
  template <class Call>
  [[nodiscard]] bool returns(Call call) {
    try {
      call();
      return true;
    } catch (const test::port_failed&) {
    }
    port_.throw_at(0);
    return false;
  }

  failing_port& port_;
  std::uint64_t failing_;
  robust its_;
};

/// For check::run, with deaths or stops.
template <template <class> class Inside>
[[nodiscard]] subject failing_subject() {
  subject made = make_subject<Inside<port>>();
  made.lacks = [](part what) -> const char* {
    return what == part::writer || what == part::timed_writer || what == part::try_writer
               ? nullptr
               : "such calls";
  };
  made.make_mortal = make_mortal<failing<Inside>>;
  return made;
}

/// A lock whose releases are given up.
template <rma::port Port>
class never_released : public lock::d_mcs<Port> {
 public:
  using lock::d_mcs<Port>::d_mcs;
  void unlock() { throw rma::interrupted(); }
};

}  // namespace lockflight::check
