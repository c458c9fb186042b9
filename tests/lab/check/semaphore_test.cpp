// The semaphore's own protocol (lock/robust/semaphore.hpp) when participants die, and broken
// versions of it.
#include "tests/lab/check/semaphore.hpp"

#include <gtest/gtest.h>

#include <string>

#include "lab/check/check.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::check {
namespace {

using lock::head_step;

struct bounds {
  int writers = 2, try_writers = 0, rounds = 1, deaths = 1;

  [[nodiscard]] request asked() const {
    request r;
    r.lock = "semaphore";
    r.writers = writers;
    r.try_writers = try_writers;
    r.rounds = rounds;
    r.how.deaths = deaths;
    r.levels = std::to_string(writers + try_writers);
    return r;
  }
};

template <int Units, int Take = 1, int Others = Take>
void expect_ok(const bounds& of) {
  SCOPED_TRACE(std::to_string(Units) + " units, " + std::to_string(Take) + " and " +
               std::to_string(Others) + " taken, " + std::to_string(of.writers) + " writers, " +
               std::to_string(of.try_writers) + " trying, " + std::to_string(of.rounds) +
               " rounds, " + std::to_string(of.deaths) + " deaths");
  const report made = run(semaphore_subject<semaphore<Units, Take, Others>>(), of.asked());
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
  std::printf("%d units, %d and %d taken, %dw %dtw x %d, %d deaths: %llu states\n", Units, Take,
              Others, of.writers, of.try_writers, of.rounds, of.deaths,
              static_cast<unsigned long long>(made.found.states));
}

TEST(semaphore_of_robust_locks, breaks_no_rule_in_any_schedule) {
  expect_ok<1>({});
  expect_ok<1>({.writers = 1, .try_writers = 1});
  expect_ok<1>({.deaths = 2});
  expect_ok<2>({});
  expect_ok<2>({.deaths = 2});
  if (!test::long_tests()) return;
  expect_ok<1>({.rounds = 2});
  expect_ok<2>({.rounds = 2});
}

// S7: a participant that takes two waits with one in its hands.
TEST(semaphore_of_robust_locks, several_units_are_taken_all_or_none) {
  expect_ok<2, 2>({});
  expect_ok<2, 2, 1>({});
  expect_ok<2, 2, 1>({.writers = 1, .try_writers = 1});
  if (!test::long_tests()) return;
  expect_ok<2, 2>({.rounds = 2});
  expect_ok<2, 2, 1>({.rounds = 2});
  expect_ok<3, 2>({});
}

// S2: a head that waits gets a unit that is new, though nobody releases one.
TEST(semaphore_of_robust_locks, a_new_unit_is_seen) {
  const report made =
      run(semaphore_subject<semaphore<2, 1, 1, steps_of_growing_semaphore>>(), bounds{}.asked());
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
}

TEST(semaphore_of_robust_locks, breaks_no_rule_at_random) {
  for (const bounds of :
       {bounds{.writers = 3, .rounds = 2, .deaths = 1}, bounds{.writers = 3, .deaths = 2}}) {
    request r = of.asked();
    r.random = true;
    r.random_until.executions = 5'000;
    EXPECT_EQ(run(semaphore_subject<semaphore<1>>(), r).found.what, verdict::bound);
    EXPECT_EQ(run(semaphore_subject<semaphore<2>>(), r).found.what, verdict::bound);
    EXPECT_EQ(run(semaphore_subject<semaphore<2, 2, 1>>(), r).found.what, verdict::bound);
  }
}

// ---- mutants, beside those of tests/lab/mutants/semaphore.mutants ----

/// The head reads `released` after it has tried the units, and misses a release in between (S2).
struct mark_after_units : steps_of_semaphore {
  template <class Head>
  [[nodiscard]] static head_step wait_as_head(Head& head) {
    while (true) {
      if (head.try_units()) return head_step::had;
      const lock::release_mark seen = head.mark();
      head_step next = head.before_wait();
      if (next == head_step::wait) next = head.await_release(seen);
      if (next != head_step::try_again) return next;
    }
  }
};

/// The same for the number of deaths alone (S3).
struct deaths_after_units : steps_of_semaphore {
  template <class Head>
  [[nodiscard]] static head_step wait_as_head(Head& head) {
    while (true) {
      lock::release_mark seen = head.mark();
      if (head.try_units()) return head_step::had;
      seen.deaths = head.mark().deaths;
      head_step next = head.before_wait();
      if (next == head_step::wait) next = head.await_release(seen);
      if (next != head_step::try_again) return next;
    }
  }
};

/// The head takes a unit without its lock, since nobody else is the head (S1).
struct takes_without_lock : steps_of_semaphore {
  template <class Head>
  [[nodiscard]] static head_step wait_as_head(Head& head) {
    head.take_without_lock(0);
    return head_step::had;
  }
};
/// The same if it has found no free unit.
struct takes_a_held_one : steps_of_semaphore {
  template <class Head>
  [[nodiscard]] static head_step wait_as_head(Head& head) {
    if (!head.try_units()) head.take_without_lock(0);
    return head_step::had;
  }
};

/// The participants collect side by side, and each may wait for a unit of the other (S7).
struct collects_without_queue : steps_of_semaphore {
  static constexpr bool has_queue = false;
};

/// An attempt that finds too few units leaves with those that it has taken (S7).
struct keeps_a_part : steps_of_semaphore {
  template <class Head>
  [[nodiscard]] static head_step wait_as_head(Head& head) {
    while (true) {
      const lock::release_mark seen = head.mark();
      head_step next = head.try_units() ? head_step::had : head.before_wait();
      if (next == head_step::wait) next = head.await_release(seen);
      if (next != head_step::try_again) return next;
    }
  }
};

/// An operator changes the word before the unit is there, and the head sleeps on (S2).
struct sets_after_note : steps_of_growing_semaphore {
  template <class Operator>
  static void set_units(Operator& by) {
    by.note_release();
    by.store_units();
  }
};

template <int Units, class Steps, int Take = 1>
void expect_broken(const std::string& property, const bounds& of = {}) {
  const report made = run(semaphore_subject<semaphore<Units, Take, Take, Steps>>(), of.asked());
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(made.found.broken->property, property) << trace_table(made);
}

TEST(mutants_of_the_semaphore, misses_a_release_after_its_attempts) {
  expect_broken<1, mark_after_units>("deadlock");
}
TEST(mutants_of_the_semaphore, misses_a_death_after_its_attempts) {
  expect_broken<1, deaths_after_units>("not free");
}
TEST(mutants_of_the_semaphore, collects_without_the_queue) {
  expect_broken<2, collects_without_queue, 2>("deadlock");
}
TEST(mutants_of_the_semaphore, gives_up_with_a_unit_in_its_hands) {
  expect_broken<2, keeps_a_part, 2>("not free", {.writers = 1, .try_writers = 1});
}
TEST(mutants_of_the_semaphore, sets_a_unit_after_the_word) {
  expect_broken<2, sets_after_note>("deadlock");
}
TEST(mutants_of_the_semaphore, takes_a_unit_without_its_lock) {
  expect_broken<1, takes_a_held_one>("fencing token");
  expect_broken<2, takes_without_lock>("mutual exclusion");
}

}  // namespace
}  // namespace lockflight::check
