// What removes a domain, and what those see who use it meanwhile.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "names/file/file.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

TEST(DomainRemoval, AHandleWithoutASlotFindsTheDomainThatIsThereNow) {
  const own_domain own;
  named_mutex early(domain::open(own.name()), "a");  // no slot yet
  EXPECT_TRUE(domain::remove(own.name()));
  named_mutex late(domain::open(own.name()), "a");
  auto& step = shared_words<std::atomic<int>>();
  child holder([&] {
    named_mutex theirs(domain::attach(own.name()), "a");
    theirs.lock();
    step = 1;
    while (step == 1) usleep(1000);
    theirs.unlock();
    return 0;
  });
  while (step == 0) usleep(1000);
  EXPECT_FALSE(early.try_lock()) << "two hold one name";
  EXPECT_FALSE(late.try_lock());
  step = 2;
  EXPECT_EQ(holder.wait(), 0);
  early.lock();
  EXPECT_TRUE(early.still_valid());
  EXPECT_FALSE(
      child([&] { return named_mutex(domain::attach(own.name()), "a").try_lock(); }).wait());
  early.unlock();
}

// Handles that have held go over at once when the domain is removed, not only within a second.
TEST(DomainRemoval, NobodyAcquiresInADomainThatWasRemoved) {
  const own_domain own;
  const auto d = domain::open(own.name());
  for (const bool force : {false, true}) {
    named_mutex early(d, "a");
    early.lock();
    early.unlock();
    auto& step = shared_words<std::atomic<int>>();
    child user([&] {
      named_mutex theirs(domain::attach(own.name()), "a");
      theirs.lock();
      theirs.unlock();
      if (!force) return 0;
      step = 1;
      while (step == 1) usleep(1000);
      return theirs.try_lock() ? 1 : 0;
    });
    if (!force) {
      EXPECT_EQ(user.wait(), 0);
    }
    while (force && step == 0) usleep(1000);
    EXPECT_TRUE(domain::remove(own.name(), force));
    named_mutex late(domain::open(own.name()), "a");
    late.lock();
    step = 2;
    EXPECT_FALSE(child([&] {
                   named_mutex other(domain::attach(own.name()), "a");
                   return other.try_lock() ? 1 : 0;
                 }).wait());
    if (force) {
      EXPECT_EQ(user.wait(), 0) << "two hold one name";
    }
    late.unlock();
    EXPECT_TRUE(early.try_lock());
    EXPECT_TRUE(early.still_valid());
    early.unlock();
  }
}

TEST(DomainRemoval, AFileThatLosesItsNameIsNoticedByAll) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex m(d, "a");
  m.lock();
  EXPECT_TRUE(m.still_valid());
  EXPECT_TRUE(d.still_valid());
  auto& done = shared_words<std::atomic<int>>();
  child waiter([&] {
    named_mutex theirs(domain::attach(own.name()), "a");
    theirs.lock();  // in the domain that is there then
    done = 1;
    return theirs.still_valid() ? 0 : 1;
  });
  usleep(100'000);
  ASSERT_EQ(unlink(own.path().c_str()), 0);  // as a cleaner does it
  EXPECT_FALSE(m.still_valid());
  EXPECT_FALSE(d.still_valid());
  EXPECT_EQ(waiter.wait(), 0);
  EXPECT_EQ(done, 1);
  m.unlock();
  // A handle that acquires goes over within a second.
  std::this_thread::sleep_for(1100ms);
  m.lock();
  EXPECT_TRUE(m.still_valid());
  m.unlock();
}

/// A process that is as a remover between its mark and the end of the path, until it is killed.
child half_remover(const std::string& name, std::atomic<int>& step) {
  return child([name, &step]() -> int {
    const auto at = detail::private_place(name);
    const detail::removal_right right(at);
    const auto file = detail::domain_file::open_at(at);
    file->header().removal.store(std::uint64_t{1} << 32 | static_cast<std::uint32_t>(getpid()));
    step = 1;
    while (true) pause();
  });
}

TEST(DomainRemoval, ARemoverThatDiesLeavesTheDomainUsable) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child remover = half_remover(own.name(), step);
  while (step == 0) usleep(1000);
  remover.kill();
  remover.wait();
  named_mutex m(d, "a");
  EXPECT_TRUE(m.try_lock_for(1s));
  EXPECT_TRUE(m.still_valid());
  m.unlock();
  EXPECT_TRUE(domain::remove(own.name()));
}

TEST(DomainRemoval, ARemoverThatStopsIsNamedAndAttemptsReturn) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child remover = half_remover(own.name(), step);
  while (step == 0) usleep(1000);
  kill(remover.pid(), SIGSTOP);
  named_mutex m(d, "a");
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_for(20ms));
  EXPECT_REFUSED(held, "another process removes it", domain::remove(own.name(), true));
  remover.kill();
  remover.wait();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(DomainRemoval, TokensGrowAcrossDomainsOfTheSameName) {
  const own_domain own;
  std::uint64_t last = 0;
  for (int round = 0; round < 5; ++round) {
    named_mutex m(domain::open(own.name()), "a");
    m.lock();
    EXPECT_GT(m.token(), last);
    last = m.token();
    m.unlock();
    EXPECT_TRUE(domain::remove(own.name(), true));
    usleep(2'000);
  }
}

// A child of a fork in the middle of a removal does not keep the right to remove.
TEST(DomainRemoval, AForkBesideARemovalKeepsNothing) {
  const own_domain own;
  static_cast<void>(domain::open(own.name()));
  std::vector<child> children;
  {
    const detail::removal_right right(detail::private_place(own.name()));
    children.emplace_back([] { return pause(); });
  }
  EXPECT_TRUE(domain::remove(own.name()));
}

// A remover that is slow to take the path away takes away nobody else's domain.
void remove_by_many(const std::string& name, const domain_options& as) {
  auto& all_have_tried = shared_words<std::atomic<int>>();
  int removed = 0;
  for (int round = 0; round < 30; ++round) {
    static_cast<void>(domain::open(name, as));
    all_have_tried = 0;
    std::vector<child> removers;
    for (int i = 0; i < 3; ++i)
      removers.emplace_back([&] {
        try {
          return domain::remove(name, false, as.mode) ? 1 : 0;
        } catch (const domain_error&) {
          return 0;
        }
      });
    // A process of its own: the slot that this one would keep would forbid the next removals.
    child holder([&] {
      usleep(static_cast<useconds_t>(round) * 50);
      named_mutex m(domain::open(name, as), "a");
      m.lock();
      while (all_have_tried == 0) usleep(100);
      return m.still_valid() ? 0 : 1;
    });
    for (child& each : removers) {
      const int code = each.wait();
      ASSERT_TRUE(code == 0 || code == 1) << code;
      removed += code;
    }
    all_have_tried = 1;
    EXPECT_EQ(holder.wait(), 0) << "the domain of a holder was removed";
  }
  EXPECT_GT(removed, 5) << "hardly anybody removed anything";
}

TEST(DomainRemoval, TwoRemoversRemoveOneDomain) {
  const own_domain own;
  remove_by_many(own.name(), {.mode = 0600});
}

TEST(DomainRemoval, TwoRemoversRemoveOneSharedDomain) {
  const domain_options shared{.mode = 0660};
  const std::string name = "shared." + std::to_string(getpid());
  remove_by_many(name, shared);
  EXPECT_TRUE(domain::remove(name, true, shared.mode));
}

TEST(DomainRemoval, ATruncatedDomainIsRemovedByForce) {
  const own_domain own;
  static_cast<void>(domain::open(own.name()));
  ASSERT_EQ(truncate(own.path().c_str(), 100), 0);
  EXPECT_REFUSED(damaged, "too short", static_cast<void>(domain::open(own.name())));
  EXPECT_REFUSED(damaged, "too short ('lockflight domain remove " + own.name() + " --force'",
                 domain::remove(own.name()));
  EXPECT_TRUE(domain::remove(own.name(), true));
  EXPECT_FALSE(domain::remove(own.name(), true));
}

}  // namespace
}  // namespace lockflight::test
