// A thread's place in a domain: its slot, its port, its records and queue nodes. A thread has one
// for each domain, from its first use until it ends.
#pragma once

#include <atomic>
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
    // Relaxed: no thread reads its own number here before it has stored it.
    return thread_.load(std::memory_order_relaxed) == thread_number;
  }
  /// What is held or half done then is as after a death.
  void end();

 private:
  static constexpr std::uint64_t over = ~std::uint64_t{0};

  std::shared_ptr<domain_file> file_;
  int slot_;
  std::atomic<std::uint64_t> thread_;  // its number, or `over`
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
