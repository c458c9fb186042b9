// The memory of a run: each rank's cells, shared within its node, exposed to the others.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/wired/world.hpp"

namespace lockflight::wired::detail {

/// Zeroed memory that processes of a host share. It has no name: nothing is left behind.
class shared_mapping {
 public:
  shared_mapping() = default;
  /// `first_of[r]` is the lowest rank that shares with rank r, -1 for a rank that has none.
  /// Collective over all ranks; throws `unavailable` on all of them.
  shared_mapping(world& in, const std::vector<int>& first_of, std::size_t bytes);
  shared_mapping(shared_mapping&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)), bytes_(o.bytes_) {}
  shared_mapping& operator=(shared_mapping&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~shared_mapping();

  [[nodiscard]] std::byte* data() const { return at_; }
  /// Gives the memory to the caller, which owns it from here on.
  [[nodiscard]] std::byte* release() { return std::exchange(at_, nullptr); }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

class segment {
 public:
  /// `node_of[r]` for each rank of the machine. `together`: all share memory, whatever their nodes.
  /// Collective over all ranks of the launch; throws `unavailable` on all of them.
  segment(world& in, const std::vector<int>& node_of, bool together, std::uint32_t words,
          bool only_cpu);
  ~segment();
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;

  /// [rank]: the address of its cells in this process, null on other nodes. Its bells lie in
  /// front of them.
  [[nodiscard]] const std::vector<std::byte*>& base() const { return base_; }
  /// [rank]: the key to its cells (exposure::key); empty where the CPU reaches all.
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

 private:
  world& in_;
  shared_mapping memory_;
  std::vector<std::byte*> base_;
  std::vector<std::string> keys_;
  std::unique_ptr<exposure> exposed_;
};

}  // namespace lockflight::wired::detail
