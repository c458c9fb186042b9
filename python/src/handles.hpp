// The handles of each thread. A handle of lockflight::named_lock belongs to one thread; a Lock of
// Python is used by all threads of a process. So a Lock is a recipe for handles, and each thread
// has a table of its own handles. Handles made before a fork are of no use to the child: its table
// starts empty. Semaphores have tables of their own.
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
  int units = 0;  ///< of a semaphore
  bool raises = false;
  bool reentrant = false;  ///< its holder may acquire exclusively again
};

template <class Handle>
struct entry {
  std::weak_ptr<const recipe> of;
  std::unique_ptr<Handle> handle;
  bool used = false;  // the slot is taken, and the lock is looked up
  // Of a reentrant lock: whether it is held exclusively, and by how many acquires beside the first.
  bool alone = false;
  std::uint64_t again = 0;
};

// Read at every acquire and release: so without a call, in a shared library too.
template <class Handle>
struct handle_table;
template <class Handle>
[[gnu::tls_model("initial-exec")]] inline constinit thread_local handle_table<Handle>* table =
    nullptr;

/// A thread's handles by the identity of what they were made for. An identity is not used again as
/// long as its entry is there, since the entry has a weak pointer to it.
template <class Handle>
struct handle_table {
  std::uint64_t forks_at_creation = forks.load(std::memory_order_relaxed);
  std::unordered_map<const recipe*, entry<Handle>> entries;
  std::size_t sweep_at = 64;
  const recipe* last = nullptr;
  entry<Handle>* last_entry = nullptr;
  /// What this thread held when a fork made the process.
  std::vector<std::weak_ptr<const recipe>> held_by_parent;

  handle_table() = default;
  handle_table(const handle_table&) = delete;
  handle_table& operator=(const handle_table&) = delete;
  ~handle_table() { table<Handle> = nullptr; }

  /// Drops what Locks that are gone have left.
  void sweep() {
    last = nullptr;
    std::erase_if(entries, [](const auto& each) { return each.second.of.expired(); });
    sweep_at = std::max<std::size_t>(64, 2 * entries.size());
  }
};

template <class Handle>
void make_table();

template <class Handle>
handle_table<Handle>& my_table() {
  if (table<Handle> == nullptr ||
      table<Handle>->forks_at_creation != forks.load(std::memory_order_relaxed))
    make_table<Handle>();
  return *table<Handle>;
}

/// Looks the lock up, while other threads run.
template <class Handle>
[[nodiscard]] std::unique_ptr<Handle> make_handle(const recipe& of);

template <class Handle>
entry<Handle>& my_entry(const std::shared_ptr<const recipe>& of) {
  handle_table<Handle>& mine = my_table<Handle>();
  if (mine.last == of.get()) return *mine.last_entry;
  auto found = mine.entries.find(of.get());
  if (found == mine.entries.end()) {
    if (mine.entries.size() >= mine.sweep_at) mine.sweep();
    found = mine.entries.emplace(of.get(), entry<Handle>{of, make_handle<Handle>(*of)}).first;
  }
  mine.last = found->first;
  mine.last_entry = &found->second;
  return found->second;
}
template <class Handle>
Handle& my_handle(const std::shared_ptr<const recipe>& of) {
  return *my_entry<Handle>(of).handle;
}

/// This thread's handle, if it has one.
template <class Handle>
[[nodiscard]] Handle* known_handle(const std::shared_ptr<const recipe>& of);
/// Whether this process was forked in the middle of a hold, which is the parent's. Said once.
template <class Handle>
[[nodiscard]] bool was_held_by_parent(const std::shared_ptr<const recipe>& of);
/// The same, which can be said again.
template <class Handle>
[[nodiscard]] bool is_held_by_parent(const std::shared_ptr<const recipe>& of) {
  const auto& held = my_table<Handle>().held_by_parent;
  return std::any_of(held.begin(), held.end(), [&](const auto& each) { return each.lock() == of; });
}

}  // namespace lockflight::python
