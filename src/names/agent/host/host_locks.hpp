// Acquires locks of this host for its agent, which waits for nobody itself (docs/cluster.md,
// "Revocation"). A lock that is free is taken at once, by the agent's own thread. For each lock
// that is awaited a thread with a slot of its own waits, up to the number of the domain's slots.
// Fewer threads might all wait for holders that wait for another name, whose lock would have no
// thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "names/cluster/core/terms.hpp"
#include "names/locks/attachment.hpp"

namespace lockflight::cluster {

class host_locks {
 public:
  /// `taken` is called on a thread of this object, and must only pass the name on.
  host_locks(std::shared_ptr<detail::domain_file> file,
             std::function<void(const std::string& name)> taken);
  /// Gives up what is waited for, and releases what is held.
  ~host_locks();
  host_locks(const host_locks&) = delete;
  host_locks& operator=(const host_locks&) = delete;

  /// True if this host's lock of that name is held now, shared or exclusively. Else `taken` follows
  /// once, when it is. A kind of lock that cannot be shared is held exclusively.
  [[nodiscard]] bool take(const std::string& name, mode as);
  /// The same, but nothing follows if the lock is not free.
  [[nodiscard]] bool take_if_free(const std::string& name, mode as);
  /// True if a client may wait for that lock.
  [[nodiscard]] bool is_awaited(const std::string& name) const;
  /// Releases a lock that take() or `taken` said is held.
  void release(const std::string& name);

 private:
  class worker;

  /// A handle of a lock that is held.
  struct held_lock {
    std::unique_ptr<detail::any_robust> lock;  // null: the domain has none of that name
    mode held = mode::exclusive;
    void release() const {
      if (lock) lock->release(held);
    }
  };

  [[nodiscard]] std::unique_ptr<worker> idle_worker();

  std::shared_ptr<detail::domain_file> file_;
  std::shared_ptr<detail::attachment> me_;  // of the thread that calls
  std::map<std::string, held_lock> held_;   // by that thread
  std::function<void(const std::string& name)> taken_;
  std::map<std::string, std::unique_ptr<worker>> busy_;  // by the name of the lock
  std::deque<std::pair<std::string, mode>> delayed_;     // locks that wait for a thread
  std::vector<std::unique_ptr<worker>> idle_;
};

}  // namespace lockflight::cluster
