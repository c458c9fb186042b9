// The waits of a robust lock: what ends them, and which waiter examines whether the other users of
// the lock still live.
//
// Invariants:
// - A grant is withdrawn only if no record says that its participant holds, and no acquire has
//   succeeded exclusively since the waiter began to wait. A wrong withdrawal would cost time only,
//   since a holder is never evicted.
// - At most one waiter of a lock is its watcher, unless one was stopped for long. A lock without a
//   watcher is safe too: a waiter examines the others some milliseconds after it has begun to wait,
//   and then about once a second.
// - A waiter that relies on a hold examines only the holder, and withdraws no grant. The hold
//   excludes it, so that no grant is on its way, and no dead waiter keeps it out.
#pragma once

#include <cstdint>
#include <utility>

#include "lockflight/lock/robust/repair.hpp"
#include "lockflight/rma/interruptible.hpp"

namespace lockflight::lock {

template <rma::mortal_port Port>
class guarded_waits : protected generations<Port>, protected rma::wait_guard {
  using base = generations<Port>;

 protected:
  using base::is_ours, base::me_, base::never, base::port_, base::where_;

  guarded_waits(robust_participant<Port>& me, const generation_cells& where)
      : base(me, where), wait_guard({where.line, never, never}) {}
  ~guarded_waits() = default;

  [[nodiscard]] bool has_unhandled_death() override {
    return base::has_unhandled_death(line_.deaths);
  }

  // Examines the users of the lock first, so that deaths that no participant has noticed yet count.
  [[nodiscard]] bool is_any_user_dead() {
    base::examine_users();
    return has_unhandled_death();
  }

  [[nodiscard]] bool is_in_vain(bool after_pause) override {
    if constexpr (Port::capabilities.interrupts) {
      if (port_.is_over({UINT64_MAX})) {
        was_interrupted_ = may_be_interrupted_;
        return was_interrupted_;  // if not, is_over() of a deadline has no meaning here
      }
    }
    if constexpr (can_rely) {
      if (line_.relies) {
        if (port_.still_relies()) return keep_watch(), false;
        begin_waiting();
        if (has_unhandled_death()) return true;
      }
    }
    const rma::deadline grant = until();
    if (!rma::examines_nothing<Port> && after_pause &&
        !port_.is_over(rma::earlier(port_, grant, next_check_)))
      return false;
    if (port_.is_over(grant)) {
      if (is_not_taken_up()) return true;
      begin_waiting();
    }
    if constexpr (!rma::examines_nothing<Port>) {
      keep_watch();
      return !relies_on_a_holder(after_pause) && is_any_user_dead();
    }
    return false;
  }

  // Called when a wait is over.
  [[gnu::always_inline]] void end_watch() {
    if (line_.watches) [[unlikely]]
      hand_over_watch();
  }

  bool is_releasing_ = false;
  bool may_be_interrupted_ = false;
  bool was_interrupted_ = false;  // by the caller's program
  bool shares_ = false;           // of an acquire

 private:
  static constexpr bool can_rely = requires(Port& p) { p.still_relies(); };

  void begin_waiting() override {
    if constexpr (can_rely) {
      if (std::exchange(line_.relies, false)) port_.rely_no_more(line_);
    }
    token_before_ = port_.load(where_.token);
    grant_ = port_.grant_deadline();
    // For a participant that retries; a sleeping one is woken to examine.
    if constexpr (!rma::examines_nothing<Port>)
      next_check_ = port_.deadline_in(rma::first_examination_ns);
    is_waiting_ = true;
  }

  // True if the lock was granted to a participant that does not take it, because it is stopped or
  // has left the instance in disorder. A release does not depend on the holders.
  [[nodiscard]] bool is_not_taken_up() {
    if (is_releasing_) return true;
    return port_.load(where_.token) == token_before_ && !base::is_anyone_holding(false);
  }

  // Has this waiter sleep until the hold of a participant ends that excludes it, if the port can
  // tell when. A reader that waits behind a writer relies on no other reader: it could share the
  // lock if the writer died.
  [[nodiscard]] bool relies_on_a_holder(bool after_pause) {
    if constexpr (can_rely) {
      if (after_pause || is_releasing_ || !port_.may_rely()) return false;
      line_.relies = me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
        const auto of = record::from(port_.load(at));
        const rma::word phase = of.get(record::phase);
        const bool excludes = phase == record::holding || (phase == record::sharing && !shares_);
        return excludes && is_ours(of) && r != me_.rank() && port_.rely_on(r, at, of.bits());
      });
      if (line_.relies) grant_ = {UINT64_MAX}, keep_watch();
      return line_.relies;
    } else {
      return false;
    }
  }

  // ---- the watch ----

  [[nodiscard]] std::uint64_t check_every() const {
    return line_.watches ? rma::watcher_examines_every_ns : rma::others_examine_every_ns;
  }
  // The word of the watcher: 1 + its rank, and the time of its last examination, in units of about
  // a millisecond. A watcher that relies on a holder writes a later time, since it examines less
  // often.
  [[nodiscard]] static rma::rank_t rank_of(rma::word watcher) {
    return static_cast<rma::rank_t>(static_cast<std::uint32_t>(watcher) - 1);
  }
  [[nodiscard]] rma::word watching_now() {
    // Not deadline_in(0), which does not read the clock.
    constexpr std::uint64_t ahead_ns = 2'000'000'000;
    const rma::word milliseconds = port_.deadline_in(line_.relies ? ahead_ns : 1).at >> 20;
    return milliseconds << 32 | (static_cast<rma::word>(me_.rank()) + 1);
  }

  // Becomes the watcher if there is none; if we are the watcher, notes the time.
  void keep_watch() {
    constexpr std::int32_t longest = 200;  // milliseconds: a watcher that is late is stopped
    const rma::word now = port_.load(where_.watcher);
    const rma::word mine = watching_now();
    const auto age = static_cast<std::int32_t>(static_cast<std::uint32_t>(mine >> 32) -
                                               static_cast<std::uint32_t>(now >> 32));
    const bool is_free =
        now == 0 || rank_of(now) == me_.rank() || port_.is_dead(rank_of(now)) || age > longest;
    line_.watches = is_free && port_.cpu_compare_swap(where_.watcher, now, mine) == now;
    next_check_ = port_.deadline_in(check_every());
  }

  [[gnu::noinline]] void hand_over_watch() {
    line_.watches = false;
    const rma::word now = port_.load(where_.watcher);
    if (now == 0 || rank_of(now) != me_.rank() ||
        port_.cpu_compare_swap(where_.watcher, now, 0) != now)
      return;  // another waiter has taken it
    static_cast<void>(me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
      const auto of = record::from(port_.load(at));
      if (r == me_.rank() || !is_ours(of) || of.get(record::phase) != record::acquiring)
        return false;
      port_.wake(r);
      return true;
    }));
  }

  rma::word token_before_ = 0;  // when grant_ was set
  rma::deadline next_check_;    // of a participant that retries
};

}  // namespace lockflight::lock
