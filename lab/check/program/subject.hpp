// A lock for the checker: a name, its facts, and a function that makes an engine that runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "catalogue/parameters.hpp"
#include "lab/check/engine/engine.hpp"
#include "lab/check/program/epoch_program.hpp"
#include "lab/check/program/lock_program.hpp"
#include "lab/check/program/robust_program.hpp"
#include "lockflight/lock/about.hpp"
#include "lockflight/lock/robust.hpp"

namespace lockflight::check {

/// A request that cannot be carried out. what() is one line: the argument, its value, what is
/// accepted.
struct bad_request : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

using settings = lock::parameter_values;

struct subject {
  lock::facts about;
  bool shared = false;             ///< has readers
  bool bounds_overtaking = false;  ///< has most_overtaken
  /// The call that the lock lacks to play that part; null if none.
  const char* (*lacks)(part);
  /// Throws bad_request for a parameter that the lock does not have or a value out of range.
  std::unique_ptr<engine> (*make)(const scenario&, const settings&, model);
  /// The same for the lock made to outlive its holders; null for a lock that cannot be made so.
  std::unique_ptr<engine> (*make_mortal)(const scenario&, const settings&, model) = nullptr;
};

/// The checker's default parameters: thresholds so small that a few rounds reach them.
template <class Parameters>
[[nodiscard]] Parameters small_thresholds() {
  Parameters p{};
  if constexpr (requires { p.t_l; })
    for (std::int64_t& t : p.t_l) t = 1;
  if constexpr (requires { p.t_r; }) p.t_r = 2;
  if constexpr (requires { p.local_budget; }) p.local_budget = p.remote_budget = 1;
  if constexpr (requires { p.barge; }) p.barge = 1;
  if constexpr (requires { p.handovers; }) p.handovers = 1;
  if constexpr (requires { p.writers; }) {
    // flight has two ways inside a node: the one with fewer steps is used, unless the other is set.
    p.writers = {.barge = 1, .handovers = 0, .local_budget = 1, .remote_budget = 1};
    p.t_w = 2;
    p.overtaking = 0;
  }
  if constexpr (requires { p.counter_bits; }) p.counter_bits = 3;
  if constexpr (requires { p.group; }) p.group = 2;
  if constexpr (requires { p.slot_reads; }) p.slot_reads = 1;
  return p;
}

/// The default parameters with the settings of the request. Throws bad_request.
template <class Parameters>
[[nodiscard]] Parameters parameters_for(const settings& set) {
  try {
    return catalogue::checked(small_thresholds<Parameters>(), set);
  } catch (const catalogue::bad_parameter& e) {
    throw bad_request("--set " + std::string(e.what()));
  }
}

/// The program that checks a lock.
template <class Lock>
using program_of = std::conditional_t<lock::defers<Lock>, epoch_program<Lock>, lock_program<Lock>>;

template <class Lock>
[[nodiscard]] const char* what_lacks(part what) {
  switch (what) {
    case part::writer:
    case part::reader:
    case part::abandoner:  // of the robust lock, whatever is inside
      break;
    case part::try_writer:
      return lock::can_try<Lock> ? nullptr : "try_lock";
    case part::try_reader:
      return lock::can_try_shared<Lock> ? nullptr : "try_lock_shared";
    case part::timed_writer:
      return lock::can_time<Lock> ? nullptr : "try_lock_for";
    case part::timed_reader:
      return lock::can_time_shared<Lock> ? nullptr : "try_lock_shared_for";
    case part::upgrader:
    case part::upgrading_reader:
      return lock::can_upgrade<Lock> ? nullptr : "lock_upgrade";
  }
  return nullptr;
}

template <class Lock>
[[nodiscard]] constexpr subject make_subject() {
  return {
      .about = Lock::about,
      .shared = lock::shared<Lock>,
      .bounds_overtaking = lock::bounds_overtaking<Lock>,
      .lacks = what_lacks<Lock>,
      .make =
          [](const scenario& what, const settings& set, model how) {
            const auto chosen = parameters_for<typename Lock::parameters>(set);
            how.endless = what.endless;
            how.has_doorway = lock::has_doorway<Lock>;
            if constexpr (lock::bounds_overtaking<Lock>)
              if (!what.endless && !how.most_overtaken)
                how.most_overtaken = Lock::most_overtaken(what.machine, chosen);
            const program_of<Lock> runs(what, chosen);
            auto made = std::make_unique<engine>(runs(), how);
            runs.describe_cells(*made);
            return made;
          },
  };
}

/// Makes an engine that runs a robust lock.
template <class Robust>
[[nodiscard]] std::unique_ptr<engine> make_mortal(const scenario& what, const settings& set,
                                                  model how) {
  how.endless = what.endless;
  const robust_program<Robust> runs(what, parameters_for<typename Robust::parameters>(set), how);
  auto made = std::make_unique<engine>(runs(), how);
  runs.describe_cells(*made);
  return made;
}

/// The same subject, with deaths if its lock can be made to outlive its holders.
template <template <class> class Lock>
[[nodiscard]] constexpr subject make_subject_of() {
  subject made = make_subject<Lock<port>>();
  if constexpr (requires { typename Lock<rma::interruptible<port>>; })
    made.make_mortal = make_mortal<lock::robust<Lock, port>>;
  return made;
}

/// The same with a robust lock of another kind.
template <template <class> class Lock, class Robust>
[[nodiscard]] constexpr subject make_subject_of() {
  subject made = make_subject<Lock<port>>();
  made.make_mortal = make_mortal<Robust>;
  return made;
}

}  // namespace lockflight::check
