#include "names/locks/directory_lock.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "fabric/shm/pause.hpp"
#include "names/locks/block.hpp"

namespace lockflight::detail {

using rma::word;

namespace {

// Blocks that are reachable from the buckets are in use, all others are free.
void rebuild(const domain_file& file) {
  std::vector<std::uint32_t> used;
  for (std::uint32_t b = 0; b < buckets; ++b)
    blocks::walk(file, file.bucket(b).load(), [&](std::uint32_t line, const domain_class&) {
      used.push_back(line);
      if (used.size() > file.options().names) blocks::written_over(file);
      return false;
    });
  std::sort(used.begin(), used.end());
  file.header().count.store(static_cast<std::uint32_t>(used.size()));
  for (std::uint32_t i = 0; i < file.header().classes.load(); ++i)
    blocks::class_at(file, i).free = 0;
  const std::uint32_t end = blocks::end_of_blocks(file);
  for (std::uint32_t line = first_line; line < end;) {
    domain_class& c = blocks::class_at(file, blocks::class_of_block(file, line));
    const bool is_used = std::binary_search(used.begin(), used.end(), line);
    // The thread that was to remove the name may have done half of that.
    if (is_used && blocks::read(file, line, blocks::serial_word) == 0)
      blocks::put(file, line, blocks::serial_word, file.header().serials.fetch_add(1) + 1);
    if (!is_used) {
      blocks::put(file, line, blocks::serial_word, 0);
      blocks::put(file, line, blocks::next_word, std::exchange(c.free, line));
    }
    line += blocks::lines_of(c);
  }
}

}  // namespace

directory_lock::directory_lock(attachment& by, const time_limit& how_long) : file_(by.file()) {
  file_.check();
  domain_header& h = file_.header();
  const word us =
      word{file_.slot(by.slot()).life_now().incarnation} << 32 | (static_cast<word>(by.slot()) + 1);
  constexpr std::uint64_t ms = 1'000'000;
  // An attempt waits, too, since the right is held for microseconds.
  const time_limit until{
      std::min(std::max(how_long.until_ns, now_ns() + 100 * ms), now_ns() + 10'000 * ms),
      how_long.is_interrupted};
  for (std::uint64_t pause = ms / 20;; pause = std::min(2 * pause, 2 * ms)) {
    word now = 0;
    bool after_a_death = false;
    signals_.emplace();
    if (!h.directory.compare_exchange_strong(now, us)) {
      const word holder = now;
      after_a_death = is_gone(holder) && h.directory.compare_exchange_strong(now, us);
      if (!after_a_death) {
        signals_.reset();
        if (!until.sleep(pause)) {
          if (how_long.until_ns != UINT64_MAX) throw directory_is_busy();
          refuse(holder);
        }
        continue;
      }
    }
    enter(after_a_death || h.changes.load() % 2 != 0);
    return;
  }
}

directory_lock::~directory_lock() {
  domain_header& h = file_.header();
  h.changes.fetch_add(1, std::memory_order_release);
  h.directory.store(0, std::memory_order_release);
}

void directory_lock::enter(bool after_a_death) {
  domain_header& h = file_.header();
  try {
    if (h.changes.load() % 2 == 0) h.changes.fetch_add(1, std::memory_order_acq_rel);
    if (after_a_death) rebuild(file_);
  } catch (...) {
    h.directory.store(0, std::memory_order_release);  // all others find it damaged too
    throw;
  }
}

int directory_lock::slot_of(word holder) const {
  const auto slot = static_cast<std::uint32_t>(holder) - 1;
  if (slot > static_cast<std::uint32_t>(file_.steward())) blocks::written_over(file_);
  return static_cast<int>(slot);
}

bool directory_lock::is_gone(word holder) const {
  const int slot = slot_of(holder);
  return file_.slot(slot).life_now().incarnation != static_cast<std::uint32_t>(holder >> 32) ||
         file_.slot(slot).state() == slot_state::free || examine(file_, slot, thoroughness::full);
}

void directory_lock::refuse(word holder) const {
  const int slot = slot_of(holder);
  throw domain_error(domain_error::reason::system,
                     "domain " + file_.name() + ": " + process_text(file_, slot) +
                         " is changing its directory and does not go on (" +
                         (is_stopped(file_.slot(slot)) ? "it is stopped" : "it is slow") + ")");
}

}  // namespace lockflight::detail
