// The run's own check: each way to break the rules is seen, keeping them is not, and locks that
// break them are caught in real runs.
#include "lab/bench/workload/witness.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lab/bench/entry/make_anywhere.hpp"
#include "lab/bench/shm/stage.hpp"
#include "lab/bench/workload/no_lock.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/fompi_rw.hpp"
#include "lockflight/lock/spin.hpp"

namespace lockflight::bench {
namespace {

TEST(Witness, SeesNothingWhereThereIsNothing) {
  witness w;
  for (int i = 0; i < 3; ++i) {
    const auto a = w.enter_exclusive(4);
    EXPECT_FALSE(a.violated);
    EXPECT_FALSE(w.leave_exclusive(4, a));
    const auto b = w.enter_shared();
    const auto c = w.enter_shared();
    EXPECT_FALSE(b.violated || c.violated);
    EXPECT_FALSE(w.leave_shared(b));
    const auto d = w.enter_shared();
    EXPECT_FALSE(d.violated);
    EXPECT_FALSE(w.leave_shared(c) || w.leave_shared(d));
  }
}

TEST(Witness, NamesTheHolderBefore) {
  witness w;
  const auto first = w.enter_exclusive(0);
  EXPECT_EQ(first.before, -1);
  EXPECT_FALSE(w.leave_exclusive(0, first));
  const auto second = w.enter_exclusive(7);
  EXPECT_EQ(second.before, 0);
  EXPECT_FALSE(w.leave_exclusive(7, second));
  EXPECT_EQ(w.enter_exclusive(1).before, 7);
}

TEST(Witness, SeesTwoExclusiveHolders) {
  witness w;
  const auto a = w.enter_exclusive(0);
  const auto b = w.enter_exclusive(1);
  EXPECT_TRUE(b.violated);
  EXPECT_TRUE(w.leave_exclusive(0, a));
  static_cast<void>(w.leave_exclusive(1, b));
  // It does not count one violation for ever.
  const auto c = w.enter_exclusive(2);
  EXPECT_FALSE(c.violated);
  EXPECT_FALSE(w.leave_exclusive(2, c));
}

TEST(Witness, SeesAnExclusiveHolderThatCameAndWentInsideAnother) {
  witness w;
  const auto a = w.enter_exclusive(0);
  const auto b = w.enter_exclusive(1);
  static_cast<void>(w.leave_exclusive(1, b));
  EXPECT_TRUE(w.leave_exclusive(0, a));
}

TEST(Witness, SeesASharedHolderEnterBesideAnExclusiveOne) {
  witness w;
  const auto a = w.enter_exclusive(0);
  EXPECT_TRUE(w.enter_shared().violated);
  EXPECT_FALSE(w.leave_exclusive(0, a));
}

TEST(Witness, SeesAnExclusiveHolderEnterBesideASharedOne) {
  witness w;
  const auto r = w.enter_shared();
  const auto a = w.enter_exclusive(0);
  EXPECT_TRUE(w.leave_shared(r));
  EXPECT_FALSE(w.leave_exclusive(0, a));
}

TEST(Witness, SeesAnExclusiveHolderThatCameAndWentBesideASharedOne) {
  witness w;
  const auto r = w.enter_shared();
  EXPECT_FALSE(w.leave_exclusive(0, w.enter_exclusive(0)));
  EXPECT_TRUE(w.leave_shared(r));
}

// ---- broken locks ----

template <rma::port Port>
struct broken_mutex {
  static constexpr lock::facts about{.name = "broken-mutex",
                                     .what = lock::kind::mutex,
                                     .source = "this test",
                                     .bytes_home = 0,
                                     .bytes_per_node = 0,
                                     .bytes_per_participant = 0};
  using parameters = no_lock_parameters;
  using cells = typename no_lock<Port>::cells;
  broken_mutex(rma::participant<Port>&, const cells&, const parameters&) {}
  void lock() {}
  void unlock() {}
};

template <rma::port Port>
struct broken_rw : broken_mutex<Port> {
  using broken_mutex<Port>::broken_mutex;
  void lock_shared() {}
  void unlock_shared() {}
};

/// Writers exclude each other; readers exclude no participant.
template <rma::port Port>
struct ignores_readers : lock::spin<Port> {
  using lock::spin<Port>::spin;
  void lock_shared() {}
  void unlock_shared() {}
};

/// Readers exclude all others, writers do not exclude each other: the two halves swapped.
template <rma::port Port>
struct ignores_writers : lock::fompi_rw<Port> {
  using base = lock::fompi_rw<Port>;
  using base::base;
  void lock() { base::lock_shared(); }
  void unlock() { base::unlock_shared(); }
  void lock_shared() { base::lock(); }
  void unlock_shared() { base::unlock(); }
};

/// True if one of some runs has violations. On a busy machine the ranks of a short run may never be
/// inside at the same time.
template <class Run>
bool is_caught(Run violations) {
  constexpr int runs = 40;
  for (int i = 0; i < runs; ++i)
    if (violations() > 0) return true;
  return false;
}

/// The violations that ranks other than the first saw: the first also counts lost increments, which
/// are not tested here.
template <template <class> class Lock>
std::uint64_t seen(double writers, role by, workload what = workload::wcsb, bool threads = false) {
  constexpr int ranks = 4;
  const run_plan plan{.what = what,
                      .machine = rma::topology::flat(ranks),
                      .writers = writers,
                      .by = by,
                      .seconds = 0.1,
                      .threads = threads};
  const run_results results({.machine = rma::topology::flat(ranks)});
  run_on_shm<Lock>(plan, results, nullptr);
  std::uint64_t all = 0;
  for (const rank_result& r : results.ranks().subspan(1)) all += r.violations;
  return all;
}

TEST(BrokenLock, WritersBesideWritersAreCaught) {
  EXPECT_TRUE(is_caught([] { return seen<broken_mutex>(1, role::operation); }));
  EXPECT_TRUE(is_caught([] { return seen<broken_mutex>(0, role::operation); }))
      << "every operation of a mutex excludes";
  EXPECT_TRUE(is_caught([] { return seen<broken_rw>(1, role::operation); }));
  EXPECT_TRUE(is_caught([] { return seen<ignores_writers>(1, role::operation); }));
}

TEST(BrokenLock, WritersBesideReadersAreCaught) {
  EXPECT_TRUE(is_caught([] { return seen<broken_rw>(0.25, role::process); }))
      << "one writer, the others read";
  EXPECT_TRUE(is_caught([] { return seen<ignores_readers>(0.25, role::process); }));
  EXPECT_TRUE(is_caught([] { return seen<ignores_readers>(0.5, role::operation); }));
}

TEST(BrokenLock, IsCaughtAmongThreads) {
  EXPECT_TRUE(
      is_caught([] { return seen<broken_rw>(0.5, role::operation, workload::wcsb, true); }));
}

TEST(BrokenLock, ReadersBesideReadersAreNoViolation) {
  EXPECT_EQ(seen<broken_rw>(0, role::operation), 0u);
  EXPECT_EQ(seen<ignores_readers>(0, role::operation), 0u);
}

TEST(BrokenLock, LostIncrementsCount) {
  const run_plan plan{
      .what = workload::wcsb, .machine = rma::topology::flat(3), .writers = 1, .seconds = 0.1};
  const run_results results({.machine = rma::topology::flat(3)});
  run_on_shm<no_lock>(plan, results, nullptr);  // the witness does not use it
  EXPECT_GT(results.of(0).violations, 0u);
  EXPECT_EQ(results.of(1).violations + results.of(2).violations, 0u);
}

// ---- the far witness ----

static_assert(alike(2'100, 2'100.3) && !alike(1'000, 2'100));

/// The violations of a run whose witness is read and written by operations of the fabric.
template <template <class> class Lock>
std::uint64_t seen_far(workload what = workload::ecsb, std::uint32_t locks = 1) {
  constexpr int ranks = 4;
  const run_plan plan{.what = what,
                      .machine = rma::topology::flat(ranks),
                      .writers = 0.5,
                      .by = role::process,
                      .seconds = 0.1,
                      .far_witness = true,
                      .locks = locks};
  const run_results results(plan);
  trace_on_shm(make_anywhere<Lock>(), plan, results, nullptr);
  std::uint64_t all = 0;
  for (const rank_result& r : results.ranks()) all += r.violations;
  return all;
}

TEST(FarWitness, CatchesBrokenLocks) {
  EXPECT_TRUE(is_caught([] { return seen_far<broken_mutex>(); }));
  EXPECT_TRUE(is_caught([] { return seen_far<broken_rw>(); }));
  EXPECT_TRUE(is_caught([] { return seen_far<ignores_readers>(); }));
  EXPECT_TRUE(is_caught([] { return seen_far<ignores_writers>(); }));
}

TEST(FarWitness, BlamesNoWorkingLock) {
  EXPECT_EQ(seen_far<lock::d_mcs>(), 0u);
  EXPECT_EQ(seen_far<lock::fompi_rw>(), 0u);
  EXPECT_EQ(seen_far<lock::fompi_rw>(workload::table, 3), 0u);
}

/// One rank that forgets an update, as if another one had overwritten it.
TEST(FarWitness, CountsLostUpdates) {
  shm::run({.machine = rma::topology::flat(1)}, [](rma::participant<shm::port>& me) {
    rma::layout next = me.cells();
    const auto version = next.take<rma::nic_cell>(1);
    far_witness<shm::port> w(me, 2);
    for (const std::uint32_t lock : {0u, 1u, 1u})
      EXPECT_FALSE(w.leave_exclusive(lock, w.enter_exclusive(lock)));
    w.report();
    EXPECT_EQ(w.lost_updates(), 0u);
    put_now(me.port(), version, 0);
    EXPECT_EQ(w.lost_updates(), 1u);
  });
}

TEST(WorkingLock, IsNotBlamed) {
  EXPECT_EQ(seen<lock::d_mcs>(0.5, role::operation), 0u);
  EXPECT_EQ(seen<lock::fompi_rw>(0.25, role::process), 0u);
  EXPECT_EQ(seen<lock::fompi_rw>(0.5, role::operation, workload::ecsb), 0u);
}

// ---- the rehearsal ----

/// Excludes all others, and reads the lock's word where it is only on the home's node.
template <rma::port Port>
struct looks_at_home : lock::spin<Port> {
  using base = lock::spin<Port>;
  using cells = typename base::cells;
  looks_at_home(rma::participant<Port>& me, const cells& where,
                const typename base::parameters& set)
      : base(me, where, set), port_(me.port()), word_(where.taken) {}
  void lock() {
    static_cast<void>(port_.load(word_));
    base::lock();
  }

 private:
  Port& port_;
  rma::nic_cell word_;
};

TEST(Rehearsal, FindsAnImmediateAccessToAnotherNode) {
  const anywhere wrong = make_anywhere<looks_at_home>();
  const run_plan of_two_nodes{.machine = rma::topology::balanced({2, 1}), .writers = 1};
  try {
    rehearse_on_shm(wrong, of_two_nodes);
    FAIL() << "it was not refused";
  } catch (const shm::rank_failed& e) {
    EXPECT_NE(std::string(e.what()).find("load by rank 1 on a cell of rank 0, which is on another "
                                         "node"),
              std::string::npos)
        << e.what();
  }
  EXPECT_NO_THROW(rehearse_on_shm(wrong, {.machine = rma::topology::flat(2), .writers = 1}));
  EXPECT_NO_THROW(rehearse_on_shm(make_anywhere<lock::spin>(), of_two_nodes));
}

}  // namespace
}  // namespace lockflight::bench
