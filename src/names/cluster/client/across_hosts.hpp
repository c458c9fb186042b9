// The part of an acquire among other hosts, once the handle has the lock of its own host
// (docs/cluster.md, "How it works"): it waits until its host owns the name, and a holder can ask
// how long it is certainly alone.
//
// Cost: if the host owns the name, two compare-and-swaps on a line that the holder has anyway, and
// no message. Otherwise the waiter rings the host's agent, and sleeps.
//
// The clock of deadlines takes half as long to read as a free lock to acquire, so it is read once
// in each tick of the coarse clock, which an acquire of the host's lock reads anyway. The coarse
// clock stands still while the machine sleeps; but it advances as that begins, so that its value is
// another one after it.
#pragma once

#include <optional>
#include <string>

#include "names/cluster/client/words.hpp"
#include "names/cluster/core/acquire.hpp"
#include "names/life/port.hpp"

namespace lockflight::detail {

/// How long an attempt waits for other hosts: they may have the name without using it, and give it
/// up when they are asked. An attempt that needs an answer of etcd waits for it as long.
constexpr std::uint64_t attempts_wait_ns = 200'000'000;

class across_hosts {
 public:
  /// Makes the part for the lock with that first line.
  across_hosts(const domain_file& file, std::uint32_t line, std::string name)
      : file_(file), line_(line), name_(std::move(name)), words_(file, line) {}

  /// Called with the host's lock in that mode. False if that was not possible by `until`, or if the
  /// wait was interrupted: the caller releases the host's lock then. An attempt, whose time is over
  /// at once, still gives other hosts some time to answer.
  /// `coarse_ns` is a time of CLOCK_MONOTONIC_COARSE that was read after the caller began.
  [[nodiscard]] bool enter(cluster::mode wanted, domain_port& port, rma::deadline until,
                           std::uint64_t coarse_ns);
  /// Called before the caller that entered releases the host's lock. Gives the name back if another
  /// host wants it.
  void leave() {
    acquire_->leave();
    if (acquire_->is_revoked()) [[unlikely]]
      give_back();
  }

  // ---- for a holder ----
  [[nodiscard]] bool died() const { return acquire_ && acquire_->died(); }
  /// Does nothing if the holder is not certainly alone any more: the next holder then learns of a
  /// death.
  void mark_consistent() {
    if (valid_for() != 0) acquire_->mark_consistent();
  }
  /// For how many nanoseconds the holder is certainly alone; 0 if it is not certain any more. Once
  /// it has said 0 it says so until the end of the hold.
  [[nodiscard]] std::uint64_t valid_for() const;
  /// The token of the last exclusive acquire; 0 if there was none.
  [[nodiscard]] std::uint64_t token() const { return token_; }

 private:
  using acquire = cluster::acquire<words_in_file>;

  /// Continues the acquire. Returns whether the participant holds now.
  [[nodiscard]] bool go_on(domain_port& port, rma::deadline until, std::uint64_t coarse_ns);
  /// Throws domain_error (system) if the deadline is of another clock than this process reads.
  void check_clock(std::uint64_t coarse_ns);
  /// The time, or an earlier one of the same tick if the deadline is not near.
  [[nodiscard]] cluster::instant boot_time_at(std::uint64_t coarse_ns);
  void give_up(domain_port& port);
  void give_back();
  /// The words by which an acquire decides.
  struct words_seen {
    cluster::ownership owned;
    cluster::incarnation_number incarnation = 0;
    cluster::instant deadline = 0;
    bool operator==(const words_seen&) const = default;
  };
  [[nodiscard]] words_seen read_words() const {
    return {words_.get_ownership(), words_.incarnation(), words_.deadline()};
  }
  /// Waits until the words differ. False if the time is over first.
  [[nodiscard]] bool await_change(const words_seen& from, domain_port& port,
                                  rma::deadline until) const;

  const domain_file& file_;
  std::uint32_t line_;
  std::string name_;
  words_in_file words_;
  std::optional<acquire> acquire_;
  std::uint64_t token_ = 0;
  mutable bool was_lost_ = false;  // valid_for() has said so of this hold
  // The last check that this process is in the agent's time namespace: that namespace, and the
  // time.
  std::uint64_t time_space_ = UINT64_MAX;
  std::uint64_t clock_checked_ns_ = 0;
  // When the clock was read last.
  cluster::instant read_ = 0;
  std::uint64_t read_in_tick_ = 0;
};

}  // namespace lockflight::detail
