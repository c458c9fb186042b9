// Every lock, on every fabric and many machines, with extreme parameters, against participants that
// do everything a lock offers in random order. The guarded data show whether it works.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "any_lock.hpp"
#include "guarded.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::test {
namespace {

using random_source = std::mt19937_64;

#if defined(LOCKFLIGHT_TEST_ON_LAUNCH)
constexpr bool on_network = true;
#else
constexpr bool on_network = false;
#endif
#if defined(LOCKFLIGHT_TEST_ON_SIM)
constexpr bool on_sim = true;
#else
constexpr bool on_sim = false;
#endif

/// How much of everything. Sanitizers slow forks and runs down about tenfold; a
/// network's operations take microseconds between nodes; and where no two ranks ever run at once,
/// on the simulator, there is no race that more operations would hit.
struct effort {
  /// Of each rank, mixed.
  static int operations() {
    if (under_asan) return 15;
    if (under_tsan || on_network || on_sim) return 30;
    return long_tests() ? 40 : 20;
  }
  static int full_speed_operations() {
    if (on_sim) return 150;
    if (on_network || under_sanitizer) return 500;
    return long_tests() ? 3'000 : 1'500;
  }
};

/// A set is made of the least that each parameter may be, one more, 2, the number of ranks, and the
/// default. (The largest would do nothing, or make back-offs endless.)
void make_extreme(std::vector<any_parameter> set, const rma::topology& machine,
                  const choice& choose) {
  for (const any_parameter& p : set) {
    const std::int64_t candidates[] = {p.min, p.min + 1, std::int64_t{2}, machine.ranks(), p.value};
    p.value = std::clamp(candidates[choose(std::size(candidates))], p.min, p.max);
  }
}

/// With few operations words are handed over though ranks share cores, which takes a time slice
/// each if the machine has something else to do.
void hand_over_seldom(std::vector<any_parameter> set) {
  for (const any_parameter& p : set)
    if (p.name == "handovers" && (on_sim || under_sanitizer)) p.value = 2;
}

/// The defaults, here and in a table, the least of all, one more of all, and one at random: another
/// for each machine, way and fabric, the same on all ranks.
how_to_choose parameter_sets(const std::string& subject, const rma::topology& machine) {
  const int shape[] = {machine.ranks(), machine.levels(), machine.node_level()};
  const std::string where =
      subject + mode_now().name + std::to_string(seed()) + testing::PrintToString(shape);
  std::seed_seq mixed(where.begin(), where.end());
  return {
      .sets = {{[](std::size_t) { return std::size_t{0}; },
                [](std::size_t) { return std::size_t{1}; },
                [random = random_source(mixed)](std::size_t n) mutable { return random() % n; }}},
      .in_table = hand_over_seldom,
      .change = make_extreme};
}

/// A lock and the data that it guards.
template <rma::port Port>
struct guarded_lock {
  guarded_lock(rma::participant<Port>& me, std::unique_ptr<copyable_lock> handle, rma::rank_t home)
      : lock(std::move(handle)), data(me, home) {}

  std::unique_ptr<copyable_lock> lock;
  guarded<Port> data;
  rma::word writes = 0;  // by this participant
};

/// What one participant does to two locks.
template <rma::port Port>
class workload {
  using guarded_type = guarded_lock<Port>;

 public:
  workload(rma::participant<Port>& me, rma::barrier<Port>& all, const abilities& can,
           const any_sets<Port>& sets, std::size_t set)
      : me_(me),
        all_(all),
        can_(can),
        random_(seed() * 1'000'003 + set * 65'537 + static_cast<std::uint64_t>(me.rank())),
        locks_{{me, sets.make(me, set, 0), 0},
               {me, sets.make(me, set, me.machine().ranks() - 1), me.machine().ranks() - 1}},
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
    switch (random_() % (can_.times || can_.upgrades ? 12 : 8)) {
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
    on.lock->lock();
    write(on);
    on.lock->unlock();
  }
  void try_exclusive(guarded_type& on) {
    if (can_.tries) {
      if (!on.lock->try_lock()) return;
      write(on);
      on.lock->unlock();
    } else {
      exclusive(on);
    }
  }
  void shared(guarded_type& on) {
    if (can_.shares) {
      on.lock->lock_shared();
      look(on);
      on.lock->unlock_shared();
    } else {
      exclusive(on);
    }
  }
  void try_shared(guarded_type& on) {
    if (can_.tries_shared) {
      if (!on.lock->try_lock_shared()) return;
      look(on);
      on.lock->unlock_shared();
    } else {
      try_exclusive(on);
    }
  }

  /// Mostly so short that time is over at any point of an acquire.
  [[nodiscard]] std::uint64_t patience() {
    return random_() % (random_() % 4 == 0 ? 1'000'000 : 10'000);
  }
  void timed_exclusive(guarded_type& on) {
    if (can_.times) {
      if (!on.lock->try_lock_within(patience())) return;
      write(on);
      on.lock->unlock();
    }
  }
  void timed_shared(guarded_type& on) {
    if (can_.times_shared) {
      if (!on.lock->try_lock_shared_within(patience())) return;
      look(on);
      on.lock->unlock_shared();
    } else {
      timed_exclusive(on);
    }
  }

  static void turn(guarded_type& on, catalogue::hold from, catalogue::hold to) {
    static_cast<void>(on.lock->turn(from, to, limit::for_ever()));
  }
  /// The data do not change on the way, except by ourselves.
  void up_and_down(guarded_type& on) {
    using catalogue::hold;
    if (!can_.upgrades) return exclusive(on);
    const limit patience = random_() % 2 == 0 ? limit::for_ever() : limit::at_once();
    if (!on.lock->turn(hold::none, hold::upgrade, patience)) return;
    const rma::word before = look(on);
    if (random_() % 2 == 0) {
      turn(on, hold::upgrade, hold::exclusive);
      require(look(on) == before, "somebody wrote while the lock was upgraded");
      write(on);
      if (random_() % 2 == 0) return on.lock->unlock();
      turn(on, hold::exclusive, hold::upgrade);
      require(look(on) == before + 1, "somebody wrote while the lock was downgraded");
    }
    if (random_() % 2 == 0) return turn(on, hold::upgrade, hold::none);
    const rma::word last = look(on);
    turn(on, hold::upgrade, hold::shared);
    require(look(on) == last, "somebody wrote while the lock was downgraded");
    on.lock->unlock_shared();
  }
  void up_from_shared(guarded_type& on) {
    using catalogue::hold;
    if (!can_.upgrades) return timed_shared(on);
    on.lock->lock_shared();
    const rma::word before = look(on);
    if (!on.lock->turn(hold::shared, hold::exclusive, limit::at_once()))
      return on.lock->unlock_shared();
    require(look(on) == before, "somebody wrote while the lock was upgraded");
    write(on);
    turn(on, hold::exclusive, hold::shared);
    require(look(on) == before + 1, "somebody wrote while the lock was downgraded");
    on.lock->unlock_shared();
  }

  /// As std::scoped_lock does it: one, then an attempt at the other, and after a failure the other
  /// way round. But not for ever: ranks that do so in step hand the locks to each other for minutes
  /// before one of them gets both.
  void both_at_once() {
    if (can_.tries) {
      std::size_t i = random_() % 2;
      for (int attempts = 3; attempts > 0; --attempts, i = 1 - i) {
        locks_[i].lock->lock();
        const bool has_both = locks_[1 - i].lock->try_lock();
        if (has_both) {
          write(locks_[1 - i]);
          write(locks_[i]);
          locks_[1 - i].lock->unlock();
        }
        locks_[i].lock->unlock();
        if (has_both) return;
      }
    }
    nested();
  }

  /// One after the other, always in the same order, released in either.
  void nested() {
    bool is_shared[2] = {};
    for (std::size_t i = 0; i < 2; ++i) {
      is_shared[i] = can_.shares && random_() % 2 == 0;
      acquire(locks_[i], is_shared[i]);
    }
    for (std::size_t i = 0; i < 2; ++i)
      is_shared[i] ? static_cast<void>(look(locks_[i])) : write(locks_[i]);
    const std::size_t first = random_() % 2;
    for (const std::size_t i : {first, 1 - first}) release(locks_[i], is_shared[i]);
  }
  void acquire(guarded_type& on, bool is_shared) {
    can_.shares&& is_shared ? on.lock->lock_shared() : on.lock->lock();
  }
  void release(guarded_type& on, bool is_shared) {
    if (can_.shares)
      if (is_shared) return on.lock->unlock_shared();
    on.lock->unlock();
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
      const std::unique_ptr<copyable_lock> fresh = each.lock->another();
      if (can_.tries) {
        require(fresh->try_lock(), "try_lock fails on a lock that everybody has left");
        fresh->unlock();
      }
      if (can_.tries_shared) {
        require(fresh->try_lock_shared(),
                "try_lock_shared fails on a lock that everybody has left");
        fresh->unlock_shared();
      }
    }
    std::vector<rma::queue_node> lines;
    for (int i = 0; i < rma::participant<Port>::most_nested; ++i)
      lines.push_back(me_.take_queue_node());
    // Another lock takes a word that is not 0 for what it has been passed.
    for (const rma::queue_node& l : lines)
      for (std::uint32_t w = 0; w < rma::line_words; ++w)
        require(me_.port().load(l[w]) == 0, "a queue node is given back all zero (C25)");
    for (const rma::queue_node& l : lines) me_.give_back(l);
  }

  rma::participant<Port>& me_;
  rma::barrier<Port>& all_;
  abilities can_;
  random_source random_;
  guarded_type locks_[2];
  rma::nic_cell totals_;
  bool widening_ = true;
};

/// A lock on a fabric, whatever it is.
struct subject {
  std::string name;
  std::function<bool(const rma::topology&)> fits;
  std::function<void(const rma::topology&, int operations, bool widening)> stress;
};

void PrintTo(const subject& s, std::ostream* out) { *out << s.name; }

template <class Fabric>
void add_subjects_on(std::vector<subject>& all) {
  for (const any_subject<Fabric>& each : all_on<Fabric>())
    all.push_back({each.name, fits<Fabric>,
                   [each](const rma::topology& machine, int operations, bool widening) {
                     if (!fits<Fabric>(machine)) return;
                     Fabric::run(machine, [&](auto& me) {
                       rma::barrier barrier(me);
                       const auto sets =
                           each.sets(me.machine(), parameter_sets(each.name, me.machine()));
                       for (std::size_t set = 0; set < sets->count(); ++set)
                         workload(me, barrier, each.can, *sets, set)
                             .run(rounds<Fabric>(operations), widening);
                     });
                   }});
}

template <class... Fabrics>
std::vector<subject> subjects_on(fabric_list<Fabrics...>) {
  std::vector<subject> all;
  (add_subjects_on<Fabrics>(all), ...);
  return all;
}

class every_lock : public testing::TestWithParam<subject> {
 protected:
  void stress(const rma::topology& machine, int operations, bool widening = true) {
    has_run_ = has_run_ || GetParam().fits(machine);
    ASSERT_NO_THROW(GetParam().stress(machine, operations, widening));
  }
  /// True if there was room for one of the machines at least.
  [[nodiscard]] bool has_run() const { return has_run_; }
  [[nodiscard]] static bool has_four_ranks() { return GetParam().fits(rma::topology::flat(4)); }

 private:
  bool has_run_ = false;
};

INSTANTIATE_TEST_SUITE_P(stress, every_lock, testing::ValuesIn(subjects_on(fabrics{})),
                         [](const auto& of) { return of.param.name; });
const bool modes = run_in(lock_modes);

TEST_P(every_lock, one_level) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    SCOPED_TRACE(ranks);
    ASSERT_NO_FATAL_FAILURE(stress(rma::topology::flat(ranks), effort::operations()));
  }
}

// As over hosts with a rank on each.
TEST_P(every_lock, a_node_for_each_rank) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    SCOPED_TRACE(ranks);
    ASSERT_NO_FATAL_FAILURE(stress(rma::topology::balanced({ranks, 1}), effort::operations()));
  }
  if (!has_run()) GTEST_SKIP() << "needs 2 ranks";
}

TEST_P(every_lock, several_levels) {
  if (!has_four_ranks()) GTEST_SKIP() << "needs 4 ranks";
  const std::vector<int> machines[] = {{2, 2}, {2, 4}, {2, 2, 2}, {2, 2, 2, 1}};
  for (const std::vector<int>& fanouts : machines) {
    SCOPED_TRACE(testing::PrintToString(fanouts));
    ASSERT_NO_FATAL_FAILURE(stress(rma::topology::balanced(fanouts), effort::operations()));
  }
}

TEST_P(every_lock, nodes_above_the_smallest_elements) {
  if (!has_four_ranks()) GTEST_SKIP() << "needs 4 ranks";
  const std::pair<std::vector<int>, int> machines[] = {
      {{2, 2}, 1}, {{2, 2, 2}, 1}, {{2, 2, 2}, 2}, {{2, 2, 2, 1}, 3}};
  for (const auto& [fanouts, node_level] : machines) {
    SCOPED_TRACE(testing::PrintToString(fanouts) + " nodes at " + std::to_string(node_level));
    ASSERT_NO_FATAL_FAILURE(
        stress(rma::topology::balanced(fanouts, node_level), effort::operations()));
  }
}

// No pauses: two ranks that a machine with two cores really runs at once.
TEST_P(every_lock, full_speed) {
  const std::vector<int> machines[] = {{2}, {2, 1}, {1, 2}};
  for (const std::vector<int>& fanouts : machines) {
    SCOPED_TRACE(testing::PrintToString(fanouts));
    ASSERT_NO_FATAL_FAILURE(stress(rma::topology::balanced(fanouts),
                                   effort::full_speed_operations(),
                                   /*widening=*/false));
  }
  if (!has_run()) GTEST_SKIP() << "needs 2 ranks";
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
