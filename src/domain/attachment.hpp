// A thread's place in a domain: its slot, its port, its records and queue nodes. A thread has one
// for each domain, from its first use until it ends.
#pragma once

#include <atomic>
#include <ctime>
#include <memory>

#include "domain/fork.hpp"
#include "domain/kinds.hpp"
#include "domain/slots.hpp"

namespace lockflight::detail {

class attachment {
 public:
  /// Of a slot that this thread has taken.
  attachment(std::shared_ptr<domain_file> file, int slot);
  /// Ends it, if it is this thread's.
  ~attachment() { end(); }
  attachment(const attachment&) = delete;
  attachment& operator=(const attachment&) = delete;

  [[nodiscard]] domain_file& file() { return *file_; }
  [[nodiscard]] int slot() const { return slot_; }
  [[nodiscard]] domain_participant& me() { return me_; }
  /// Whether it is this thread's, not the parent's of a fork, and not over.
  [[nodiscard]] bool is_ours() const {
    return thread_ == this_thread() && epoch_ == fork_epoch &&
           !is_over_.load(std::memory_order_relaxed);
  }
  /// From now on the record says that its lock is held. The clock is the coarse one, which costs a
  /// few nanoseconds and is some milliseconds late.
  void note_hold(int record) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    // Relaxed: for show alone.
    file_->slot(slot_).holds_since[record].store(
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
            static_cast<std::uint64_t>(now.tv_nsec),
        std::memory_order_relaxed);
  }
  /// What is held or half done then is as after a death.
  void end();

 private:
  std::shared_ptr<domain_file> file_;
  int slot_;
  const void* thread_;
  std::uint64_t epoch_;
  std::atomic<bool> is_over_{false};
  domain_port port_;
  domain_participant me_;
};

/// This thread's, made now if there is none. Throws domain_error (full).
[[nodiscard]] std::shared_ptr<attachment> attach_thread(const std::shared_ptr<domain_file>& file);
/// This thread's, or null.
[[nodiscard]] std::shared_ptr<attachment> attachment_of_thread(const domain_file& file);

/// Deals with all deaths by this participant, and frees the slots of the dead. Returns how many.
int sweep(attachment& by);

}  // namespace lockflight::detail
