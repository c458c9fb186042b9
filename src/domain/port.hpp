// The port of a domain: shared memory whose participants die, each by itself (C45, C46). A slot is
// a rank. A death is known from the slots' robust mutexes, which the kernel marks.
//
// Cost: that of the shm port. A waiter tries the mutexes of the slots every 10 ms.
#pragma once

#include <ctime>

#include "domain/file.hpp"
#include "domain/slots.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::detail {

class domain_port : public shm::port {
 public:
  static constexpr rma::capability_set capabilities{.uniform_rmw = true,
                                                    .ordered_posts = true,
                                                    .node_fence = true,
                                                    .deaths = true,
                                                    .fabric = "shm"};

  domain_port(domain_file& file, int slot);

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    return wait(on, done, {UINT64_MAX}, nullptr);
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    return wait(on, done, until, nullptr);
  }
  template <class Cell, class Predicate>
  rma::word await_or_death(Cell on, Predicate done, const rma::lifeline& line) {
    return wait(on, done, {UINT64_MAX}, &line);
  }
  template <class Cell, class Predicate>
  rma::word await_until_or_death(Cell on, Predicate done, rma::deadline until,
                                 const rma::lifeline& line) {
    return wait(on, done, until, &line);
  }
  [[nodiscard]] bool shares_cores() const { return living_ > cores_; }
  void fence_node();
  /// A waiter that shares a core gives it up: how many threads live is not known when the port is
  /// made.
  void pause(std::uint64_t nanoseconds);

  /// From now on our record says that its lock is held: for show alone. The clock is the coarse
  /// one, which costs a few nanoseconds and is some milliseconds late.
  void note_hold(int record) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    holds_since_[record].store(static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
                                   static_cast<std::uint64_t>(now.tv_nsec),
                               std::memory_order_relaxed);
  }

  // ---- deaths ----

  [[nodiscard]] rma::word deaths() {
    look_if_due();
    return known_deaths();
  }
  [[nodiscard]] bool is_dead(rma::rank_t rank) {
    // Acquire: with it we see all that the dead participant stored.
    return file_.slot(rank).state.load(std::memory_order_acquire) == slot_state::dead;
  }
  /// Every operation has taken effect at its call.
  void bury(rma::rank_t) {}
  void rouse() { ring_all_bells(file_); }

 private:
  [[nodiscard]] rma::word known_deaths() const {
    // Acquire: the dead are marked before they are counted.
    return file_.header().deaths.load(std::memory_order_acquire);
  }
  void look_if_due();

  class waiter {
   public:
    waiter(domain_port& p, rma::rank_t home, rma::deadline until)
        : port_(p), home_(home), until_(until), spins_(p.shares_cores() ? 0 : 2000) {}
    ~waiter();
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    void step();

   private:
    domain_port& port_;
    rma::rank_t home_;
    rma::deadline until_;
    std::uint32_t spins_, steps_ = 0;
    shm::detail::sleeper sleeper_;
  };

  template <class Cell, class Predicate>
  rma::word wait(Cell on, Predicate done, rma::deadline until, const rma::lifeline* line) {
    for (waiter w(*this, on.home, until);; w.step()) {
      const rma::word now = load(on);
      if (done(now) || (until.at != UINT64_MAX && is_over(until))) return now;
      if (line != nullptr && (load(line->cell) != line->value || known_deaths() != line->deaths))
        return now;
    }
  }

  domain_file& file_;
  std::atomic<std::uint64_t>* holds_since_;  // of our slot
  bool fenced_;
  int cores_;
  int living_;
  std::uint64_t next_look_ = 0;
  shm::detail::short_yields yields_;
};

static_assert(rma::mortal_port<domain_port>);

}  // namespace lockflight::detail
