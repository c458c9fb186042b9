// The operations of a participant that its network has under way.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::fabric::detail {

/// A fixed number of slots for operations: an operation's words stay in one place while the network
/// may read them, and its slot is used again once the operations to its target are complete.
///
/// `Operation` holds what a network needs for one, and `rma::rank_t home`, its target, which is -1
/// in a free slot.
template <class Operation>
class operations {
 public:
  [[nodiscard]] bool empty() const { return used_ == 0; }
  [[nodiscard]] bool full() const { return used_ == slots_.size(); }

  /// A slot for an operation on `home`. There must be room.
  [[nodiscard]] Operation& add(rma::rank_t home) {
    rma::ensure(!full(), "what is complete leaves its slot");
    Operation& added = slots_[used_++];
    added.home = home;
    return added;
  }

  [[nodiscard]] bool any_to(rma::rank_t home) const {
    return std::any_of(slots_.begin(), end(), [&](const Operation& o) { return o.home == home; });
  }
  template <class F>
  void for_each_to(rma::rank_t home, F f) {
    for (std::size_t i = 0; i < used_; ++i)
      if (slots_[i].home == home) f(slots_[i]);
  }
  /// The number by which an answer that comes later finds an operation that is under way.
  [[nodiscard]] std::size_t number_of(const Operation& o) const {
    return static_cast<std::size_t>(&o - slots_.data());
  }
  /// The operation under way with that number; null if there is none.
  [[nodiscard]] Operation* with_number(std::size_t number) {
    return number < used_ && slots_[number].home >= 0 ? &slots_[number] : nullptr;
  }

  /// The target of the operation that was added last and is not released.
  [[nodiscard]] rma::rank_t last_home() const { return slots_[used_ - 1].home; }

  /// Frees the slots of the operations on `home`, which are complete.
  void release(rma::rank_t home) {
    for_each_to(home, [](Operation& o) { o.home = -1; });
    while (used_ > 0 && slots_[used_ - 1].home < 0) --used_;
  }

 private:
  [[nodiscard]] auto end() const { return slots_.begin() + static_cast<std::ptrdiff_t>(used_); }

  std::array<Operation, 64> slots_{};
  std::size_t used_ = 0;  // slots_[0, used_) may hold operations; the last of them does
};

/// Completes the operations on one target after the other, for `network::complete_all`, and for
/// `network::post` if no slot is free (C5 allows completion that early).
template <class Operation, class Network>
void complete_each(operations<Operation>& under_way, Network& of) {
  while (!under_way.empty()) of.complete(under_way.last_home());
}

}  // namespace lockflight::fabric::detail
