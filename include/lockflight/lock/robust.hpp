// robust: any lock, made to outlive its holders. The lock inside is a *generation*: when somebody
// dies in it, the living leave it, one of them repairs, and all go on in the next generation, whose
// words are fresh. So no lock's own words are ever repaired, and the lock inside knows nothing of
// deaths.
//
// Source: lockflight. The states that a death leaves are told by the dead one's record, one word.
// models/robust.pml has the protocol alone.
//
// Invariants:
// - A record says `acquiring` or `releasing` while its participant may use the words inside, and
//   it does so only after it has seen the generation open with its record written. So when the
//   repairer has closed the generation and seen every record once in another phase, or its
//   participant dead, it is alone with those words.
// - A participant holds from the store of `holding` or `sharing` to that of `releasing`, whatever
//   the generation. Who holds in an earlier generation is counted in `inherited`, and the next
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

namespace lockflight::lock {

/// On a machine of one node. A handle belongs to one participant.
template <template <class> class Inside, rma::mortal_port Port>
class robust final : rma::mourner {
  using inside = Inside<rma::interruptible<Port>>;

 public:
  static constexpr facts about = inside::about;
  using parameters = typename inside::parameters;
  static constexpr bool shares = lock::shared<inside>;

  /// This lock's words: one line, then those of the lock inside; all homes are rank 0.
  struct cells {
    rma::plain_cell line;
    typename inside::cells inner;
    std::uint32_t end = 0;  // the words inside lie between the line and this index, on all ranks

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set) {
      const auto line = in.take<rma::plain_cell>(rma::line_words);
      auto inner = inside::cells::place(in, machine, set, line.home);
      return {line, std::move(inner), in.used()};
    }

    /// Even: open. Odd: somebody repairs. Written by the repairer alone.
    [[nodiscard]] rma::plain_cell generation() const { return line; }
    /// How many exclusive acquires there were. Written by the exclusive holder.
    [[nodiscard]] rma::plain_cell token() const { return line + 1; }
    /// Not 0: a holder died, and what it guarded may be half done.
    [[nodiscard]] rma::plain_cell died() const { return line + 2; }
    /// Those that hold from earlier generations: how many share, and `exclusively`.
    [[nodiscard]] rma::cpu_cell inherited() const { return {line.home, line.index + 3}; }
    /// 1 + the rank that has the right to repair, or 0.
    [[nodiscard]] rma::cpu_cell repairer() const { return {line.home, line.index + 4}; }
    /// Words for whoever makes locks, 3 of them.
    [[nodiscard]] rma::plain_cell beside() const { return line + 5; }
  };

  robust(robust_participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me), port_(me.port()), where_(where), set_(set) {
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
  [[nodiscard]] bool owner_died() { return port_.load(where_.died()) != 0; }
  /// The exclusive holder has put right what is guarded.
  void mark_consistent() { port_.store(where_.died(), 0); }
  /// The exclusive holder will not put right what is guarded: the next one is told as of a death.
  void abandon() { port_.store(where_.died(), 1); }
  /// Whether this handle holds the lock, in any way.
  [[nodiscard]] bool is_held() const { return place_ >= 0; }

  // ---- for whoever ends participants ----

  /// Deals with the deaths that concern this lock.
  void repair_if_needed() {
    if (!has_lost_one()) return;
    place_ = me_.take_record();
    announce(record::left, generation_);
    while (has_lost_one()) repair();
    me_.give_back(std::exchange(place_, -1));
  }

 private:
  enum class outcome : std::uint8_t { had, not_had, interrupted };
  static constexpr rma::word exclusively = rma::word{1} << 32;  // of `inherited`

  template <class Until, class Take>
  bool acquire(rma::word as, Until until, Take take) {
    rma::ensure(place_ < 0, "a robust lock is not recursive");
    place_ = me_.take_record();
    nodes_ = 0;
    const std::uint32_t nodes_before = me_.inside().taken() | me_.inside().abandoned();
    if (!enter(until)) return give_up();
    while (true) {
      const outcome how = call([&](inside& in) {
        if (!take(in)) return false;
        if (await_heirs(as, until)) return true;
        as == record::holding ? in.unlock() : unlock_shared_of(in);
        return false;
      });
      nodes_ = (me_.inside().taken() | me_.inside().abandoned()) & ~nodes_before;
      if (how == outcome::had) break;
      // Who only tries does not wait, and so is not interrupted by a death.
      if (how == outcome::not_had && !has_lost_one()) return give_up();
      leave();
      static_cast<void>(enter(rma::forever{}));  // we cannot go before all have left
    }
    announce(as, generation_);
    if (as == record::holding) {
      token_ = port_.load(where_.token()) + 1;
      port_.store(where_.token(), token_);
    }
    return true;
  }

  template <class Give>
  void release(rma::word as, Give give) {
    rma::ensure(place_ >= 0, "only a holder releases");
    while (true) {
      const rma::word now = port_.load(where_.generation());
      if (is_closed(now)) {
        await_repair(now, rma::forever{});
        continue;
      }
      announce(record::releasing, generation_);
      if (port_.load(where_.generation()) != now) {
        announce(as, generation_);  // the repairer may have counted us, or not yet
        continue;
      }
      if (now != generation_) {
        const rma::word mine = as == record::holding ? exclusively : 1;
        static_cast<void>(port_.cpu_fetch_add(where_.inherited(), -mine));
        // Nobody is in that generation any more.
        me_.inside().reset(nodes_);
      } else if (call(give) == outcome::interrupted) {
        leave();
        for (rma::word next; is_closed(next = port_.load(where_.generation()));)
          await_repair(next, rma::forever{});
        me_.inside().reset(nodes_);
      }
      return me_.give_back(std::exchange(place_, -1));
    }
  }

  // Into the open generation. False if time is over before there is one.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool enter(Until until) {
    while (true) {
      const rma::word now = port_.load(where_.generation());
      if (is_closed(now)) [[unlikely]] {
        announce(record::left, generation_);
        if (!await_repair(now, until)) return false;
        continue;
      }
      announce(record::acquiring, now);
      if (port_.load(where_.generation()) != now) {
        announce(record::left, generation_);
        continue;
      }
      if (!inside_ || now != generation_) renew(now);
      return true;
    }
  }

  [[gnu::noinline]] void renew(rma::word generation) {
    // Nobody is in the generation that we have left: its queue nodes are ours again.
    me_.inside().reset(nodes_);
    inside_.emplace(me_.inside(), where_.inner, set_);
    generation_ = generation;
  }

  // Nothing of ours happens while the exception lives: the checker puts participants aside in
  // operations of the port, and the run-time counts exceptions by thread.
  template <class Call>
  [[nodiscard, gnu::always_inline]] outcome call(Call what) {
    me_.waits().hold_on_to({where_.generation(), generation_, deaths_}, *this);
    try {
      return what(*inside_) ? outcome::had : outcome::not_had;
    } catch (const rma::interrupted&) {
    } catch (const std::length_error&) {  // no queue node is left, and nothing has changed
      me_.give_back(std::exchange(place_, -1));
      throw;
    }
    return outcome::interrupted;
  }

  // Those who hold from earlier generations. We are still acquiring: if we die now, or the
  // generation is closed, we have not held.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool await_heirs(rma::word as, Until until) {
    rma::word now = port_.load(where_.inherited());
    const rma::word in_our_way = as == record::holding ? ~rma::word{0} : exclusively;
    if ((now & in_our_way) == 0) [[likely]]
      return true;
    return rma::await(
        me_.waits(), where_.inherited(),
        [in_our_way](rma::word heirs) { return (heirs & in_our_way) == 0; }, until, now);
  }

  // Out of the generation, in which somebody has died. It is over when we return.
  void leave() {
    announce(record::left, generation_);
    while (port_.load(where_.generation()) == generation_) repair();
  }

  bool give_up() {
    const std::uint32_t still_in = me_.inside().abandoned() & nodes_;
    if (still_in != 0) {
      announce(record::left, generation_);
      me_.give_back_when_out(std::exchange(place_, -1), still_in);
    } else {
      me_.give_back(std::exchange(place_, -1));
    }
    return false;
  }

  // ---- deaths ----

  [[nodiscard]] static bool is_closed(rma::word generation) { return generation % 2 != 0; }
  [[nodiscard]] rma::word id() const { return where_.line.index / rma::line_words; }
  [[nodiscard]] bool is_ours(record of) const {
    return of.get(record::phase) != record::idle && of.get(record::lock) == id();
  }

  // Always inlined, as all that an uncontended acquire goes through: compilers stop where a lock is
  // large.
  [[gnu::always_inline]] void announce(rma::word phase, rma::word generation) {
    port_.store(me_.record_of(me_.rank(), place_), record{}
                                                       .with(record::phase, phase)
                                                       .with(record::generation, generation)
                                                       .with(record::lock, id())
                                                       .bits());
    // Before we read the generation. Where a repairer can make all pass a fence it does (C40).
    if constexpr (!Port::capabilities.node_fence) port_.fence();
  }

  // Whether a death concerns this lock.
  [[nodiscard]] bool has_lost_one() override {
    const rma::word deaths = port_.deaths();
    if (deaths == deaths_) return false;
    for (rma::rank_t r = 0; r < me_.machine().ranks(); ++r) {
      if (!port_.is_dead(r)) continue;
      for (int i = 0; i < me_.records(); ++i)
        if (is_ours(record::from(port_.load(me_.record_of(r, i))))) return true;
    }
    deaths_ = deaths;
    return false;
  }

  // The generation is closed: waits until it is open, or repairs if the repairer died. False if
  // time is over before.
  template <class Until>
  bool await_repair(rma::word generation, Until until) {
    const rma::word deaths = port_.deaths();
    const rma::word repairer = port_.load(where_.repairer());
    if (repairer == 0 || port_.is_dead(static_cast<rma::rank_t>(repairer - 1)))
      return repair(), true;
    const rma::lifeline line{where_.generation(), generation, deaths};
    const auto is_open = rma::differs_from(generation);
    if constexpr (std::is_same_v<Until, rma::deadline>) {
      const rma::word now = port_.await_until_or_death(where_.generation(), is_open, until, line);
      return is_open(now) || !port_.is_over(until);
    } else {
      port_.await_or_death(where_.generation(), is_open, line);
      return true;
    }
  }

  // Replaces the generation, unless that has been done. Our record is not idle, so if we die in
  // here that is a death of this lock too.
  [[gnu::noinline]] void repair() {
    if (!take_the_right()) return;
    rma::word generation = port_.load(where_.generation());
    // A generation that was closed already was so by a repairer that died.
    if (!is_closed(generation) && !there_is_a_body()) return port_.store(where_.repairer(), 0);
    if (!is_closed(generation)) port_.store(where_.generation(), ++generation);
    // Who has written a record after this sees the generation closed (announce).
    if constexpr (Port::capabilities.node_fence)
      port_.fence_node();
    else
      port_.fence();
    port_.rouse();

    rma::word heirs = 0;
    for_each_record([&](rma::rank_t r, rma::plain_cell at) { heirs += survey(r, at, generation); });

    // Now the words are ours alone, and so is any way to write them.
    port_.store(where_.inherited(), heirs);
    for (rma::rank_t r = 0; r < me_.machine().ranks(); ++r)
      for (std::uint32_t i = where_.line.index + rma::line_words; i < where_.end; ++i)
        if (port_.load(rma::plain_cell{r, i}) != 0) port_.store(rma::plain_cell{r, i}, 0);
    for_each_record([&](rma::rank_t, rma::plain_cell at) {
      const auto of = record::from(port_.load(at));
      if (is_ours(of) && of.get(record::phase) == record::buried) port_.store(at, 0);
    });
    port_.store(where_.generation(), generation + 1);
    port_.store(where_.repairer(), 0);
    port_.fence();
    port_.rouse();
  }

  // False if another participant has repaired, or stopped doing so: then we have to look again.
  [[nodiscard]] bool take_the_right() {
    const rma::word deaths = port_.deaths();
    const rma::word now = port_.load(where_.repairer());
    if (now != 0 && !port_.is_dead(static_cast<rma::rank_t>(now - 1))) {
      const rma::word generation = port_.load(where_.generation());
      port_.await_or_death(where_.repairer(), rma::differs_from(now),
                           {where_.generation(), generation, deaths});
      return false;
    }
    const rma::word ours = static_cast<rma::word>(me_.rank()) + 1;
    return port_.cpu_compare_swap(where_.repairer(), now, ours) == now;
  }

  [[nodiscard]] bool there_is_a_body() {
    deaths_ = never;  // not what we knew before we had the right
    return has_lost_one();
  }

  // What a participant brings into the next generation. Waits until it uses no word of this one.
  [[nodiscard]] rma::word survey(rma::rank_t r, rma::plain_cell at, rma::word generation) {
    while (true) {
      const rma::word deaths = port_.deaths();
      // Read before the record: a dead participant writes no more. One read of the record decides:
      // who dies after it is a death that this repair does not know.
      const bool is_dead = port_.is_dead(r);
      const auto of = record::from(port_.load(at));
      if (!is_ours(of)) return 0;
      const rma::word phase = of.get(record::phase);
      if (is_dead) {
        bury(r, at, of);
        return 0;
      }
      if (phase == record::holding) return exclusively;
      if (phase == record::sharing) return 1;
      if (phase != record::acquiring && phase != record::releasing) return 0;
      port_.await_or_death(at, rma::differs_from(of.bits()),
                           {where_.generation(), generation, deaths});
    }
  }

  void bury(rma::rank_t r, rma::plain_cell at, record of) {
    if (of.get(record::phase) == record::holding) port_.store(where_.died(), 1);
    port_.bury(r);
    port_.store(at, of.with(record::phase, record::buried).bits());
  }

  template <class Visit>
  void for_each_record(Visit visit) {
    for (rma::rank_t r = 0; r < me_.machine().ranks(); ++r)
      for (int i = 0; i < me_.records(); ++i) visit(r, me_.record_of(r, i));
  }

  static void unlock_shared_of(inside& in) {
    if constexpr (shares) in.unlock_shared();
  }
  static constexpr rma::word never = ~rma::word{0};

  robust_participant<Port>& me_;
  Port& port_;
  cells where_;
  parameters set_;
  std::optional<inside> inside_;  // of generation_
  rma::word generation_ = 0;
  rma::word deaths_ = never;  // so many deaths, and none of them concerns this lock
  rma::word token_ = 0;
  int place_ = -1;           // of our record, while we acquire, hold or release
  std::uint32_t nodes_ = 0;  // the queue nodes that this acquire has taken
};

}  // namespace lockflight::lock
