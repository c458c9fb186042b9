// What the tests of domains share: a domain of their own, and children that do something and die.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lockflight/domain.hpp"
#include "lockflight/named_control.hpp"
#include "names/file/place.hpp"
#include "names/locks/kinds.hpp"

namespace lockflight::test {

/// Of this process and this test; removed at the end, also while it is used.
class own_domain {
 public:
  explicit own_domain(const std::string& name = "")
      : name_("test." + std::to_string(getpid()) + name) {}
  ~own_domain() {
    try {
      domain::remove(name_, true);
    } catch (const domain_error& e) {
      ADD_FAILURE() << e.what();
    }
  }
  own_domain(const own_domain&) = delete;
  own_domain& operator=(const own_domain&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string path() const { return detail::private_place(name_).path; }

 private:
  std::string name_;
};

/// All kinds that a domain's locks can have.
inline std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto& kind : detail::domain_kinds()) names.emplace_back(kind.about.name);
  return names;
}

/// Zeroed memory that children share.
template <class T>
T& shared_words() {
  void* const at =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *static_cast<T*>(at);
}

/// A process that runs `body` and then ends with what it returns, without any destructor.
class child {
 public:
  explicit child(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    int code = 111;
    try {
      code = body();
    } catch (const std::exception& e) {
      fprintf(stderr, "child %d: %s\n", static_cast<int>(getpid()), e.what());
    }
    _exit(code);
  }
  ~child() {
    if (pid_ > 0) kill(), static_cast<void>(wait());
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  child(child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  child& operator=(child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  /// Does nothing where the fork was refused: by -1, kill() would reach all processes of the user.
  void kill() const {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  [[nodiscard]] int pid() const { return pid_; }
  /// Its exit code, or 1000 + the signal that killed it.
  int wait() {
    int status = 0;
    if (waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  int pid_;
};

/// Returns when so many participants wait for locks of the domain.
inline void await_waiters(const domain& in, std::size_t waiters) {
  const auto waiting = [&] {
    std::size_t n = 0;
    for (const domain_lock& each : in.locks())
      for (const lock_user& use : each.users) n += use.held == mode::none;
    return n;
  };
  while (waiting() < waiters) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// The reason of the domain_error that this throws, and its text.
inline std::pair<int, std::string> refusal_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const domain_error& e) {
    return {static_cast<int>(e.why), e.what()};
  }
  return {-1, ""};
}

#define EXPECT_REFUSED(REASON, TEXT, ...)                                                    \
  do {                                                                                       \
    const auto [reason, text] = ::lockflight::test::refusal_of([&] { __VA_ARGS__; });        \
    EXPECT_EQ(reason, static_cast<int>(::lockflight::domain_error::reason::REASON)) << text; \
    EXPECT_NE(text.find(TEXT), std::string::npos) << text;                                   \
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;                                   \
  } while (false)

inline bool is_root() { return geteuid() == 0; }

/// Of a child: it goes on as this user.
inline void become(uid_t user, gid_t group, const std::vector<gid_t>& groups = {}) {
  constexpr int refused = 112;
  if (setgroups(groups.size(), groups.data()) != 0 || setgid(group) != 0 || setuid(user) != 0)
    _exit(refused);
}

/// The exit code of a child that could not do what the test is about.
inline constexpr int not_allowed_here = 9;

/// In a child's body: ends it with a code that stands for this line, unless `what` holds.
#define CHECK_OR_RETURN(what)               \
  do {                                      \
    if (!(what)) return __LINE__ % 90 + 10; \
  } while (false)

}  // namespace lockflight::test
