// The two words that a name of a cluster's domain has besides its lock (docs/cluster.md, "A
// client's acquire"), as they stand in the domain file. The host's agent and its clients change
// them, each by compare-and-swap.
//
// All orders are sequentially consistent: the protocol was checked as if all processes saw one
// order of these accesses, and they are few beside what the lock itself does.
#pragma once

#include <ctime>

#include "lockflight/lock/robust/generation.hpp"
#include "lockflight/rma/packed.hpp"
#include "names/cluster/core/words.hpp"
#include "names/file/file.hpp"

namespace lockflight::detail {

struct ownership_word : rma::packed<ownership_word> {
  static constexpr rma::field owned{.at = 0, .bits = 2};
  static constexpr rma::field wanted{.at = 2, .bits = 2};
  static constexpr rma::field revoked{.at = 4, .bits = 2};
  static constexpr rma::field incarnation{.at = 32, .bits = 32};
  static_assert(rma::are_disjoint({owned, wanted, revoked, incarnation}));
};

struct state_word : rma::packed<state_word> {
  static constexpr rma::field inside{.at = 0, .bits = 1};
  static constexpr rma::field died{.at = 1, .bits = 1};
  static constexpr rma::field counter{.at = 2, .bits = 42};
  static constexpr rma::field epoch{.at = 44, .bits = 20};
  static_assert(rma::are_disjoint({inside, died, counter, epoch}));
  static_assert(counter.most() == cluster::last_counter && epoch.most() == cluster::last_epoch);
};

[[nodiscard]] constexpr rma::word bits_of(const cluster::ownership& what) {
  return ownership_word{}
      .with(ownership_word::owned, static_cast<rma::word>(what.owned))
      .with(ownership_word::wanted, static_cast<rma::word>(what.wanted))
      .with(ownership_word::incarnation, what.incarnation)
      .with(ownership_word::revoked, static_cast<rma::word>(what.revoked))
      .bits();
}
[[nodiscard]] constexpr cluster::ownership ownership_from(rma::word bits) {
  const auto word = ownership_word::from(bits);
  return {static_cast<cluster::mode>(word.get(ownership_word::owned)),
          static_cast<cluster::mode>(word.get(ownership_word::wanted)),
          static_cast<cluster::incarnation_number>(word.get(ownership_word::incarnation)),
          static_cast<cluster::mode>(word.get(ownership_word::revoked))};
}
[[nodiscard]] constexpr rma::word bits_of(const cluster::state& what) {
  return state_word{}
      .with(state_word::inside, what.inside)
      .with(state_word::died, what.died)
      .with(state_word::counter, what.last.counter)
      .with(state_word::epoch, what.last.epoch)
      .bits();
}
[[nodiscard]] constexpr cluster::state state_from(rma::word bits) {
  const auto word = state_word::from(bits);
  return {{static_cast<cluster::epoch_number>(word.get(state_word::epoch)),
           word.get(state_word::counter)},
          word.has(state_word::inside),
          word.has(state_word::died)};
}

/// A token as one number, which grows as the token does.
[[nodiscard]] constexpr std::uint64_t number_of(const cluster::token& what) {
  return std::uint64_t{what.epoch} << state_word::counter.bits | what.counter;
}

/// The clock of deadlines, in microseconds. It goes on while the machine sleeps.
[[nodiscard]] inline cluster::instant boot_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return cluster::instant{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

/// True if this process and the agent of its host are in different time namespaces. False if one of
/// the two does not know its own.
[[nodiscard]] bool reads_other_clock(const domain_file& file);
/// Throws domain_error (system) if reads_other_clock(): this process would take the deadline for an
/// earlier or a later moment.
void require_agents_clock(const domain_file& file);

/// A number of this boot of the machine and of the file itself. The copy of a domain file, on
/// another machine or beside it, has the words of its host, and would own what that host owns.
[[nodiscard]] std::uint64_t origin_of(const domain_file& file);
/// Throws domain_error (damaged) if the file is a copy of the one that an agent made.
void require_original(const domain_file& file);

/// When a holder of that incarnation is told that its hold is lost, by boot_time().
[[nodiscard]] cluster::instant loss_time(const domain_file& file,
                                         cluster::incarnation_number incarnation);

/// The words of the lock with that first line, as cluster::acquire uses them.
class words_in_file {
 public:
  /// Beside the words that a holder writes, in their cache line: an exclusive holder has it anyway,
  /// and holders that share write nothing there.
  static constexpr std::uint32_t ownership_at =
      lock::generation_cells{.line = {0, 0}}.beside_b().index + 3;
  static constexpr std::uint32_t state_at = ownership_at + 1;

  words_in_file(const domain_file& file, std::uint32_t line)
      : header_(&file.cluster()),
        ownership_(&file.word(line * rma::line_words + ownership_at)),
        state_(&file.word(line * rma::line_words + state_at)) {}

  [[nodiscard]] cluster::incarnation_number incarnation() const { return header_->incarnation; }
  [[nodiscard]] cluster::instant deadline() const { return header_->deadline; }
  [[nodiscard]] cluster::instant time_to_live() const { return header_->time_to_live; }
  [[nodiscard]] cluster::ownership get_ownership() const { return ownership_from(*ownership_); }
  bool swap_ownership(const cluster::ownership& before, const cluster::ownership& after) {
    rma::word expected = bits_of(before);
    return ownership_->compare_exchange_strong(expected, bits_of(after));
  }
  [[nodiscard]] cluster::state get_state() const { return state_from(*state_); }
  bool swap_state(const cluster::state& before, const cluster::state& after) {
    rma::word expected = bits_of(before);
    return state_->compare_exchange_strong(expected, bits_of(after));
  }
  /// True if other hosts do not need the name, so that it may be removed.
  [[nodiscard]] bool are_unused() const {
    const cluster::ownership owned = get_ownership();
    return owned.owned == cluster::mode::none && owned.wanted == cluster::mode::none &&
           state_->load() == 0;
  }
  /// Clears the words of a block that another lock may have had.
  void clear() {
    ownership_->store(0);
    state_->store(0);
  }

 private:
  cluster_header* header_;
  std::atomic<rma::word>* ownership_;
  std::atomic<rma::word>* state_;
};

}  // namespace lockflight::detail
