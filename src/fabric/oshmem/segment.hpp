// The memory of a run: each rank's cells and its mailbox, on the symmetric heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/oshmem/world.hpp"

namespace lockflight::oshmem::detail {

/// A message with the number that its sender was given, plus one; 0: none yet.
struct alignas(64) message_slot {
  long number;
  std::int64_t from;
  std::array<rma::word, 3> body;
};

/// The words in front of the slots of a mailbox.
struct mailbox_ends {
  alignas(64) long given;  ///< numbers given to senders
  alignas(64) long taken;  ///< messages received; by the owner
};

class segment {
 public:
  /// `node_of[r]` for each rank of the machine. `together`: all share memory, whatever their nodes.
  /// Collective over all ranks of the launch; throws `unavailable` on all of them.
  segment(world& in, const std::vector<int>& node_of, bool together, std::uint32_t words);

  /// [rank]: the address of its cells in this process, null on other nodes. Its bells lie in
  /// front of them.
  [[nodiscard]] const std::vector<std::byte*>& base() const { return base_; }
  /// This rank's cell, which is also the symmetric address of the others'.
  [[nodiscard]] long* cell(std::uint32_t index) const {
    return reinterpret_cast<long*>(memory_.data() + sizeof(shm::detail::bells)) + index;
  }
  [[nodiscard]] mailbox_ends& mailbox() const { return *mailbox_; }
  [[nodiscard]] message_slot& slot(long number) const {
    return slots_[static_cast<std::size_t>(number) % slots_each_];
  }
  [[nodiscard]] long slots_each() const { return static_cast<long>(slots_each_); }

 private:
  std::size_t slots_each_;
  std::size_t mailbox_at_;
  symmetric memory_;
  std::vector<std::byte*> base_;
  mailbox_ends* mailbox_;
  message_slot* slots_;
};

}  // namespace lockflight::oshmem::detail
