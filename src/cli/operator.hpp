// A lock whose holds an operator ends: the common part of `lockflight break` and `lockflight
// release`.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cli/domain_name.hpp"
#include "lockflight/hold_orders.hpp"

namespace lockflight::cli {

/// A holder still holds. EX_NOPERM of sysexits.h.
constexpr int still_held = 77;

class operated_lock {
 public:
  /// Throws usage_error, domain_error.
  operated_lock(const domain_name& where, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The holders on all hosts.
  [[nodiscard]] std::vector<lock_user> holders() const;
  /// Gives the order for this lock, in the name of this process, and logs it (syslog(3)).
  [[nodiscard]] std::vector<ordered_hold> order(hold_order what) const;
  /// Waits until those of these holds that were told, or whose holders were killed, have ended.
  /// Calls `has_ended` for each. Returns those that are left when the time is over.
  [[nodiscard]] std::vector<lock_user> await_end(
      const std::vector<ordered_hold>& of, std::chrono::nanoseconds at_most,
      const std::function<void(const lock_user&)>& has_ended) const;
  /// The hosts that did not answer the last call, as in domain_elsewhere.
  [[nodiscard]] const std::vector<std::string>& silent() const { return silent_; }

 private:
  domain in_;
  std::string name_;
  mutable std::vector<std::string> silent_;
};

}  // namespace lockflight::cli
