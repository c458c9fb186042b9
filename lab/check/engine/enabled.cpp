// The enabled steps: which operations may take effect, which participants may run. This is the
// checker's version of the contract's memory model (docs/contract.md).
#include "lab/check/engine/engine.hpp"

#include <algorithm>

namespace lockflight::check {
namespace {

constexpr std::uint8_t most_quiet = 2;  // retries that saw nothing new, before one must wait

}  // namespace

bool engine::has_what_it_waits_for(const fiber_state& s) const {
  return std::all_of(s.post.begin(), s.post.begin() + s.posts,
                     [&](const posted& p) { return p.took_effect || !waits_for(s, p); });
}

bool engine::waits_for(const fiber_state& s, const posted& p) const {
  switch (p.kind) {
    case posted_kind::message:
      return false;
    case posted_kind::fence:
      return s.next == action::fence_node;
    default:
      return s.next == action::flush && (s.target < 0 || s.target == p.target);
  }
}

// A posted operation comes after the stores that its participant issued before (C12).
bool engine::can_take_effect(const fiber_state& s, const posted& p) const {
  // A fence takes effect when all stores of the other participant are visible (C40).
  if (p.kind == posted_kind::fence) return !p.took_effect && state(p.target).stores == 0;
  return how_.delayed_effects && !p.took_effect &&
         static_cast<std::int8_t>(s.stores_drained - p.after) >= 0 && nic_is_free(p) &&
         is_next_to(s, p);
}

// Messages of a pair arrive in the order in which they were sent (C29), and where posts are ordered
// other operations take effect in that of their calls.
bool engine::is_next_to(const fiber_state& s, const posted& p) const {
  if (p.kind != posted_kind::message && how_.reordering) return true;
  const auto is_message = [](const posted& one) { return one.kind == posted_kind::message; };
  const auto* const first =
      std::find_if(s.post.begin(), s.post.begin() + s.posts, [&](const posted& other) {
        return is_message(other) == is_message(p) && !other.took_effect &&
               other.kind != posted_kind::fence && other.target == p.target;
      });
  return first == &p;
}

bool engine::in_two_steps(const posted& p) const { return !how_.report_mixed && is_rmw(p.kind); }

// A RMW that takes two steps is still atomic with all operations through the fabric.
bool engine::nic_is_free(const posted& p) const {
  if (how_.report_mixed || p.half || p.kind == posted_kind::get || p.kind == posted_kind::message)
    return true;
  for (int f = 0; f < fibers_; ++f)
    for (int i = 0; i < state(f).posts && !has_come_to_nothing(f); ++i) {
      const posted& other = state(f).post[static_cast<std::size_t>(i)];
      if (other.half && !other.took_effect && other.cell == p.cell) return false;
    }
  return true;
}

// True if the participant's next action, which may write, can have that choice. A compare-swap that
// fails is a read.
bool engine::can_change(rank_t f, int choice) const {
  const fiber_state& s = state(f);
  if (memory_->is_free(s.cell, choice)) return true;
  const bool compares = s.next == action::post
                            ? s.post[s.posts - 1u].kind == posted_kind::compare_swap
                            : s.next == action::cpu_compare_swap;
  const word expected = s.next == action::post ? s.post[s.posts - 1u].a : s.a;
  return (compares && memory_->peek(f, s.cell, choice) != expected) ||
         (s.next == action::post && s.post[s.posts - 1u].kind == posted_kind::get);
}

// True if a wait ends that reads those messages.
bool engine::ends_wait(rank_t f, int choice) const {
  const fiber_state& s = state(f);
  if (s.test(memory_->peek(f, s.cell, choice % line_choice))) return true;
  return s.line != no_cell &&
         (memory_->peek(f, s.line, choice / line_choice) != s.a || deaths() != s.b);
}

bool engine::is_choice(step s) const {
  bool found = false;
  each_choice(s.fiber, [&](std::uint8_t choice) { found |= choice == s.choice; });
  return found;
}

bool engine::can_run(rank_t f, int choice) const {
  const action next = state(f).next;
  const bool waits = next == action::await || next == action::await_until || next == action::poll ||
                     next == action::rendezvous || next == action::idle;
  return goes_on(f, choice) || (waits && choice == 0 && state(f).serves && memory_->inbox(f) != 0);
}

// True if the participant's next action can happen with that choice; a wait may end without it, to
// serve a message.
bool engine::goes_on(rank_t f, int choice) const {
  const fiber_state& s = state(f);
  const auto i = static_cast<std::size_t>(f);
  switch (s.next) {
    case action::finished:
    case action::stopped:
    case action::dead:
      return false;
    case action::await:
    case action::await_until:
      return s.test(memory_->peek(f, s.cell, choice));
    case action::await_or_death:
    case action::await_until_or_death:
      // The message that the lifeline's cell has makes no difference if it is not read.
      return ends_wait(f, choice) &&
             (choice < line_choice || !s.test(memory_->peek(f, s.cell, choice % line_choice)));
    case action::poll:
      return s.stores == 0 && s.test(memory_->peek(f, s.cell, choice));
    case action::pause:
      return how_.endless || (world_.all.retries[i] <= how_.retries &&
                              (world_.all.changed[i] || world_.all.quiet[i] < most_quiet));
    case action::flush:
    case action::fence_node:
      return has_what_it_waits_for(s);
    case action::post:
      return s.stores == 0 && nic_is_free(s.post[s.posts - 1u]) && can_change(f, choice);
    case action::fence:
      return s.stores == 0;
    case action::cpu_fetch_add:
    case action::cpu_swap:
    case action::cpu_compare_swap:
      return s.stores == 0 && can_change(f, choice);
    case action::store:
      return can_change(f, choice);
    case action::make_room:
      return s.stores < most_buffered;
    case action::receive:
      return memory_->inbox(f) != 0;
    case action::rendezvous:
      // A participant that has gone on and died has come as well.
      return world_.all.arrived >=
             fibers_ - std::popcount(static_cast<unsigned>(world_.all.dead | world_.all.stopped));
    case action::idle:
      // A message that is there is served before the participant comes: it would be served next
      // anyway.
      return !s.serves || memory_->inbox(f) == 0;
    default:
      return true;
  }
}

// Any deadline is over sooner or later, as far as other participants can tell; a participant whose
// wait has succeeded keeps what it waited for.
bool engine::can_expire(rank_t f, int choice) const {
  const action next = state(f).next;
  const bool waits = next == action::await_until || next == action::await_until_or_death;
  return next == action::is_over || (waits && !ends_wait(f, choice));
}

// A participant with stores in its buffer dies after these have become visible one by one: the
// steps before are those of others too, which changes nothing, since the dead one could have been
// slow.
bool engine::can_die(rank_t f) const {
  const shared_state& all = world_.all;
  const fiber_state& s = state(f);
  if (is_dead(f)) return (all.known & 1u << f) == 0;
  return std::popcount(all.dead) < how_.deaths && s.next != action::finished && s.stores == 0;
}

// A participant can stop as it can die, but only in a round: between rounds a stopped participant
// is like one that does not come.
bool engine::can_stop(rank_t f) const {
  const fiber_state& s = state(f);
  return world_.all.stops < how_.stops && !is_dead(f) && !is_stopped(f) && s.stores == 0 &&
         world_.all.where[static_cast<std::size_t>(f)] != stage::outside;
}

// A grant may be withdrawn while a participant is about to take it up, but only so often, so that
// schedules end. When nothing else can happen it is withdrawn in any case.
bool engine::can_lapse(rank_t f) const {
  const fiber_state& s = state(f);
  if (world_.all.stopped == 0) return false;
  const bool waits = (s.next == action::await_or_death || s.next == action::await_until_or_death) &&
                     s.target == with_grant;
  if (!waits && s.next != action::pause) return false;
  const bool releases = world_.all.where[static_cast<std::size_t>(f)] == stage::releasing;
  for (rank_t g = 0; g < fibers_ && !releases; ++g)
    if (!is_dead(g) && what_.says_that_it_holds_any(*this, g)) return false;
  // A waiter may first learn that others have come by meanwhile, and then it ends the generation:
  // so these are few too, unless the lock does not withdraw the grant.
  if (nothing_else_happens()) return world_.all.late < 2 * fibers_ * (how_.stops + 1);
  return world_.all.lapses < how_.stops;
}

bool engine::can_lapse(rank_t f, int choice) const {
  return state(f).next == action::pause || !ends_wait(f, choice);
}

bool engine::nothing_else_happens() const {
  std::vector<step> steps;
  enabled_but_lapses(steps);
  return only_unflushed(steps);
}

bool engine::waits_for_a_stopped_holder() const {
  for (rank_t f = 0; f < fibers_; ++f)
    if (is_stopped(f)) {
      const stage where = world_.all.where[static_cast<std::size_t>(f)];
      if (where == stage::inside || where == stage::inside_shared ||
          what_.says_that_it_holds_any(*this, f) || what_.repairs(*this, f))
        return true;
    }
  return false;
}

bool engine::is_excused(rank_t f) const {
  return world_.all.stopped != 0 &&
         world_.all.where[static_cast<std::size_t>(f)] != stage::releasing &&
         (world_.all.tries & 1u << f) == 0 && waits_for_a_stopped_holder();
}

bool engine::all_are_excused() const {
  for (rank_t f = 0; f < fibers_; ++f) {
    const action next = state(f).next;
    const bool is_over =
        next == action::finished || next == action::rendezvous || is_dead(f) || is_stopped(f);
    if (!is_over && !is_excused(f)) return false;
  }
  return world_.all.stopped != 0;
}

// Operations that a participant posted take effect no more once its death is acknowledged.
bool engine::has_come_to_nothing(rank_t f) const {
  return (world_.all.acknowledged & 1u << f) != 0;
}

void engine::enabled(std::vector<step>& steps) const {
  enabled_but_lapses(steps);
  if (world_.all.stopped == 0) return;
  for (std::uint8_t f = 0; f < fibers_; ++f)
    if (can_lapse(f))
      each_choice(f, [&](std::uint8_t choice) {
        if (can_lapse(f, choice)) steps.push_back({step::kind::lapse, f, 0, choice});
      });
}

void engine::enabled_but_lapses(std::vector<step>& steps) const {
  for (std::uint8_t f = 0; f < fibers_; ++f) {
    const fiber_state& s = state(f);
    each_choice(f, [&](std::uint8_t choice) {
      if (can_run(f, choice)) steps.push_back({step::kind::run, f, 0, choice});
    });
    for (std::uint8_t i = 0; i < s.posts; ++i)
      if (!has_come_to_nothing(f) && can_take_effect(s, s.post[i]))
        for (std::uint8_t choice = 0; choice < choices(s.post[i]); ++choice)
          steps.push_back({step::kind::effect, f, i, choice});
    if (s.stores > 0) steps.push_back({step::kind::drain, f, 0});
    each_choice(f, [&](std::uint8_t choice) {
      if (can_expire(f, choice)) steps.push_back({step::kind::expire, f, 0, choice});
    });
    if (can_die(f)) steps.push_back({step::kind::death, f, 0});
    if (can_stop(f)) steps.push_back({step::kind::stop, f, 0});
  }
}

bool engine::is_enabled(step s) const {
  if (s.fiber >= fibers_) return false;
  const fiber_state& f = state(s.fiber);
  switch (s.what) {
    case step::kind::run:
      return is_choice(s) && can_run(s.fiber, s.choice);
    case step::kind::effect:
      return s.index < f.posts && !has_come_to_nothing(s.fiber) &&
             can_take_effect(f, f.post[s.index]) && s.choice < choices(f.post[s.index]);
    case step::kind::drain:
      return f.stores > 0;
    case step::kind::expire:
      return is_choice(s) && can_expire(s.fiber, s.choice);
    case step::kind::death:
      return can_die(s.fiber);
    case step::kind::stop:
      return can_stop(s.fiber);
    case step::kind::lapse:
      return is_choice(s) && can_lapse(s.fiber) && can_lapse(s.fiber, s.choice);
  }
  return false;
}

bool engine::all_finished() const {
  for (int f = 0; f < fibers_; ++f)
    if (state(f).next != action::finished && !is_dead(f) && !is_stopped(f)) return false;
  return true;
}

bool engine::somebody_gave_up() const {
  for (int f = 0; f < fibers_; ++f)
    if (state(f).next == action::pause &&
        world_.all.retries[static_cast<std::size_t>(f)] > how_.retries)
      return true;
  return false;
}

bool engine::is_idle(rank_t f) const {
  const action next = state(f).next;
  return next == action::idle || next == action::finished;
}

std::uint16_t engine::in_round() const {
  unsigned who = 0;
  for (rank_t f = 0; f < fibers_; ++f)
    who |= is_idle(f) || is_dead(f) || is_stopped(f) || is_excused(f) ? 0 : 1u << f;
  return static_cast<std::uint16_t>(who);
}

std::uint16_t engine::leaving() const {
  unsigned who = 0;
  for (rank_t f = 0; f < fibers_; ++f)
    who |= where(f) == stage::releasing && !is_stopped(f) ? 1u << f : 0;
  return static_cast<std::uint16_t>(who);
}

bool engine::nobody_goes_on() const {
  std::vector<step> steps;
  enabled(steps);
  return in_round() != 0 &&
         std::none_of(steps.begin(), steps.end(), [this](step s) { return duty(s) != 0; });
}

std::uint64_t engine::duty(step s) const {
  const std::uint64_t first = std::uint64_t{1} << 3 * s.fiber;
  const fiber_state& f = state(s.fiber);
  switch (s.what) {
    case step::kind::run:
      if (is_idle(s.fiber) && goes_on(s.fiber)) return 0;
      // No participant has to read a value that has been overwritten.
      return s.choice == 0 || goes_on(s.fiber) ? first : 0;
    case step::kind::expire:
    case step::kind::lapse:
      return first;
    case step::kind::drain:
      return first << 1;
    case step::kind::death:
      return is_dead(s.fiber) ? first : 0;
    case step::kind::stop:
      return 0;
    case step::kind::effect: {
      const posted& p = f.post[s.index];
      // Each pair has its own duty: the arrival of other pairs' messages does not fulfil it.
      if (p.kind == posted_kind::message)
        return std::uint64_t{1}
               << message_duty_[static_cast<std::size_t>(s.fiber * most_fibers + p.target)];
      return (p.half || waits_for(f, p)) && s.choice == 0 ? first << 2 : 0;
    }
  }
  return 0;
}

bool engine::only_unflushed(std::span<const step> steps) const {
  return std::all_of(steps.begin(), steps.end(), [this](step s) {
    // No participant has to die, but a death that has happened becomes known.
    if (s.what == step::kind::death) return !is_dead(s.fiber);
    if (s.what == step::kind::stop) return true;
    // A value that has been overwritten need not be read; if the newest one may be, that is a step
    // of its own.
    if (s.choice != 0) return true;
    if (s.what != step::kind::effect) return false;
    const posted& p = state(s.fiber).post[s.index];
    return p.kind != posted_kind::message && !p.half && !waits_for(state(s.fiber), p);
  });
}

}  // namespace lockflight::check
