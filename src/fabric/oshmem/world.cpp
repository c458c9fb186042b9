#include "fabric/oshmem/world.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <shmem.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fabric/network/launched.hpp"
#include "fabric/network/progress_words.hpp"
#include "fabric/shm/pause.hpp"

namespace lockflight::oshmem::detail {
namespace {

constexpr std::size_t page = 4096;

/// Symmetric words of a world.
struct desk {
  long sync[SHMEM_COLLECT_SYNC_SIZE];  ///< of the gathers
  long returned;                       ///< on rank 0: how often ranks have come to the end of a run
  long ended;                          ///< how many runs have ended
  long unused;                         ///< stays 0, and is waited for
};

desk& at(const symmetric& where) { return *reinterpret_cast<desk*>(where.data()); }

/// The data by which a rank introduces itself at the start.
struct introduction {
  std::array<char, 64> host{};
  int first_of_host = 0;
  cpu_set_t processors{};
};

/// Keeps a library loaded until the process ends: Open MPI 4.1 on UCX is killed by signal 11 in
/// shmem_finalize, because it calls a function of that library, which it has unloaded, for memory
/// that it frees. Does nothing if SHMEM has not loaded the library.
void hold_what_open_mpi_calls() {
  dlopen("libmca_common_ucx.so.40", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

library::library(started_by who) : ours(who == started_by::environment) {
  if (fabric::detail::wanted_progress() == fabric::detail::progress_by::thread)
    throw std::invalid_argument("LOCKFLIGHT_PROGRESS 'thread' (accepted with oshmem: calls, auto)");
  int level = SHMEM_THREAD_FUNNELED;
  if (ours) shmem_init_thread(level, &level);
  hold_what_open_mpi_calls();
  if (level < SHMEM_THREAD_FUNNELED) {
    shmem_finalize();
    throw unavailable("this OpenSHMEM allows no threads beside the one that calls it");
  }
}

library::~library() {
  if (ours) shmem_finalize();
}

// shmem_test is the standard's call for a value that is to arrive, and an implementation that needs
// calls makes progress there. Open MPI 4.1 does not, nor in any other call that returns at once: it
// is asked itself, by the name that its library gives the step.
void world::progress() {
  using step = void (*)();
  static const auto of_open_mpi = reinterpret_cast<step>(dlsym(RTLD_DEFAULT, "opal_progress"));
  if (of_open_mpi != nullptr) return of_open_mpi();
  shmem_long_test(&at(desk_).unused, SHMEM_CMP_NE, 0);
}

symmetric::symmetric(std::size_t bytes)
    : at_(static_cast<std::byte*>(shmem_align(page, (bytes + page - 1) / page * page))) {
  if (at_ == nullptr)
    throw unavailable(
        "the symmetric heap has no room for " + std::to_string(bytes) +
        " bytes (its size: SHMEM_SYMMETRIC_SIZE, for Open MPI 4.1 SHMEM_SYMMETRIC_HEAP_SIZE)");
  std::memset(at_, 0, bytes);
  shmem_barrier_all();
}

void symmetric::free(std::byte* at) {
  if (at != nullptr) shmem_free(at);
}

world::world(started_by who)
    : its(who), rank(shmem_my_pe()), size(shmem_n_pes()), desk_(sizeof(desk)) {
  std::fill_n(at(desk_).sync, SHMEM_COLLECT_SYNC_SIZE, SHMEM_SYNC_VALUE);
  shmem_barrier_all();
  introduction mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  while (reach(desk_.data(), mine.first_of_host) == nullptr) ++mine.first_of_host;
  sched_getaffinity(0, sizeof mine.processors, &mine.processors);
  cpu_set_t here{};
  for (const std::string& text :
       gather(std::string(reinterpret_cast<const char*>(&mine), sizeof mine))) {
    introduction one;
    std::memcpy(&one, text.data(), sizeof one);
    hosts.emplace_back(one.host.data());
    first_of_host.push_back(one.first_of_host);
    if (one.host == mine.host) CPU_OR(&here, &here, &one.processors);
  }
  processors = CPU_COUNT(&here);
}

std::byte* world::reach(std::byte* mine, int of) const {
  return of == rank ? mine : static_cast<std::byte*>(shmem_ptr(mine, of));
}

std::vector<std::uint64_t> world::collect(const std::uint64_t* mine, std::size_t words) {
  // All ranks allocate and free `from` and `to` together, and this separates two uses of the sync
  // words.
  const std::size_t bytes = words * sizeof *mine;
  const symmetric from(bytes);
  const symmetric to(bytes * static_cast<std::size_t>(size));
  std::memcpy(from.data(), mine, bytes);
  shmem_fcollect64(to.data(), from.data(), words, 0, 0, size, at(desk_).sync);
  std::vector<std::uint64_t> all(words * static_cast<std::size_t>(size));
  std::memcpy(all.data(), to.data(), all.size() * sizeof all[0]);
  return all;
}

std::vector<std::string> world::gather(const std::string& mine) {
  const std::uint64_t length = mine.size();
  const std::vector<std::uint64_t> lengths = collect(&length, 1);
  const std::size_t words =
      (*std::max_element(lengths.begin(), lengths.end()) + sizeof length - 1) / sizeof length;
  std::vector<std::string> texts(lengths.size());
  if (words == 0) return texts;
  std::vector<std::uint64_t> padded(words);
  mine.copy(reinterpret_cast<char*>(padded.data()), mine.size());
  const std::vector<std::uint64_t> all = collect(padded.data(), words);
  for (std::size_t r = 0; r < texts.size(); ++r)
    texts[r].assign(reinterpret_cast<const char*>(all.data() + r * words), lengths[r]);
  return texts;
}

void world::meet() { shmem_barrier_all(); }

// This is no barrier of SHMEM's, in which a rank that takes part in nothing would use its core.
void world::end_run(int ranks) {
  constexpr std::uint64_t nap_ns = 200'000;
  desk& mine = at(desk_);
  ++runs_;
  const auto seen = [](long& word) {
    // Acquire: the writes of the others in the run are visible.
    return std::atomic_ref(word).load(std::memory_order_acquire);
  };
  const auto wait = [&] {
    progress();
    rank < ranks ? static_cast<void>(sched_yield()) : shm::detail::sleep_for_ns(nap_ns);
  };
  if (rank < ranks) {
    shmem_long_atomic_inc(&mine.returned, 0);
    shmem_quiet();
  }
  if (rank == 0) {
    for (const long before = returned_; seen(mine.returned) < before + ranks;) wait();
    returned_ += ranks;
    for (int r = 0; r < size; ++r) shmem_long_atomic_set(&mine.ended, runs_, r);
    shmem_quiet();
  }
  while (seen(mine.ended) < runs_) wait();
}

}  // namespace lockflight::oshmem::detail

namespace lockflight::oshmem {

environment::environment(started_by who) : world_(std::make_unique<detail::world>(who)) {}
environment::~environment() = default;

int environment::rank() const { return world_->rank; }
int environment::size() const { return world_->size; }

std::vector<std::string> environment::gather(const std::string& mine) {
  return world_->gather(mine);
}

const std::vector<int>& environment::first_of_host() const { return world_->first_of_host; }
const std::vector<std::string>& environment::hosts() const { return world_->hosts; }

}  // namespace lockflight::oshmem
