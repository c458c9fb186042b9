#include "lab/check/memory/tso.hpp"

#include <cstring>

namespace lockflight::check {
namespace {

[[nodiscard]] std::uint64_t cell_key(cell_id cell, word value, std::uint8_t rmw_class) {
  if (value == 0 && rmw_class == 0) return 0;  // untouched cells are all alike
  return mix(std::uint64_t{cell} << 8 | rmw_class, value);
}

}  // namespace

void tso_memory::start(int) {
  world_.memory.fill(0);
  world_.rmw_class.fill(0);
  hash_ = 0;
}

word tso_memory::peek(rank_t f, cell_id cell, int) const {
  const fiber_state& s = world_.fiber[static_cast<std::size_t>(f)];
  for (int i = s.stores; i-- > 0;)
    if (s.buffer[static_cast<std::size_t>(i)].cell == cell)
      return s.buffer[static_cast<std::size_t>(i)].value;
  return world_.memory[cell];
}

void tso_memory::record(cell_id cell) {
  if (recording_ == nullptr || recording_->cell != no_cell) return;
  recording_->cell = cell;
  recording_->old_word = world_.memory[cell];
  recording_->old_class = world_.rmw_class[cell];
}

bool tso_memory::put(cell_id cell, word value) {
  record(cell);
  word& now = world_.memory[cell];
  if (now == value) return false;
  const std::uint8_t rmw_class = world_.rmw_class[cell];
  hash_ ^= cell_key(cell, now, rmw_class) ^ cell_key(cell, value, rmw_class);
  now = value;
  return true;
}

std::uint8_t tso_memory::note_class(cell_id cell, std::uint8_t rmw_class) {
  std::uint8_t& classes = world_.rmw_class[cell];
  if ((classes & rmw_class) != 0) return classes;
  record(cell);
  const word value = world_.memory[cell];
  hash_ ^= cell_key(cell, value, classes);
  classes |= rmw_class;
  hash_ ^= cell_key(cell, value, classes);
  return classes;
}

void tso_memory::open(undo& record, std::vector<std::byte>& copies) {
  record.cell = no_cell;
  record.copy_at = copies.size();
  record.old_hash = hash_;
  recording_ = &record;
}

void tso_memory::take_back(const undo& record, std::span<const std::byte>) {
  hash_ = record.old_hash;
  if (record.cell == no_cell) return;
  world_.memory[record.cell] = record.old_word;
  world_.rmw_class[record.cell] = record.old_class;
}

void tso_memory::save(std::vector<std::byte>& into) const {
  into.resize(sizeof hash_);
  std::memcpy(into.data(), &hash_, sizeof hash_);
}

void tso_memory::restore(std::span<const std::byte> from) {
  std::memcpy(&hash_, from.data(), sizeof hash_);
}

}  // namespace lockflight::check
