// The locks of an MPI window: one lock on each target, exclusive or shared, and one on the whole
// window, shared. MPI_Win_lock, MPI_Win_lock_all and their unlocks need these.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (section 4) leaves
// open how its queue locks could offer lock_all. Here any lock serves on the targets; a mutex is
// exclusive for shared locks too. Beside them lies the window's own lock: an exclusive lock on a
// target takes it and lock_all excludes it, so the cost of lock_all does not grow with the window,
// but for the first one after a bias.
//
// On one node a target favours a participant that alone locks it exclusively (window/favour.hpp),
// with window_groups.
//
// There are two ways to make the window's own lock: window_groups here, and window_global
// (window/window_global.hpp).
//
// Invariant: a participant takes the window's own lock once for all exclusive locks that it holds.
// A participant that holds one target and wants another must not queue behind a lock_all that waits
// for it to leave.
//
// Cost in network operations beyond the target's lock, with window_groups:
// | shared lock, its unlock | none                                                        |
// | exclusive lock          | 1 fetch-add; none while there is a bias (biased_groups.hpp) |
// | its unlock              | 1 add; none                                                 |
// | lock_all                | 1 fetch-add; the first after a bias also 1 load for each    |
// |                         | participant                                                 |
// | unlock_all              | 1 add                                                       |
#pragma once

#include <concepts>
#include <optional>
#include <stdexcept>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/window/biased_groups.hpp"
#include "lockflight/lock/window/favour.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// Group mutual exclusion of exclusive locks and lock_all: any number of one of the two. On one
/// node it favours exclusive locks.
template <rma::port Port, std::uint64_t Patience, int EntriesUntilBias = 0,
          int LocksUntilFavour = usual_locks_until_favour>
class window_groups_of {
  using two_groups = biased_groups<Port, Patience, EntriesUntilBias>;

 public:
  static constexpr const char* name = "groups";
  using port = Port;
  using cells = typename two_groups::cells;
  /// Of a target. `LocksUntilFavour` is 0 for none.
  using favour_of_target = favour<Port, two_groups, LocksUntilFavour>;
  static constexpr bool has_favour = LocksUntilFavour > 0;

  window_groups_of(rma::participant<Port>& me, const cells& window) : groups_(me, window) {}

  void lock_all() { groups_.enter_second(); }
  void unlock_all() { groups_.leave_second(); }
  void lock_one() { groups_.enter_first(); }
  void unlock_one() { groups_.leave_first(); }
  [[nodiscard]] two_groups& groups() { return groups_; }

 private:
  two_groups groups_;
};
template <rma::port Port>
using window_groups = window_groups_of<Port, usual_patience_ns>;

/// A participant's handle of the window's own lock: all targets shared, or some of them
/// exclusively.
template <class Way>
class whole_window {
  using Port = typename Way::port;

 public:
  using cells = typename Way::cells;
  using way_of_window = Way;

  whole_window(rma::participant<Port>& me, const cells& window)
      : port_(me.port()), way_(me, window) {}

  void lock_all() { way_.lock_all(); }
  void unlock_all() { way_.unlock_all(); }

  /// An exclusive lock of a target by favour, which enters as well; false if it does not favour us.
  template <class Favour>
  [[nodiscard, gnu::always_inline]] bool enter_by(Favour& of_target) {
    if (exclusive_ != 0 || under_way_ || !of_target.try_lock()) return false;
    exclusive_ = 1;
    return true;
  }
  /// After an exclusive lock by favour.
  [[gnu::always_inline]] void leave_favour() {
    if (exclusive_ == 1) [[likely]]
      return leave();
    --exclusive_;
    way_.groups().announce_only_in();
  }
  [[nodiscard]] Way& way() { return way_; }

  /// Before an exclusive lock on a target. Throws std::length_error, and nothing is locked, when
  /// the participant has no queue node left.
  void enter() {
    // A participant may have several threads; one of them uses the port while the others wait.
    while (under_way_) port_.pause(0);
    if (exclusive_ == 0) {
      const operation now(under_way_);
      way_.lock_one();
    }
    ++exclusive_;
  }
  /// After an exclusive lock on a target was released.
  void leave() {
    rma::ensure(exclusive_ > 0, "whoever leaves has entered");
    if (--exclusive_ > 0) return;
    const operation now(under_way_);
    way_.unlock_one();
  }

 private:
  struct operation {
    explicit operation(bool& under_way) : under_way_(under_way) { under_way_ = true; }
    ~operation() { under_way_ = false; }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    bool& under_way_;
  };

  Port& port_;
  Way way_;
  int exclusive_ = 0;
  bool under_way_ = false;  // a thread of the participant locks or unlocks
};

namespace detail {

struct no_favour {};
template <class Way>
struct favour_of {
  using type = no_favour;
};
template <class Way>
  requires Way::has_favour
struct favour_of<Way> {
  using type = typename Way::favour_of_target;
};

}  // namespace detail

/// A participant's handle of the lock on one target of a window.
template <template <class> class Target, class Window, rma::port Port>
class window_lock {
  using target_lock = Target<Port>;
  using way = typename Window::way_of_window;
  using favour_type = typename detail::favour_of<way>::type;
  static constexpr bool may_favour = !std::same_as<favour_type, detail::no_favour>;

 public:
  struct cells {
    typename target_lock::cells target;
    rma::cpu_cell favoured;  // on one node only, and if the window's own lock has favour

    /// The home of `target` is the target.
    static cells place(rma::layout& in, const rma::topology& machine,
                       const typename target_lock::parameters& set, rma::rank_t target) {
      cells made{target_lock::cells::place(in, machine, set, target), {}};
      if (has_favour(machine)) made.favoured = in.take<rma::cpu_cell>(1).at(target);
      return made;
    }
  };

  window_lock(rma::participant<Port>& me, Window& window, const cells& where, rma::rank_t target,
              const typename target_lock::parameters& set)
      : window_(window), target_(me, where.target, set) {
    if constexpr (may_favour)
      if (has_favour(me.machine()))
        favour_.emplace(me, window.way().groups(), where.favoured, target);
  }

  /// Throws std::length_error, and nothing is locked, when the participant has no queue node left.
  [[gnu::always_inline]] void lock() {
    if constexpr (may_favour) {
      is_in_by_favour_ = favour_ && window_.enter_by(*favour_);
      if (is_in_by_favour_) return;
    }
    lock_target();
  }
  [[gnu::always_inline]] void unlock() {
    if constexpr (may_favour)
      if (is_in_by_favour_) return window_.leave_favour();
    unlock_target();
  }

  void lock_shared() {
    if constexpr (shared<target_lock>)
      target_.lock_shared();
    else
      target_.lock();
    shut_out_others();
  }
  void unlock_shared() {
    if constexpr (shared<target_lock>)
      target_.unlock_shared();
    else
      target_.unlock();
  }

 private:
  [[nodiscard]] static bool has_favour(const rma::topology& machine) {
    return may_favour && machine.nodes() == 1;
  }

  [[gnu::noinline]] void lock_target() {
    window_.enter();
    try {
      target_.lock();
    } catch (const std::length_error&) {
      window_.leave();
      throw;
    }
    shut_out_others();
  }
  [[gnu::noinline]] void unlock_target() {
    if constexpr (may_favour)
      if (favour_) favour_->count();
    target_.unlock();
    window_.leave();
  }
  void shut_out_others() {
    if constexpr (may_favour)
      if (favour_) favour_->shut_out_others();
  }

  Window& window_;
  target_lock target_;
  std::optional<favour_type> favour_;  // none on several nodes
  bool is_in_by_favour_ = false;
};

}  // namespace lockflight::lock
