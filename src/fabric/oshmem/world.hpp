// A process's view of its SHMEM launch: the hosts of the other ranks, and the words by which all
// ranks synchronise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lockflight/fabric/oshmem.hpp"

namespace lockflight::oshmem::detail {

/// Memory of the symmetric heap; the same object on all ranks, at the same place of each heap. Its
/// construction and its end are collective.
class symmetric {
 public:
  /// Zeroed, on a page of its own. Throws `unavailable`, on all ranks alike.
  explicit symmetric(std::size_t bytes);
  ~symmetric() { free(at_); }
  symmetric(const symmetric&) = delete;
  symmetric& operator=(const symmetric&) = delete;

  [[nodiscard]] std::byte* data() const { return at_; }
  /// Gives the memory to the caller, which owns it from here on.
  [[nodiscard]] std::byte* release() { return std::exchange(at_, nullptr); }
  /// Frees memory that was released. Collective.
  static void free(std::byte* at);

 private:
  std::byte* at_ = nullptr;
};

/// Initialises SHMEM, and finalises it.
struct library {
  explicit library(started_by who);
  ~library();
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  bool ours;
};

struct world {
  explicit world(started_by who);
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  [[nodiscard]] bool same_host(int a, int b) const {
    return first_of_host[static_cast<std::size_t>(a)] == first_of_host[static_cast<std::size_t>(b)];
  }
  /// Rank `of`'s piece of this memory in this process, null if the CPU does not reach it.
  [[nodiscard]] std::byte* reach(std::byte* mine, int of) const;

  /// Makes one step, in which SHMEM serves other ranks.
  void progress();

  // Collective calls; each serves other ranks' operations meanwhile.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine);
  void meet();
  /// The end of a run of the first `ranks` ranks: returns on all ranks when these have called it.
  void end_run(int ranks);

  library its;  // initialised first, finalised last
  int rank;
  int size;
  std::vector<std::string> hosts;  // [rank]
  std::vector<int> first_of_host;  // [rank]
  int processors = 1;              // of this host, for its ranks together

 private:
  /// Gathers `words` words of each rank, by rank.
  [[nodiscard]] std::vector<std::uint64_t> collect(const std::uint64_t* mine, std::size_t words);

  symmetric desk_;  // memory for meet() and end_run()
  long runs_ = 0;
  long returned_ = 0;  // on rank 0: desk::returned, before this run
};

}  // namespace lockflight::oshmem::detail
