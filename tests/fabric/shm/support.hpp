// The common parts of the tests of shm's runs: the view of ranks from outside, and how a run fails.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockflight/fabric/shm.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {

using clock = std::chrono::steady_clock;

/// The longest wait of a test for an event. Only a broken run lasts as long.
constexpr std::chrono::seconds long_enough{30};

/// How soon the death of a rank must end a run: "within seconds", however busy the machine.
constexpr std::chrono::seconds promptly{5};

/// Waits until the condition holds; false if it never does.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto until = clock::now() + long_enough;
  while (!condition()) {
    if (clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Memory that this process and those it starts share.
template <class T>
class shared_with_ranks {
 public:
  shared_with_ranks()
      : object_(new(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)) T{}) {}
  ~shared_with_ranks() { munmap(object_, sizeof(T)); }
  shared_with_ranks(const shared_with_ranks&) = delete;
  shared_with_ranks& operator=(const shared_with_ranks&) = delete;
  [[nodiscard]] T& operator*() const { return *object_; }
  [[nodiscard]] T* operator->() const { return object_; }

 private:
  T* object_;
};

/// What a run must not leave behind in the process that made it.
struct traces {
  int file_descriptors = 0;
  int mappings = 0;     // of segments
  int named_files = 0;  // in /dev/shm, but for those of tests beside us
  bool children = false;

  [[nodiscard]] static traces now() {
    namespace fs = std::filesystem;
    traces t;
    for ([[maybe_unused]] const auto& each : fs::directory_iterator("/proc/self/fd"))
      ++t.file_descriptors;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      t.mappings +=
          line.find("lockflight") != std::string::npos && line.find("memfd") != std::string::npos;
    // Tests beside us have domains and folders of etcds there, which come and go.
    constexpr std::string_view of_others = "lockflight-";
    for (const auto& file : fs::directory_iterator("/dev/shm")) {
      const std::string name = file.path().filename().string();
      t.named_files += name.find("lockflight") != std::string::npos && !name.starts_with(of_others);
    }
    t.children = waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD;
    return t;
  }
};

/// How a run failed.
struct failure {
  rma::rank_t rank = -1;  // -1: it did not
  std::string what;
};

/// How a run ended.
struct outcome {
  failure failed;
  std::vector<rma::rank_t> lost;
};

/// Runs, and expects the run to leave nothing behind.
template <class Body>
outcome outcome_of(const shm::config& what, Body body, const shm::monitor& watch = nullptr) {
  const traces before = traces::now();
  outcome seen;
  try {
    seen.lost = shm::run_ports(
        what,
        [&](shm::port& p) {
          rma::participant<shm::port> me(p, what.words_per_rank);
          body(me);
        },
        watch);
  } catch (const shm::rank_failed& e) {
    seen.failed = {e.rank, e.what()};
  }
  const traces after = traces::now();
  EXPECT_EQ(after.file_descriptors, before.file_descriptors);
  EXPECT_EQ(after.mappings, 0) << "a segment is still mapped";
  EXPECT_EQ(after.named_files, before.named_files) << "a file is left in /dev/shm";
  EXPECT_FALSE(after.children) << "a rank lives on";
  return seen;
}

/// Runs, expects the run to throw rank_failed promptly and to leave nothing behind.
template <class Body>
failure failure_of(const shm::config& what, Body body, const shm::monitor& watch = nullptr) {
  const auto start = clock::now();
  failure seen = outcome_of(what, body, watch).failed;
  EXPECT_NE(seen.rank, -1) << "the run did not fail";
  EXPECT_LT(clock::now() - start, promptly);
  return seen;
}

/// How a rank's process ends from outside.
[[noreturn]] inline void die() {
  kill(getpid(), SIGKILL);
  while (true) pause();
}

/// Never ends by itself: waits for a cell that no rank writes.
inline void wait_for_ever(rma::participant<shm::port>& me) {
  const auto never = me.cells().take<rma::plain_cell>(1).at(me.rank());
  me.port().await(never, rma::equals(1));
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace lockflight::test
