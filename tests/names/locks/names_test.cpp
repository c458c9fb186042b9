// The names of locks in a domain: made, found, agreed about, removed; handles that are misused.
#include <atomic>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

TEST(DomainNames, EveryKindLocksAndIsTold) {
  const own_domain own;
  auto d = domain::open(own.name());
  int kinds = 0;
  for (const std::string& kind : kind_names()) {
    SCOPED_TRACE(kind);
    named_lock l(d, "of " + kind, {.kind = kind});
    l.lock();
    EXPECT_TRUE(l.is_held());
    const auto token = l.token();
    l.unlock();
    l.lock();
    EXPECT_GT(l.token(), token);
    l.unlock();
    if (l.can_share()) {
      l.lock_shared();
      l.unlock_shared();
    }
    child victim([&] {
      named_lock theirs(domain::attach(own.name()), "of " + kind, {.kind = kind});
      theirs.lock();
      raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(victim.wait(), 1000 + SIGKILL);
    l.lock();
    EXPECT_TRUE(l.owner_died());
    EXPECT_GT(l.token(), token + 1);
    l.unlock();
    ++kinds;
  }
  EXPECT_EQ(d.names(), static_cast<unsigned>(kinds));
  EXPECT_EQ(d.locks().size(), static_cast<std::size_t>(kinds));
}

TEST(DomainNames, WhatIsNotAcceptedIsNamed) {
  const own_domain own;
  auto d = domain::open(own.name());
  EXPECT_REFUSED(invalid, "''", named_mutex(d, ""));
  EXPECT_REFUSED(invalid, "1 to 255", named_mutex(d, std::string(256, 'x')));
  EXPECT_REFUSED(invalid, "newline", named_mutex(d, "a\nb"));
  EXPECT_REFUSED(invalid, "NUL", named_mutex(d, std::string_view("a\0b", 3)));
  EXPECT_REFUSED(invalid, "flight-rw", named_lock(d, "x", {.kind = "fligt"}));
  EXPECT_REFUSED(invalid, "flight", named_lock(d, "x", {.kind = "msg"}));
  EXPECT_REFUSED(invalid, "local_budget=0", named_lock(d, "x", {.parameters = "local_budget=0"}));
  EXPECT_REFUSED(invalid, "accepted", named_lock(d, "x", {.parameters = "nothing=1"}));
  EXPECT_REFUSED(invalid, "name=number", named_lock(d, "x", {.parameters = "barge"}));
  const std::string longest(255, 'x');
  named_mutex(d, longest).lock();
  named_mutex(d, "\x01 any \xff bytes").lock();
  named_lock rw(d, "x", {.kind = "flight-rw"});
  rw.lock();
  rw.unlock();
  named_mutex(d, "x").lock();
  const std::string maker = "process " + std::to_string(getpid());
  EXPECT_REFUSED(disagrees, maker, named_lock(d, "x", {.kind = "flight"}));
  EXPECT_REFUSED(disagrees, "kind flight-rw", named_lock(d, "x", {.kind = "flight"}));
  EXPECT_REFUSED(disagrees, "barge=3", named_lock(d, "x", {.parameters = "barge=3"}));
  named_lock set(d, "set", {.kind = "flight", .parameters = "barge=3,local_budget=5"});
  set.lock();
  set.unlock();
  const named_lock same(d, "set", {.kind = "flight", .parameters = "local_budget=5,barge=3"});
  named_lock as_it_is(d, "set", {.kind = "flight"});
  as_it_is.lock();
  as_it_is.unlock();
  EXPECT_REFUSED(disagrees, "barge=3",
                 named_lock(d, "set", {.kind = "flight", .parameters = "barge=4"}));
  EXPECT_REFUSED(invalid, "T_DC=1", named_lock(d, "y", {.kind = "rma-rw", .parameters = "T_DC=1"}));
  named_lock mcs(d, "mcs", {.kind = "mcs-rw-rp"});
  EXPECT_REFUSED(invalid, "cannot leave", static_cast<void>(mcs.try_lock_within(1000)));
  EXPECT_REFUSED(invalid, "no shared holders", set.lock_shared());
}

TEST(DomainNames, AHandleMisusedSaysSo) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_shared_mutex m(d, "m");
  EXPECT_REFUSED(not_held, "'m'", m.unlock());
  m.lock();
  EXPECT_REFUSED(held, "'m'", m.lock());
  EXPECT_REFUSED(not_held, "shared", m.unlock_shared());
  std::thread([&] {
    EXPECT_REFUSED(wrong_thread, "another thread's", m.lock());
    EXPECT_REFUSED(wrong_thread, "another thread's", m.unlock());
  }).join();
  child forked([&] {
    const auto [reason, text] = refusal_of([&] { m.unlock(); });
    if (reason != static_cast<int>(domain_error::reason::wrong_thread)) return 1;
    named_shared_mutex own_handle(d, "m");  // of the domain that the parent opened
    if (own_handle.try_lock()) return 2;
    named_mutex other(d, "other");
    other.lock();
    other.unlock();
    return 0;
  });
  EXPECT_EQ(forked.wait(), 0);
  named_shared_mutex second(d, "m");
  EXPECT_REFUSED(held, "another handle of this thread", second.lock());
  EXPECT_REFUSED(held, "another handle of this thread",
                 static_cast<void>(second.try_lock_shared()));
  m.unlock();
  m.lock_shared();
  named_shared_mutex again(d, "m");
  again.lock_shared();
  again.unlock_shared();
  m.unlock_shared();
}

TEST(DomainNames, AHeldHandleThatIsDestroyedCountsAsADeath) {
  const own_domain own;
  auto d = domain::open(own.name());
  {
    named_mutex m(d, "m");
    m.lock();
  }
  named_lock told(d, "m", {.death = named_lock_options::on_death::raise});
  EXPECT_THROW(told.lock(), owner_died_error);
  EXPECT_FALSE(told.is_held());
  {
    named_mutex other(d, "m");
    ASSERT_TRUE(other.try_lock());
    EXPECT_TRUE(other.owner_died());
    other.unlock();
  }
  told.lock();  // the handle has been told
  EXPECT_TRUE(told.owner_died());
  told.mark_consistent();
  told.unlock();
  EXPECT_NO_THROW(told.lock());
  told.unlock();
}

TEST(DomainNames, AThreadThatEndsWithALockFreesIt) {
  const own_domain own;
  auto d = domain::open(own.name());
  std::unique_ptr<named_mutex> kept;
  std::thread([&] {
    kept = std::make_unique<named_mutex>(d, "m");
    kept->lock();
  }).join();
  named_mutex m(d, "m");
  ASSERT_TRUE(m.try_lock_for(1s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
  kept.reset();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(DomainNames, ARemovedLockIsMadeAnewByItsHandles) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  EXPECT_REFUSED(held, std::to_string(getpid()), d.remove_lock("a"));
  a.unlock();
  const auto token = a.token();
  EXPECT_TRUE(d.remove_lock("a"));
  EXPECT_FALSE(d.remove_lock("a"));
  EXPECT_EQ(d.names(), 0u);
  named_mutex b(d, "b");  // in the same words
  b.lock();
  ASSERT_TRUE(a.try_lock());
  EXPECT_GT(a.token(), token);
  a.unlock();
  EXPECT_TRUE(d.remove_lock("a"));
  named_lock other(d, "a", {.kind = "flight"});
  other.lock();
  other.unlock();
  EXPECT_REFUSED(disagrees, "flight", a.lock());
  b.unlock();
  EXPECT_EQ(d.names(), 2u);
}

TEST(DomainNames, AThreadHoldsManyLocksAtOnce) {
  const own_domain own;
  auto d = domain::open(own.name());
  std::vector<named_mutex> held;
  for (int i = 0; i < 33; ++i) held.emplace_back(d, std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 32; ++i) held[i].lock();
    EXPECT_REFUSED(full, "32 locks", held[32].lock());
    EXPECT_FALSE(held[32].is_held());
    for (std::size_t i = 0; i < 32; ++i) held[i].unlock();
  }
}

TEST(DomainNames, TokensGrowAcrossRemovals) {
  const own_domain own;
  auto d = domain::open(own.name());
  std::uint64_t last = 0;
  named_mutex m(d, "m");
  for (int round = 0; round < 100; ++round) {
    m.lock();
    EXPECT_GT(m.token(), last);
    last = m.token();
    m.unlock();
    if (round % 3 != 0) continue;
    EXPECT_TRUE(d.remove_lock("m"));
    if (round % 2 != 0) named_mutex(d, "in its words " + std::to_string(round)).lock();
  }
}

TEST(DomainNames, NamesRunOutAndComeBack) {
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 3, .names = 5});
  for (int round = 0; round < 20; ++round) {
    std::vector<named_mutex> all;
    for (int i = 0; i < 5; ++i) all.emplace_back(d, "n" + std::to_string(i)).lock();
    EXPECT_REFUSED(full, "all 5", named_mutex(d, "one more").lock());
    all[3].unlock();  // it gives way
    named_mutex more(d, "one more");
    more.lock();
    EXPECT_EQ(d.names(), 5u);
    EXPECT_FALSE(all[3].is_held());
    more.unlock();
    all[3].lock();  // and comes back
    for (auto& one : all) one.unlock();
    all.clear();
    if (round % 2 != 0) continue;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(d.remove_lock("n" + std::to_string(i)));
  }
}

TEST(DomainNames, ThreadsMakeRemoveAndUseTheSameNames) {
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 8, .names = 16});
  std::atomic<int> inside[4]{};
  std::atomic<int> wrong = 0;
  std::atomic<int> removed = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      unsigned x = t * 7919 + 1;
      std::vector<named_mutex> mine;
      for (int i = 0; i < 4; ++i) mine.emplace_back(d, std::to_string(i));
      for (int round = 0; round < 3000; ++round) {
        x = x * 1664525 + 1013904223;
        const unsigned i = (x >> 16) % 4;
        if (x >> 28 == 0) {
          try {
            removed += d.remove_lock(std::to_string(i)) ? 1 : 0;
          } catch (const domain_error& e) {
            if (e.why != domain_error::reason::held) ++wrong;
          }
          continue;
        }
        const std::scoped_lock hold(mine[i]);
        if (inside[i].exchange(1) != 0) ++wrong;
        if (mine[i].owner_died()) ++wrong;
        inside[i] = 0;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(removed, 0) << "all removals were refused";
}

// The thread that holds may end while another one drops its handle: only one of the two releases.
TEST(DomainNames, AHandleIsDroppedWhileItsThreadEnds) {
  const own_domain own;
  const auto d = domain::open(own.name());
  for (int round = 0; round < 100; ++round) {
    auto held = std::make_unique<named_mutex>(d, "a");
    std::atomic<bool> has{false};
    std::thread holder([&] {
      held->lock();
      has = true;
      std::this_thread::sleep_for(std::chrono::microseconds(round));
    });
    while (!has) std::this_thread::yield();
    held.reset();
    holder.join();
    named_mutex next(d, "a");
    ASSERT_TRUE(next.try_lock_for(std::chrono::seconds(2)));
    EXPECT_TRUE(next.owner_died());
    next.mark_consistent();
    next.unlock();
  }
}

// A thread whose lock another one has dropped acquires as fast as before.
TEST(DomainNames, WhatAnotherThreadHasDroppedIsForgotten) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto held = std::make_unique<named_mutex>(d, "a");
  held->lock();
  std::thread([&] { held.reset(); }).join();
  named_mutex again(d, "a");
  EXPECT_TRUE(again.try_lock());
  again.unlock();
}

}  // namespace
}  // namespace lockflight::test
