#include "mpi_preload/host_segment.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/round_up.hpp"
#include "lockflight/fabric/parking.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::mpi_preload {
namespace {

using bells = shm::detail::bells;

constexpr std::size_t page = 4096;

}  // namespace

std::size_t host_segment::bytes_of_piece(std::uint32_t words) {
  return round_up(sizeof(bells) + std::size_t{words} * sizeof(rma::word), page);
}

// Each rank's piece begins with its bells.
host_segment::host_segment(void* at, std::size_t bytes, rma::rank_t rank,
                           const rma::topology& machine, const mpi::wait_policy& waiting,
                           fabric::network& between_hosts)
    : at_(static_cast<std::byte*>(at)),
      bytes_(bytes),
      rank_(rank),
      crowded_(waiting.spins == 0),
      between_hosts_(between_hosts) {
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  for (std::size_t r = 0; r < ranks; ++r)
    base_.push_back(at_ + r * (bytes / ranks) + sizeof(bells));
  mine_ = base_[static_cast<std::size_t>(rank)];
  port_ = std::make_unique<mpi::port>(rank, machine, base_,
                                      fabric::cpu_use{.only = true, .nic_cells = true}, waiting,
                                      between_hosts, /*serves=*/true);
}

host_segment::~host_segment() { munmap(at_, bytes_); }

void host_segment::clear(std::uint32_t first, std::uint32_t count) {
  const std::uint32_t end = first + count;
  std::uint32_t from = zero_from_.load(std::memory_order_relaxed);
  const std::uint32_t used = std::clamp(from, first, end);
  std::memset(mine_ + std::size_t{first} * sizeof(rma::word), 0,
              std::size_t{used - first} * sizeof(rma::word));
  // Other threads of this process clear other words meanwhile.
  while (from < end && !zero_from_.compare_exchange_weak(from, end, std::memory_order_relaxed)) {
  }
  // A rank that learns from us that the zeroes are there finds them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// The awaited rank may need this one for a call of MPI that it has made before.
template <class Holds>
void host_segment::wait_until(Holds holds) {
  for (shm::detail::steps_of_wait wait(crowded_); !holds(); wait.next()) between_hosts_.progress();
}

// Acquire, with rank 0's release: what it wrote before comes with it.
bool host_segment::wait_for_first_rank(std::uint32_t at, rma::word turn,
                                       bool (*gives_up)(const host_segment&)) {
  bool is_there = false;
  wait_until([&] {
    is_there = word(0, at).load(std::memory_order_acquire) >= turn;
    return is_there || (gives_up != nullptr && gives_up(*this));
  });
  return is_there;
}

// Each rank writes its values beside its own cells, says so, and reads those of all others when
// they are there. Two places take turns: a rank that has read all may write its next values while
// others still read these, and its next ones after that only once all have read these.
bool host_segment::combine(std::uint32_t at, void* values, int count, MPI_Datatype type, MPI_Op op,
                           bool (*gives_up)(const host_segment&)) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const std::size_t bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
  using line = std::array<rma::word, rma::line_words>;
  rma::ensure(bytes <= sizeof(line), "values that are combined are few");
  const rma::word turn = word(rank_, at).load(std::memory_order_relaxed) + 1;
  const std::uint32_t place = at + rma::line_words * (1 + static_cast<std::uint32_t>(turn % 2));
  line mine{};
  std::memcpy(mine.data(), values, bytes);
  for (std::uint32_t i = 0; i < mine.size(); ++i)
    word(rank_, place + i).store(mine[i], std::memory_order_relaxed);
  // Release, with the acquire of those that await it: they read these values, and whatever this
  // rank has written before it came.
  word(rank_, at).store(turn, std::memory_order_release);

  if (!wait_for_first_rank(at, turn, gives_up)) return false;
  line sum{};
  for (rma::rank_t r = 0; static_cast<std::size_t>(r) < base_.size(); ++r) {
    wait_until([&] { return word(r, at).load(std::memory_order_acquire) >= turn; });
    line theirs{};
    for (std::uint32_t i = 0; i < theirs.size(); ++i)
      theirs[i] = word(r, place + i).load(std::memory_order_relaxed);
    if (r == 0)
      sum = theirs;
    else
      PMPI_Reduce_local(theirs.data(), sum.data(), count, type, op);
  }
  std::memcpy(values, sum.data(), bytes);
  return true;
}

// Release, with rank 0's acquire: this rank has read the others' values before it says so.
void host_segment::report_to_first(std::uint32_t at) {
  const rma::word turn = word(rank_, at).load(std::memory_order_relaxed) + 1;
  word(rank_, at).store(turn, std::memory_order_release);
  if (rank_ != 0) return;
  for (rma::rank_t r = 1; static_cast<std::size_t>(r) < base_.size(); ++r)
    wait_until([&] { return word(r, at).load(std::memory_order_acquire) >= turn; });
}

// Each rank's first word says how many broadcasts it has sent or read. Rank 0 writes its next
// values only once all ranks have read the last ones.
bool host_segment::broadcast(std::uint32_t at, void* values, std::size_t bytes,
                             bool (*gives_up)(const host_segment&)) {
  rma::ensure(bytes % sizeof(rma::word) == 0, "whole words are broadcast");
  const rma::word turn = word(rank_, at).load(std::memory_order_relaxed) + 1;
  const std::uint32_t first = at + rma::line_words;
  auto* const bytes_here = static_cast<std::byte*>(values);
  const auto for_each_word = [&](auto does) {
    for (std::size_t i = 0; i < bytes / sizeof(rma::word); ++i) {
      rma::word value = 0;
      std::memcpy(&value, bytes_here + i * sizeof value, sizeof value);
      does(word(0, first + static_cast<std::uint32_t>(i)), value);
      std::memcpy(bytes_here + i * sizeof value, &value, sizeof value);
    }
  };
  if (rank_ == 0) {
    // Acquire, with the release of the rank that has read: its reads come before these writes.
    for (rma::rank_t r = 1; static_cast<std::size_t>(r) < base_.size(); ++r)
      wait_until([&] { return word(r, at).load(std::memory_order_acquire) + 1 >= turn; });
    for_each_word(
        [](auto there, rma::word& value) { there.store(value, std::memory_order_relaxed); });
  } else {
    if (!wait_for_first_rank(at, turn, gives_up)) return false;
    for_each_word(
        [](auto there, rma::word& value) { value = there.load(std::memory_order_relaxed); });
  }
  word(rank_, at).store(turn, std::memory_order_release);
  return true;
}

}  // namespace lockflight::mpi_preload
