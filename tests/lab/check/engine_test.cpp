// The engine by itself: which participants are enabled, retries, overtaking, and that a step can be
// taken back.
#include "lab/check/engine/engine.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/check/engine/port.hpp"
#include "lab/check/program/lock_program.hpp"
#include "lab/check/program/subject.hpp"
#include "lab/check/search/fair.hpp"
#include "lab/check/search/search.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "two_cells.hpp"

namespace lockflight::check {
namespace {

using body = std::function<void(port&, engine&)>;

/// Two participants of one node.
[[nodiscard]] program two(const body& first, const body& second) {
  return {rma::topology::flat(2), [first, second](engine& e, rank_t me) {
            port p(e, me);
            (me == 0 ? first : second)(p, e);
          }};
}

void nothing(port&, engine&) {}

[[nodiscard]] std::vector<step> enabled(const engine& e) {
  std::vector<step> steps;
  e.enabled(steps);
  return steps;
}

[[nodiscard]] std::string property_of(const outcome& found) {
  return found.broken ? found.broken->property : "none";
}

/// Three participants; a message in the third one's hands must satisfy `expected`, in its order.
[[nodiscard]] outcome received(const body& first, const body& second,
                               const std::vector<word>& expected) {
  const body third = [expected](port& p, engine&) {
    for (const word w : expected)
      if (p.receive().body[0] != w) throw std::logic_error("another message");
  };
  engine e({rma::topology::flat(3),
            [=](engine& on, rank_t me) {
              port p(on, me);
              (me == 0 ? first : me == 1 ? second : third)(p, on);
            }},
           {});
  return search_all(e, {});
}

TEST(engine, messages_of_a_pair_arrive_in_order) {
  const auto sends = [](port& p, engine&) {
    p.send(2, {1, 0, 0});
    p.send(2, {2, 0, 0});
  };
  EXPECT_EQ(property_of(received(sends, nothing, {1, 2})), "none");
}

// Also if one was sent because of the other.
TEST(engine, messages_of_two_senders_arrive_in_any_order) {
  const auto sends = [](port& p, engine&) {
    p.send(2, {1, 0, 0});
    p.send(1, {});
  };
  const auto sends_later = [](port& p, engine&) {
    static_cast<void>(p.receive());
    p.send(2, {2, 0, 0});
  };
  EXPECT_EQ(property_of(received(sends, sends_later, {1, 2})), "assertion");
  EXPECT_EQ(property_of(received(sends, sends_later, {2, 1})), "assertion");
}

TEST(engine, a_message_comes_after_its_senders_stores) {
  const auto stores = [](port& p, engine&) {
    p.store(rma::plain_cell{0, x}, 1);
    p.send(1, {});
  };
  const auto looks = [](port& p, engine&) {
    static_cast<void>(p.receive());
    if (p.load(rma::plain_cell{0, x}) != 1) throw std::logic_error("the store is not visible");
  };
  engine e(two(stores, looks), {});
  EXPECT_EQ(property_of(search_all(e, {})), "none");
}

TEST(engine, a_third_message_to_who_takes_none_breaks_the_contract) {
  const auto sends = [](port& p, engine&) {
    for (word i = 0; i < 3; ++i) p.send(1, {i, 0, 0});
  };
  engine e(two(sends, nothing), {});
  EXPECT_EQ(property_of(search_all(e, {})), "contract");
}

TEST(engine, whoever_awaits_stands_still_until_the_value_is_there) {
  const auto waits = [](port& p, engine&) { p.await(rma::plain_cell{0, x}, rma::equals(1)); };
  const auto puts = [](port& p, engine&) { rma::put_now(p, rma::plain_cell{0, x}, 1); };
  engine e(two(waits, puts), {});
  e.start();
  const step effect{step::kind::effect, 1, 0};
  EXPECT_EQ(enabled(e), (std::vector<step>{effect}));
  EXPECT_FALSE(e.is_enabled({step::kind::run, 0, 0}));
  e.take(effect);
  EXPECT_EQ(enabled(e), (std::vector<step>{{step::kind::run, 0, 0}}));
  e.take({step::kind::run, 0, 0});
  EXPECT_TRUE(e.all_finished());
}

TEST(engine, the_last_effect_of_a_flush_lets_its_participant_go_on) {
  const auto posts = [](port& p, engine&) {
    p.put(rma::plain_cell{1, x}, 1);
    p.put(rma::plain_cell{0, x}, 1);
    p.flush(1);
    p.flush(0);
  };
  engine e(two(posts, nothing), {});
  e.start();
  EXPECT_EQ(enabled(e).size(), 2u);
  e.take({step::kind::effect, 0, 1});  // no participant waits for this one yet
  EXPECT_FALSE(e.all_finished());
  e.take({step::kind::effect, 0, 0});
  EXPECT_TRUE(e.all_finished()) << "and the second flush has nothing to wait for";
}

TEST(engine, a_thrown_exception_is_an_assertion) {
  const auto throws = [](port&, engine&) { throw std::logic_error("cannot be"); };
  engine e(two(nothing, throws), {});
  const outcome found = search_all(e, {});
  ASSERT_EQ(property_of(found), "assertion");
  EXPECT_EQ(found.broken->detail, "rank 1: cannot be");
}

TEST(engine, a_violated_assertion_is_a_verdict_with_its_place_and_text) {
  const auto asserts = [](port&, engine&) { rma::ensure(false, "a writer holds"); };
  engine e(two(nothing, asserts), {});
  const outcome found = search_all(e, {});
  ASSERT_EQ(property_of(found), "assertion");
  EXPECT_TRUE(found.broken->detail.starts_with("rank 1: engine_test.cpp:")) << found.broken->detail;
  EXPECT_TRUE(found.broken->detail.ends_with(": a writer holds")) << found.broken->detail;
}

// A guard's destructor releases; an exception would end the process there.
TEST(engine, a_violated_assertion_may_lie_in_a_function_that_throws_nothing) {
  struct guard {
    ~guard() { rma::ensure(false, "released once"); }
  };
  const auto asserts = [](port& p, engine&) {
    rma::put_now(p, rma::plain_cell{0, x}, 1);
    const guard at_end;
  };
  const auto waits = [](port& p, engine&) { p.await(rma::plain_cell{0, x}, rma::equals(2)); };
  engine e(two(waits, asserts), {});
  const outcome found = search_all(e, {});
  EXPECT_EQ(property_of(found), "assertion");
  EXPECT_FALSE(found.schedule.empty());
}

TEST(engine, an_assertion_that_holds_changes_nothing) {
  const auto asserts = [](port& p, engine&) {
    rma::put_now(p, rma::plain_cell{0, x}, 1);
    rma::ensure(p.rank() == 1, "this is rank 1");
  };
  engine e(two(nothing, asserts), {});
  EXPECT_EQ(property_of(search_all(e, {})), "none");
}

TEST(engine, a_cell_of_somebody_else_is_reported_by_whoever_touches_it_first) {
  const auto strays = [](port& p, engine&) { static_cast<void>(p.load(rma::plain_cell{0, 100})); };
  engine e(two(strays, nothing), {});
  e.allow_cells(x, y);
  const outcome found = search_all(e, {});
  ASSERT_EQ(property_of(found), "foreign cell");
  // No cell has a number yet; describing the step must not ask for one.
  e.start();
  ASSERT_FALSE(enabled(e).empty());
  for (const step s : enabled(e)) EXPECT_NE(e.describe(s), "");
}

// ---- retrying ----

/// Polls with pauses until the cell is 1.
void retry_until_set(port& p, engine& e) {
  e.begin_acquire(p.rank());
  while (rma::get_now(p, rma::plain_cell{0, x}) != 1) p.pause(0);
  e.enter(p.rank(), true);
  e.leave(p.rank(), true);
  e.released(p.rank());
}

TEST(engine, a_participant_stands_still_after_its_retries) {
  const auto sets = [](port& p, engine&) { rma::put_now(p, rma::plain_cell{0, x}, 1); };
  engine e(two(retry_until_set, sets), {.retries = 1});
  const outcome found = search_all(e, {});
  EXPECT_EQ(found.what, verdict::ok);
  EXPECT_GT(found.cut, 0u) << "it may look twice before the other one sets the cell";
  EXPECT_GT(found.executions, 0u);
}

TEST(engine, retrying_in_vain_is_a_deadlock_whatever_the_limit) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "needs a state to go back to";
  for (const int retries : {1, 2, 3, 10}) {
    engine e(two(retry_until_set, nothing), {.retries = retries});
    EXPECT_EQ(property_of(search_all(e, {})), "deadlock") << retries << " retries";
  }
}

// With many retries allowed, retries that can see nothing new are left out: the states stay few.
TEST(engine, retries_that_would_see_nothing_new_are_left_out) {
  const auto sets = [](port& p, engine&) { rma::put_now(p, rma::plain_cell{0, x}, 1); };
  engine few(two(retry_until_set, sets), {.retries = 3});
  engine many(two(retry_until_set, sets), {.retries = 100});
  EXPECT_EQ(search_all(few, {}).states, search_all(many, {}).states);
}

TEST(engine, an_unflushed_effect_does_not_help_those_who_retry) {
  const auto forgets = [](port& p, engine&) { p.put(rma::plain_cell{0, x}, 1); };
  engine e(two(retry_until_set, forgets), {});
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "needs a state to go back to";
  EXPECT_EQ(property_of(search_all(e, {})), "lost wake-up");
}

// ---- overtaking ----

TEST(engine, an_acquire_begins_with_its_first_step) {
  // Rank 0 has called lock() when rank 1 starts to wait, but no other participant could know.
  const auto overtakes = [](port& p, engine& e) {
    e.begin_acquire(0);
    rma::put_now(p, rma::plain_cell{0, y}, 1);
    e.enter(0, true);
    e.leave(0, true);
    e.released(0);
    rma::put_now(p, rma::plain_cell{0, x}, 1);
  };
  const auto waits = [](port& p, engine& e) {
    e.begin_acquire(1);
    p.await(rma::plain_cell{0, x}, rma::equals(1));
    e.enter(1, true);
    e.leave(1, true);
    e.released(1);
  };
  model how;
  how.most_overtaken = 0;
  engine strict(two(overtakes, waits), how);
  EXPECT_EQ(property_of(search_all(strict, {})), "bounded bypass");
  how.most_overtaken = 1;
  engine lenient(two(overtakes, waits), how);
  EXPECT_EQ(property_of(search_all(lenient, {})), "none");
}

// ---- limits ----

TEST(engine, a_limit_of_the_checker_is_not_seen_by_the_lock) {
  const auto posts_too_many = [](port& p, engine& e) {
    try {
      for (int i = 0; i <= most_posted; ++i) p.put(rma::plain_cell{0, x}, 1);
    } catch (const std::exception&) {  // as a lock that survives what its port throws
    }
    e.fail("assertion", "the lock goes on");
  };
  engine e(two(posts_too_many, nothing), {});
  try {
    static_cast<void>(search_random(e, {.executions = 1}));
    FAIL() << "it has room for " << most_posted + 1 << " operations";
  } catch (const limit_exceeded& limit) {
    EXPECT_STREQ(limit.what(),
                 "the checker has room for at most 24 posted operations of one participant under "
                 "way");
    EXPECT_FALSE(e.broken());
  }
}

// ---- going back ----

class walk {
 public:
  walk(unsigned seed, memory_kind memory) : random_(seed) {
    model how;
    how.memory = memory;
    const subject lock = make_subject<lock::rma_rw<port>>();
    engine_ = lock.make({rma::topology::balanced({2, 2}),
                         {part::writer, part::reader, part::try_writer, part::reader},
                         {2, 2, 1, 2}},
                        {{"T_R", 1}}, how);
  }

  engine& of() { return *engine_; }

  [[nodiscard]] step any(const std::vector<step>& from) { return from[random_() % from.size()]; }
  [[nodiscard]] bool chance(unsigned one_in) { return random_() % one_in == 0; }

 private:
  std::mt19937 random_;
  std::unique_ptr<engine> engine_;
};

class going_back : public testing::TestWithParam<memory_kind> {};
INSTANTIATE_TEST_SUITE_P(memories, going_back,
                         testing::Values(memory_kind::tso, memory_kind::views));

TEST_P(going_back, a_step_that_is_taken_back_leaves_no_trace) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "stacks cannot be copied under a sanitizer";
  walk w(1, GetParam());
  engine& e = w.of();
  e.drop_unread();
  struct moment {
    engine::undo undo;
    std::uint64_t key;
    unsigned learned;
    std::vector<step> steps;
  };
  std::vector<std::byte> images;
  for (int run = 0; run < 30; ++run) {
    e.start();
    images.clear();
    std::vector<moment> taken;
    for (int i = 0; i < 2000; ++i) {
      const std::vector<step> steps = enabled(e);
      if (steps.empty() || (!taken.empty() && w.chance(3))) {
        const moment& last = taken.back();
        e.take_back(last.undo, images);
        // When the engine learns something, keys change and a search starts over.
        if (e.learned() == last.learned) {
          ASSERT_EQ(e.key(), last.key);
        }
        ASSERT_EQ(enabled(e), last.steps);
        taken.pop_back();
      } else {
        taken.push_back({{}, e.key(), e.learned(), steps});
        e.take(w.any(steps), taken.back().undo, images);
        ASSERT_FALSE(e.broken());
      }
    }
  }
}

TEST_P(going_back, a_state_that_is_restored_has_the_same_future) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "stacks cannot be copied under a sanitizer";
  walk w(2, GetParam());
  engine& e = w.of();
  for (int run = 0; run < 20; ++run) {
    e.start();
    for (int i = 0; i < 40 && !enabled(e).empty(); ++i) e.take(w.any(enabled(e)));
    engine::saved middle;
    e.save(middle);
    std::vector<step> way;
    while (!enabled(e).empty()) {
      way.push_back(w.any(enabled(e)));
      e.take(way.back());
    }
    const std::uint64_t end = e.key();
    e.restore(middle);
    for (const step s : way) {
      ASSERT_TRUE(e.is_enabled(s));
      e.take(s);
    }
    ASSERT_EQ(e.key(), end);
  }
}

TEST(engine, refuses_more_participants_than_it_has_room_for) {
  EXPECT_THROW(engine({rma::topology::flat(9), [](engine&, rank_t) {}}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace lockflight::check
