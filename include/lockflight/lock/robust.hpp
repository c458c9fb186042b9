// robust: any lock, made to outlive its holders. The lock inside is a *generation*: when somebody
// dies in it, the living leave it, one of them repairs, and all go on in the next generation, whose
// words are fresh. So no lock's own words are ever repaired, and the lock inside knows nothing of
// deaths.
//
// Source: lockflight. The state that a death leaves is told by the dead one's record, one word.
//
// Invariants:
// - A record says `acquiring` or `releasing` while its participant may use the words inside, and
//   it does so only after it has seen the generation open with its record written. So when the
//   repairer has closed the generation and seen every record once in another phase, or its
//   participant dead, it is alone with those words.
// - A participant holds from the store of `holding` or `sharing` to that of `releasing`, whatever
//   the generation. A holder of an earlier generation is counted in `inherited`, and the next
//   generation waits for that as well.
// - A record of a dead participant that is not idle is a death that concerns its lock. The repairer
//   makes it idle, and before that nobody takes the dead one's place (C46): others may still write
//   to its queue nodes.
//
// Order and fairness bound: those of the lock inside, between deaths.
//
// Cost: what the lock inside costs; beside that 3 loads and 2 stores to acquire, and 2 of each to
// release. Repair: some loads of each record of each participant.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/robust/participant.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "lockflight/lock/robust/repair.hpp"

namespace lockflight::lock {

/// On a machine of one node. A handle belongs to one participant.
template <template <class> class Inside, rma::mortal_port Port>
class robust final : generations<Port> {
  using base = generations<Port>;
  using base::announce, base::await_open, base::await_repair, base::exclusively, base::has_lost_one,
      base::is_closed, base::never, base::repair;
  using base::line_, base::me_, base::place_, base::port_, base::where_;
  using inside = Inside<rma::interruptible<Port>>;

 public:
  static constexpr facts about = inside::about;
  using parameters = typename inside::parameters;
  using participant = robust_participant<Port>;
  static constexpr bool shares = lock::shared<inside>;

  /// This lock's words: one line, then those of the lock inside; all homes are rank 0.
  struct cells : generation_cells {
    typename inside::cells inner;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set) {
      const auto line = in.take<rma::plain_cell>(rma::line_words);
      auto inner = inside::cells::place(in, machine, set, line.home);
      return {{line, in.used()}, std::move(inner)};
    }
  };

  robust(robust_participant<Port>& me, const cells& where, const parameters& set = {})
      : base(me, where), inner_(where.inner), set_(set) {
    rma::ensure(me.machine().nodes() == 1 && where.line.home == 0, "a robust lock has one node");
  }
  robust(const robust&) = delete;
  robust& operator=(const robust&) = delete;

  void lock() {
    acquire(record::holding, rma::forever{}, [](inside& in) { return in.lock(), true; });
  }
  [[nodiscard]] bool try_lock()
    requires can_try<inside>
  {
    return acquire(record::holding, port_.deadline_in(0), [](inside& in) { return in.try_lock(); });
  }
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds)
    requires can_time<inside>
  {
    if (nanoseconds == 0) return try_lock();
    const rma::deadline until = port_.deadline_in(nanoseconds);
    return acquire(record::holding, until, [&](inside& in) { return in.lock_until(until); });
  }
  void unlock() {
    release(record::holding, [](inside& in) { return in.unlock(), true; });
  }

  void lock_shared()
    requires shares
  {
    acquire(record::sharing, rma::forever{}, [](inside& in) { return in.lock_shared(), true; });
  }
  [[nodiscard]] bool try_lock_shared()
    requires can_try_shared<inside>
  {
    return acquire(record::sharing, port_.deadline_in(0),
                   [](inside& in) { return in.try_lock_shared(); });
  }
  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds)
    requires can_time_shared<inside>
  {
    if (nanoseconds == 0) return try_lock_shared();
    const rma::deadline until = port_.deadline_in(nanoseconds);
    return acquire(record::sharing, until, [&](inside& in) { return in.lock_shared_until(until); });
  }
  void unlock_shared()
    requires shares
  {
    release(record::sharing, [](inside& in) { return in.unlock_shared(), true; });
  }

  // ---- for a holder ----

  /// The fencing token of our last exclusive acquire: greater than that of any acquire before it.
  [[nodiscard]] std::uint64_t token() const { return token_; }
  /// Whether a holder died, and no holder since then has called mark_consistent.
  [[nodiscard]] bool owner_died() { return port_.load(where_.died) != 0; }
  /// The exclusive holder has put right what is guarded.
  void mark_consistent() { port_.store(where_.died, 0); }
  /// The exclusive holder will not put right what is guarded: the next one is told as of a death.
  void abandon() { port_.store(where_.died, 1); }
  /// Which of our records says that we hold it.
  [[nodiscard]] int place() const { return place_; }
  /// Whether this handle holds the lock, in any way.
  [[nodiscard]] bool is_held() const { return place_ >= 0; }

  // ---- for code that ends participants ----

  /// Deals with the deaths that concern this lock.
  void repair_if_needed() {
    if (!has_lost_one()) return;
    place_ = me_.take_record();
    announce(record::left, line_.value);
    while (has_lost_one()) repair();
    me_.give_back(std::exchange(place_, -1));
  }

 private:
  enum class outcome : std::uint8_t { had, not_had, interrupted };

  template <class Until, class Take>
  bool acquire(rma::word as, Until until, Take take) {
    rma::ensure(place_ < 0, "a robust lock is not recursive");
    place_ = me_.take_record();
    nodes_ = 0;
    const std::uint32_t taken_before = me_.inside().taken();
    const std::uint32_t abandoned_before = me_.inside().abandoned();
    if (!enter(until)) return give_up();
    while (true) {
      const outcome how = call([&](inside& in) {
        if (!take(in)) return false;
        if (await_heirs(as, until)) return true;
        as == record::holding ? in.unlock() : unlock_shared_of(in);
        return false;
      });
      nodes_ =
          (me_.inside().taken() & ~taken_before) | (me_.inside().abandoned() & ~abandoned_before);
      if (how == outcome::had) break;
      // An attempt does not wait, and so is not interrupted by a death.
      if (how == outcome::not_had && !has_lost_one()) return give_up();
      leave();
      static_cast<void>(enter(rma::forever{}));  // we cannot go before all have left
    }
    announce(as, line_.value);
    if (as == record::holding) {
      token_ = port_.load(where_.token) + 1;
      port_.store(where_.token, token_);
    }
    return true;
  }

  template <class Give>
  void release(rma::word as, Give give) {
    rma::ensure(place_ >= 0, "only a holder releases");
    while (true) {
      const rma::word now = port_.load(where_.generation);
      if (is_closed(now)) {
        await_repair(now, rma::forever{});
        continue;
      }
      announce(record::releasing, line_.value);
      if (port_.load(where_.generation) != now) {
        announce(as, line_.value);  // the repairer may have counted us, or not yet
        continue;
      }
      if (now != line_.value) {
        const rma::word mine = as == record::holding ? exclusively : 1;
        static_cast<void>(port_.cpu_fetch_add(where_.inherited, -mine));
        // Nobody is in that generation any more.
        me_.inside().reset(nodes_);
      } else if (call(give) == outcome::interrupted) {
        leave();
        await_open();
        me_.inside().reset(nodes_);
      }
      return me_.give_back(std::exchange(place_, -1));
    }
  }

  // Into the open generation. False if time is over before there is one.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool enter(Until until) {
    while (true) {
      const rma::word now = port_.load(where_.generation);
      if (is_closed(now)) [[unlikely]] {
        announce(record::left, line_.value);
        if (!await_repair(now, until)) return false;
        continue;
      }
      announce(record::acquiring, now);
      if (port_.load(where_.generation) != now) {
        announce(record::left, line_.value);
        continue;
      }
      if (now != line_.value) [[unlikely]]
        renew(now);
      return true;
    }
  }

  [[gnu::noinline]] void renew(rma::word generation) {
    // Nobody is in the generation that we have left: its queue nodes are ours again.
    me_.inside().reset(nodes_);
    inside_.emplace(me_.inside(), inner_, set_);
    line_.value = generation;
  }

  // Nothing of ours happens while the exception lives: the checker puts participants aside in
  // operations of the port, and the run-time counts exceptions by thread.
  template <class Call>
  [[nodiscard, gnu::always_inline]] outcome call(Call what) {
    me_.waits().hold_on_to(*this);
    try {
      return what(*inside_) ? outcome::had : outcome::not_had;
    } catch (const rma::interrupted&) {
    } catch (const std::length_error&) {  // no queue node is left, and nothing has changed
      me_.give_back(std::exchange(place_, -1));
      throw;
    }
    return outcome::interrupted;
  }

  // Waits for the holders of earlier generations. We are still acquiring: if we die now, or the
  // generation is closed, we have not held.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool await_heirs(rma::word as, Until until) {
    rma::word now = port_.load(where_.inherited);
    const rma::word in_our_way = as == record::holding ? ~rma::word{0} : exclusively;
    if ((now & in_our_way) == 0) [[likely]]
      return true;
    return rma::await(
        me_.waits(), where_.inherited,
        [in_our_way](rma::word heirs) { return (heirs & in_our_way) == 0; }, until, now);
  }

  // Out of the generation, whose words we leave in disorder. It is over when we return, whichever
  // participant was taken for dead: between two reads the place of a dead participant may have
  // become another's.
  void leave() {
    announce(record::left, line_.value);
    while (true) {
      if (port_.load(where_.generation) != line_.value) return;
      repair(line_.value);
    }
  }

  bool give_up() {
    const std::uint32_t still_in = me_.inside().abandoned() & nodes_;
    if (still_in != 0) {
      announce(record::left, line_.value);
      me_.give_back_when_out(std::exchange(place_, -1), still_in);
    } else {
      me_.give_back(std::exchange(place_, -1));
    }
    return false;
  }

  static void unlock_shared_of(inside& in) {
    if constexpr (shares) in.unlock_shared();
  }
  typename inside::cells inner_;
  parameters set_;
  std::optional<inside> inside_;  // of the generation that we entered last
  rma::word token_ = 0;
  std::uint32_t nodes_ = 0;  // the queue nodes that this acquire has taken
};

}  // namespace lockflight::lock
