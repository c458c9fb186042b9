// The C interface of elections: what its calls return.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/bindings/c/support.hpp"

namespace lockflight::test {
namespace {

class CapiElection : public ::testing::Test {
 protected:
  void SetUp() override {
    name_ = "capi-election-" + std::to_string(getpid()) + "-" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    name_.resize(std::min<std::size_t>(name_.size(), 64));
    fine(lockflight_domain_open(name_.c_str(), nullptr, &domain_), "open");
  }
  void TearDown() override {
    EXPECT_EQ(lockflight_domain_close(domain_), LOCKFLIGHT_OK);
    static_cast<void>(lockflight_domain_remove(name_.c_str(), 1));
  }
  lockflight_election* candidate(const std::string& value = "") {
    lockflight_election* made = nullptr;
    fine(lockflight_election_create(domain_, "a", value.data(), value.size(), &made), "create");
    return made;
  }
  /// The value of the leader; empty if nobody leads.
  static std::string leader_of(lockflight_election* observed) {
    char value[64] = {};
    std::size_t length = 0;
    std::uint64_t term = 0;
    const int code = lockflight_election_leader(observed, value, sizeof value, &length, &term);
    EXPECT_EQ(code, term == 0 ? LOCKFLIGHT_UNKNOWN : LOCKFLIGHT_OK);
    return {value, std::min(length, sizeof value)};
  }
  std::string name_;
  lockflight_domain* domain_ = nullptr;
};

TEST_F(CapiElection, LeadsAndStepsDown) {
  lockflight_election* const one = candidate("10.0.0.5:80");
  lockflight_election* const watched = candidate();
  refused(lockflight_election_is_leader(one), LOCKFLIGHT_NOT_HELD, "election 'a'");
  refused(lockflight_election_step_down(one), LOCKFLIGHT_NOT_HELD, "'a'");
  EXPECT_EQ(leader_of(watched), "");
  refused(lockflight_election_set_priority(one, -1), LOCKFLIGHT_INVALID, "0 to 1000");
  fine(lockflight_election_set_priority(one, 1'000), "set_priority");
  fine(lockflight_election_campaign(one, UINT64_MAX), "campaign");
  fine(lockflight_election_is_leader(one), "is_leader");
  std::uint64_t left = 0;
  std::uint64_t term = 0;
  fine(lockflight_election_valid_for(one, &left), "valid_for");
  EXPECT_EQ(left, UINT64_MAX);
  fine(lockflight_election_term(one, &term), "term");
  EXPECT_GT(term, 0U);
  EXPECT_EQ(leader_of(watched), "10.0.0.5:80");
  fine(lockflight_election_publish(one, "new", 3), "publish");
  EXPECT_EQ(leader_of(watched), "new");
  refused(lockflight_election_destroy(one), LOCKFLIGHT_HELD, "which this program leads");
  std::thread([&] {
    lockflight_election* const other = candidate("other");
    EXPECT_EQ(lockflight_election_campaign(other, 0), LOCKFLIGHT_BUSY);
    EXPECT_EQ(lockflight_election_campaign(other, 1'000'000), LOCKFLIGHT_BUSY);
    fine(lockflight_election_destroy(other), "destroy");
  }).join();
  fine(lockflight_election_step_down_for(one, "nobody", 6), "step_down_for");
  EXPECT_EQ(leader_of(watched), "");
  fine(lockflight_election_destroy(one), "destroy");
  fine(lockflight_election_destroy(watched), "destroy");
}

TEST_F(CapiElection, AShortBufferGetsAPart) {
  lockflight_election* const one = candidate("0123456789");
  fine(lockflight_election_campaign(one, 0), "campaign");
  char value[4] = {};
  std::size_t length = 0;
  std::uint64_t term = 0;
  fine(lockflight_election_leader(one, value, 3, &length, &term), "leader");
  EXPECT_EQ(std::string(value), "012");
  EXPECT_EQ(length, 10U);
  fine(lockflight_election_leader(one, nullptr, 0, &length, &term), "leader");
  refused(lockflight_election_leader(one, nullptr, 3, &length, &term), LOCKFLIGHT_INVALID, "value");
  fine(lockflight_election_step_down(one), "step_down");
  fine(lockflight_election_destroy(one), "destroy");
}

TEST_F(CapiElection, AnObserverSeesEachChange) {
  struct seen {
    std::vector<std::string> values;
    std::atomic<int> count{0};
  } all;
  std::thread observer([&] {
    lockflight_election* const watched = candidate();
    fine(lockflight_election_observe(
             watched,
             [](const char* value, std::size_t length, std::uint64_t term, void* to) {
               auto& its = *static_cast<seen*>(to);
               its.values.emplace_back(term == 0 ? "-" : std::string(value, length));
               return ++its.count == 3 ? 1 : 0;
             },
             &all),
         "observe");
    fine(lockflight_election_destroy(watched), "destroy");
  });
  const auto await_seen = [&](int count) {
    while (all.count < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  await_seen(1);
  lockflight_election* const one = candidate("one");
  fine(lockflight_election_campaign(one, UINT64_MAX), "campaign");
  await_seen(2);
  fine(lockflight_election_step_down(one), "step_down");
  observer.join();
  EXPECT_EQ(all.values, (std::vector<std::string>{"-", "one", "-"}));
  fine(lockflight_election_destroy(one), "destroy");
}

TEST_F(CapiElection, ALossIsReported) {
  lockflight_election* const one = candidate("one");
  int descriptor = -1;
  refused(lockflight_election_loss_descriptor(one, &descriptor), LOCKFLIGHT_NOT_HELD, "'a'");
  fine(lockflight_election_campaign(one, UINT64_MAX), "campaign");
  fine(lockflight_election_loss_descriptor(one, &descriptor), "loss_descriptor");
  std::atomic<int> calls{0};
  fine(lockflight_election_on_loss(
           one, [](void* of) { ++*static_cast<std::atomic<int>*>(of); }, &calls),
       "on_loss");
  fine(lockflight_domain_remove(name_.c_str(), 1), "remove");
  pollfd readable{.fd = descriptor, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&readable, 1, 20'000), 1);
  while (calls == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  refused(lockflight_election_is_leader(one), LOCKFLIGHT_NOT_HELD, "does not lead");
  fine(lockflight_election_step_down(one), "step_down");
  readable.revents = 0;
  EXPECT_EQ(poll(&readable, 1, 0), 0);
  fine(lockflight_election_destroy(one), "destroy");
}

TEST_F(CapiElection, AWaitCanBeInterrupted) {
  lockflight_election* const one = candidate("one");
  fine(lockflight_election_campaign(one, 0), "campaign");
  lockflight_election* const other = candidate("other");
  fine(lockflight_election_interrupt_with(
           other, [](void*) { return 1; }, nullptr),
       "interrupt_with");
  const auto goes_on = [](const char*, std::size_t, std::uint64_t, void*) { return 0; };
  EXPECT_EQ(lockflight_election_observe(other, goes_on, nullptr), LOCKFLIGHT_INTERRUPTED);
  fine(lockflight_election_destroy(other), "destroy");
  fine(lockflight_election_step_down(one), "step_down");
  fine(lockflight_election_destroy(one), "destroy");
}

TEST_F(CapiElection, WhatIsMissingIsNamed) {
  lockflight_election* made = nullptr;
  const std::string large(65'001, 'x');
  refused(lockflight_election_create(nullptr, "a", "", 0, &made), LOCKFLIGHT_INVALID, "domain");
  refused(lockflight_election_create(domain_, nullptr, "", 0, &made), LOCKFLIGHT_INVALID, "name");
  refused(lockflight_election_create(domain_, "", "", 0, &made), LOCKFLIGHT_INVALID, "lock name");
  refused(lockflight_election_create(domain_, "a", nullptr, 1, &made), LOCKFLIGHT_INVALID, "value");
  refused(lockflight_election_create(domain_, "a", "", 0, nullptr), LOCKFLIGHT_INVALID, "election");
  refused(lockflight_election_create(domain_, "a", large.data(), large.size(), &made),
          LOCKFLIGHT_INVALID, "at most 65000");
  refused(lockflight_election_campaign(nullptr, 0), LOCKFLIGHT_INVALID, "election");
  lockflight_election* const one = candidate();
  refused(lockflight_election_observe(one, nullptr, nullptr), LOCKFLIGHT_INVALID, "function");
  refused(lockflight_election_term(one, nullptr), LOCKFLIGHT_INVALID, "term");
  fine(lockflight_election_destroy(one), "destroy");
}

}  // namespace
}  // namespace lockflight::test
