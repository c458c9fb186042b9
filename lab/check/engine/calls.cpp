// A participant's calls on the engine, on its own fiber.
#include "lab/check/engine/engine.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace lockflight::check {

word engine::act(rank_t me, action what, cell_id cell, word a, word b, predicate test,
                 rank_t target, cell_id line) {
  fiber_state& s = state(me);
  s.next = what;
  s.cell = cell;
  s.a = a;
  s.b = b;
  s.test = test;
  s.target = target;
  s.line = line;
  fiber::fiber::suspend();
  return state(me).answer;
}

void engine::put_under_way(rank_t me, posted_kind kind, cell_id cell, rank_t target, word a, word b,
                           word* result) {
  fiber_state& s = state(me);
  if (s.posts == most_posted)
    exceed(limit_exceeded(std::to_string(most_posted) +
                          " posted operations of one participant under way"));
  s.post[s.posts++] = {.kind = kind,
                       .took_effect = false,
                       .half = false,
                       .after = 0,
                       .view = 0,
                       .cell = cell,
                       .target = target,
                       .a = a,
                       .b = b,
                       .read = 0,
                       .result = result};
  if (kind != posted_kind::fence) post_to_memory(me, s.post[s.posts - 1u]);
  if (how_.reordering || !how_.delayed_effects) return;
  for (int earlier = 0; earlier + 1 < s.posts; ++earlier) follow(me, s.posts - 1, earlier);
}

void engine::exceed(const limit_exceeded& limit) {
  if (!fiber::fiber::inside()) throw limit;
  exceeded_ = limit;
  while (true) act(running_, action::finished);
}

void engine::post_to_memory(rank_t me, posted& p) {
  std::optional<limit_exceeded> limit;
  try {
    memory_->post(me, p, order_of(p.kind));
  } catch (const limit_exceeded& of_memory) {
    limit = of_memory;
  }
  if (limit) exceed(*limit);
}

void engine::post(rank_t me, posted_kind kind, cell_id cell, rank_t target, word a, word b,
                  word* result) {
  if (kind == posted_kind::get) before_get(me);
  if (result != nullptr) *result = not_yet;
  put_under_way(me, kind, cell, target, a, b, result);
  if (how_.delayed_effects) return;
  act(me, action::post, cell);
  if (kind == posted_kind::put)
    state(me).put = true;
  else if (is_rmw(kind) && how_.orders.fence_at_flush)
    fence_behind(me);
}

void engine::before_get(rank_t me) {
  const fiber_state& s = state(me);
  if ((s.stored || (s.put && !how_.reordering)) && how_.orders.fence_at_get) fence_behind(me);
}

void engine::fence_behind(rank_t me) {
  if (memory_->needs_fences()) act(me, action::fence);
}

void engine::store(rank_t me, cell_id cell, word value) {
  if (cell == counter_ && cell != no_cell) value = 0;
  if (!memory_->buffers_stores()) {
    act(me, action::store, cell, value);
    state(me).stored = memory_->needs_fences();
    if (!how_.store_buffering) fence_behind(me);
    return;
  }
  if (state(me).stores == most_buffered) act(me, action::make_room);
  fiber_state& s = state(me);
  s.buffer[s.stores++] = {cell, value};
  ++s.stores_issued;
}

// When everything has taken effect already, the flush is invisible to other participants: no step.
// The fence behind it is a step, where the memory needs it (C7).
void engine::flush(rank_t me, rank_t target) {
  fiber_state& s = state(me);
  s.next = action::flush;
  s.target = target;
  const std::span<const posted> posts(s.post.data(), s.posts);
  if (std::ranges::none_of(posts, [&](const posted& p) { return waits_for(s, p); })) return;
  const bool completes_writes =
      how_.delayed_effects
          ? std::ranges::any_of(
                posts,
                [&](const posted& p) { return waits_for(s, p) && p.kind != posted_kind::get; })
          : s.put;
  if (!has_what_it_waits_for(s)) {
    act(me, action::flush, no_cell, 0, 0, {}, target);
  } else {
    deliver(me, __builtin_frame_address(0));
    s.history = mix(s.history, static_cast<word>(action::flush));
  }
  if (completes_writes && how_.orders.fence_at_flush) fence_behind(me);
}

// A fence for each participant of the node, at moments in any order (C40). Where neither stores are
// buffered nor fences needed, all have passed it already.
void engine::fence_node(rank_t me) {
  act(me, action::fence);
  if (!memory_->buffers_stores() && !memory_->needs_fences()) return;
  for (rank_t other = 0; other < fibers_; ++other)
    if (other != me && machine().same_node(other, me))
      put_under_way(me, posted_kind::fence, no_cell, other, 0, 0, nullptr);
  act(me, action::fence_node);
  fence_behind(me);
}

// C28: a third message to a participant that has not even received the first may have to wait for
// room.
void engine::send(rank_t me, rank_t to, const std::array<word, 3>& body) {
  const auto sent_before = [&](word m) { return messages_[m].from == me; };
  const fiber_state& s = state(me);
  const std::vector<word>& queue = queues_[memory_->inbox(to)];
  const auto not_taken =
      std::count_if(queue.begin(), queue.end(), sent_before) +
      std::count_if(s.post.begin(), s.post.begin() + s.posts, [&](const posted& p) {
        return p.kind == posted_kind::message && p.target == to;
      });
  if (not_taken >= 2)
    fail("contract", "rank " + std::to_string(me) + " sends a third message to rank " +
                         std::to_string(to) + ", which has taken none of the others");
  if (std::uint8_t& duty = duty_of_messages(me, to); duty == 0) {
    duty = static_cast<std::uint8_t>(3 * fibers_ + message_duties_++);
    if (how_.endless && duty >= 64)
      exceed(limit_exceeded(std::to_string(64 - 3 * fibers_) +
                            " pairs of ranks that send messages to each other"));
  }
  post(me, posted_kind::message, inbox_of(to), to, number_of_message({me, body}), 0, nullptr);
}

const rma::message* engine::got(rank_t me) const {
  const word number = state(me).got;
  return number != 0 ? &messages_[number] : nullptr;
}

cell_id engine::number(rank_t home, std::uint32_t index) {
  if (home < 0 || home >= fibers_ || index >= most_words || index < allowed_first_ ||
      index >= allowed_last_) {
    fail("foreign cell", "rank " + std::to_string(home) + ", index " + std::to_string(index) +
                             " is not a cell of this lock");
    return 0;
  }
  cell_id& known = number_of_[static_cast<std::size_t>(home) * most_words + index];
  if (known == no_cell) {
    if (cells_.size() == most_cells - most_fibers)
      exceed(limit_exceeded(std::to_string(most_cells - most_fibers) + " cells"));
    known = static_cast<cell_id>(cells_.size());
    cells_.push_back({home, index});
  }
  return known;
}

}  // namespace lockflight::check
