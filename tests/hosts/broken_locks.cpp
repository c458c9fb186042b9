// Locks that exclude too little, over hosts, by the benchmark's own run: prints how many violations
// its witness saw. locks_test.py runs it.
//
// usage: broken_locks near|far no_lock|node_lock|ignores_readers
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lab/bench/entry/make_anywhere.hpp"
#include "lab/bench/mpi/launch.hpp"
#include "lab/bench/workload/no_lock.hpp"
#include "lockflight/lock/spin.hpp"

namespace lockflight::bench {
namespace {

constexpr lock::facts facts_of(lock::kind what) {
  return {.name = "broken",
          .what = what,
          .source = "this test",
          .bytes_home = 0,
          .bytes_per_node = 0,
          .bytes_per_participant = 0};
}

/// Excludes no participant, and claims to be a lock.
template <rma::port Port>
struct nothing {
  static constexpr lock::facts about = facts_of(lock::kind::mutex);
  using parameters = no_lock_parameters;
  using cells = typename no_lock<Port>::cells;
  nothing(rma::participant<Port>&, const cells&, const parameters& = {}) {}
  void lock() {}
  void unlock() {}
};

/// Excludes the other ranks of the node only.
template <rma::port Port>
class node_lock {
 public:
  static constexpr lock::facts about = facts_of(lock::kind::mutex);
  using parameters = no_lock_parameters;
  struct cells {
    rma::cpu_cell word;
    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t) {
      return {in.take<rma::cpu_cell>(1)};
    }
  };
  node_lock(rma::participant<Port>& me, const cells& where, const parameters& = {})
      : port_(me.port()), word_(where.word.at(leader_of(me))) {}

  void lock() {
    while (port_.cpu_swap(word_, 1) != 0) port_.await(word_, rma::equals(0));
  }
  void unlock() { port_.store(word_, 0); }

 private:
  [[nodiscard]] static rma::rank_t leader_of(const rma::participant<Port>& me) {
    const rma::topology& machine = me.machine();
    return machine.leader(machine.node_level(), machine.node_of(me.rank()));
  }

  Port& port_;
  rma::cpu_cell word_;
};

/// Writers exclude each other; readers exclude no participant.
template <rma::port Port>
struct ignores_readers : lock::spin<Port> {
  using lock::spin<Port>::spin;
  void lock_shared() {}
  void unlock_shared() {}
};

template <template <class> class Lock>
int run(mpi_launch& all, bool far) {
  const run_plan plan{.what = workload::ecsb,
                      .machine = all.machine(all.ranks()),
                      .writers = 0.5,
                      .by = role::process,
                      .seconds = 0.2,  // not operations: rank 0 would be done before the others
                      .far_witness = far};
  const auto results = all.results(plan);
  all.run(make_anywhere<Lock>(), plan, *results);
  std::uint64_t seen = 0;
  for (const rank_result& r : results->ranks()) seen += r.violations;
  if (all.rank() == 0) std::printf("%llu violations\n", static_cast<unsigned long long>(seen));
  return 0;
}

int run_named(std::string_view witness, std::string_view lock) {
  mpi_launch all;
  all.start();
  const bool far = witness == "far";
  if (lock == "no_lock") return run<nothing>(all, far);
  if (lock == "node_lock") return run<node_lock>(all, far);
  return run<ignores_readers>(all, far);
}

}  // namespace
}  // namespace lockflight::bench

int main(int argc, char** argv) {
  return argc == 3 ? lockflight::bench::run_named(argv[1], argv[2]) : 2;
}
