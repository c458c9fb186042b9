// The check of mutual exclusion among ranks that share no memory. Its words are cells of rank 0,
// which holders read and write with one-sided operations, as a program would its data.
#pragma once

#include <cstdint>

#include "lab/bench/workload/witness.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::bench {

/// The witnesses of all locks of a run, with the rules of `witness_words`, and one more:
///   (V3) after the run, the versions of all locks together are twice the exclusive entries of all
///   ranks.
/// Between a holder's read and its write lies a round trip. A second holder that comes and goes in
/// that time is not seen by V2, but its update of the version is lost.
///
/// The words are cells that rank 0 too accesses through the network. With plain ones it would be
/// done, without a call of MPI, before another rank's first operation was answered.
///
/// Cost: two round trips at an exclusive entry, two at its exit; one each for a shared holder. The
/// run counts and times them as its own.
template <rma::port Port>
class far_witness {
 public:
  /// All ranks make the same witness (C20).
  far_witness(rma::participant<Port>& me, std::uint32_t locks)
      : port_(me.port()),
        locks_(locks),
        cells_(me.cells().template take<rma::nic_cell>(2 * locks)),
        entries_(me.cells().template take<rma::nic_cell>(1)) {}

  /// At least as many words of a segment as it takes.
  [[nodiscard]] static std::uint32_t words(std::uint32_t locks) {
    return 2 * locks + 3 * rma::line_words;
  }

  [[nodiscard]] witness::entry enter_exclusive(std::uint32_t lock) {
    const witness_words found = read(lock);
    const witness_words mine = found.entered_by(port_.rank());
    write(lock, mine);
    ++mine_;
    return {mine.version, found.last(), found.has_holder()};
  }
  /// True if the rules were broken since the entry.
  [[nodiscard]] bool leave_exclusive(std::uint32_t lock, const witness::entry& at) {
    const witness_words mine = witness_words{at.version, 0}.entered_by(port_.rank());
    const bool violated = read(lock) != mine;
    write(lock, mine.left_by(port_.rank()));
    return violated;
  }

  [[nodiscard]] witness::entry enter_shared(std::uint32_t lock) {
    const std::uint64_t version = version_of(lock);
    return {version, -1, (version & 1) != 0};
  }
  [[nodiscard]] bool leave_shared(std::uint32_t lock, const witness::entry& at) {
    return version_of(lock) != at.version;
  }

  /// Called when this rank does not enter any more.
  void report() {
    port_.add(entries_, mine_);
    port_.flush(home);
  }
  /// The updates that were lost (V3), once all ranks have reported. On rank 0 only.
  [[nodiscard]] std::uint64_t lost_updates() {
    std::uint64_t is = 0;
    for (std::uint32_t lock = 0; lock < locks_; ++lock) is += version_of(lock) / 2;
    const std::uint64_t expected = rma::get_now(port_, entries_);
    return is > expected ? is - expected : expected - is;
  }

 private:
  static constexpr rma::rank_t home = 0;

  [[nodiscard]] rma::nic_cell version_cell(std::uint32_t lock) const { return cells_ + 2 * lock; }

  [[nodiscard]] std::uint64_t version_of(std::uint32_t lock) {
    return rma::get_now(port_, version_cell(lock));
  }
  [[nodiscard]] witness_words read(std::uint32_t lock) {
    witness_words found;
    port_.get(version_cell(lock), found.version);
    port_.get(version_cell(lock) + 1, found.holder);
    port_.flush(home);
    return found;
  }
  void write(std::uint32_t lock, const witness_words& to) {
    port_.put(version_cell(lock), to.version);
    port_.put(version_cell(lock) + 1, to.holder);
    port_.flush(home);
  }

  Port& port_;
  std::uint32_t locks_;
  rma::nic_cell cells_;     // [lock]: its version, its holder
  rma::nic_cell entries_;   // the exclusive entries of all ranks that have reported
  std::uint64_t mine_ = 0;  // the exclusive entries of this rank
};

}  // namespace lockflight::bench
