// The locks of a window with one target, as one lock: writers lock the target exclusively; readers,
// by their rank, share the target (even) or lock all (odd).
#pragma once

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/fompi_rw.hpp"
#include "lockflight/lock/window/window_global.hpp"
#include "lockflight/lock/window/window_locks.hpp"

namespace lockflight::lock {

template <template <class> class Target, template <class> class Way, rma::port Port>
class one_target {
  using target_lock = Target<Port>;

 public:
  static constexpr facts about{.name = "window",
                               .what = kind::rw,
                               .source = "tests/lab/check/one_target.hpp",
                               .bytes_home = 0,
                               .bytes_per_node = 0,
                               .bytes_per_participant = 0};
  using parameters = typename target_lock::parameters;

  using whole = whole_window<Way<Port>>;
  using target_of_window = window_lock<Target, whole, Port>;

  struct cells {
    typename Way<Port>::cells window;
    typename target_of_window::cells target;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      return {Way<Port>::cells::place(in, machine, 0),
              target_of_window::cells::place(in, machine, set, home)};
    }
  };

  one_target(rma::participant<Port>& me, const cells& where, const parameters& set)
      : window_(me, where.window),
        one_(me, window_, where.target, 0, set),
        locks_all_(me.rank() % 2 == 1) {}

  void lock() { one_.lock(); }
  void unlock() { one_.unlock(); }
  void lock_shared() { locks_all_ ? window_.lock_all() : one_.lock_shared(); }
  void unlock_shared() { locks_all_ ? window_.unlock_all() : one_.unlock_shared(); }

 protected:
  whole window_;
  target_of_window one_;

 private:
  bool locks_all_;
};

/// Groups in which the head of the queue never gives way: a deadline may be over at every step, so
/// with one the search is larger by far.
template <rma::port Port>
using strict_window_groups = window_groups_of<Port, 0, 0, 0>;

/// With a mutex on the target.
template <rma::port Port>
class group_window : public one_target<d_mcs, strict_window_groups, Port> {
 public:
  using one_target<d_mcs, strict_window_groups, Port>::one_target;
};

/// The same with a head that gives way.
template <rma::port Port>
using patient_window_groups = window_groups_of<Port, usual_patience_ns, 0, 0>;
template <rma::port Port>
class patient_window : public one_target<d_mcs, patient_window_groups, Port> {
 public:
  using one_target<d_mcs, patient_window_groups, Port>::one_target;
};

/// The same with a bias for exclusive locks from the first of them on. All writers enter once
/// before they lock, which turns the bias on; all readers lock all.
template <template <class> class Way, rma::port Port>
class biased : public one_target<d_mcs, Way, Port> {
  using base = one_target<d_mcs, Way, Port>;

 public:
  using base::base;

  void lock() {
    base::window_.enter();
    base::window_.leave();
    base::lock();
  }
  void lock_shared() { base::window_.lock_all(); }
  void unlock_shared() { base::window_.unlock_all(); }
};
template <rma::port Port>
using biased_groups_at_once = window_groups_of<Port, 0, 1, 0>;
template <rma::port Port>
class biased_window : public biased<biased_groups_at_once, Port> {
 public:
  using biased<biased_groups_at_once, Port>::biased;
};

/// The same with a participant that gives way while it ends the bias.
template <rma::port Port>
using patient_biased_groups = window_groups_of<Port, usual_patience_ns, 1, 0>;
template <rma::port Port>
class patient_biased_window : public biased<patient_biased_groups, Port> {
 public:
  using biased<patient_biased_groups, Port>::biased;
};

/// The same with a target that favours a writer from its second lock on. All writers first lock the
/// target twice, which turns the bias on and favours them, unless another one comes between;
/// readers share the target, or lock all.
template <rma::port Port>
using favoured_at_once = window_groups_of<Port, 0, 1, 1>;
template <template <class> class Target, bool LocksAll, rma::port Port>
class favoured : public one_target<Target, favoured_at_once, Port> {
  using base = one_target<Target, favoured_at_once, Port>;

 public:
  using base::base;

  void lock() {
    for (int i = 0; i < 2; ++i) {
      base::lock();
      base::unlock();
    }
    base::lock();
  }
  void lock_shared() { LocksAll ? base::window_.lock_all() : base::one_.lock_shared(); }
  void unlock_shared() { LocksAll ? base::window_.unlock_all() : base::one_.unlock_shared(); }
};
template <rma::port Port>
class favoured_window : public favoured<d_mcs, false, Port> {
 public:
  using favoured<d_mcs, false, Port>::favoured;
};
template <rma::port Port>
class favoured_window_locked_as_a_whole : public favoured<d_mcs, true, Port> {
 public:
  using favoured<d_mcs, true, Port>::favoured;
};
/// With readers that share the target among themselves.
template <rma::port Port>
class favoured_shared_window : public favoured<fompi_rw, false, Port> {
 public:
  using favoured<fompi_rw, false, Port>::favoured;
};

/// The same with one lock for the window: lock_all reads it, an exclusive lock writes it. All
/// writers also lock a second target and unlock it before their section.
template <rma::port Port>
class global_window : public one_target<d_mcs, window_global, Port> {
  using base = one_target<d_mcs, window_global, Port>;

 public:
  using parameters = typename base::parameters;

  struct cells : base::cells {
    typename base::target_of_window::cells second;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      return {base::cells::place(in, machine, set, home),
              base::target_of_window::cells::place(in, machine, set, home)};
    }
  };

  global_window(rma::participant<Port>& me, const cells& where, const parameters& set)
      : base(me, where, set), second_(me, base::window_, where.second, 1, set) {}

  void lock() {
    base::lock();
    second_.lock();
    second_.unlock();
  }

 private:
  typename base::target_of_window second_;
};

}  // namespace lockflight::lock
