#include "fabric/mpi/trial.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>

#include "fabric/mpi/link.hpp"
#include "fabric/mpi/timing.hpp"

namespace lockflight::mpi::detail {
namespace {

// Indices in words; 0 is no cell.
constexpr std::uint32_t tickets = 8;
constexpr std::uint32_t sum = 16;
constexpr std::uint32_t gate = 24;
constexpr std::uint32_t guarded = 32;
static_assert(guarded < words_of_trials);
constexpr int rounds = 32;

class trial {
 public:
  explicit trial(link& l) : link_(l) {}

  rma::word get(std::uint32_t at) { return fetch(remote_kind::get, at, 0); }
  void put(std::uint32_t at, rma::word value) {
    link_.post(remote_kind::put, 0, at, value, nullptr);
    link_.complete(0);
  }
  rma::word fetch(remote_kind how, std::uint32_t at, rma::word value) {
    rma::word before = 0;
    link_.post(how, 0, at, value, &before);
    link_.complete(0);
    return before;
  }
  bool compare_swap(std::uint32_t at, rma::word expected, rma::word desired) {
    rma::word before = 0;
    link_.post_compare_swap(0, at, expected, desired, &before);
    link_.complete(0);
    return before == expected;
  }
  void increment(std::uint32_t at) {
    for (rma::word now = get(at); !compare_swap(at, now, now + 1); now = get(at)) sched_yield();
  }
  /// An increment that is not atomic itself, under a lock that is taken with a compare-and-swap and
  /// released with a put.
  void increment_guarded() {
    while (!compare_swap(gate, 0, 1)) sched_yield();
    put(guarded, get(guarded) + 1);
    put(gate, 0);
  }

 private:
  link& link_;
};

}  // namespace

atomicity try_atomics(const communicator& all, const segment& cells) {
  meet(all);
  atomicity found;
  {
    link l(all, cells.exposed(), /*patient=*/spins_in_flush);
    trial t(l);
    for (int i = 0; i < rounds; ++i) t.fetch(remote_kind::fetch_add, tickets, 1);
    for (int i = 0; i < rounds; ++i) t.increment(sum);
    for (int i = 0; i < rounds / 4; ++i) t.increment_guarded();
    meet(all);
    const auto expected = static_cast<rma::word>(rounds * all.size());
    found.fetch_add = t.get(tickets) == expected;
    found.compare_swap = t.get(sum) == expected;
    found.mixed = t.get(guarded) == expected / 4;
    meet(all);
  }
  std::array<int, 3> mine{found.fetch_add, found.compare_swap, found.mixed};
  combine(all, mine.data(), 3, MPI_INT, MPI_MIN);
  return {mine[0] != 0, mine[1] != 0, mine[2] != 0};
}

bool answers_while_computing(const communicator& all, const segment& cells) {
  constexpr double computed_s = 0.02;
  meet(all);
  link l(all, cells.exposed(), /*patient=*/spins_in_flush);
  const rma::rank_t origin = all.size() - 1;
  if (all.rank() == origin) trial(l).fetch(remote_kind::fetch_add, tickets, 1);  // connects them
  meet(all);
  double longest_us = longest_while_computing(all, l, origin, /*target=*/0, tickets, computed_s,
                                              {.most = 100, .seconds = computed_s});
  broadcast(all, &longest_us, 1, MPI_DOUBLE, origin);
  meet(all);
  return longest_us < computed_s * us_in_s / 2;
}

int processors_of(const communicator& machine) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  combine(machine, &set, sizeof set, MPI_BYTE, MPI_BOR);
  return CPU_COUNT(&set);
}

std::vector<std::string> names_of_hosts(const communicator& all) {
  constexpr std::size_t longest = 64;
  std::array<char, longest> mine{};
  gethostname(mine.data(), longest - 1);
  return gather(all, mine.data());
}

}  // namespace lockflight::mpi::detail
