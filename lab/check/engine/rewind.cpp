// States: saving one and going back to it, and the key by which one is recognised.
#include "lab/check/engine/engine.hpp"

#include <algorithm>
#include <cstring>

namespace lockflight::check {

void engine::save(saved& into) const {
  into.state = world_;
  memory_->save(into.words);
  into.broken = broken_;
  for (int f = 0; f < fibers_; ++f) {
    const auto i = static_cast<std::size_t>(f);
    const auto image = fiber_[i].image();
    into.image[i].assign(image.begin(), image.end());
  }
}

void engine::restore(const saved& from) {
  world_ = from.state;
  memory_->restore(from.words);
  broken_ = from.broken;
  for (int f = 0; f < fibers_; ++f) {
    const auto i = static_cast<std::size_t>(f);
    fiber_[i].restore(from.image[i]);
  }
}

void engine::take(step s, undo& record, std::vector<std::byte>& images) {
  record.all = world_.all;
  record.what = s;
  memory_->open(record.words, images);
  record.state_at = images.size();
  const auto* const bytes = reinterpret_cast<const std::byte*>(&state(s.fiber));
  images.insert(images.end(), bytes, bytes + state(s.fiber).used_bytes());
  record.image_at = images.size();
  record.has_image = resumes(s);
  if (record.has_image) {
    const auto image = fiber_[s.fiber].image();
    images.insert(images.end(), image.begin(), image.end());
  }
  take(s);
  memory_->close();
}

void engine::take_back(const undo& record, std::vector<std::byte>& images) {
  rma::ensure(record.image_at <= images.size(), "steps are taken back in order");
  world_.all = record.all;
  std::memcpy(static_cast<void*>(&state(record.what.fiber)), images.data() + record.state_at,
              record.image_at - record.state_at);
  memory_->take_back(record.words, images);
  if (record.has_image)
    fiber_[record.what.fiber].restore(std::span(images).subspan(record.image_at));
  images.resize(std::min(record.words.copy_at, record.state_at));
  broken_.reset();
}

// ---- keys ----

// Operations under way have a hash of their own: appended to the history, a count of operations
// would look like a result, and two different states could have one key.
std::uint64_t engine::fiber_key(rank_t f) const {
  const fiber_state& s = state(f);
  std::uint64_t under_way = std::uint64_t{s.stores} << 8 | s.posts;
  for (int i = 0; i < s.posts; ++i) {
    const posted& p = s.post[static_cast<std::size_t>(i)];
    under_way = mix(under_way, static_cast<std::uint64_t>(p.took_effect) * 2 +
                                   static_cast<std::uint64_t>(p.half));
    if (p.took_effect || p.half) under_way = mix(under_way, p.read);
    // Earlier messages may have arrived, and the remaining ones must not look like them.
    if (p.kind == posted_kind::message) under_way = mix(under_way, p.a << 8 | p.cell);
  }
  return mix(s.history, mix(under_way, s.posts));
}

// The same for endless schedules: the history is a hash of the stack, and the rest is hashed as it
// is. Also for dead participants, which have no history.
std::uint64_t engine::held_key(rank_t f) const {
  const fiber_state& s = state(f);
  if (has_come_to_nothing(f)) return 0;
  std::uint64_t key = mix(s.history, static_cast<std::uint64_t>(s.next) << 32 |
                                         std::uint64_t{s.cell} << 16 | s.stores << 8 | s.posts);
  key = mix(mix(key, s.a), mix(s.b, static_cast<std::uint64_t>(s.target)));
  if (s.line != no_cell) key = mix(key, s.line);
  if (s.stored || s.put) key = mix(key, std::uint64_t{s.stored} << 1 | std::uint64_t{s.put});
  for (int i = 0; i < s.stores; ++i) {
    const buffered& b = s.buffer[static_cast<std::size_t>(i)];
    key = mix(key, mix(b.cell, b.value));
  }
  for (int i = 0; i < s.posts; ++i) {
    const posted& p = s.post[static_cast<std::size_t>(i)];
    const auto stores_before = static_cast<std::uint8_t>(
        std::max<int>(static_cast<std::int8_t>(p.after - s.stores_drained), 0));
    key = mix(key, static_cast<std::uint64_t>(p.kind) << 40 | std::uint64_t{p.took_effect} << 33 |
                       std::uint64_t{p.half} << 32 | std::uint64_t{stores_before} << 16 | p.cell);
    key = mix(mix(key, p.a), mix(p.b, p.read));
    key = mix(key, reinterpret_cast<std::uintptr_t>(p.result));
  }
  return key;
}

// The properties' records of a participant, as far as its future depends on them.
std::uint64_t engine::shared_key(rank_t f) const {
  const auto i = static_cast<std::size_t>(f);
  const shared_state& all = world_.all;
  std::uint64_t key = 0;
  if ((retrying_ & 1u << f) != 0)
    key = mix(key + 1, std::uint64_t{all.quiet[i]} << 1 | all.changed[i]);
  if (how_.most_overtaken && all.where[i] == stage::waiting)
    key = mix(key + 2, std::uint64_t{all.came_after[i]} << 16 | all.overtaken[i]);
  if (how_.most_overtaken && all.about_to_begin[i]) key = mix(key + 3, 0);
  return key;
}

std::uint64_t engine::key() const {
  std::uint64_t key = memory_->key();
  if (how_.deaths > 0 || how_.stops > 0) {
    const shared_state& all = world_.all;
    key ^= mix(std::uint64_t{all.dead} << 24 | std::uint64_t{all.known} << 16 |
                   std::uint64_t{all.acknowledged} << 8 | std::uint64_t{all.holder_died},
               all.token + 1);
    key ^= mix(std::uint64_t{all.stopped} << 16 | std::uint64_t{all.stops} << 8 | all.lapses,
               all.late);
  }
  for (rank_t f = 0; f < fibers_; ++f)
    key ^= mix(
        how_.endless || is_dead(f) || is_stopped(f) ? held_key(f) : fiber_key(f) + shared_key(f),
        static_cast<std::uint64_t>(f) + 1);
  return key != 0 ? key : 1;  // 0 means an empty slot to the table of visited states
}

}  // namespace lockflight::check
