// The one handle of a name: what it says of its hold, two handles of one thread, moved-from
// handles, and handles of threads that have ended.
#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

class DomainHandle : public testing::Test {
 protected:
  [[nodiscard]] std::ptrdiff_t waiters_of(const char* name) const {
    return std::ranges::count_if(in_.users_of(name), &lock_user::waits);
  }

  own_domain own_;
  domain in_ = domain::open(own_.name());
};

TEST_F(DomainHandle, AllFormsAreAcquiredReleasedAndAskedInTheSameWay) {
  named_handle forms[]{named_handle(in_, "lock"),
                       named_handle(in_, std::vector<std::string>{"one", "two"}),
                       named_handle(in_, "units", units{2})};
  for (named_handle& each : forms) {
    SCOPED_TRACE(each.name());
    EXPECT_EQ(each.state().held, mode::none);
    EXPECT_EQ(each.state().valid_for, 0ns);
    EXPECT_REFUSED(not_held, each.name(), each.release());
    ASSERT_TRUE(each.acquire(mode::exclusive, limit::at_once()));
    const hold_state now = each.state();
    EXPECT_EQ(now.held, mode::exclusive);
    EXPECT_EQ(now.unit, each.units_of() > 0 ? 0 : -1);
    EXPECT_GT(now.token, 0u);
    EXPECT_FALSE(now.owner_died);
    EXPECT_FALSE(now.is_lost);
    EXPECT_EQ(now.valid_for, std::chrono::nanoseconds::max());
    EXPECT_REFUSED(held, "already", each.acquire(mode::exclusive, 1s));
    EXPECT_REFUSED(not_held, each.name(), each.release(mode::shared));
    EXPECT_TRUE(each.is_held()) << "a release that is refused changes nothing";
    each.release();
    EXPECT_FALSE(each.is_held());
    if (!each.can_share()) {
      EXPECT_REFUSED(invalid, "accepted: exclusively", each.acquire(mode::shared));
      continue;
    }
    ASSERT_TRUE(each.acquire(mode::shared));
    EXPECT_EQ(each.held(), mode::shared);
    each.release(mode::shared);
  }
}

// A writer that came between the two shares would wait for the first one, and the second for it.
TEST_F(DomainHandle, AThreadThatSharesByTwoHandlesHoldsOnce) {
  named_lock first(in_, "twice");
  named_lock second(in_, "twice");
  first.lock_shared();
  child writer([&] {
    named_lock theirs(domain::attach(own_.name()), "twice");
    theirs.lock();
    return 0;
  });
  while (waiters_of("twice") == 0) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(second.try_lock_shared_for(20s));
  EXPECT_TRUE(first.is_held());
  EXPECT_TRUE(second.is_held());
  ASSERT_EQ(in_.locks().size(), 1u);
  EXPECT_EQ(in_.locks()[0].users.size(), 2u) << "one holder and the writer";
  EXPECT_REFUSED(held, "another handle", named_lock(in_, "twice").lock());
  first.unlock_shared();
  EXPECT_TRUE(second.is_held());
  EXPECT_EQ(waiters_of("twice"), 1) << "the writer waits until both handles have released";
  ASSERT_TRUE(first.try_lock_shared_for(20s));
  second.unlock_shared();
  first.unlock_shared();
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_TRUE(first.try_lock());
  EXPECT_REFUSED(held, "another handle", second.lock_shared());
  first.unlock();
}

TEST_F(DomainHandle, AHandleThatSharesAndIsDestroyedLeavesTheOtherOnesHold) {
  named_lock first(in_, "twice");
  first.lock_shared();
  {
    named_lock second(in_, "twice");
    second.lock_shared();
  }
  EXPECT_TRUE(first.is_held());
  std::thread([&] { EXPECT_FALSE(named_lock(in_, "twice").try_lock()); }).join();
  first.unlock_shared();
  std::thread([&] { EXPECT_TRUE(named_lock(in_, "twice").try_lock()); }).join();
}

// The handle that joined keeps nothing of the other one.
TEST_F(DomainHandle, AHandleThatHasSharedHasItsOwnTokenAndItsOwnLock) {
  auto first = std::make_unique<named_lock>(in_, "twice");
  named_lock second(in_, "twice");
  second.lock();
  second.unlock();
  const std::uint64_t of_second = second.token();
  first->lock();
  const std::uint64_t of_first = first->token();
  first->unlock();
  first->lock_shared();
  second.lock_shared();
  EXPECT_EQ(second.token(), of_second);
  second.unlock_shared();
  // Another thread drops the handle that holds.
  std::thread([&] { first.reset(); }).join();
  ASSERT_TRUE(second.try_lock_for(20s));
  EXPECT_GT(second.token(), of_first);
  second.unlock();
}

TEST_F(DomainHandle, TheHandleThatHeldFirstMayGoFirst) {
  auto first = std::make_unique<named_lock>(in_, "twice");
  named_lock second(in_, "twice");
  first->lock_shared();
  second.lock_shared();
  std::thread([&] { first.reset(); }).join();
  EXPECT_EQ(second.held(), mode::shared);
  std::thread([&] { EXPECT_FALSE(named_lock(in_, "twice").try_lock()); }).join();
  second.unlock_shared();
  ASSERT_TRUE(second.try_lock());
  EXPECT_FALSE(second.owner_died());
  second.unlock();
}

TEST_F(DomainHandle, AStrangerWhoReleasesSeveralLocksChangesNothing) {
  named_locks both(in_, {"a", "b"});
  both.lock();
  std::thread([&] { EXPECT_REFUSED(wrong_thread, "another thread", both.unlock()); }).join();
  EXPECT_TRUE(both.is_held());
  both.unlock();
  std::thread([&] {
    EXPECT_TRUE(named_lock(in_, "a").try_lock());
    EXPECT_TRUE(named_lock(in_, "b").try_lock());
  }).join();
}

TEST_F(DomainHandle, NoModeIsRefused) {
  named_handle forms[]{named_handle(in_, "lock"),
                       named_handle(in_, std::vector<std::string>{"one", "two"}),
                       named_handle(in_, "units", units{1})};
  for (named_handle& each : forms) {
    EXPECT_REFUSED(invalid, "mode none", each.acquire(mode::none, limit::at_once()));
    EXPECT_TRUE(in_.users_of(each.name()).empty());
  }
}

TEST_F(DomainHandle, AChildHoldsNothingOfItsParents) {
  named_handle forms[]{named_handle(in_, "lock"),
                       named_handle(in_, std::vector<std::string>{"one", "two"}),
                       named_handle(in_, "units", units{1})};
  for (named_handle& each : forms) each.acquire();
  child one([&] {
    for (named_handle& each : forms) {
      CHECK_OR_RETURN(!each.is_held() && named_control(each).is_held_by_parent());
      CHECK_OR_RETURN(each.state().held == mode::none);
      named_control(each).finish();  // concerns the parent's hold, and does nothing
      CHECK_OR_RETURN(refusal_of([&] { each.release(); }).first ==
                      static_cast<int>(domain_error::reason::wrong_thread));
    }
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  for (named_handle& each : forms) {
    EXPECT_FALSE(named_control(each).is_held_by_parent());
    each.release();
  }
}

TEST_F(DomainHandle, AHandleThatWasMovedFromSaysSo) {
  named_lock from(in_, "moved");
  from.lock();
  named_lock to(std::move(from));
  EXPECT_TRUE(to.is_held());
  // What follows uses the handle that was moved from: that is what is tested.
  EXPECT_FALSE(from.is_held());
  EXPECT_FALSE(from.is_lost());
  EXPECT_FALSE(from.owner_died());
  EXPECT_EQ(from.valid_for(), 0ns);
  EXPECT_REFUSED(invalid, "moved", from.lock());
  EXPECT_REFUSED(invalid, "moved", from.unlock());
  EXPECT_REFUSED(invalid, "moved", static_cast<void>(from.name()));
  EXPECT_REFUSED(invalid, "moved", static_cast<void>(from.token()));
  EXPECT_REFUSED(invalid, "moved", static_cast<void>(from.done_until()));
  EXPECT_REFUSED(invalid, "moved", named_control(from).ask_now());
  named_control(from).finish();
  to.unlock();
  from = named_lock(in_, "moved");
  EXPECT_TRUE(from.try_lock());
  from.unlock();
}

TEST_F(DomainHandle, AHandleWhoseThreadHasEndedHoldsNothing) {
  named_handle forms[]{named_handle(in_, "lock"),
                       named_handle(in_, std::vector<std::string>{"one", "two"}),
                       named_handle(in_, "units", units{1})};
  for (named_handle& each : forms) {
    SCOPED_TRACE(each.name());
    std::thread([&] { each.acquire(); }).join();
    EXPECT_FALSE(each.is_held()) << "its thread's end was a death";
    EXPECT_EQ(each.state().held, mode::none);
    EXPECT_REFUSED(wrong_thread, "another thread", each.release());
    named_handle ours = each.units_of() > 0 ? named_handle(in_, each.name(), units{1})
                                            : named_handle(in_, each.name());
    EXPECT_TRUE(ours.acquire(mode::exclusive, 20s));
    EXPECT_TRUE(ours.owner_died());
    ours.mark_consistent();
    ours.release();
  }
}

}  // namespace
}  // namespace lockflight::test
