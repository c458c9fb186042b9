// The run's own check of mutual exclusion: out of band, so that it sees the lock's behaviour and
// not its claims.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockflight/rma/cell.hpp"

namespace lockflight::bench {

/// It lies in memory that all ranks of a machine share. An exclusive holder writes to it, with
/// plain stores, since no other rank should. A shared holder only reads it, so that the check lets
/// readers scale. Zeroes are its start.
///
/// Invariants while the lock works:
///   (V1) `version_` is odd while an exclusive holder is in, and even otherwise;
///   (V2) `holder_` names the exclusive holder while it is in, and the last exclusive holder
///   otherwise.
/// A rank that finds them broken counts a violation. Two exclusive holders see each other at entry
/// or, if both read before either wrote, at exit (V2). A shared holder sees an exclusive one that
/// was in before it came, that came and is in, and that came and went (V1).
///
/// The orders: acquire on loads and release on stores keep each read where it is written, inside
/// the critical section. The lock under test must ensure that a read sees what the holder before
/// wrote.
class witness {
 public:
  /// The state that an entry found.
  struct entry {
    std::uint64_t version = 0;  ///< to be shown at exit
    rma::rank_t before = -1;    ///< exclusive entries: the last exclusive holder; or -1
    bool violated = false;
  };

  [[nodiscard]] entry enter_exclusive(rma::rank_t me) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    const std::uint64_t holder = holder_.load(std::memory_order_acquire);
    holder_.store(word_of(me) | in, std::memory_order_release);
    // Also when V1 is broken the word ends up odd: one violation is not to be counted for ever.
    version_.store(version | 1, std::memory_order_release);
    return {version | 1, static_cast<rma::rank_t>(holder >> 1) - 1,
            (version & 1) != 0 || (holder & in) != 0};
  }

  /// True if the rules were broken since the entry.
  [[nodiscard]] bool leave_exclusive(rma::rank_t me, const entry& at) {
    const bool violated = holder_.load(std::memory_order_acquire) != (word_of(me) | in) ||
                          version_.load(std::memory_order_acquire) != at.version;
    version_.store(at.version + 1, std::memory_order_release);
    holder_.store(word_of(me), std::memory_order_release);
    return violated;
  }

  [[nodiscard]] entry enter_shared() const {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    return {version, -1, (version & 1) != 0};
  }
  [[nodiscard]] bool leave_shared(const entry& at) const {
    return version_.load(std::memory_order_acquire) != at.version;
  }

 private:
  static constexpr std::uint64_t in = 1;  // holder_: bit 0; the rank, counted from 1, above it
  static constexpr std::uint64_t word_of(rma::rank_t rank) {
    return (static_cast<std::uint64_t>(rank) + 1) << 1;
  }

  alignas(128) std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> holder_{0};
};

}  // namespace lockflight::bench
