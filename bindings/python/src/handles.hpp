// The handles of each thread. A lockflight::named_handle belongs to one thread; a lock of Python is
// used by all threads of a process. So a lock is a recipe for handles, and each thread has a table
// of its own handles. Handles made before a fork are of no use to the child: its table starts
// empty.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::python {

/// Counts the forks that led to this process, so that a child knows its parent's handles.
inline std::atomic<std::uint64_t> forks{0};

struct recipe {
  domain in;
  std::string name;
  named_lock_options what;
  std::optional<lockflight::units> units = {};  ///< of a semaphore
  bool raises = false;
  bool reentrant = false;                ///< its holder may acquire exclusively again
  bool shared = false;                   ///< it is a SharedMutex, which has readers
  bool raises_on_loss = false;           ///< the end of a block throws lost_error
  int priority = 0;                      ///< of a candidate of an election, shown while it waits
  std::uint64_t loss_number = 0;         ///< reported when a hold of a thread is lost; 0: none is
  std::chrono::nanoseconds max_hold{0};  ///< each hold ends after that time; 0: it does not
  bool may_be_lost = raises_on_loss || loss_number != 0 || max_hold.count() > 0 ||
                     in.is_of_cluster();
};

/// The numbers of holds that are lost and that Python has not taken yet. The library's thread,
/// which adds them, must not wait for the interpreter, since a holder that has the interpreter may
/// wait for that thread; so a thread of Python takes them. A child of a fork has a list of its own.
class lost_numbers {
 public:
  void add(std::uint64_t number);
  /// Waits until there is one.
  [[nodiscard]] std::vector<std::uint64_t> take();

  static inline lost_numbers* of_this_process = nullptr;

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::uint64_t> all_;
};

struct add_number {
  std::uint64_t number;
  void operator()() const { lost_numbers::of_this_process->add(number); }
};
using number_at_loss = std::stop_callback<add_number>;

/// A thread's handle of a lock.
struct entry {
  std::weak_ptr<const recipe> of;
  std::unique_ptr<named_handle> handle;
  bool used = false;        // the slot is taken, and the lock is looked up
  std::uint64_t again = 0;  // of a reentrant lock: its exclusive acquires beside the first
  bool was_lost = false;    // the last hold, when it was released
  std::unique_ptr<number_at_loss> at_loss = {};
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
  /// The holds of this thread when a fork made the process.
  std::vector<std::weak_ptr<const recipe>> held_by_parent;

  handle_table() = default;
  handle_table(const handle_table&) = delete;
  handle_table& operator=(const handle_table&) = delete;
  ~handle_table() { table = nullptr; }

  entry& find_or_make(const std::shared_ptr<const recipe>& of);
  /// Frees what the handle still holds, as after a death.
  void drop(const recipe* of);
};

void make_table();

[[nodiscard]] inline handle_table& my_table() {
  if (table == nullptr || table->forks_at_creation != forks.load(std::memory_order_relaxed))
    make_table();
  return *table;
}

/// Looks the lock up, while other threads run.
inline entry& my_entry(const std::shared_ptr<const recipe>& of) {
  handle_table& mine = my_table();
  return mine.last == of.get() ? *mine.last_entry : mine.find_or_make(of);
}

/// This thread's handle, or null if it has none or does not hold with it.
[[nodiscard]] named_handle* holding_handle(const recipe& of);
/// True if this thread holds the lock of that name by a handle that was made for another object.
[[nodiscard]] bool is_held_by_another_object(const recipe& of);
/// True if this process was forked in the middle of a hold, which is the parent's.
[[nodiscard]] bool is_held_by_parent(const recipe& of);
/// The same, which is said once for each hold.
[[nodiscard]] bool leaves_hold_of_parent(const recipe& of);

}  // namespace lockflight::python
