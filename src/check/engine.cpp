#include "check/engine.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#if defined(__has_feature)
#define LOCKFLIGHT_HAS_FEATURE(x) __has_feature(x)
#else
#define LOCKFLIGHT_HAS_FEATURE(x) 0
#endif

namespace lockflight::check {
namespace {

constexpr std::size_t stack_bytes = 32 * 1024;
constexpr std::uint8_t most_quiet = 2;  // retries that saw nothing new, before one must wait

[[nodiscard]] bool is_wait(action a) {
  return a == action::await || a == action::poll || a == action::pause || a == action::receive;
}

[[nodiscard]] std::uint64_t cell_key(cell_id cell, word value, std::uint8_t rmw_class) {
  if (value == 0 && rmw_class == 0) return 0;  // untouched cells are all alike
  return mix(std::uint64_t{cell} << 8 | rmw_class, value);
}

}  // namespace

engine::engine(program what, const model& how)
    : what_(std::move(what)),
      how_(how),
      fibers_(what_.machine.ranks()),
      stacks_(std::make_unique<fiber::stack_pool>(stack_bytes)),
      number_of_(static_cast<std::size_t>(what_.machine.ranks()) * most_words, no_cell) {
  if (fibers_ > most_fibers)
    throw std::invalid_argument(std::to_string(fibers_) + " participants (accepted: 1 to " +
                                std::to_string(most_fibers) + ")");
  for (int f = 0; f < fibers_; ++f) fiber_.emplace_back(stacks_->take());
}

engine::~engine() {
  for (fiber::fiber& f : fiber_) f.abandon();
}

bool engine::can_copy_stacks() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    LOCKFLIGHT_HAS_FEATURE(address_sanitizer) || LOCKFLIGHT_HAS_FEATURE(thread_sanitizer)
  return false;
#else
  return true;
#endif
}

void engine::start() {
  world_.all = {};
  std::fill_n(world_.fiber.begin(), fibers_, fiber_state{});
  world_.memory.fill(0);
  world_.rmw_class.fill(0);
  broken_.reset();
  progress_ = 0;
  for (int f = 0; f < fibers_; ++f) {
    fiber::fiber& one = fiber_[static_cast<std::size_t>(f)];
    one.abandon();
    one.reset([this, f] {
      try {
        what_.body(*this, f);
      } catch (const std::exception& e) {
        fail("assertion", "rank " + std::to_string(f) + ": " + e.what());
      }
      state(f).next = action::finished;
      ++progress_;
    });
  }
  // Up to its first operation a participant does nothing that others see.
  for (int f = 0; f < fibers_; ++f) resume(f);
}

// ---- what can happen ----

bool engine::flush_is_complete(const fiber_state& s, rank_t target) const {
  for (int i = 0; i < s.posts; ++i) {
    const posted& p = s.post[static_cast<std::size_t>(i)];
    if (p.kind != posted_kind::message && !p.took_effect && (target < 0 || p.target == target))
      return false;
  }
  return true;
}

bool engine::waits_for(const fiber_state& s, const posted& p) const {
  return p.kind != posted_kind::message && s.next == action::flush &&
         (s.target < 0 || s.target == p.target);
}

// A posted operation comes after the stores that its participant issued before (C12).
bool engine::can_take_effect(const fiber_state& s, const posted& p) const {
  return how_.delayed_effects && !p.took_effect &&
         static_cast<std::int8_t>(s.stores_drained - p.after) >= 0 && nic_is_free(p) &&
         is_next_to(s, p);
}

// Messages of a pair arrive in the order in which they were sent (C29).
bool engine::is_next_to(const fiber_state& s, const posted& p) const {
  if (p.kind != posted_kind::message) return true;
  const auto* const first =
      std::find_if(s.post.begin(), s.post.begin() + s.posts, [&](const posted& other) {
        return other.kind == posted_kind::message && other.target == p.target;
      });
  return first == &p;
}

bool engine::in_two_steps(const posted& p) const {
  return !how_.report_mixed && p.kind != posted_kind::put && p.kind != posted_kind::get &&
         p.kind != posted_kind::message;
}

// A RMW that takes two steps is still atomic with all that goes through the fabric.
bool engine::nic_is_free(const posted& p) const {
  if (how_.report_mixed || p.half || p.kind == posted_kind::get || p.kind == posted_kind::message)
    return true;
  for (int f = 0; f < fibers_; ++f)
    for (int i = 0; i < state(f).posts; ++i) {
      const posted& other = state(f).post[static_cast<std::size_t>(i)];
      if (other.half && !other.took_effect && other.cell == p.cell) return false;
    }
  return true;
}

word engine::visible(const fiber_state& s, cell_id cell) const {
  for (int i = s.stores; i-- > 0;)
    if (s.buffer[static_cast<std::size_t>(i)].cell == cell)
      return s.buffer[static_cast<std::size_t>(i)].value;
  return world_.memory[cell];
}

bool engine::can_run(rank_t f) const {
  const action next = state(f).next;
  const bool waits = next == action::await || next == action::poll || next == action::rendezvous;
  return goes_on(f) || (waits && state(f).serves && world_.memory[inbox_of(f)] != 0);
}

// Whether what it is about to do can happen; a wait may end without it, to serve a message.
bool engine::goes_on(rank_t f) const {
  const fiber_state& s = state(f);
  const auto i = static_cast<std::size_t>(f);
  switch (s.next) {
    case action::finished:
      return false;
    case action::await:
      return s.test(visible(s, s.cell));
    case action::poll:
      return s.stores == 0 && s.test(world_.memory[s.cell]);
    case action::pause:
      return world_.all.retries[i] <= how_.retries &&
             (world_.all.changed[i] || world_.all.quiet[i] < most_quiet);
    case action::flush:
      return flush_is_complete(s, s.target);
    case action::post:
      return s.stores == 0 && nic_is_free(s.post[s.posts - 1u]);
    case action::fence:
    case action::cpu_fetch_add:
    case action::cpu_swap:
    case action::cpu_compare_swap:
      return s.stores == 0;
    case action::make_room:
      return s.stores < most_buffered;
    case action::receive:
      return world_.memory[inbox_of(f)] != 0;
    case action::rendezvous:
      return world_.all.arrived == fibers_;
    default:
      return true;
  }
}

void engine::enabled(std::vector<step>& steps) const {
  for (std::uint8_t f = 0; f < fibers_; ++f) {
    const fiber_state& s = state(f);
    if (can_run(f)) steps.push_back({step::kind::run, f, 0});
    for (std::uint8_t i = 0; i < s.posts; ++i)
      if (can_take_effect(s, s.post[i])) steps.push_back({step::kind::effect, f, i});
    if (s.stores > 0) steps.push_back({step::kind::drain, f, 0});
  }
}

bool engine::is_enabled(step s) const {
  if (s.fiber >= fibers_) return false;
  const fiber_state& f = state(s.fiber);
  switch (s.what) {
    case step::kind::run:
      return can_run(s.fiber);
    case step::kind::effect:
      return s.index < f.posts && can_take_effect(f, f.post[s.index]);
    case step::kind::drain:
      return f.stores > 0;
  }
  return false;
}

bool engine::all_finished() const {
  for (int f = 0; f < fibers_; ++f)
    if (state(f).next != action::finished) return false;
  return true;
}

bool engine::somebody_gave_up() const {
  for (int f = 0; f < fibers_; ++f)
    if (state(f).next == action::pause &&
        world_.all.retries[static_cast<std::size_t>(f)] > how_.retries)
      return true;
  return false;
}

bool engine::only_unflushed(std::span<const step> steps) const {
  return std::all_of(steps.begin(), steps.end(), [this](step s) {
    if (s.what != step::kind::effect) return false;
    const posted& p = state(s.fiber).post[s.index];
    return p.kind != posted_kind::message && !p.half && !waits_for(state(s.fiber), p);
  });
}

// ---- making it happen ----

void engine::write(rank_t by, cell_id cell, word value) {
  word& now = world_.memory[cell];
  const std::uint8_t rmw_class = world_.rmw_class[cell];
  if (recording_ != nullptr && recording_->cell == no_cell) {
    recording_->cell = cell;
    recording_->old_word = now;
    recording_->old_class = rmw_class;
  }
  if (now == value) return;
  world_.all.memory_hash ^= cell_key(cell, now, rmw_class) ^ cell_key(cell, value, rmw_class);
  now = value;
  for (int g = 0; g < fibers_; ++g)
    if (g != by) world_.all.changed[static_cast<std::size_t>(g)] = true;
}

void engine::note_rmw(cell_id cell, std::uint8_t rmw_class) {
  std::uint8_t& classes = world_.rmw_class[cell];
  if ((classes & rmw_class) != 0) return;
  if (recording_ != nullptr && recording_->cell == no_cell) {
    recording_->cell = cell;
    recording_->old_word = world_.memory[cell];
    recording_->old_class = classes;
  }
  const word value = world_.memory[cell];
  world_.all.memory_hash ^= cell_key(cell, value, classes);
  classes |= rmw_class;
  world_.all.memory_hash ^= cell_key(cell, value, classes);
  if (classes == (cpu_rmw | nic_rmw) && how_.report_mixed)
    fail("mixed classes",
         cell_name(cell) + " is read-modify-written both by CPUs and through the fabric");
}

void engine::drain(rank_t f) {
  fiber_state& s = state(f);
  const buffered oldest = s.buffer[0];
  std::copy(s.buffer.begin() + 1, s.buffer.begin() + s.stores, s.buffer.begin());
  --s.stores;
  s.buffer[s.stores] = {};
  ++s.stores_drained;
  write(f, oldest.cell, oldest.value);
}

// A NIC's RMW is atomic with those of all NICs. With a CPU's it is not: unless seeing both on one
// cell is a violation anyway, it reads in one step and writes in another.
void engine::take_effect(rank_t f, int index) {
  posted& p = state(f).post[static_cast<std::size_t>(index)];
  if (p.kind == posted_kind::message) return arrive(f, index);
  const word now = world_.memory[p.cell];
  const bool is_rmw = p.kind != posted_kind::put && p.kind != posted_kind::get;
  if (is_rmw && !p.half) note_rmw(p.cell, nic_rmw);
  if (!p.half) p.read = now;
  if (in_two_steps(p) && !p.half) {
    p.half = true;
    return;
  }
  switch (p.kind) {
    case posted_kind::get:
    case posted_kind::message:
      break;
    case posted_kind::put:
    case posted_kind::swap:
      write(f, p.cell, p.a);
      break;
    case posted_kind::add:
    case posted_kind::fetch_add:
      write(f, p.cell, p.read + p.a);
      break;
    case posted_kind::compare_swap:
      if (p.read == p.a) write(f, p.cell, p.b);
      break;
  }
  p.took_effect = true;
}

// A message leaves its sender's hands when it arrives: no flush waits for it.
void engine::arrive(rank_t f, int index) {
  fiber_state& s = state(f);
  const posted p = s.post[static_cast<std::size_t>(index)];
  std::vector<word> queue = queues_[world_.memory[p.cell]];
  queue.push_back(p.a);
  write(f, p.cell, number_of_queue(queue));
  std::copy(s.post.begin() + index + 1, s.post.begin() + s.posts, s.post.begin() + index);
  s.post[--s.posts] = {};
}

void engine::take_message(rank_t f) {
  const cell_id inbox = inbox_of(f);
  const std::vector<word>& queue = queues_[world_.memory[inbox]];
  if (queue.empty()) return;
  state(f).got = queue.front();
  write(f, inbox, number_of_queue({queue.begin() + 1, queue.end()}));
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

// The results of everything that the flush waited for reach the participant now, not before.
void engine::deliver(fiber_state& s) {
  int kept = 0;
  for (int i = 0; i < s.posts; ++i) {
    const posted& p = s.post[static_cast<std::size_t>(i)];
    if (!waits_for(s, p)) {
      s.post[static_cast<std::size_t>(kept++)] = p;
      continue;
    }
    if (p.result != nullptr) {
      *p.result = p.read;
      s.history = mix(s.history, p.read);
    }
  }
  for (int i = kept; i < s.posts; ++i) s.post[static_cast<std::size_t>(i)] = {};
  s.posts = static_cast<std::uint8_t>(kept);
}

void engine::run(rank_t f) {
  fiber_state& s = state(f);
  const auto i = static_cast<std::size_t>(f);
  const word now = s.cell != no_cell ? world_.memory[s.cell] : 0;
  s.answer = 0;
  s.got = 0;
  if (!goes_on(f)) {  // a wait, which a message ends for now
    take_message(f);
    if (s.next == action::rendezvous) --world_.all.arrived;  // it comes back
    s.history = mix(s.history, mix(s.got, static_cast<word>(s.next)));
    return resume(f);
  }
  switch (s.next) {
    case action::load:
    case action::await:
      s.answer = visible(s, s.cell);
      break;
    case action::poll:
      s.answer = now;
      break;
    case action::store:
      write(f, s.cell, s.a);
      break;
    case action::cpu_fetch_add:
      s.answer = now;
      note_rmw(s.cell, cpu_rmw);
      write(f, s.cell, now + s.a);
      break;
    case action::cpu_swap:
      s.answer = now;
      note_rmw(s.cell, cpu_rmw);
      write(f, s.cell, s.a);
      break;
    case action::cpu_compare_swap:
      s.answer = now;
      note_rmw(s.cell, cpu_rmw);
      if (now == s.a) write(f, s.cell, s.b);
      break;
    case action::pause:
      world_.all.quiet[i] =
          world_.all.changed[i] ? 0 : static_cast<std::uint8_t>(world_.all.quiet[i] + 1);
      world_.all.changed[i] = false;
      break;
    case action::flush:
      deliver(s);
      break;
    case action::post: {
      const int last = s.posts - 1;
      take_effect(f, last);
      if (s.posts > last && !s.post[static_cast<std::size_t>(last)].took_effect)
        return;  // it has read, and writes in its next step
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
  resume(f);
}

void engine::resume(rank_t f) {
  fiber_[static_cast<std::size_t>(f)].resume();
  const auto i = static_cast<std::size_t>(f);
  const action next = state(f).next;
  if (is_wait(next) && world_.all.where[i] == stage::acquiring) {
    world_.all.where[i] = stage::waiting;
    world_.all.overtaken[i] = 0;
    world_.all.came_after[i] = 0;
  }
  if (next == action::pause) {
    if (world_.all.retries[i] < UINT8_MAX) ++world_.all.retries[i];
    retrying_ |= 1u << f;
  }
  if (next == action::rendezvous) ++world_.all.arrived;
}

void engine::take(step s) {
  if (world_.all.about_to_begin[s.fiber]) begin(s.fiber);
  switch (s.what) {
    case step::kind::run:
      return run(s.fiber);
    case step::kind::drain:
      drain(s.fiber);
      break;
    case step::kind::effect:
      take_effect(s.fiber, s.index);
      break;
  }
  // What follows is invisible to the others: it need not be a step of its own.
  const fiber_state& f = state(s.fiber);
  const bool flushed = f.next == action::flush && s.what == step::kind::effect;
  const bool drained =
      (f.next == action::fence || f.next == action::make_room) && s.what == step::kind::drain;
  if ((flushed || drained) && can_run(s.fiber)) run(s.fiber);
}

// Whether taking `s` lets its fiber run, so that its stack changes.
bool engine::resumes(step s) const {
  if (s.what == step::kind::run) return true;
  const fiber_state& f = state(s.fiber);
  if (s.what == step::kind::drain) return f.next == action::fence || f.next == action::make_room;
  return waits_for(f, f.post[s.index]);
}

// ---- saving and going back ----

void engine::save(saved& into) const {
  into.state = world_;
  into.broken = broken_;
  for (int f = 0; f < fibers_; ++f) {
    const auto i = static_cast<std::size_t>(f);
    const auto image = fiber_[i].image();
    into.image[i].assign(image.begin(), image.end());
  }
}

void engine::restore(const saved& from) {
  world_ = from.state;
  broken_ = from.broken;
  for (int f = 0; f < fibers_; ++f) {
    const auto i = static_cast<std::size_t>(f);
    fiber_[i].restore(from.image[i]);
  }
}

void engine::take(step s, undo& record, std::vector<std::byte>& images) {
  record.all = world_.all;
  record.what = s;
  record.cell = no_cell;
  record.state_at = images.size();
  const auto* const bytes = reinterpret_cast<const std::byte*>(&state(s.fiber));
  images.insert(images.end(), bytes, bytes + state(s.fiber).used_bytes());
  record.image_at = images.size();
  record.has_image = resumes(s);
  if (record.has_image) {
    const auto image = fiber_[s.fiber].image();
    images.insert(images.end(), image.begin(), image.end());
  }
  recording_ = &record;
  take(s);
  recording_ = nullptr;
}

void engine::take_back(const undo& record, std::vector<std::byte>& images) {
  world_.all = record.all;
  std::memcpy(static_cast<void*>(&state(record.what.fiber)), images.data() + record.state_at,
              record.image_at - record.state_at);
  if (record.cell != no_cell) {
    world_.memory[record.cell] = record.old_word;
    world_.rmw_class[record.cell] = record.old_class;
  }
  if (record.has_image)
    fiber_[record.what.fiber].restore(std::span(images).subspan(record.image_at));
  images.resize(record.state_at);
  broken_.reset();
}

// ---- keys ----

// What is under way has a hash of its own: appended to the history, a count of operations would
// look like an answer, and two different states could have one key.
std::uint64_t engine::fiber_key(rank_t f) const {
  const fiber_state& s = state(f);
  std::uint64_t under_way = std::uint64_t{s.stores} << 8 | s.posts;
  for (int i = 0; i < s.posts; ++i) {
    const posted& p = s.post[static_cast<std::size_t>(i)];
    under_way = mix(under_way, static_cast<std::uint64_t>(p.took_effect) * 2 +
                                   static_cast<std::uint64_t>(p.half));
    if (p.took_effect || p.half) under_way = mix(under_way, p.read);
    // Those sent before it may have arrived, and what is left must not look like them.
    if (p.kind == posted_kind::message) under_way = mix(under_way, p.a << 8 | p.cell);
  }
  return mix(s.history, mix(under_way, s.posts));
}

// What the properties remember of a participant, as far as its future depends on it.
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
  std::uint64_t key = world_.all.memory_hash;
  for (rank_t f = 0; f < fibers_; ++f)
    key ^= mix(fiber_key(f) + shared_key(f), static_cast<std::uint64_t>(f) + 1);
  return key != 0 ? key : 1;  // 0 means an empty slot to the table of visited states
}

// ---- on a fiber ----

word engine::act(rank_t me, action what, cell_id cell, word a, word b, predicate test,
                 rank_t target) {
  fiber_state& s = state(me);
  s.next = what;
  s.cell = cell;
  s.a = a;
  s.b = b;
  s.test = test;
  s.target = target;
  fiber::fiber::suspend();
  return state(me).answer;
}

void engine::post(rank_t me, posted_kind kind, cell_id cell, rank_t target, word a, word b,
                  word* result) {
  fiber_state& s = state(me);
  if (s.posts == most_posted) throw std::length_error("too many posted operations for the checker");
  // Until the flush the result is garbage: whoever looks at it goes astray and is found out.
  constexpr word not_yet = 0xbad0bad0bad0bad0u;
  if (result != nullptr) *result = not_yet;
  s.post[s.posts++] = {.kind = kind,
                       .took_effect = false,
                       .half = false,
                       .after = s.stores_issued,
                       .cell = cell,
                       .target = target,
                       .a = a,
                       .b = b,
                       .read = 0,
                       .result = result};
  if (!how_.delayed_effects) act(me, action::post, cell);
}

void engine::store(rank_t me, cell_id cell, word value) {
  if (!how_.store_buffering) {
    act(me, action::store, cell, value);
    return;
  }
  if (state(me).stores == most_buffered) act(me, action::make_room);
  fiber_state& s = state(me);
  s.buffer[s.stores++] = {cell, value};
  ++s.stores_issued;
}

// When everything has taken effect already, what is left is invisible to the others: no step.
void engine::flush(rank_t me, rank_t target) {
  fiber_state& s = state(me);
  const bool pending = std::any_of(s.post.begin(), s.post.begin() + s.posts, [&](const posted& p) {
    return p.kind != posted_kind::message && (target < 0 || p.target == target);
  });
  if (!pending) return;
  if (!flush_is_complete(s, target)) {
    act(me, action::flush, no_cell, 0, 0, {}, target);
    return;
  }
  s.next = action::flush;
  s.target = target;
  deliver(s);
  s.history = mix(s.history, static_cast<word>(action::flush));
}

// C28: a third message to somebody who has not even taken the first may have to wait for room.
void engine::send(rank_t me, rank_t to, const std::array<word, 3>& body) {
  const auto sent_before = [&](word m) { return messages_[m].from == me; };
  const fiber_state& s = state(me);
  const std::vector<word>& queue = queues_[world_.memory[inbox_of(to)]];
  const auto not_taken =
      std::count_if(queue.begin(), queue.end(), sent_before) +
      std::count_if(s.post.begin(), s.post.begin() + s.posts, [&](const posted& p) {
        return p.kind == posted_kind::message && p.target == to;
      });
  if (not_taken >= 2)
    fail("contract", "rank " + std::to_string(me) + " sends a third message to rank " +
                         std::to_string(to) + ", which has taken none of the others");
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
      throw std::length_error("too many cells for the checker");
    known = static_cast<cell_id>(cells_.size());
    cells_.push_back({home, index});
  }
  return known;
}

void engine::fail(std::string property, std::string detail) {
  if (!broken_) broken_ = violation{std::move(property), std::move(detail)};
}

void engine::begin_acquire(rank_t me) {
  const auto i = static_cast<std::size_t>(me);
  world_.all.where[i] = stage::acquiring;
  world_.all.retries[i] = 0;
  world_.all.quiet[i] = 0;
  world_.all.changed[i] = false;
  world_.all.about_to_begin[i] = true;
}

// An acquire begins with its first step: until then nobody can tell, and those who start to wait in
// the meantime came first.
void engine::begin(rank_t me) {
  world_.all.about_to_begin[static_cast<std::size_t>(me)] = false;
  for (int g = 0; g < fibers_; ++g)
    if (world_.all.where[static_cast<std::size_t>(g)] == stage::waiting)
      world_.all.came_after[static_cast<std::size_t>(g)] |= static_cast<std::uint8_t>(1u << me);
}

void engine::enter(rank_t me, bool exclusive) {
  shared_state& all = world_.all;
  if (all.writers > 0 || (exclusive && all.readers > 0))
    fail("mutual exclusion",
         "rank " + std::to_string(me) + " enters " + (exclusive ? "exclusively" : "shared") +
             " while " +
             (all.writers > 0 ? "a writer is in"
                              : std::to_string(all.readers) + " reader(s) are in"));
  ++(exclusive ? all.writers : all.readers);
  const auto i = static_cast<std::size_t>(me);
  all.where[i] = exclusive ? stage::inside : stage::inside_shared;
  all.overtaken[i] = 0;
  all.came_after[i] = 0;
  ++progress_;
  if (!how_.most_overtaken) return;
  for (int g = 0; g < fibers_; ++g) {
    const auto other = static_cast<std::size_t>(g);
    if (all.where[other] != stage::waiting || (all.came_after[other] & 1u << me) == 0) continue;
    all.came_after[other] &= static_cast<std::uint8_t>(~(1u << me));
    if (++all.overtaken[other] > *how_.most_overtaken)
      fail("bounded bypass", "rank " + std::to_string(g) + " waits and was overtaken " +
                                 std::to_string(all.overtaken[other]) +
                                 " times by later comers; the lock allows " +
                                 std::to_string(*how_.most_overtaken));
  }
}

void engine::leave(rank_t me, bool exclusive) {
  --(exclusive ? world_.all.writers : world_.all.readers);
  world_.all.where[static_cast<std::size_t>(me)] = stage::releasing;
}

void engine::released(rank_t me) {
  const auto i = static_cast<std::size_t>(me);
  world_.all.where[i] = stage::outside;
  world_.all.retries[i] = 0;
  world_.all.quiet[i] = 0;
}

void engine::give_up_acquire(rank_t me) { released(me); }

}  // namespace lockflight::check
