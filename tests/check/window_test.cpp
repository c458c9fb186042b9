// The locks of a window under the checker: who locks all targets against who locks one.
#include <gtest/gtest.h>

#include <string>

#include "check/check.hpp"
#include "check/subject.hpp"
#include "lockflight/lock/fompi_rw.hpp"
#include "lockflight/lock/window_locks.hpp"

namespace lockflight::check {
namespace {

/// A window of one target as one lock: writers lock the target exclusively; readers, by their rank,
/// share the target or lock all.
template <template <class> class Target>
class one_target {
  using target_lock = Target<port>;

 public:
  static constexpr lock::facts about{.name = "window",
                                     .what = lock::kind::rw,
                                     .source = "tests/check/window_test.cpp",
                                     .bytes_home = 0,
                                     .bytes_per_node = 0,
                                     .bytes_per_participant = 0};
  using parameters = typename target_lock::parameters;

  struct cells {
    typename lock::rooms<port>::cells window;
    typename target_lock::cells target;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      return {lock::rooms<port>::cells::place(in, machine, 0),
              target_lock::cells::place(in, machine, set, home)};
    }
  };

  one_target(rma::participant<port>& me, const cells& where, const parameters& set)
      : door_(me, where.window),
        one_(me, door_, where.target, set),
        locks_all_(me.rank() % 2 == 1) {}

  void lock() { one_.lock(); }
  void unlock() { one_.unlock(); }
  void lock_shared() { locks_all_ ? door_.lock_all() : one_.lock_shared(); }
  void unlock_shared() { locks_all_ ? door_.unlock_all() : one_.unlock_shared(); }

 private:
  lock::window_door<port> door_;
  lock::window_lock<Target, port> one_;
  bool locks_all_;
};

request asked(int writers, int readers, int rounds, const std::string& levels) {
  request r;
  r.writers = writers;
  r.readers = readers;
  r.rounds = rounds;
  r.levels = levels;
  return r;
}

void expect_ok(const subject& lock, const request& what) {
  const report made = run(lock, what);
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
  EXPECT_GT(made.found.states, 100u);
}

// Parts are dealt in turn: with one writer rank 1 reads, and locks all.
TEST(window, a_mutex_on_the_target) {
  const subject lock = make_subject<one_target<lock::d_mcs>>();
  expect_ok(lock, asked(1, 1, 2, "2"));
  expect_ok(lock, asked(1, 1, 2, "2x1"));
  expect_ok(lock, asked(2, 1, 1, "3"));
  expect_ok(lock, asked(1, 2, 1, "3x1"));
}

TEST(window, a_reader_writer_lock_on_the_target) {
  const subject lock = make_subject<one_target<lock::fompi_rw>>();
  expect_ok(lock, asked(1, 2, 1, "3"));
  expect_ok(lock, asked(1, 1, 2, "2x1"));
}

}  // namespace
}  // namespace lockflight::check
