// Carries out steps: an operation takes effect, a participant runs up to its next operation.
#include "lab/check/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace lockflight::check {
namespace {

[[nodiscard]] bool is_wait(action a) {
  return a == action::await || a == action::await_until || a == action::await_or_death ||
         a == action::await_until_or_death || a == action::poll || a == action::pause ||
         a == action::receive;
}

/// The words of a live stack, whose size is a multiple of theirs. Half of the time of a search for
/// starvation is spent here: the processor mixes several words at a time.
[[nodiscard]] std::uint64_t mix_all(std::span<const std::byte> stack) {
  std::array<std::uint64_t, 4> mixed{stack.size(), 1, 2, 3};
  const auto word_at = [stack](std::size_t number) {
    word one = 0;
    std::memcpy(&one, stack.data() + number * sizeof(word), sizeof one);
    return one;
  };
  const std::size_t words = stack.size() / sizeof(word);
  std::size_t next = 0;
  for (; next + mixed.size() <= words; next += mixed.size())
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = mix(mixed[i], word_at(next + i));
  for (; next < words; ++next) mixed[0] = mix(mixed[0], word_at(next));
  return mix(mix(mixed[0], mixed[1]), mix(mixed[2], mixed[3]));
}

}  // namespace

order engine::order_of(action a) const {
  switch (a) {
    case action::load:
      return how_.orders.load;
    case action::store:
      return how_.orders.store;
    case action::cpu_fetch_add:
    case action::cpu_swap:
    case action::cpu_compare_swap:
      return how_.orders.cpu_rmw;
    default:
      return how_.orders.await;
  }
}

order engine::order_of(posted_kind kind) const {
  switch (kind) {
    case posted_kind::get:
      return how_.orders.get;
    case posted_kind::put:
      return how_.orders.put;
    case posted_kind::message:
    case posted_kind::fence:
      return {.acquires = true, .releases = true};
    case posted_kind::add:
    case posted_kind::fetch_add:
    case posted_kind::swap:
    case posted_kind::compare_swap:
      break;
  }
  return how_.orders.nic_rmw;
}

void engine::after_write(rank_t by, bool changes) {
  if (!changes) return;
  for (int g = 0; g < fibers_; ++g)
    if (g != by) world_.all.changed[static_cast<std::size_t>(g)] = true;
}

void engine::write(rank_t by, cell_id cell, word value, int choice) {
  before_write(cell);
  after_write(by, memory_->write(by, cell, value, choice, order_of(action::store)));
}

void engine::modify(rank_t by, cell_id cell, word value, int choice) {
  before_write(cell);
  after_write(by, memory_->modify(by, cell, value, choice, order_of(action::cpu_swap)));
}

void engine::note_rmw(cell_id cell, std::uint8_t rmw_class) {
  const std::uint8_t classes = memory_->note_class(cell, rmw_class);
  if (classes == (cpu_rmw | nic_rmw) && how_.report_mixed)
    fail("mixed classes",
         cell_name(cell) + " is read-modify-written both by CPUs and through the fabric");
}

void engine::drain(rank_t f) {
  fiber_state& s = state(f);
  rma::ensure(s.stores > 0, "a store that becomes visible is buffered");
  const buffered oldest = s.buffer[0];
  std::copy(s.buffer.begin() + 1, s.buffer.begin() + s.stores, s.buffer.begin());
  --s.stores;
  s.buffer[s.stores] = {};
  ++s.stores_drained;
  write(f, oldest.cell, oldest.value, 0);
}

// A NIC's RMW is atomic with those of all NICs. With a CPU's it is not: unless seeing both on one
// cell is a violation anyway, it reads in one step and writes in another.
void engine::take_effect(rank_t f, int index, int choice, bool at_once) {
  posted& p = state(f).post[static_cast<std::size_t>(index)];
  if (p.kind == posted_kind::message) return arrive(f, index);
  if (p.kind == posted_kind::fence) {
    memory_->fence(p.target);
    p.took_effect = true;
    return;
  }
  if (is_rmw(p.kind) && !p.half) note_rmw(p.cell, nic_rmw);
  if (!p.half) p.read = at_once ? memory_->peek(f, p.cell, choice) : memory_->peek(p, choice);
  if (in_two_steps(p) && !p.half) {
    p.half = true;
    return;
  }
  access(f, p, choice, at_once);
  p.took_effect = true;
  if (!how_.reordering && !at_once) {
    if (p.kind != posted_kind::get) memory_->fence(p);
    for (int later = index + 1; later < state(f).posts; ++later) follow(f, later, index);
  }
  // A participant that acknowledges the death comes after this (C46).
  if (is_dead(f) || is_stopped(f)) memory_->complete(f, p, order_of(p.kind));
}

// Where posts are ordered, one comes after an earlier one to the same rank that has taken effect.
void engine::follow(rank_t f, int later, int earlier) {
  posted& after = state(f).post[static_cast<std::size_t>(later)];
  const posted& before = state(f).post[static_cast<std::size_t>(earlier)];
  const auto is_ordered = [](const posted& p) {
    return p.kind != posted_kind::message && p.kind != posted_kind::fence;
  };
  if (before.took_effect && before.target == after.target && is_ordered(before) &&
      is_ordered(after))
    memory_->follow(after, before);
}

// Either by itself or `at_once`, as an operation of the participant's CPU.
void engine::access(rank_t f, posted& p, int choice, bool at_once) {
  const order how = order_of(p.kind);
  if (at_once && p.kind == posted_kind::compare_swap) memory_->may_only_read(f, p.cell);
  if (p.kind == posted_kind::get || (p.kind == posted_kind::compare_swap && p.read != p.a)) {
    at_once ? memory_->read(f, p.cell, choice, how) : memory_->read(p, choice);
    return;
  }
  before_write(p.cell);
  if (p.kind == posted_kind::put) {
    after_write(f,
                at_once ? memory_->write(f, p.cell, p.a, choice, how) : memory_->write(f, p, p.a));
    return;
  }
  const word value = p.kind == posted_kind::swap           ? p.a
                     : p.kind == posted_kind::compare_swap ? p.b
                                                           : p.read + p.a;
  after_write(
      f, at_once ? memory_->modify(f, p.cell, value, choice, how) : memory_->modify(f, p, value));
}

// A message is no more under way when it arrives: no flush waits for it.
void engine::arrive(rank_t f, int index) {
  fiber_state& s = state(f);
  const posted p = s.post[static_cast<std::size_t>(index)];
  std::vector<word> queue = queues_[memory_->inbox(p.target)];
  queue.push_back(p.a);
  memory_->arrive(p.target, p, number_of_queue(queue));
  after_write(f, true);
  std::copy(s.post.begin() + index + 1, s.post.begin() + s.posts, s.post.begin() + index);
  s.post[--s.posts] = {};
}

void engine::take_message(rank_t f) {
  const std::vector<word>& queue = queues_[memory_->inbox(f)];
  if (queue.empty()) return;
  state(f).got = queue.front();
  memory_->receive(f, number_of_queue({queue.begin() + 1, queue.end()}));
  after_write(f, true);
}

word engine::number_of_message(const rma::message& m) {
  const auto at = std::find(messages_.begin() + 1, messages_.end(), m);
  const auto number = static_cast<word>(at - messages_.begin());
  if (at == messages_.end()) messages_.push_back(m);
  return number;
}

word engine::number_of_queue(const std::vector<word>& queue) {
  const auto at = std::find(queues_.begin(), queues_.end(), queue);
  const auto number = static_cast<word>(at - queues_.begin());
  if (at == queues_.end()) queues_.push_back(queue);
  return number;
}

// The results of the operations that the flush waited for reach the participant now, not before.
// A variable that is gone does not hold what posting left in it, unless nothing has been there
// since.
void engine::deliver(rank_t me, const void* lowest) {
  fiber_state& s = state(me);
  int kept = 0;
  for (int i = 0; i < s.posts; ++i) {
    const posted& p = s.post[static_cast<std::size_t>(i)];
    if (!waits_for(s, p)) {
      s.post[static_cast<std::size_t>(kept++)] = p;
      continue;
    }
    memory_->complete(me, p, order_of(p.kind));
    if (p.result != nullptr) {
      const auto below =
          reinterpret_cast<std::intptr_t>(lowest) - reinterpret_cast<std::intptr_t>(p.result);
      const bool is_free = below > 0 && below < static_cast<std::intptr_t>(stack_bytes);
      if (is_free || *p.result != not_yet) {
        fail("missing flush", "the result of rank " + std::to_string(me) + "'s operation on " +
                                  cell_name(p.cell) + " arrives where no variable is any more");
        continue;
      }
      *p.result = p.read;
      s.history = mix(s.history, p.read);
    }
  }
  for (int i = kept; i < s.posts; ++i) s.post[static_cast<std::size_t>(i)] = {};
  s.posts = static_cast<std::uint8_t>(kept);
}

void engine::run(step how) {
  const rank_t f = how.fiber;
  fiber_state& s = state(f);
  const auto i = static_cast<std::size_t>(f);
  const bool time_is_over = how.what == step::kind::expire;
  const bool grant_is_over = how.what == step::kind::lapse;
  const int choice = how.choice % line_choice;
  s.answer = 0;
  s.got = 0;
  s.time_was_over = time_is_over;
  s.grant_was_over = grant_is_over;
  const bool is_late = grant_is_over && nothing_else_happens();
  if (grant_is_over) {
    ++(is_late ? world_.all.late : world_.all.lapses);
    world_.all.retries[i] = world_.all.quiet[i] = 0;
  }
  if (!time_is_over && !grant_is_over &&
      !goes_on(f, how.choice)) {  // a wait, which a message ends for now
    take_message(f);
    if (s.next == action::rendezvous) --world_.all.arrived;  // the participant comes back
    s.history = mix(s.history, mix(s.got, static_cast<word>(s.next)));
    return resume(f);
  }
  switch (s.next) {
    case action::is_over:
      s.answer = time_is_over ? 1 : 0;
      break;
    case action::load:
    case action::await:
    case action::await_until:
    case action::poll:
      s.answer = memory_->read(f, s.cell, choice, order_of(s.next));
      break;
    case action::await_or_death:
    case action::await_until_or_death:
      s.answer = memory_->read(f, s.cell, choice, order_of(s.next));
      if (!s.test(s.answer)) memory_->read(f, s.line, how.choice / line_choice, order_of(s.next));
      break;
    case action::deaths:
      s.answer = deaths();
      for (rank_t g = 0; g < fibers_; ++g)
        if ((world_.all.known & 1u << g) != 0) memory_->learn(f, g);
      break;
    case action::is_dead:
      s.answer = is_dead(s.target) ? 1 : 0;
      if (s.answer != 0) memory_->learn(f, s.target);
      break;
    case action::acknowledge_death:
      world_.all.acknowledged |= static_cast<std::uint8_t>(1u << s.target);
      memory_->learn(f, s.target);
      break;
    case action::rendezvous:
      s.answer = static_cast<word>(std::countr_one(world_.all.dead));
      break;
    case action::store:
      write(f, s.cell, s.a, choice);
      break;
    case action::cpu_fetch_add:
      s.answer = memory_->peek(f, s.cell, choice);
      note_rmw(s.cell, cpu_rmw);
      modify(f, s.cell, s.answer + s.a, choice);
      break;
    case action::cpu_swap:
      s.answer = memory_->peek(f, s.cell, choice);
      note_rmw(s.cell, cpu_rmw);
      modify(f, s.cell, s.a, choice);
      break;
    case action::cpu_compare_swap:
      s.answer = memory_->peek(f, s.cell, choice);
      note_rmw(s.cell, cpu_rmw);
      memory_->may_only_read(f, s.cell);
      if (s.answer == s.a)
        modify(f, s.cell, s.b, choice);
      else
        memory_->read(f, s.cell, choice, order_of(s.next));
      break;
    case action::fence:
      if (how_.orders.fence) memory_->fence(f);
      s.stored = s.put = false;
      break;
    case action::pause:
      world_.all.quiet[i] =
          world_.all.changed[i] ? 0 : static_cast<std::uint8_t>(world_.all.quiet[i] + 1);
      world_.all.changed[i] = false;
      break;
    case action::flush:
    case action::fence_node:
      deliver(f, fiber_[i].live_stack().data());
      break;
    case action::post: {
      const int last = s.posts - 1;
      take_effect(f, last, choice, true);
      if (s.posts > last && !s.post[static_cast<std::size_t>(last)].took_effect)
        return;  // the operation has read, and writes in its next step
      break;
    }
    case action::receive:
    case action::try_receive:
      take_message(f);
      s.answer = s.got;
      break;
    default:
      break;
  }
  s.history = mix(s.history, s.answer + static_cast<word>(s.next));
  // A lifeline ends a wait with any value, so the value does not say whether time was over.
  if (time_is_over && s.next == action::await_until_or_death) s.history = mix(s.history, 1);
  if (grant_is_over) s.history = mix(s.history, 2);
  if (is_late) memory_->catch_up(f);
  resume(f);
}

void engine::resume(rank_t f) {
  const auto i = static_cast<std::size_t>(f);
  if (how_.endless) fiber_[i].wipe_free();
  running_ = resumed_ = f;
  {
    const listening here(*this);
    fiber_[i].resume();
  }
  if (exceeded_) throw limit_exceeded(*std::exchange(exceeded_, std::nullopt));
  if (how_.endless) state(f).history = mix_all(fiber_[i].live_stack());
  const action next = state(f).next;
  if (is_wait(next) && world_.all.where[i] == stage::acquiring && !how_.has_doorway)
    begin_waiting(f);
  if (next == action::pause) {
    if (world_.all.retries[i] < UINT8_MAX) ++world_.all.retries[i];
    retrying_ |= 1u << f;
  }
  if (next == action::rendezvous) ++world_.all.arrived;
}

void engine::take(step s) {
  if (world_.all.about_to_begin[s.fiber]) begin(s.fiber);
  resumed_ = -1;
  const stage before = world_.all.where[s.fiber];
  carry_out(s);
  memory_->settle();
  check_loop(s.fiber, before);
  fences_at_once_ = 0;
  while (resumed_ == s.fiber && state(s.fiber).next == action::fence &&
         memory_->fence_is_private(s.fiber)) {
    run({step::kind::run, s.fiber, 0});
    memory_->settle();
    ++fences_at_once_;
  }
}

void engine::carry_out(step s) {
  // The participant has not seen the newest message yet, so another attempt may see something new.
  if (s.choice != 0) world_.all.changed[s.fiber] = true;
  switch (s.what) {
    case step::kind::run:
    case step::kind::expire:
    case step::kind::lapse:
      return run(s);
    case step::kind::death:
      return die(s.fiber);
    case step::kind::stop:
      return stop(s.fiber);
    case step::kind::drain:
      drain(s.fiber);
      break;
    case step::kind::effect:
      take_effect(s.fiber, s.index, s.choice);
      break;
  }
  // The rest is invisible to other participants: it need not be a step of its own.
  const fiber_state& f = state(s.fiber);
  const bool flushed =
      (f.next == action::flush || f.next == action::fence_node) && s.what == step::kind::effect;
  const bool drained =
      (f.next == action::fence || f.next == action::make_room) && s.what == step::kind::drain;
  if ((flushed || drained) && can_run(s.fiber)) run({step::kind::run, s.fiber, 0});
}

// True if taking `s` lets its fiber run, so that its stack changes.
bool engine::resumes(step s) const {
  if (s.what == step::kind::run || s.what == step::kind::expire || s.what == step::kind::lapse)
    return true;
  const fiber_state& f = state(s.fiber);
  if (s.what == step::kind::death || s.what == step::kind::stop) return false;
  if (is_dead(s.fiber) || is_stopped(s.fiber)) return false;
  if (s.what == step::kind::drain) return f.next == action::fence || f.next == action::make_room;
  return waits_for(f, f.post[s.index]);
}

}  // namespace lockflight::check
