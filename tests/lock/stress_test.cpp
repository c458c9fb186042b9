// Every lock, on every fabric and many machines, with extreme parameters, against participants that
// do everything a lock offers in random order. The guarded data show whether it works.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "guarded.hpp"
#include "lockflight/rma/barrier.hpp"
#include "subjects.hpp"

namespace lockflight::test {
namespace {

using random_source = std::mt19937_64;

#if defined(LOCKFLIGHT_TEST_ON_MPI)
constexpr bool on_mpi = true;
#else
constexpr bool on_mpi = false;
#endif
#if defined(LOCKFLIGHT_TEST_ON_SIM)
constexpr bool on_sim = true;
#else
constexpr bool on_sim = false;
#endif

/// How much of everything. Sanitizers slow forks and runs down about tenfold; MPI's operations take
/// microseconds between nodes; and where no two ranks ever run at once, on the simulator, there is
/// no race that more operations would hit.
struct effort {
  static constexpr int operations = under_asan                       ? 15  // of each rank, mixed
                                    : under_tsan || on_mpi || on_sim ? 30
                                                                     : 40;
  static constexpr int full_speed_operations = on_sim                      ? 150
                                               : on_mpi || under_sanitizer ? 500
                                                                           : 3'000;
};

/// Parameters that a set is made of: the least that each may be and one more, 2, the number of
/// ranks, the default. (The largest would do nothing, or make back-offs endless.)
template <class Parameters>
Parameters extreme_set(const rma::topology& machine, auto choose) {
  Parameters set;
  for (const auto& p : Parameters::all()) {
    std::int64_t& value = p.of(set);
    const std::int64_t candidates[] = {p.min, p.min + 1, std::int64_t{2}, machine.ranks(), value};
    value = std::clamp(candidates[choose() % std::size(candidates)], p.min, p.max);
  }
  return set;
}

/// The defaults of a table, if they differ; and with few operations words are handed over although
/// ranks share cores, which takes a time slice each if the machine is busy.
template <class Parameters>
Parameters set_of_table(lock::table_size of) {
  Parameters set = lock::in_table(Parameters{}, of);
  for (const auto& p : Parameters::all())
    if (p.name == "handovers" && (on_sim || under_sanitizer)) p.of(set) = 2;
  return set;
}

/// The defaults, here and in a table, the least of all, one more of all, and one at random: another
/// for each machine, way and fabric, the same on all ranks.
template <class Subject>
auto parameter_sets(const rma::topology& machine) {
  using parameters = typename Subject::lock::parameters;
  std::vector<parameters> sets{parameters{}};
  if (std::size(parameters::all()) == 0) return sets;
  for (const unsigned one_for_all : {0u, 1u})
    sets.push_back(extreme_set<parameters>(machine, [=] { return one_for_all; }));
  const lock::table_size few_locks{1, machine.ranks()};
  if constexpr (requires(const parameters& p) { p.in_table(few_locks); })
    sets.push_back(set_of_table<parameters>(few_locks));
  const int shape[] = {machine.ranks(), machine.levels(), machine.node_level()};
  const std::string where =
      Subject::name() + mode_now().name + std::to_string(seed()) + testing::PrintToString(shape);
  std::seed_seq mixed(where.begin(), where.end());
  random_source random(mixed);
  sets.push_back(extreme_set<parameters>(machine, [&] { return random(); }));
  return sets;
}

/// A lock and the data that it guards.
template <class Subject>
struct guarded_lock {
  using port = typename Subject::port;
  using lock_type = typename Subject::lock;
  using parameters = typename lock_type::parameters;
  using cells = typename lock_type::cells;

  guarded_lock(rma::participant<port>& me, const parameters& set, rma::rank_t home)
      : where(cells::place(me.cells(), me.machine(), set, home)),
        lock(me, where, set),
        data(me, home) {}

  cells where;
  lock_type lock;
  guarded<port> data;
  rma::word writes = 0;  // by this participant
};

/// The operations of one participant on two locks.
template <class Subject>
class workload {
  using port = typename Subject::port;
  using lock_type = typename Subject::lock;
  using parameters = typename lock_type::parameters;
  using guarded_type = guarded_lock<Subject>;
  static constexpr bool shares = lock::shared<lock_type>;
  static constexpr bool can_more = lock::can_time<lock_type> || lock::can_upgrade<lock_type>;

 public:
  workload(rma::participant<port>& me, rma::barrier<port>& all, const parameters& set,
           std::uint64_t salt)
      : me_(me),
        all_(all),
        set_(set),
        random_(seed() * 1'000'003 + salt * 65'537 + static_cast<std::uint64_t>(me.rank())),
        locks_{{me, set, 0}, {me, set, me.machine().ranks() - 1}},
        totals_(me.cells().template take<rma::nic_cell>(2)) {}

  /// All participants together.
  void run(int operations, bool widening) {
    widening_ = widening;
    all_.arrive_and_wait();
    for (int i = 0; i < operations; ++i) step();
    for (std::uint32_t i = 0; i < 2; ++i) {
      me_.port().add(totals_ + i, locks_[i].writes);
      me_.port().flush();
    }
    all_.arrive_and_wait();
    for (std::uint32_t i = 0; i < 2; ++i) {
      const rma::word written = rma::get_now(me_.port(), totals_ + i);
      require(locks_[i].data.look([] {}) == written, "writes were lost");
    }
    all_.arrive_and_wait();
    for (rma::rank_t turn = 0; turn < me_.machine().ranks(); ++turn) {
      if (turn == me_.rank()) must_be_free();
      all_.arrive_and_wait();
    }
  }

 private:
  void step() {
    guarded_type& on = locks_[random_() % 2];
    switch (random_() % (can_more ? 12 : 8)) {
      case 8:
        return timed_exclusive(on);
      case 9:
        return timed_shared(on);
      case 10:
        return up_and_down(on);
      case 11:
        return up_from_shared(on);
      case 0:
      case 1:
        return exclusive(on);
      case 2:
        return try_exclusive(on);
      case 3:
      case 4:
        return shared(on);
      case 5:
        return try_shared(on);
      case 6:
        return both_at_once();
      default:
        return nested();
    }
  }

  void exclusive(guarded_type& on) {
    on.lock.lock();
    write(on);
    on.lock.unlock();
  }
  void try_exclusive(guarded_type& on) {
    if constexpr (lock::can_try<lock_type>) {
      if (!on.lock.try_lock()) return;
      write(on);
      on.lock.unlock();
    } else {
      exclusive(on);
    }
  }
  void shared(guarded_type& on) {
    if constexpr (shares) {
      on.lock.lock_shared();
      look(on);
      on.lock.unlock_shared();
    } else {
      exclusive(on);
    }
  }
  void try_shared(guarded_type& on) {
    if constexpr (lock::can_try_shared<lock_type>) {
      if (!on.lock.try_lock_shared()) return;
      look(on);
      on.lock.unlock_shared();
    } else {
      try_exclusive(on);
    }
  }

  /// Mostly so short that time is over at any point of an acquire.
  [[nodiscard]] std::uint64_t patience() {
    return random_() % (random_() % 4 == 0 ? 1'000'000 : 10'000);
  }
  void timed_exclusive(guarded_type& on) {
    if constexpr (lock::can_time<lock_type>) {
      if (!on.lock.try_lock_within(patience())) return;
      write(on);
      on.lock.unlock();
    }
  }
  void timed_shared(guarded_type& on) {
    if constexpr (lock::can_time_shared<lock_type>) {
      if (!on.lock.try_lock_shared_within(patience())) return;
      look(on);
      on.lock.unlock_shared();
    } else {
      timed_exclusive(on);
    }
  }

  /// The data do not change on the way, except by ourselves.
  void up_and_down(guarded_type& on) {
    if constexpr (lock::can_upgrade<lock_type>) {
      if (random_() % 2 == 0)
        on.lock.lock_upgrade();
      else if (!on.lock.try_lock_upgrade())
        return;
      const rma::word before = look(on);
      if (random_() % 2 == 0) {
        on.lock.unlock_upgrade_and_lock();
        require(look(on) == before, "another participant wrote while the lock was upgraded");
        write(on);
        if (random_() % 2 == 0) return on.lock.unlock();
        on.lock.unlock_and_lock_upgrade();
        require(look(on) == before + 1, "another participant wrote while the lock was downgraded");
      }
      if (random_() % 2 == 0) return on.lock.unlock_upgrade();
      const rma::word last = look(on);
      on.lock.unlock_upgrade_and_lock_shared();
      require(look(on) == last, "another participant wrote while the lock was downgraded");
      on.lock.unlock_shared();
    } else {
      exclusive(on);
    }
  }
  void up_from_shared(guarded_type& on) {
    if constexpr (lock::can_upgrade<lock_type>) {
      on.lock.lock_shared();
      const rma::word before = look(on);
      if (!on.lock.try_unlock_shared_and_lock()) return on.lock.unlock_shared();
      require(look(on) == before, "another participant wrote while the lock was upgraded");
      write(on);
      on.lock.unlock_and_lock_shared();
      require(look(on) == before + 1, "another participant wrote while the lock was downgraded");
      on.lock.unlock_shared();
    } else {
      timed_shared(on);
    }
  }

  /// By two ranks at most: std::scoped_lock tries, backs off and tries the other way round, and
  /// many that do so at two fair locks hand them to each other for seconds before one gets both.
  /// Now and then, since even two take long at it when another program takes their processors; and
  /// not on the simulator, where two ranks that wait for each other's messages never get out of
  /// step.
  void both_at_once() {
    if constexpr (lock::can_try<lock_type> && !on_sim) {
      const bool one_of_two = me_.rank() == 0 || me_.rank() == me_.machine().ranks() - 1;
      if (one_of_two && random_() % 4 == 0) {
        const std::size_t i = random_() % 2;
        const std::scoped_lock both(locks_[i].lock, locks_[1 - i].lock);
        write(locks_[1 - i]);
        return write(locks_[i]);
      }
    }
    nested();
  }

  /// One after the other, always in the same order, released in either.
  void nested() {
    bool is_shared[2] = {};
    for (std::size_t i = 0; i < 2; ++i) {
      is_shared[i] = shares && random_() % 2 == 0;
      acquire(locks_[i], is_shared[i]);
    }
    for (std::size_t i = 0; i < 2; ++i)
      is_shared[i] ? static_cast<void>(look(locks_[i])) : write(locks_[i]);
    const std::size_t first = random_() % 2;
    for (const std::size_t i : {first, 1 - first}) release(locks_[i], is_shared[i]);
  }
  void acquire(guarded_type& on, bool is_shared) {
    if constexpr (shares)
      if (is_shared) return on.lock.lock_shared();
    on.lock.lock();
  }
  void release(guarded_type& on, bool is_shared) {
    if constexpr (shares)
      if (is_shared) return on.lock.unlock_shared();
    on.lock.unlock();
  }

  void write(guarded_type& on) {
    on.data.write([this] { widen(); });
    ++on.writes;
  }
  rma::word look(guarded_type& on) {
    return on.data.look([this] { widen(); });
  }
  void widen() {
    if (widening_ && random_() % 2 == 0) me_.port().pause(random_() % 2'000);
  }

  /// All participants have left: the next one finds the lock free, and no queue node is missing.
  void must_be_free() {
    for (guarded_type& each : locks_) {
      lock_type fresh(me_, each.where, set_);
      if constexpr (lock::can_try<lock_type>) {
        require(fresh.try_lock(), "try_lock fails on a lock that all have left");
        fresh.unlock();
      }
      if constexpr (lock::can_try_shared<lock_type>) {
        require(fresh.try_lock_shared(), "try_lock_shared fails on a lock that all have left");
        fresh.unlock_shared();
      }
    }
    std::vector<rma::queue_node> lines;
    for (int i = 0; i < rma::participant<port>::most_nested; ++i)
      lines.push_back(me_.take_queue_node());
    for (const rma::queue_node& l : lines) me_.give_back(l);
  }

  rma::participant<port>& me_;
  rma::barrier<port>& all_;
  parameters set_;
  random_source random_;
  guarded_type locks_[2];
  rma::nic_cell totals_;
  bool widening_ = true;
};

template <class Subject>
void stress(const rma::topology& machine, int operations, bool widening = true) {
  if (!fits<typename Subject::fabric>(machine)) return;
  Subject::fabric::run(machine, [&](auto& me) {
    rma::barrier all(me);
    std::uint64_t salt = 0;
    for (const auto& set : parameter_sets<Subject>(me.machine()))
      workload<Subject>(me, all, set, salt++)
          .run(rounds<typename Subject::fabric>(operations), widening);
  });
}

template <class Subject>
struct stress_suite : testing::Test {};
TYPED_TEST_SUITE(stress_suite, subjects, subject_names);
const bool modes = run_in(lock_modes);

TYPED_TEST(stress_suite, one_level) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    SCOPED_TRACE(ranks);
    ASSERT_NO_THROW(stress<TypeParam>(rma::topology::flat(ranks), effort::operations));
  }
}

TYPED_TEST(stress_suite, several_levels) {
  if (!fits<typename TypeParam::fabric>(rma::topology::flat(4))) GTEST_SKIP() << "needs 4 ranks";
  const std::vector<int> machines[] = {{2, 2}, {2, 4}, {2, 2, 2}, {2, 2, 2, 1}};
  for (const std::vector<int>& fanouts : machines) {
    SCOPED_TRACE(testing::PrintToString(fanouts));
    ASSERT_NO_THROW(stress<TypeParam>(rma::topology::balanced(fanouts), effort::operations));
  }
}

TYPED_TEST(stress_suite, nodes_above_the_smallest_elements) {
  if (!fits<typename TypeParam::fabric>(rma::topology::flat(4))) GTEST_SKIP() << "needs 4 ranks";
  const std::pair<std::vector<int>, int> machines[] = {
      {{2, 2}, 1}, {{2, 2, 2}, 1}, {{2, 2, 2}, 2}, {{2, 2, 2, 1}, 3}};
  for (const auto& [fanouts, node_level] : machines) {
    SCOPED_TRACE(testing::PrintToString(fanouts) + " nodes at " + std::to_string(node_level));
    ASSERT_NO_THROW(
        stress<TypeParam>(rma::topology::balanced(fanouts, node_level), effort::operations));
  }
}

// No pauses: two ranks, which a machine with two cores really runs at once.
TYPED_TEST(stress_suite, full_speed) {
  const std::vector<int> machines[] = {{2}, {2, 1}, {1, 2}};
  for (const std::vector<int>& fanouts : machines) {
    SCOPED_TRACE(testing::PrintToString(fanouts));
    ASSERT_NO_THROW(stress<TypeParam>(rma::topology::balanced(fanouts),
                                      effort::full_speed_operations, /*widening=*/false));
  }
}

// ---- the data's own test: the errors of a broken lock are noticed, whatever the timing ----

template <class Body>
std::string complaint(Body body) {
  try {
    shm_threads::run(rma::topology::flat(1), [&](auto& me) {
      guarded data(me, 0);
      body(data);
    });
  } catch (const shm::rank_failed& e) {
    return e.what();
  }
  return "none";
}

constexpr auto nothing = [] {};

TEST(guarded, accepts_one_after_the_other) {
  EXPECT_EQ(complaint([](auto& data) {
              data.write(nothing);
              require(data.look(nothing) == 1, "one write");
            }),
            "none");
}

TEST(guarded, notices_a_writer_inside_a_writer) {
  EXPECT_NE(complaint([](auto& data) { data.write([&] { data.write(nothing); }); }).find("writer"),
            std::string::npos);
}

TEST(guarded, notices_a_writer_inside_a_reader) {
  EXPECT_NE(
      complaint([](auto& data) { data.look([&] { data.write(nothing); }); }).find("while a reader"),
      std::string::npos);
}

TEST(guarded, notices_a_reader_inside_a_writer) {
  bool half_way = false;
  EXPECT_NE(complaint([&](auto& data) {
              data.write([&] {
                if (std::exchange(half_way, true)) data.look(nothing);
              });
            }).find("a reader shares"),
            std::string::npos);
}

}  // namespace
}  // namespace lockflight::test
