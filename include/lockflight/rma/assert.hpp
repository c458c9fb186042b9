// Assertions that are checked in release builds too.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

#include "lockflight/rma/cxx20.hpp"

namespace lockflight::rma {

/// Is called for a violated assertion, in place of ending the process. The checker has one, which
/// reports the schedule that led to the violation.
class assertion_listener {
 public:
  /// Called on the thread and stack of the code that is wrong, which must not go on: the process
  /// ends if this returns. May throw only if that code may.
  virtual void violated(const char* what, const std::source_location& where) = 0;

  /// The listener of this thread; null if a violated assertion ends the process.
  [[nodiscard]] static assertion_listener* here() { return here_; }

 protected:
  ~assertion_listener() = default;

  /// While it exists, `who` is this thread's listener.
  class [[nodiscard]] listening {
   public:
    explicit listening(assertion_listener& who) { here_ = &who; }
    ~listening() { here_ = nullptr; }
    listening(const listening&) = delete;
    listening& operator=(const listening&) = delete;
  };

 private:
  static inline constinit thread_local assertion_listener* here_ = nullptr;
};

/// "port.hpp:12: what", without the folders of the file.
[[nodiscard]] constexpr std::string_view file_name_of(const std::source_location& where) {
  const std::string_view path = where.file_name();
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

/// Called by `ensure` if the condition does not hold: calls the listener of the thread, or ends the
/// process with one line on stderr.
[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_violated(const char* what,
                                                                      std::source_location where) {
  if (assertion_listener* const hears = assertion_listener::here(); hears != nullptr)
    hears->violated(what, where);
  // Made first and written at once: several ranks may share stderr.
  char text[256];
  const std::string_view file = file_name_of(where);
  std::snprintf(text, sizeof text, "lockflight: %.*s:%u: violated: %s\n",
                static_cast<int>(file.size()), file.data(), static_cast<unsigned>(where.line()),
                what);
  std::fputs(text, stderr);
  std::abort();
}

/// An assertion: `holds` is true unless this library, or a program that breaks its contract, is
/// wrong. Checked in every build, so the condition costs one or two comparisons of values at hand
/// and has no side effect. `what` says what must hold: "a queue node is given back once".
constexpr void ensure(bool holds, const char* what,
                      std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    assertion_violated(what, where);
}

}  // namespace lockflight::rma
