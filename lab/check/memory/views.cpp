#include "lab/check/memory/views.hpp"

#include <algorithm>

namespace lockflight::check {
namespace {

/// The size of a block of a view. Loops over a block have a fixed length, for vector instructions.
constexpr std::size_t block = 32;

}  // namespace

void views_memory::start(int participants) {
  head_ = {};
  head_.participants = static_cast<std::uint8_t>(participants);
  head_.views = first_free;
  head_.used[0] = (std::uint64_t{1} << first_free) - 1;
  first_.assign(1, 0);
  messages_.clear();
  classes_.clear();
  bytes_.clear();
  widen(2 * stride_unit);
  know(marks - 1);
  if (!tracks_relaxed_) return;
  for (int f = 0; f < participants; ++f) {
    head_.acquired[index(f)] = copy_of(nothing);
    head_.released[index(f)] = copy_of(nothing);
  }
}

// ---- locations and views ----

// A cell that no participant has touched has one message, 0, which all have seen.
void views_memory::know(location l) {
  if (is_known(l)) return;
  while (head_.locations <= l) {
    ++head_.locations;
    if (messages_.size() <= head_.messages) messages_.resize(2 * messages_.size() + 16);
    messages_[head_.messages++] = {};
    first_.resize(head_.locations + std::size_t{1});
    first_[head_.locations] = head_.messages;
  }
  classes_.resize(head_.locations, 0);
  if (head_.locations > head_.stride)
    widen((head_.locations + stride_unit - 1) / stride_unit * stride_unit);
}

void views_memory::widen(std::size_t stride) {
  std::vector<std::uint8_t> wider(head_.views * stride, 0);
  for (std::size_t v = 0; v < head_.views; ++v)
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(v * head_.stride), head_.stride,
                wider.begin() + static_cast<std::ptrdiff_t>(v * stride));
  bytes_.swap(wider);
  head_.stride = static_cast<std::uint16_t>(stride);
}

views_memory::view_id views_memory::copy_of(view_id v) {
  for (std::size_t i = 0; i < head_.used.size(); ++i) {
    if (~head_.used[i] == 0) continue;
    const int bit = std::countr_one(head_.used[i]);
    head_.used[i] |= std::uint64_t{1} << bit;
    const auto made = static_cast<view_id>(i * 64 + static_cast<std::size_t>(bit));
    head_.views = std::max<std::uint16_t>(head_.views, made + 1u);
    if (bytes_.size() < std::size_t{head_.views} * head_.stride)
      bytes_.resize(std::size_t{head_.views} * head_.stride);
    std::memcpy(view(made), view(v), head_.stride);
    return made;
  }
  throw limit_exceeded(std::to_string(most_views - first_free) + " views at once");
}

void views_memory::join(view_id into, view_id from) {
  std::uint8_t* const a = view(into);
  const std::uint8_t* const b = view(from);
  for (std::size_t i = 0; i < head_.stride; i += block)
    for (std::size_t j = i; j < i + block; ++j) a[j] = std::max(a[j], b[j]);
}

// A participant has read or written that message.
void views_memory::see(rank_t f, location l, std::size_t place) {
  raise(now(f), l, place);
  if (tracks_relaxed_) raise(head_.acquired[index(f)], l, place);
}

void views_memory::acquire(rank_t f, view_id v, bool acquires) {
  if (v == nothing) return;
  if (acquires) join(now(f), v);
  if (tracks_relaxed_) join(head_.acquired[index(f)], v);
}

// The message is at `place` then, and the later ones, and what views say of them, move up.
void views_memory::insert(location l, std::size_t place, word value, bool attached) {
  if (count(l) == most_messages)
    throw limit_exceeded(std::to_string(most_messages) + " messages of one cell");
  if (messages_.size() <= head_.messages) messages_.resize(2 * messages_.size() + 16);
  const auto from = messages_.begin() + static_cast<std::ptrdiff_t>(first_[l] + place);
  const auto end = messages_.begin() + head_.messages;
  std::copy_backward(from, end, end + 1);
  *from = {value, nothing, attached};
  ++head_.messages;
  for (location later = l + 1; later <= head_.locations; ++later) ++first_[later];
  for (std::size_t v = 1; v < head_.views; ++v) {
    std::uint8_t& entry = view(static_cast<view_id>(v))[l];
    if (entry >= place) ++entry;
  }
}

// ---- what is learned ----

void views_memory::drop_unread() {
  if (drops_unread_) return;
  drops_unread_ = true;
  for (uses& u : uses_) u.skips.fill(UINT8_MAX);
}

// The participant may choose among the messages there.
void views_memory::looks(rank_t f, location l) {
  std::uint8_t& skips = uses_[index(f)].skips[l];
  if (skips == 0) return;
  skips = 0;
  ++learned_;
}

// Where all writes are read-modify-writes, each is behind the last: they have no choice.
void views_memory::modifies(rank_t f, location l) {
  uses_[index(f)].modifies[l] = true;
  if (is_written_[l]) looks(f, l);
}
void views_memory::writes(location l) {
  if (is_written_[l]) return;
  is_written_[l] = true;
  for (rank_t f = 0; f < most_fibers; ++f)
    if (uses_[index(f)].modifies[l]) looks(f, l);
}

// ---- immediate operations ----

int views_memory::choices(rank_t f, cell_id cell) const {
  const location l = at(cell);
  return is_known(l) ? static_cast<int>(count(l)) - view(now(f))[l] : 1;
}

word views_memory::peek(rank_t, cell_id cell, int choice) const {
  const location l = at(cell);
  return is_known(l) ? message_at(l, place_of(l, choice)).value : 0;
}

bool views_memory::is_free(cell_id cell, int choice) const {
  return choice == 0 || !message_at(at(cell), place_of(at(cell), choice) + 1).attached;
}

word views_memory::read(rank_t f, cell_id cell, int choice, order how) {
  const location l = at(cell);
  know(l);
  looks(f, l);
  const std::size_t place = place_of(l, choice);
  const message read = message_at(l, place);
  see(f, l, place);
  acquire(f, read.view, how.acquires);
  return read.value;
}

// A message with the view `with`, which knows of the message itself.
bool views_memory::put(rank_t f, location l, std::size_t place, word value, bool attached,
                       view_id with) {
  const word before = message_at(l, count(l) - 1).value;
  insert(l, place, value, attached);
  message_at(l, place).view = with;
  raise(with, l, place);
  if (f >= 0) see(f, l, place);
  return message_at(l, count(l) - 1).value != before;
}

bool views_memory::write(rank_t f, cell_id cell, word value, int choice, order how) {
  const location l = at(cell);
  know(l);
  looks(f, l);
  writes(l);
  const view_id with =
      copy_of(how.releases || !tracks_relaxed_ ? now(f) : head_.released[index(f)]);
  return put(f, l, place_of(l, choice) + 1, value, false, with);
}

// The view of the message that it read goes on with the new one, whatever the order (a release
// sequence).
bool views_memory::modify(rank_t f, cell_id cell, word value, int choice, order how) {
  const location l = at(cell);
  know(l);
  modifies(f, l);
  const std::size_t place = place_of(l, choice);
  const view_id before = message_at(l, place).view;
  see(f, l, place);
  acquire(f, before, how.acquires);
  const view_id with =
      copy_of(how.releases || !tracks_relaxed_ ? now(f) : head_.released[index(f)]);
  join(with, before);
  return put(f, l, place + 1, value, true, with);
}

void views_memory::fence(rank_t f) {
  if (tracks_relaxed_) join(now(f), head_.acquired[index(f)]);
  join(now(f), of_fences);
  join(of_fences, now(f));
  if (!tracks_relaxed_) return;
  join(head_.acquired[index(f)], now(f));
  join(head_.released[index(f)], now(f));
}

bool views_memory::fence_is_private(rank_t f) const {
  const std::uint8_t* const fences = view(of_fences);
  const auto is_within = [&](view_id v) {
    const std::uint8_t* const a = view(v);
    for (std::size_t i = 0; i < head_.stride; ++i)
      if (a[i] > fences[i]) return false;
    return true;
  };
  return drops_unread_ && is_within(now(f)) &&
         (!tracks_relaxed_ || is_within(head_.acquired[index(f)]));
}

// ---- posted operations ----

// A get is not older than what its participant has seen, whatever its order.
void views_memory::post(rank_t f, posted& p, order how) {
  const bool carries_all = how.releases || p.kind == posted_kind::get || !tracks_relaxed_;
  p.view = copy_of(carries_all ? now(f) : head_.released[index(f)]);
  if (p.kind != posted_kind::get) return;
  know(at(p.cell));
  looks(f, at(p.cell));
}

int views_memory::choices(const posted& p) const {
  const location l = at(p.cell);
  if (p.kind != posted_kind::get || !is_known(l)) return 1;
  return static_cast<int>(count(l)) - view(p.view)[l];
}

word views_memory::peek(const posted& p, int choice) const { return peek(0, p.cell, choice); }

word views_memory::read(posted& p, int choice) {
  const location l = at(p.cell);
  know(l);
  const std::size_t place = place_of(l, choice);
  const message read = message_at(l, place);
  raise(p.view, l, place);
  if (read.view != nothing) join(p.view, read.view);
  return read.value;
}

bool views_memory::write(rank_t, posted& p, word value) {
  const location l = at(p.cell);
  know(l);
  writes(l);
  const bool changes = put(-1, l, count(l), value, false, copy_of(p.view));
  raise(p.view, l, count(l) - 1);
  return changes;
}

bool views_memory::modify(rank_t, posted& p, word value) {
  const location l = at(p.cell);
  know(l);
  static_cast<void>(read(p, 0));
  const bool changes = put(-1, l, count(l), value, true, copy_of(p.view));
  raise(p.view, l, count(l) - 1);
  return changes;
}

void views_memory::fence(posted& p) {
  join(p.view, of_fences);
  join(of_fences, p.view);
}

void views_memory::complete(rank_t f, const posted& p, order how) {
  if (p.kind == posted_kind::fence) return;
  see(f, at(p.cell), view(p.view)[at(p.cell)]);
  acquire(f, p.view, how.acquires);
}

// ---- messages, marks ----

void views_memory::arrive(rank_t to, const posted& p, word inbox) {
  std::uint8_t& letters = head_.letters[index(to)];
  if (letters == most_letters)
    throw limit_exceeded(std::to_string(most_letters) + " messages to one rank under way");
  head_.letter[index(to)][letters++] = p.view;
  head_.inbox[index(to)] = inbox;
}

void views_memory::receive(rank_t by, word inbox) {
  auto& letter = head_.letter[index(by)];
  join(now(by), letter[0]);
  std::copy(letter.begin() + 1, letter.end(), letter.begin());
  letter.back() = nothing;
  --head_.letters[index(by)];
  head_.inbox[index(by)] = inbox;
}

void views_memory::catch_up(rank_t f) {
  for (location l = marks; l < head_.locations; ++l) see(f, l, count(l) - 1);
}

// A mark has at most two messages: older ones are as little to be seen as the one before the last.
void views_memory::mark(rank_t f, bool exclusive) {
  const location l = exclusive ? 0 : static_cast<location>(1 + f);
  for (std::size_t v = 1; v < head_.views; ++v) view(static_cast<view_id>(v))[l] = 0;
  if (count(l) == 1) insert(l, 1, 0, false);
  see(f, l, 1);
}

bool views_memory::has_seen(rank_t f, bool exclusive) {
  bool all = true;
  for (location l = 0; l < (exclusive ? marks : 1); ++l) {
    looks(f, l);
    all &= view(now(f))[l] + 1u == count(l);
  }
  return all;
}

// ---- for the engine ----

word views_memory::newest(cell_id cell) const { return peek(0, cell, 0); }

std::uint8_t views_memory::note_class(cell_id cell, std::uint8_t rmw_class) {
  know(at(cell));
  return classes_[at(cell)] |= rmw_class;
}

bool views_memory::reads(rank_t f) const {
  const action next = world_.fiber[index(f)].next;
  return next != action::finished && next != action::dead && next != action::stopped;
}

void views_memory::settle() {
  drop_what_nobody_reads();
  collect_views();
}

// Messages older than every view that may still choose among them. What a message's view or the
// fences' says of dropped ones is no news to any reader.
void views_memory::drop_what_nobody_reads() {
  const std::size_t stride = head_.stride;
  floor_.assign(stride, UINT8_MAX);
  bool anybody = false;
  for (rank_t f = 0; f < head_.participants; ++f) {
    if (!reads(f)) continue;
    anybody = true;
    const std::uint8_t* const seen = view(now(f));
    const std::uint8_t* const skips = uses_[index(f)].skips.data();
    for (std::size_t i = 0; i < stride; i += block)
      for (std::size_t j = i; j < i + block; ++j)
        floor_[j] = std::min(floor_[j], static_cast<std::uint8_t>(seen[j] | skips[j]));
    const fiber_state& s = world_.fiber[index(f)];
    for (std::size_t i = 0; i < s.posts; ++i) {
      const posted& p = s.post[i];
      if (p.kind != posted_kind::get || p.took_effect) continue;
      std::uint8_t& of_cell = floor_[at(p.cell)];
      of_cell = std::min(of_cell, view(p.view)[at(p.cell)]);
    }
  }
  if (!anybody) return;
  bool drops = false;
  std::size_t to = 0;
  std::size_t from = 0;
  for (location l = 0; l < head_.locations; ++l) {
    const std::size_t end = first_[l + 1];
    floor_[l] = static_cast<std::uint8_t>(std::min<std::size_t>(floor_[l], end - from - 1));
    const std::size_t kept = from + floor_[l];
    drops |= floor_[l] != 0;
    first_[l] = static_cast<std::uint16_t>(to);
    if (to != kept)
      std::copy(messages_.begin() + static_cast<std::ptrdiff_t>(kept),
                messages_.begin() + static_cast<std::ptrdiff_t>(end),
                messages_.begin() + static_cast<std::ptrdiff_t>(to));
    messages_[to].attached = false;  // nothing can come between it and what was before
    to += end - kept;
    from = end;
  }
  first_[head_.locations] = static_cast<std::uint16_t>(to);
  head_.messages = static_cast<std::uint16_t>(to);
  if (!drops) return;
  for (std::size_t v = 1; v < head_.views; ++v) {
    std::uint8_t* const a = view(static_cast<view_id>(v));
    for (std::size_t i = 0; i < stride; i += block)
      for (std::size_t j = i; j < i + block; ++j)
        a[j] = static_cast<std::uint8_t>(a[j] - std::min(a[j], floor_[j]));
  }
}

// Views that nothing refers to any more are free, and so are those of messages that say nothing.
void views_memory::collect_views() {
  std::array<std::uint64_t, most_views / 64> used{};
  used[0] = (std::uint64_t{1} << first_free) - 1;
  const auto keep = [&](view_id v) { used[v / 64] |= std::uint64_t{1} << v % 64; };
  for (std::size_t m = 0; m < head_.messages; ++m) {
    view_id& v = messages_[m].view;
    if (v == nothing) continue;
    if (hash_of(v) == 0)
      v = nothing;
    else
      keep(v);
  }
  for (std::size_t f = 0; f < head_.participants; ++f) {
    keep(head_.acquired[f]);
    keep(head_.released[f]);
    for (std::size_t i = 0; i < head_.letters[f]; ++i) keep(head_.letter[f][i]);
    const fiber_state& s = world_.fiber[f];
    for (std::size_t i = 0; i < s.posts; ++i) keep(s.post[i].view);
  }
  head_.used = used;
  for (std::size_t i = used.size(); i-- > 0;)
    if (used[i] != 0) {
      head_.views = static_cast<std::uint16_t>(64 * i + 64 -
                                               static_cast<std::size_t>(std::countl_zero(used[i])));
      break;
    }
}

// ---- keys ----

// 0 of a view that has seen nothing, however many cells are known by now.
std::uint64_t views_memory::hash_of(view_id v) const {
  std::uint64_t hash = 0;
  const std::uint8_t* const a = view(v);
  for (std::size_t i = 0; i < head_.stride; i += sizeof(std::uint64_t)) {
    std::uint64_t part = 0;
    std::memcpy(&part, a + i, sizeof part);
    if (part != 0) hash ^= mix(part, i + 1);
  }
  return hash;
}

std::uint64_t views_memory::key() const {
  std::uint64_t key = 0;
  for (location l = 0; l < head_.locations; ++l) {
    const std::size_t messages = count(l);
    const message& first = message_at(l, 0);
    if (messages == 1 && first.value == 0 && first.view == nothing && classes_[l] == 0) continue;
    std::uint64_t one = std::uint64_t{l} << 8 | classes_[l];
    for (std::size_t i = 0; i < messages; ++i) {
      const message& m = message_at(l, i);
      one = mix(one, m.value);
      one = mix(one + m.attached, m.view == nothing ? 0 : hash_of(m.view));
    }
    key ^= one;
  }
  const auto add = [&](std::uint64_t what, view_id v) {
    if (const std::uint64_t hash = hash_of(v); hash != 0) key ^= mix(hash, what << 32);
  };
  add(1, of_fences);
  for (std::size_t f = 0; f < head_.participants; ++f) {
    const fiber_state& s = world_.fiber[f];
    if (s.next != action::finished) {
      add(100 + f, now(static_cast<rank_t>(f)));
      if (tracks_relaxed_) {
        add(200 + f, head_.acquired[f]);
        add(300 + f, head_.released[f]);
      }
    }
    for (std::size_t i = 0; i < s.posts; ++i) add(1000 + f * most_posted + i, s.post[i].view);
    for (std::size_t i = 0; i < head_.letters[f]; ++i)
      add(2000 + f * most_letters + i, head_.letter[f][i]);
    if (head_.inbox[f] != 0) key ^= mix(head_.inbox[f], (400 + f) << 32);
  }
  return key;
}

// ---- going back ----

std::size_t views_memory::copied_bytes() const {
  return sizeof(head) + head_.locations * (sizeof first_[0] + sizeof classes_[0]) +
         head_.messages * sizeof(message) + std::size_t{head_.views} * head_.stride;
}

void views_memory::copy_to(std::byte* to) const {
  const auto add = [&to](const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    to += bytes;
  };
  add(&head_, sizeof head_);
  add(first_.data() + 1, head_.locations * sizeof first_[0]);
  add(classes_.data(), head_.locations * sizeof classes_[0]);
  add(messages_.data(), head_.messages * sizeof(message));
  add(bytes_.data(), std::size_t{head_.views} * head_.stride);
}

void views_memory::copy_from(const std::byte* from) {
  const auto take = [&from](void* to, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    from += bytes;
  };
  take(&head_, sizeof head_);
  first_.resize(head_.locations + std::size_t{1});
  take(first_.data() + 1, head_.locations * sizeof first_[0]);
  classes_.resize(head_.locations);
  take(classes_.data(), head_.locations * sizeof classes_[0]);
  if (messages_.size() < head_.messages) messages_.resize(head_.messages);
  take(static_cast<void*>(messages_.data()), head_.messages * sizeof(message));
  bytes_.resize(std::size_t{head_.views} * head_.stride);
  take(bytes_.data(), bytes_.size());
}

void views_memory::open(undo& record, std::vector<std::byte>& copies) {
  record.copy_at = copies.size();
  copies.resize(copies.size() + copied_bytes());
  copy_to(copies.data() + record.copy_at);
}

void views_memory::take_back(const undo& record, std::span<const std::byte> copies) {
  copy_from(copies.data() + record.copy_at);
}

void views_memory::save(std::vector<std::byte>& into) const {
  into.resize(copied_bytes());
  copy_to(into.data());
}

void views_memory::restore(std::span<const std::byte> from) { copy_from(from.data()); }

}  // namespace lockflight::check
