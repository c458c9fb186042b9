// The run's own check of mutual exclusion: out of band, so that it sees the lock's behaviour and
// not its claims.
#pragma once

#include <atomic>
#include <cstdint>

#include "lockflight/rma/cell.hpp"

namespace lockflight::bench {

/// The words of a witness, in whatever memory they lie.
///
/// Invariants while the lock works:
///   (V1) `version` is odd while an exclusive holder is in, and even otherwise;
///   (V2) `holder` names the exclusive holder while it is in, and the last exclusive holder
///   otherwise.
/// A rank that finds them broken counts a violation. Two exclusive holders see each other at entry
/// or, if both read before either wrote, at exit (V2). A shared holder sees an exclusive one that
/// was in before it came, that came and is in, and that came and went (V1).
struct witness_words {
  std::uint64_t version = 0;
  std::uint64_t holder = 0;  ///< bit 0: it is in; the rank, counted from 1, above it

  /// The words that an exclusive holder writes at its entry, made from those that it finds. The
  /// version ends up odd also when V1 is broken, so that one violation is not counted for ever.
  [[nodiscard]] witness_words entered_by(rma::rank_t me) const {
    return {version | 1, word_of(me) | in};
  }
  /// The words that the holder writes at its exit.
  [[nodiscard]] witness_words left_by(rma::rank_t me) const { return {version + 1, word_of(me)}; }

  [[nodiscard]] bool has_holder() const { return (version & 1) != 0 || (holder & in) != 0; }
  /// The last exclusive holder, or -1.
  [[nodiscard]] rma::rank_t last() const { return static_cast<rma::rank_t>(holder >> 1) - 1; }

  friend bool operator==(const witness_words&, const witness_words&) = default;

 private:
  static constexpr std::uint64_t in = 1;
  static constexpr std::uint64_t word_of(rma::rank_t rank) {
    return (static_cast<std::uint64_t>(rank) + 1) << 1;
  }
};

/// The witness lies in memory that all ranks of a machine share. An exclusive holder writes to it,
/// with plain stores, since no other rank should. A shared holder only reads it: the check lets
/// readers scale. Zeroes are its start.
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
    const witness_words found = read();
    const witness_words mine = found.entered_by(me);
    holder_.store(mine.holder, std::memory_order_release);
    version_.store(mine.version, std::memory_order_release);
    return {mine.version, found.last(), found.has_holder()};
  }

  /// True if the rules were broken since the entry.
  [[nodiscard]] bool leave_exclusive(rma::rank_t me, const entry& at) {
    const witness_words mine = witness_words{at.version, 0}.entered_by(me);
    const bool violated = read() != mine;
    version_.store(mine.left_by(me).version, std::memory_order_release);
    holder_.store(mine.left_by(me).holder, std::memory_order_release);
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
  [[nodiscard]] witness_words read() const {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    return {version, holder_.load(std::memory_order_acquire)};
  }

  alignas(128) std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> holder_{0};
};

}  // namespace lockflight::bench
