// The handles of each thread. A handle of lockflight::named_lock belongs to one thread; a Lock of
// Python is used by all threads of a process. So a Lock is a recipe for handles, and each thread
// has a table of its own handles. Handles made before a fork are of no use to the child: its table
// starts empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::python {

/// Counts the forks that led to this process, so that a child knows its parent's handles.
inline std::atomic<std::uint64_t> forks{0};

struct recipe {
  domain in;
  std::string name;
  named_lock_options what;
  bool raises = false;
};

struct entry {
  std::weak_ptr<const recipe> of;
  std::unique_ptr<named_lock> handle;
  bool used = false;  // the slot is taken, and the lock is looked up
};

// Read at every acquire and release: so without a call, in a shared library too.
struct handle_table;
[[gnu::tls_model("initial-exec")]] inline constinit thread_local handle_table* table = nullptr;

/// A thread's handles by the identity of what they were made for. An identity is not used again as
/// long as its entry is there, since the entry has a weak pointer to it.
struct handle_table {
  std::uint64_t forks_at_creation = forks.load(std::memory_order_relaxed);
  std::unordered_map<const recipe*, entry> entries;
  std::size_t sweep_at = 64;
  const recipe* last = nullptr;
  entry* last_entry = nullptr;
  /// What this thread held when a fork made the process.
  std::vector<std::weak_ptr<const recipe>> held_by_parent;

  handle_table() = default;
  handle_table(const handle_table&) = delete;
  handle_table& operator=(const handle_table&) = delete;
  ~handle_table() { table = nullptr; }

  /// Drops what Locks that are gone have left.
  void sweep() {
    last = nullptr;
    std::erase_if(entries, [](const auto& each) { return each.second.of.expired(); });
    sweep_at = std::max<std::size_t>(64, 2 * entries.size());
  }
};

void make_table();

inline handle_table& my_table() {
  if (table == nullptr || table->forks_at_creation != forks.load(std::memory_order_relaxed))
    make_table();
  return *table;
}

/// Looks the lock up, while other threads run.
[[nodiscard]] std::unique_ptr<named_lock> make_handle(const recipe& of);

inline entry& my_entry(const std::shared_ptr<const recipe>& of) {
  handle_table& mine = my_table();
  if (mine.last == of.get()) return *mine.last_entry;
  auto found = mine.entries.find(of.get());
  if (found == mine.entries.end()) {
    if (mine.entries.size() >= mine.sweep_at) mine.sweep();
    found = mine.entries.emplace(of.get(), entry{of, make_handle(*of)}).first;
  }
  mine.last = found->first;
  mine.last_entry = &found->second;
  return found->second;
}
inline named_lock& my_handle(const std::shared_ptr<const recipe>& of) {
  return *my_entry(of).handle;
}

/// This thread's handle, if it has one.
[[nodiscard]] named_lock* known_handle(const std::shared_ptr<const recipe>& of);
/// Whether this process was forked in the middle of a hold, which is the parent's. Said once.
[[nodiscard]] bool was_held_by_parent(const std::shared_ptr<const recipe>& of);

}  // namespace lockflight::python
