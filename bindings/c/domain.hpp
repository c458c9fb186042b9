// The common part of the functions for named locks and of those for elections.
#pragma once

#include <stop_token>
#include <string>

#include "base/descriptor.hpp"
#include "bindings/c/error.hpp"
#include "lockflight/domain.hpp"

struct lockflight_domain {
  lockflight::domain it;
};

namespace lockflight::capi {

/// The code of the exception that is handled now, which may be a domain_error.
[[gnu::cold]] int code_of_domain_exception() noexcept;

/// guarded(), for calls that throw domain_error.
template <class Call>
[[gnu::always_inline]] inline int guarded_domain(Call call) noexcept {
  try {
    return call();
  } catch (...) {
    return code_of_domain_exception();
  }
}

/// A function that is called when a hold is lost.
class at_loss {
 public:
  void call(const std::stop_token& loss, std::function<void()> function);
  /// If the function runs now, waits for its end. A child leaves its parent's as it is: the parent
  /// may have forked while the function ran, which does not end in the child.
  void end();
  at_loss() = default;
  at_loss(const at_loss&) = delete;
  at_loss& operator=(const at_loss&) = delete;
  ~at_loss() { end(); }

 private:
  using callback = std::stop_callback<std::function<void()>>;
  pid_t set_by_ = 0;
  std::unique_ptr<callback> it_;
};

/// The ways in which a program is told of the loss of the present hold.
class loss_reports {
 public:
  /// A descriptor that becomes readable, the same for all holds. `whose` is for a message.
  [[nodiscard]] int descriptor_for(const std::stop_token& loss, const std::string& whose);
  /// Calls function(with); null: nothing is called any more.
  void call(const std::stop_token& loss, void (*function)(void*), void* with);
  /// Called when the hold is released: takes away what its loss has left.
  void end_hold() {
    if (readable_) [[unlikely]]
      end_descriptor();
  }

 private:
  [[gnu::cold]] void end_descriptor();

  descriptor readable_;  // none until it is asked for
  at_loss makes_readable_;
  at_loss calls_;
};

/// For valid_for: UINT64_MAX is without limit.
[[nodiscard]] std::uint64_t nanoseconds_from(std::chrono::nanoseconds left);

}  // namespace lockflight::capi
