// A thread's place in a domain: its slot, its port, its records and queue nodes. A thread has one
// for each domain, from its first acquire until it ends.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "names/file/fork.hpp"
#include "names/life/slots.hpp"
#include "names/life/time_limit.hpp"
#include "names/locks/kinds.hpp"

namespace lockflight::detail {

struct lock_in_use;

class attachment {
 public:
  /// Attaches this thread with a slot that it has taken.
  attachment(std::shared_ptr<domain_file> file, int slot);
  /// Ends it, if it is this thread's.
  ~attachment();
  attachment(const attachment&) = delete;
  attachment& operator=(const attachment&) = delete;

  [[nodiscard]] domain_file& file() { return *file_; }
  [[nodiscard]] int slot() const { return slot_; }
  [[nodiscard]] domain_participant& me() { return me_; }
  [[nodiscard]] domain_port& port() { return port_; }
  /// True if the attachment is this thread's, not one of a parent process, and not over.
  [[nodiscard, gnu::always_inline]] bool is_ours() const {
    // Relaxed: no thread reads its own number here before it has stored it.
    return thread_.load(std::memory_order_relaxed) == thread_number && image_ == known_image();
  }
  /// True if the thread has ended, or is one of a parent of this process.
  [[nodiscard]] bool is_over() const;
  /// True if the thread is one of a parent of this process, which had not ended when the process
  /// was made.
  [[nodiscard]] bool is_of_parent() const;
  /// Ends the attachment. Locks that the thread still holds, and calls that are half done, are left
  /// as by a death.
  void end();
  /// Called by another thread that changes the holds of this attachment: calls `what` unless the
  /// attachment is over. The attachment does not end meanwhile.
  void unless_over(const std::function<void()>& what);

  // ---- which locks this thread holds, so that it does not wait for itself ----

  struct hold {
    std::uint32_t line;
    int record;
    bool is_shared;
    lock_in_use* of;
  };

  [[nodiscard]] bool holds_nothing() const { return held_.empty(); }
  [[nodiscard]] std::size_t holds() const { return held_.size(); }
  [[nodiscard]] bool holds_only(const lock_in_use* of) const {
    return held_.size() == 1 && held_.front().of == of;
  }
  [[nodiscard]] bool may_hold(std::uint32_t line) const {
    return std::ranges::any_of(held_, [line](const hold& each) { return each.line == line; });
  }
  /// The thread's hold of the lock with that first line. Called inside of unless_over(), so that no
  /// other thread drops the handle meanwhile.
  [[nodiscard]] std::optional<hold> own_hold(std::uint32_t line);
  /// Called when the record of the hold says so.
  void register_hold(const hold& now) {
    // Two holds never have the same record: the older one was dropped by another thread.
    if (!held_.empty()) [[unlikely]]
      std::erase_if(held_, [&](const hold& each) { return each.record == now.record; });
    // Field by field: a copy of the whole would wait for the stores of its parts.
    held_.emplace_back(now.line, now.record, now.is_shared, now.of);
  }
  void unregister_hold(const lock_in_use* of) {
    for (std::size_t i = held_.size(); i-- > 0;)
      if (held_[i].of == of) {
        held_[i] = held_.back();
        held_.pop_back();
        return;
      }
  }

 private:
  static constexpr std::uint64_t over = ~std::uint64_t{0};

  std::shared_ptr<domain_file> file_;
  int slot_;
  std::uint64_t image_;
  std::atomic<std::uint64_t> thread_;  // its number, or `over`
  domain_port port_;
  domain_participant me_;
  std::vector<hold> held_;
  std::mutex end_;  // one ends, or somebody acts for one that has not ended
};

/// This thread's attachment, made now if there is none; null if all slots are taken for so long.
/// Throws domain_error (removed, full, …).
[[nodiscard]] std::shared_ptr<attachment> attach_thread(const std::shared_ptr<domain_file>& file,
                                                        const time_limit& how_long = {});
/// This thread's attachment, or null.
[[nodiscard]] std::shared_ptr<attachment> attachment_of_thread(const domain_file& file);
/// This thread's attachment, or for a moment the steward's if no slot is free. Throws domain_error
/// (full).
[[nodiscard]] std::shared_ptr<attachment> any_attachment(const std::shared_ptr<domain_file>& file);

/// Handles all deaths as this participant, and frees the slots of the dead. Returns how many slots.
int sweep(attachment& by);

}  // namespace lockflight::detail
