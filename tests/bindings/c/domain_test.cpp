// The C interface of domains: what its calls return.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/bindings/c/support.hpp"

namespace lockflight::test {
namespace {

/// A domain of the test's own, with a lock in it.
class CapiDomain : public ::testing::Test {
 protected:
  void SetUp() override {
    name_ = "capi-" + std::to_string(getpid()) + "-" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    name_.resize(std::min<std::size_t>(name_.size(), 64));
    const lockflight_domain_options few{.slots = 16, .names = 16};
    ASSERT_EQ(lockflight_domain_open(name_.c_str(), &few, &domain_), LOCKFLIGHT_OK)
        << lockflight_last_error();
  }
  void TearDown() override {
    EXPECT_EQ(lockflight_domain_close(domain_), LOCKFLIGHT_OK);
    EXPECT_EQ(lockflight_domain_remove(name_.c_str(), 1), LOCKFLIGHT_OK);
  }
  lockflight_named* lock(const char* name, const lockflight_named_options* options = nullptr) {
    lockflight_named* made = nullptr;
    fine(lockflight_named_create(domain_, name, options, &made), "create");
    return made;
  }
  std::string name_;
  lockflight_domain* domain_ = nullptr;
};

constexpr lockflight_named_options exclusive{.kind = "flight"};

TEST_F(CapiDomain, AcquiresAndReleases) {
  lockflight_named* const a = lock("a");
  std::uint64_t before = 0;
  for (const auto take : {lockflight_named_lock, lockflight_named_try_lock}) {
    fine(take(a), "acquire");
    fine(lockflight_named_owner_died(a), "owner_died");
    std::uint64_t token = 0;
    fine(lockflight_named_token(a, &token), "token");
    EXPECT_GT(token, before);
    before = token;
    fine(lockflight_named_unlock(a), "unlock");
  }
  fine(lockflight_named_try_lock_for(a, 1'000'000), "try_lock_for");
  refused(lockflight_named_destroy(a), LOCKFLIGHT_HELD, "lock 'a'");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, AnotherThreadFindsItBusy) {
  lockflight_named* const a = lock("a");
  fine(lockflight_named_lock_shared(a), "lock_shared");
  std::thread([&] {
    lockflight_named* const other = lock("a");
    EXPECT_EQ(lockflight_named_try_lock(other), LOCKFLIGHT_BUSY);
    EXPECT_EQ(lockflight_named_try_lock_for(other, 1'000'000), LOCKFLIGHT_BUSY);
    fine(lockflight_named_try_lock_shared(other), "try_lock_shared");
    fine(lockflight_named_unlock_shared(other), "unlock_shared");
    fine(lockflight_named_try_lock_shared_for(other, 1'000'000), "try_lock_shared_for");
    fine(lockflight_named_unlock_shared(other), "unlock_shared");
    fine(lockflight_named_destroy(other), "destroy");
  }).join();
  fine(lockflight_named_unlock_shared(a), "unlock_shared");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, ADeathIsToldUntilSomebodyRepairs) {
  const pid_t child = fork();
  if (child == 0) {
    lockflight_named* mine = nullptr;
    const bool holds = lockflight_named_create(domain_, "a", nullptr, &mine) == LOCKFLIGHT_OK &&
                       lockflight_named_lock(mine) == LOCKFLIGHT_OK;
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  lockflight_named* const a = lock("a");
  for (int i = 0; i < 2; ++i) {
    refused(lockflight_named_lock(a), LOCKFLIGHT_OWNER_DIED, "lock 'a' is held");
    refused(lockflight_named_owner_died(a), LOCKFLIGHT_OWNER_DIED, "a holder before has died");
    fine(lockflight_named_unlock(a), "unlock");
  }
  refused(lockflight_named_try_lock(a), LOCKFLIGHT_OWNER_DIED, "lock 'a' is held");
  fine(lockflight_named_mark_consistent(a), "mark_consistent");
  fine(lockflight_named_owner_died(a), "owner_died");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, TheDefaultKindIsThatOfTheCommand) {
  constexpr lockflight_named_options command{.kind = "flight-rw"};
  lockflight_named* const a = lock("a");
  fine(lockflight_named_lock_shared(a), "lock_shared");
  fine(lockflight_named_unlock_shared(a), "unlock_shared");
  lockflight_named* const same = lock("a", &command);
  fine(lockflight_named_lock(same), "lock");
  fine(lockflight_named_unlock(same), "unlock");
  fine(lockflight_named_destroy(same), "destroy");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, ASecondHandleOfAHolderIsRefused) {
  lockflight_named* const a = lock("a");
  lockflight_named* const again = lock("a");
  fine(lockflight_named_lock(a), "lock");
  for (const auto take : {lockflight_named_lock, lockflight_named_try_lock,
                          lockflight_named_lock_shared, lockflight_named_try_lock_shared})
    refused(take(again), LOCKFLIGHT_HELD, "'a'");
  refused(lockflight_named_try_lock_for(again, UINT64_MAX), LOCKFLIGHT_HELD, "'a'");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_lock_shared(a), "lock_shared");
  refused(lockflight_named_lock(again), LOCKFLIGHT_HELD, "'a'");
  fine(lockflight_named_lock_shared(again), "lock_shared");  // both share
  fine(lockflight_named_unlock_shared(again), "unlock_shared");
  fine(lockflight_named_unlock_shared(a), "unlock_shared");
  fine(lockflight_named_destroy(again), "destroy");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, AHolderLearnsThatTheDomainWasRemoved) {
  lockflight_named* const a = lock("a");
  refused(lockflight_named_still_valid(a), LOCKFLIGHT_NOT_HELD, "still_valid of lock 'a'");
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_still_valid(a), "still_valid");
  fine(lockflight_domain_remove(name_.c_str(), 1), "remove");
  refused(lockflight_named_still_valid(a), LOCKFLIGHT_REMOVED, "lock 'a'");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_destroy(a), "destroy");

  lockflight_domain* anew = nullptr;
  fine(lockflight_domain_open(name_.c_str(), nullptr, &anew), "open");
  fine(lockflight_domain_close(anew), "close");
}

TEST_F(CapiDomain, AHolderOnOneMachineHasNoDeadline) {
  lockflight_named* const a = lock("a");
  std::uint64_t left = 1;
  refused(lockflight_named_is_lost(a), LOCKFLIGHT_NOT_HELD, "is_lost of lock 'a'");
  fine(lockflight_named_valid_for(a, &left), "valid_for");
  EXPECT_EQ(left, 0U);
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_is_lost(a), "is_lost");
  fine(lockflight_named_valid_for(a, &left), "valid_for");
  EXPECT_EQ(left, UINT64_MAX);
  refused(lockflight_named_valid_for(a, nullptr), LOCKFLIGHT_INVALID, "nanoseconds NULL");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_destroy(a), "destroy");
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&one, 1, milliseconds) == 1;
}

TEST_F(CapiDomain, AHoldHasATimeLimit) {
  lockflight_named* const a = lock("a");
  refused(lockflight_named_end_after(a, 1), LOCKFLIGHT_NOT_HELD, "lock 'a'");
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_end_after(a, UINT64_MAX), "end_after");
  fine(lockflight_named_end_after(a, 30'000'000), "end_after");
  int descriptor = -1;
  fine(lockflight_named_loss_descriptor(a, &descriptor), "loss_descriptor");
  std::uint64_t left = UINT64_MAX;
  fine(lockflight_named_valid_for(a, &left), "valid_for");
  EXPECT_LE(left, 30'000'000U);
  EXPECT_TRUE(is_readable(descriptor, 5'000));
  refused(lockflight_named_is_lost(a), LOCKFLIGHT_LOST, "lock 'a'");
  refused(lockflight_named_release_unless_lost(a), LOCKFLIGHT_LOST, "lock 'a'");
  EXPECT_EQ(lockflight_named_lock(a), LOCKFLIGHT_OWNER_DIED);
  fine(lockflight_named_is_lost(a), "is_lost: the end was that of the last hold");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, TheLossOfAHoldMakesADescriptorReadableAndCallsAFunction) {
  lockflight_named* const a = lock("a");
  int descriptor = -1;
  std::atomic<int> calls{0};
  const auto count = [](void* calls_of) { ++*static_cast<std::atomic<int>*>(calls_of); };
  refused(lockflight_named_loss_descriptor(a, &descriptor), LOCKFLIGHT_NOT_HELD, "lock 'a'");
  refused(lockflight_named_on_loss(a, count, &calls), LOCKFLIGHT_NOT_HELD, "lock 'a'");
  refused(lockflight_named_release_unless_lost(a), LOCKFLIGHT_NOT_HELD, "lock 'a'");

  fine(lockflight_named_lock(a), "lock");
  refused(lockflight_named_loss_descriptor(a, nullptr), LOCKFLIGHT_INVALID, "descriptor NULL");
  fine(lockflight_named_loss_descriptor(a, &descriptor), "loss_descriptor");
  fine(lockflight_named_on_loss(a, count, &calls), "on_loss");
  EXPECT_FALSE(is_readable(descriptor, 20));
  fine(lockflight_named_release_unless_lost(a), "release_unless_lost");

  fine(lockflight_named_lock(a), "lock");
  int again = -1;
  fine(lockflight_named_loss_descriptor(a, &again), "loss_descriptor");
  EXPECT_EQ(again, descriptor);
  fine(lockflight_named_on_loss(a, count, &calls), "on_loss");
  fine(lockflight_domain_remove(name_.c_str(), 1), "remove");
  EXPECT_TRUE(is_readable(descriptor, 2'000));
  while (calls == 0) std::this_thread::yield();
  refused(lockflight_named_is_lost(a), LOCKFLIGHT_LOST, "lock 'a'");
  refused(lockflight_named_release_unless_lost(a), LOCKFLIGHT_LOST, "lock 'a': the hold was lost");
  refused(lockflight_named_still_valid(a), LOCKFLIGHT_NOT_HELD, "lock 'a'");
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(is_readable(descriptor, 0)) << "it is about a hold";
  fine(lockflight_named_destroy(a), "destroy");

  lockflight_domain* anew = nullptr;
  fine(lockflight_domain_open(name_.c_str(), nullptr, &anew), "open");
  fine(lockflight_domain_close(anew), "close");
}

TEST_F(CapiDomain, AFunctionThatWasTakenAwayIsNotCalled) {
  lockflight_named* const a = lock("a");
  std::atomic<int> calls{0};
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_on_loss(
           a, [](void* calls_of) { ++*static_cast<std::atomic<int>*>(calls_of); }, &calls),
       "on_loss");
  fine(lockflight_named_on_loss(a, nullptr, nullptr), "on_loss");
  int descriptor = -1;
  fine(lockflight_named_loss_descriptor(a, &descriptor), "loss_descriptor");
  fine(lockflight_domain_remove(name_.c_str(), 1), "remove");
  EXPECT_TRUE(is_readable(descriptor, 2'000));
  fine(lockflight_named_unlock(a), "unlock");
  EXPECT_EQ(calls, 0);
  fine(lockflight_named_destroy(a), "destroy");

  lockflight_domain* anew = nullptr;
  fine(lockflight_domain_open(name_.c_str(), nullptr, &anew), "open");
  fine(lockflight_domain_close(anew), "close");
}

TEST_F(CapiDomain, AClustersDomainNeedsItsAgent) {
  lockflight_domain* none = nullptr;
  refused(lockflight_domain_open("etcd:of-no-agent", nullptr, &none), LOCKFLIGHT_UNKNOWN,
          "lockflight agent --domain of-no-agent");
}

/// A thread that holds a lock while the test does something else.
class holder {
 public:
  explicit holder(lockflight_domain* in) : thread_([this, in] { hold(in); }) {
    while (!holds_) std::this_thread::yield();
  }
  ~holder() {
    ends_ = true;
    thread_.join();
  }
  holder(const holder&) = delete;
  holder& operator=(const holder&) = delete;

 private:
  void hold(lockflight_domain* in) {
    lockflight_named* a = nullptr;
    fine(lockflight_named_create(in, "a", nullptr, &a), "create");
    fine(lockflight_named_lock(a), "lock");
    holds_ = true;
    while (!ends_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fine(lockflight_named_unlock(a), "unlock");
    fine(lockflight_named_destroy(a), "destroy");
  }
  std::atomic<bool> holds_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST_F(CapiDomain, ATimeOutCanSayWhoHolds) {
  lockflight_named* const a = lock("a");
  lockflight_holder who{};
  refused(lockflight_named_holder(a, &who), LOCKFLIGHT_UNKNOWN, "holder of lock 'a'");
  {
    const holder other(domain_);
    EXPECT_EQ(lockflight_named_try_lock_for(a, 50'000'000), LOCKFLIGHT_BUSY);
    fine(lockflight_named_holder(a, &who), "holder");
    EXPECT_EQ(who.holders, 1);
    EXPECT_EQ(who.pid, getpid());
    EXPECT_EQ(who.unit, -1);
    EXPECT_GE(who.nanoseconds, 30'000'000U);  // by a coarse clock
    EXPECT_STREQ(who.command, "capi_tests");
    EXPECT_STREQ(who.host, "");
  }
  refused(lockflight_named_holder(a, nullptr), LOCKFLIGHT_INVALID, "holder NULL");
  refused(lockflight_named_holder(nullptr, &who), LOCKFLIGHT_INVALID, "lock NULL");
  fine(lockflight_named_destroy(a), "destroy");
  lockflight_semaphore* s = nullptr;
  fine(lockflight_semaphore_create(domain_, "s", 2, &s), "create");
  fine(lockflight_semaphore_acquire(s), "acquire");
  fine(lockflight_semaphore_holder(s, &who), "holder");
  EXPECT_EQ(who.unit, 0);
  fine(lockflight_semaphore_release(s), "release");
  fine(lockflight_semaphore_destroy(s), "destroy");
}

TEST_F(CapiDomain, AnInterruptedWaitGivesUp) {
  using clock = std::chrono::steady_clock;
  lockflight_named* const a = lock("a");
  std::atomic<int> asked{0};
  const auto third_time = [](void* count) {
    return static_cast<int>(static_cast<std::atomic<int>*>(count)->fetch_add(1) >= 2);
  };
  fine(lockflight_named_interrupt_with(a, third_time, &asked), "interrupt_with");
  {
    const holder other(domain_);
    for (const auto take : {lockflight_named_lock, lockflight_named_lock_shared}) {
      asked = 0;
      const auto start = clock::now();
      refused(take(a), LOCKFLIGHT_INTERRUPTED, "'a'");
      EXPECT_LT(clock::now() - start, std::chrono::seconds(10));
      EXPECT_GE(asked, 3);
    }
    asked = 0;
    refused(lockflight_named_try_lock_for(a, 60'000'000'000), LOCKFLIGHT_INTERRUPTED, "'a'");
    asked = INT32_MIN;
    EXPECT_EQ(lockflight_named_try_lock_for(a, 1'000'000), LOCKFLIGHT_BUSY);
    fine(lockflight_named_interrupt_with(a, nullptr, nullptr), "interrupt_with");
    EXPECT_EQ(lockflight_named_try_lock_for(a, 1'000'000), LOCKFLIGHT_BUSY);
  }
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_unlock(a), "unlock");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, ASignalInterruptsAtOnce) {
  static std::atomic<bool> came;
  came = false;
  struct sigaction before {};
  struct sigaction here {};
  here.sa_handler = [](int) { came = true; };
  ASSERT_EQ(sigaction(SIGUSR1, &here, &before), 0);
  const holder other(domain_);
  lockflight_named* const a = lock("a");
  fine(lockflight_named_interrupt_with(
           a, [](void*) { return int{came}; }, nullptr),
       "interrupt_with");
  const pthread_t self = pthread_self();
  std::chrono::steady_clock::time_point sent;
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sent = std::chrono::steady_clock::now();
    pthread_kill(self, SIGUSR1);
  });
  refused(lockflight_named_lock(a), LOCKFLIGHT_INTERRUPTED, "'a'");
  const auto ended = std::chrono::steady_clock::now();
  sender.join();
  EXPECT_LT(ended - sent, std::chrono::milliseconds(500));
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, ADomainOfAnotherModeIsRefused) {
  lockflight_domain* other = nullptr;
  const lockflight_domain_options own{.mode = 0600};
  const lockflight_domain_options shared{.mode = 0660};
  const lockflight_domain_options odd{.mode = 0777};
  const lockflight_domain_options nobodys{.mode = 0660, .group = "no such group"};
  fine(lockflight_domain_open(name_.c_str(), &own, &other), "open");
  fine(lockflight_domain_close(other), "close");
  refused(lockflight_domain_open(name_.c_str(), &odd, &other), LOCKFLIGHT_INVALID, "mode");
  refused(lockflight_domain_open(name_.c_str(), &nobodys, &other), LOCKFLIGHT_INVALID,
          "no such group");
  refused(lockflight_domain_open(name_.c_str(), &shared, &other), LOCKFLIGHT_WRONG_KIND, name_);
}

TEST_F(CapiDomain, ASemaphoreHasNHoldersWithAUnitEach) {
  lockflight_semaphore* all[3]{};
  for (auto& each : all) fine(lockflight_semaphore_create(domain_, "s", 2, &each), "create");
  fine(lockflight_semaphore_acquire(all[0]), "acquire");
  fine(lockflight_semaphore_try_acquire(all[1]), "try_acquire");
  for (int i = 0; i < 2; ++i) {
    int unit = -1;
    fine(lockflight_semaphore_unit(all[i], &unit), "unit");
    EXPECT_EQ(unit, i);
  }
  std::thread([&] {
    EXPECT_EQ(lockflight_semaphore_try_acquire(all[2]), LOCKFLIGHT_BUSY);
    EXPECT_EQ(lockflight_semaphore_try_acquire_for(all[2], 1'000'000), LOCKFLIGHT_BUSY);
    fine(lockflight_semaphore_destroy(all[2]), "destroy");
  }).join();
  refused(lockflight_semaphore_acquire(all[0]), LOCKFLIGHT_HELD, "holds a unit already");
  refused(lockflight_semaphore_destroy(all[0]), LOCKFLIGHT_HELD, "semaphore 's'");
  refused(lockflight_semaphore_create(domain_, "s", 3, &all[2]), LOCKFLIGHT_WRONG_KIND,
          "is a semaphore of 2 units");
  refused(lockflight_semaphore_create(domain_, "t", 0, &all[2]), LOCKFLIGHT_INVALID,
          "0 units (accepted: 1 to 1024)");
  std::uint64_t number = 0;
  fine(lockflight_semaphore_token(all[0], &number), "token");
  EXPECT_GT(number, 0U);
  fine(lockflight_semaphore_valid_for(all[0], &number), "valid_for");
  EXPECT_EQ(number, UINT64_MAX);
  fine(lockflight_semaphore_is_lost(all[0]), "is_lost");
  fine(lockflight_semaphore_still_valid(all[0]), "still_valid");
  fine(lockflight_semaphore_owner_died(all[0]), "owner_died");
  fine(lockflight_semaphore_interrupt_with(all[0], nullptr, nullptr), "interrupt_with");
  for (int i = 0; i < 2; ++i) fine(lockflight_semaphore_release(all[i]), "release");
  int unit = 0;
  refused(lockflight_semaphore_release(all[0]), LOCKFLIGHT_NOT_HELD, "'s'");
  refused(lockflight_semaphore_unit(all[0], &unit), LOCKFLIGHT_NOT_HELD, "unit of semaphore 's'");
  refused(lockflight_semaphore_owner_died(all[0]), LOCKFLIGHT_NOT_HELD, "semaphore 's'");
  refused(lockflight_semaphore_acquire(nullptr), LOCKFLIGHT_INVALID, "semaphore NULL");
  for (int i = 0; i < 2; ++i) fine(lockflight_semaphore_destroy(all[i]), "destroy");
}

TEST_F(CapiDomain, AHandleHoldsSeveralUnits) {
  lockflight_named* two = nullptr;
  lockflight_named* other = nullptr;
  const int numbers[] = {3, 0, 5};
  fine(lockflight_named_create_units(domain_, "s", numbers, 3, 2, &two), "create");
  fine(lockflight_named_create_units(domain_, "s", numbers, 3, 2, &other), "create");
  int held[4] = {-1, -1, -1, -1};
  int count = -1;
  refused(lockflight_named_units(two, held, 4, &count), LOCKFLIGHT_NOT_HELD, "units of semaphore");
  fine(lockflight_named_acquire(two, LOCKFLIGHT_EXCLUSIVE, UINT64_MAX), "acquire");
  fine(lockflight_named_units(two, held, 4, &count), "units");
  EXPECT_EQ(count, 2);
  EXPECT_EQ(held[0], 0);
  EXPECT_EQ(held[1], 3);
  EXPECT_EQ(held[2], -1);
  held[1] = -1;
  fine(lockflight_named_units(two, held, 1, &count), "units");
  EXPECT_EQ(count, 2);
  EXPECT_EQ(held[1], -1) << "no more than asked for";
  fine(lockflight_named_units(two, nullptr, 0, &count), "units");
  refused(lockflight_named_units(two, nullptr, 1, &count), LOCKFLIGHT_INVALID, "units NULL");
  refused(lockflight_named_units(two, held, -1, &count), LOCKFLIGHT_INVALID, "most -1");
  refused(lockflight_named_units(two, held, 1, nullptr), LOCKFLIGHT_INVALID, "count NULL");
  int unit = -1;
  fine(lockflight_named_unit(two, &unit), "unit");
  EXPECT_EQ(unit, 0);
  refused(lockflight_named_acquire(other, LOCKFLIGHT_EXCLUSIVE, 0), LOCKFLIGHT_HELD,
          "hold 2 of its 3 units, and this one takes 2");
  fine(lockflight_named_release(two), "release");
  fine(lockflight_named_destroy(two), "destroy");
  fine(lockflight_named_destroy(other), "destroy");
  refused(lockflight_named_create_units(domain_, "t", nullptr, 3, 4, &two), LOCKFLIGHT_INVALID,
          "take 4 of 3 units (accepted: 1 to 3)");
  refused(lockflight_named_create_units(domain_, "t", numbers, 0, 1, &two), LOCKFLIGHT_INVALID,
          "0 units");
  refused(lockflight_named_create_units(domain_, "s", nullptr, 3, 1, &two), LOCKFLIGHT_WRONG_KIND,
          "the units 0, 3 and 5");
}

TEST_F(CapiDomain, ADeadHoldersUnitIsTold) {
  const pid_t child = fork();
  if (child == 0) {
    lockflight_semaphore* mine = nullptr;
    const bool holds = lockflight_semaphore_create(domain_, "s", 1, &mine) == LOCKFLIGHT_OK &&
                       lockflight_semaphore_acquire(mine) == LOCKFLIGHT_OK;
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  lockflight_semaphore* s = nullptr;
  fine(lockflight_semaphore_create(domain_, "s", 1, &s), "create");
  refused(lockflight_semaphore_acquire(s), LOCKFLIGHT_OWNER_DIED, "semaphore 's' is held");
  fine(lockflight_semaphore_mark_consistent(s), "mark_consistent");
  fine(lockflight_semaphore_owner_died(s), "owner_died");
  fine(lockflight_semaphore_release(s), "release");
  fine(lockflight_semaphore_destroy(s), "destroy");
}

TEST_F(CapiDomain, RefusesMisuse) {
  lockflight_named* const a = lock("a", &exclusive);
  refused(lockflight_named_unlock(a), LOCKFLIGHT_NOT_HELD, "'a'");
  refused(lockflight_named_owner_died(a), LOCKFLIGHT_NOT_HELD, "lock 'a'");
  refused(lockflight_named_mark_consistent(a), LOCKFLIGHT_NOT_HELD, "'a'");
  refused(lockflight_named_lock_shared(a), LOCKFLIGHT_WRONG_KIND, "lock 'a'");
  fine(lockflight_named_lock(a), "lock");
  refused(lockflight_named_lock(a), LOCKFLIGHT_HELD, "'a'");
  refused(lockflight_domain_remove(name_.c_str(), 0), LOCKFLIGHT_HELD, name_);
  std::thread([&] { refused(lockflight_named_unlock(a), LOCKFLIGHT_INVALID, "'a'"); }).join();
  fine(lockflight_named_unlock(a), "unlock");

  // The kind is compared when the lock is looked up, here or at the first acquire.
  lockflight_named* other = nullptr;
  int code = lockflight_named_create(domain_, "a", nullptr, &other);
  if (code == LOCKFLIGHT_OK) code = lockflight_named_lock(other);
  refused(code, LOCKFLIGHT_WRONG_KIND, "flight-rw");
  if (other != nullptr) fine(lockflight_named_destroy(other), "destroy");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, RefusesNamesAndSizes) {
  lockflight_named* none = nullptr;
  for (const std::string& bad : {std::string(), std::string(256, 'x'), std::string("a\nb")})
    refused(lockflight_named_create(domain_, bad.c_str(), nullptr, &none), LOCKFLIGHT_INVALID,
            "accepted: 1 to 255 bytes");
  const lockflight_named_options unknown{.kind = "flihgt"};
  const int code = lockflight_named_create(domain_, "a", &unknown, &none);
  EXPECT_TRUE(code == LOCKFLIGHT_INVALID || code == LOCKFLIGHT_UNKNOWN) << code;
  EXPECT_NE(std::string(lockflight_last_error()).find("flihgt"), std::string::npos);
  EXPECT_EQ(none, nullptr);

  lockflight_domain* nowhere = nullptr;
  for (const char* const bad : {"", "a/b", ".a"})
    refused(lockflight_domain_open(bad, nullptr, &nowhere), LOCKFLIGHT_INVALID,
            "'" + std::string(bad) + "' (accepted: 1 to 64 of a-z");
  const lockflight_domain_options many{.slots = 5000};
  refused(lockflight_domain_open("capi-many", &many, &nowhere), LOCKFLIGHT_INVALID, "5000");
  EXPECT_EQ(nowhere, nullptr);
  refused(lockflight_domain_remove("capi-no-such-domain", 0), LOCKFLIGHT_UNKNOWN,
          "capi-no-such-domain");
}

TEST_F(CapiDomain, OneAcquireForAllModesAndLimits) {
  lockflight_named* a = nullptr;
  lockflight_named* b = nullptr;
  const char* const names[]{"one", "two"};
  fine(lockflight_named_create_several(domain_, names, 2, &a), "create_several");
  fine(lockflight_named_create_several(domain_, names, 1, &b), "create_several");
  fine(lockflight_named_acquire(a, LOCKFLIGHT_SHARED, 0), "acquire");
  std::thread([&] {
    fine(lockflight_named_acquire(b, LOCKFLIGHT_SHARED, 0), "acquire");
    fine(lockflight_named_release(b), "release");
    EXPECT_EQ(lockflight_named_acquire(b, LOCKFLIGHT_EXCLUSIVE, 1'000'000), LOCKFLIGHT_BUSY);
  }).join();
  refused(lockflight_named_unlock(a), LOCKFLIGHT_NOT_HELD, "exclusively");
  fine(lockflight_named_release(a), "release");
  fine(lockflight_named_acquire(a, LOCKFLIGHT_EXCLUSIVE, UINT64_MAX), "acquire");
  fine(lockflight_named_unlock(a), "unlock");
  refused(lockflight_named_release(a), LOCKFLIGHT_NOT_HELD, "'one'");
  refused(lockflight_named_acquire(a, 3, 0), LOCKFLIGHT_INVALID, "mode 3");
  refused(lockflight_named_create_several(domain_, names, 0, &b), LOCKFLIGHT_INVALID, "no lock");
  refused(lockflight_named_create_several(domain_, nullptr, 1, &b), LOCKFLIGHT_INVALID,
          "names NULL");
  fine(lockflight_named_destroy(a), "destroy");
  fine(lockflight_named_destroy(b), "destroy");
}

TEST_F(CapiDomain, TheHolderOfAnyOfSeveralLocksIsSaid) {
  lockflight_named* both = nullptr;
  lockflight_named* const two = lock("two");
  const char* const names[]{"one", "two"};
  fine(lockflight_named_create_several(domain_, names, 2, &both), "create_several");
  lockflight_holder who{};
  refused(lockflight_named_holder(both, &who), LOCKFLIGHT_UNKNOWN, "nobody holds");
  std::thread([&] {
    fine(lockflight_named_lock(two), "lock");
    fine(lockflight_named_holder(both, &who), "holder");
    EXPECT_EQ(who.holders, 1);
    EXPECT_EQ(who.pid, getpid());
    fine(lockflight_named_unlock(two), "unlock");
  }).join();
  fine(lockflight_named_destroy(both), "destroy");
  fine(lockflight_named_destroy(two), "destroy");
}

TEST_F(CapiDomain, ASemaphoreIsANamedHandleToo) {
  lockflight_named* slot = nullptr;
  lockflight_named* const a = lock("a");
  fine(lockflight_named_create_semaphore(domain_, "s", 2, &slot), "create_semaphore");
  refused(lockflight_named_acquire(slot, LOCKFLIGHT_SHARED, 0), LOCKFLIGHT_WRONG_KIND,
          "semaphore 's'");
  int unit = -1;
  refused(lockflight_named_unit(slot, &unit), LOCKFLIGHT_NOT_HELD, "unit of semaphore 's'");
  fine(lockflight_named_acquire(slot, LOCKFLIGHT_EXCLUSIVE, 0), "acquire");
  fine(lockflight_named_unit(slot, &unit), "unit");
  EXPECT_EQ(unit, 0);
  fine(lockflight_named_release(slot), "release");
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_unit(a, &unit), "unit");
  EXPECT_EQ(unit, -1);
  fine(lockflight_named_unlock(a), "unlock");
  refused(lockflight_named_create_semaphore(domain_, nullptr, 2, &slot), LOCKFLIGHT_INVALID,
          "name NULL");
  fine(lockflight_named_destroy(slot), "destroy");
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, AHandleWhoseThreadHasEndedCanBeDestroyed) {
  lockflight_named* lock = nullptr;
  lockflight_semaphore* semaphore = nullptr;
  fine(lockflight_named_create(domain_, "left", nullptr, &lock), "create");
  fine(lockflight_semaphore_create(domain_, "left too", 1, &semaphore), "create");
  std::thread([&] {
    fine(lockflight_named_lock(lock), "lock");
    fine(lockflight_semaphore_acquire(semaphore), "acquire");
    std::thread([&] {
      refused(lockflight_named_destroy(lock), LOCKFLIGHT_HELD, "the thread holds that acquired it");
    }).join();
  }).join();
  refused(lockflight_named_owner_died(lock), LOCKFLIGHT_NOT_HELD, "lock 'left'");
  fine(lockflight_named_destroy(lock), "destroy");
  fine(lockflight_semaphore_destroy(semaphore), "destroy");
}

sigjmp_buf out_of_the_wait;

TEST_F(CapiDomain, AJumpOutOfAWaitIsTold) {
  lockflight_named* const a = lock("a");
  std::atomic<int> step{0};
  std::thread holder([&] {
    lockflight_named* const theirs = lock("a");
    fine(lockflight_named_lock(theirs), "lock");
    step = 1;
    while (step != 2) std::this_thread::yield();
    fine(lockflight_named_unlock(theirs), "unlock");
    fine(lockflight_named_destroy(theirs), "destroy");
  });
  while (step != 1) std::this_thread::yield();
  const auto jumps = [](void*) -> int { siglongjmp(out_of_the_wait, 1); };
  fine(lockflight_named_interrupt_with(a, jumps, nullptr), "interrupt_with");
  if (sigsetjmp(out_of_the_wait, 1) == 0) {
    static_cast<void>(lockflight_named_lock(a));
    ADD_FAILURE() << "the wait has returned";
  }
  fine(lockflight_named_interrupt_with(a, nullptr, nullptr), "interrupt_with");
  refused(lockflight_named_try_lock(a), LOCKFLIGHT_INTERRUPTED, "'a'");
  EXPECT_EQ(lockflight_named_try_lock(a), LOCKFLIGHT_BUSY);
  step = 2;
  fine(lockflight_named_lock(a), "lock");
  fine(lockflight_named_unlock(a), "unlock");
  holder.join();
  fine(lockflight_named_destroy(a), "destroy");
}

TEST_F(CapiDomain, RefusesNull) {
  std::uint64_t token = 0;
  lockflight_named* none = nullptr;
  lockflight_domain* nowhere = nullptr;
  for (const auto call :
       {lockflight_named_destroy, lockflight_named_lock, lockflight_named_try_lock,
        lockflight_named_unlock, lockflight_named_lock_shared, lockflight_named_try_lock_shared,
        lockflight_named_unlock_shared, lockflight_named_mark_consistent})
    refused(call(nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_token(nullptr, &token), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_owner_died(nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_still_valid(nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_is_lost(nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  int descriptor = 0;
  refused(lockflight_named_loss_descriptor(nullptr, &descriptor), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_on_loss(nullptr, nullptr, nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_release_unless_lost(nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  uint64_t left = 0;
  refused(lockflight_named_valid_for(nullptr, &left), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_end_after(nullptr, 1), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_named_interrupt_with(nullptr, nullptr, nullptr), LOCKFLIGHT_INVALID,
          "lock NULL");
  refused(lockflight_named_create(nullptr, "a", nullptr, &none), LOCKFLIGHT_INVALID, "domain NULL");
  refused(lockflight_named_create(domain_, nullptr, nullptr, &none), LOCKFLIGHT_INVALID,
          "name NULL");
  refused(lockflight_named_create(domain_, "a", nullptr, nullptr), LOCKFLIGHT_INVALID, "lock NULL");
  refused(lockflight_domain_open(nullptr, nullptr, &nowhere), LOCKFLIGHT_INVALID, "name NULL");
  refused(lockflight_domain_open("a", nullptr, nullptr), LOCKFLIGHT_INVALID, "domain NULL");
  refused(lockflight_domain_close(nullptr), LOCKFLIGHT_INVALID, "domain NULL");
  refused(lockflight_domain_remove(nullptr, 0), LOCKFLIGHT_INVALID, "name NULL");
}

}  // namespace
}  // namespace lockflight::test
