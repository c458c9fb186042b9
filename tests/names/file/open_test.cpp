// Domains made, found, refused and removed; slots that run out and come back.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

TEST(DomainOpen, IsMadeOnceAndFoundByAll) {
  const own_domain own;
  EXPECT_REFUSED(missing, own.name(), static_cast<void>(domain::attach(own.name())));
  auto d = domain::open(own.name(), {.slots = 7, .names = 9});
  EXPECT_EQ(d.name(), own.name());
  const auto other = domain::open(own.name(), {.slots = 3});
  EXPECT_EQ(other.options().slots, 7);
  EXPECT_EQ(domain::attach(own.name()).options().names, 9u);
  const auto all = domain::list();
  EXPECT_NE(std::find(all.begin(), all.end(), own.name()), all.end());
  EXPECT_TRUE(domain::remove(own.name()));
  EXPECT_FALSE(domain::remove(own.name()));
  EXPECT_NE(access(own.path().c_str(), F_OK), 0);
}

TEST(DomainOpen, ManyMakeItAtOnce) {
  const own_domain own;
  const auto token_now = [&] {
    named_mutex m(domain::open(own.name()), "m");
    m.lock();
    const auto token = m.token();
    m.unlock();
    return token;
  };
  std::vector<child> children;
  for (int i = 0; i < 8; ++i)
    children.emplace_back([&] {
      named_mutex m(domain::open(own.name()), "m");
      m.lock();
      m.unlock();
      return 0;
    });
  for (child& one : children) EXPECT_EQ(one.wait(), 0);
  const auto token = token_now();
  EXPECT_EQ(token_now(), token + 1);
  EXPECT_EQ(token % (1 << 10), 9u) << "all eight had the same lock before us";
}

TEST(DomainOpen, WhatIsNotAcceptedIsNamed) {
  for (const std::string name : {"", ".x", "a/b", "a b", "../x", "\n"})
    EXPECT_REFUSED(invalid, "domain name", static_cast<void>(domain::open(name)));
  EXPECT_REFUSED(invalid, "1 to 64", static_cast<void>(domain::open(std::string(65, 'a'))));
  const own_domain own;
  EXPECT_REFUSED(invalid, "slots 0 (accepted: 1 to 4095)",
                 static_cast<void>(domain::open(own.name(), {.slots = 0})));
  EXPECT_REFUSED(invalid, "slots 4096",
                 static_cast<void>(domain::open(own.name(), {.slots = 4096})));
  EXPECT_REFUSED(invalid, "names 0", static_cast<void>(domain::open(own.name(), {.names = 0})));
  EXPECT_REFUSED(invalid, "mode 0666", static_cast<void>(domain::open(own.name(), {.mode = 0666})));
  EXPECT_NE(access(own.path().c_str(), F_OK), 0);
}

TEST(DomainOpen, TheLargestTakesNoMoreThanIsUsed) {
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 4095, .names = 1'048'576});
  named_mutex m(d, "m");
  m.lock();
  m.unlock();
  struct stat s {};
  ASSERT_EQ(stat(own.path().c_str(), &s), 0);
  EXPECT_LT(s.st_blocks * 512, 8 << 20);
}

TEST(DomainOpen, AFileThatIsNoDomainIsDamaged) {
  const own_domain own;
  const auto refused = [&](const char* how) {
    SCOPED_TRACE(how);
    EXPECT_REFUSED(damaged, own.path(), static_cast<void>(domain::open(own.name())));
    EXPECT_REFUSED(damaged, own.path(), static_cast<void>(domain::attach(own.name())));
  };
  const auto put = [&](off_t at, const void* what, std::size_t n) {
    const int fd = open(own.path().c_str(), O_RDWR);
    EXPECT_EQ(pwrite(fd, what, n, at), static_cast<ssize_t>(n));
    close(fd);
  };
  static_cast<void>(domain::open(own.name()));  // makes the folder
  unlink(own.path().c_str());
  close(open(own.path().c_str(), O_CREAT | O_RDWR, 0600));
  refused("empty");
  std::string noise(1 << 16, 'x');
  put(0, noise.data(), noise.size());
  refused("noise");
  unlink(own.path().c_str());
  ASSERT_EQ(symlink("/dev/null", own.path().c_str()), 0);
  refused("a link");
  unlink(own.path().c_str());
  ASSERT_EQ(mkfifo(own.path().c_str(), 0600), 0);
  refused("a pipe");
  unlink(own.path().c_str());
  ASSERT_EQ(mkdir(own.path().c_str(), 0700), 0);
  refused("a folder");
  rmdir(own.path().c_str());
  for (const off_t at : {0, 8, 12, 16, 20, 24, 28, 32}) {
    static_cast<void>(domain::open(own.name()));
    const std::uint32_t other = 0x5a5a5a5a;
    put(at, &other, sizeof other);
    refused(("a header with another word at " + std::to_string(at)).c_str());
    unlink(own.path().c_str());
  }
  static_cast<void>(domain::open(own.name()));
  chmod(own.path().c_str(), 0666);
  refused("for all to write");
  unlink(own.path().c_str());
  static_cast<void>(domain::open(own.name()));
  ASSERT_EQ(truncate(own.path().c_str(), 1 << 16), 0);
  refused("shorter");
  unlink(own.path().c_str());
}

TEST(DomainOpen, ATruncatedFileIsNoticed) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex m(d, "m");
  m.lock();
  m.unlock();
  struct stat s {};
  ASSERT_EQ(stat(own.path().c_str(), &s), 0);
  ASSERT_EQ(truncate(own.path().c_str(), s.st_size - 4096), 0);
  EXPECT_REFUSED(damaged, "shorter", named_mutex(d, "other"));
  EXPECT_REFUSED(damaged, "shorter", static_cast<void>(d.locks()));
  EXPECT_REFUSED(damaged, "shorter", static_cast<void>(d.sweep()));
  ASSERT_EQ(truncate(own.path().c_str(), s.st_size), 0);
}

TEST(DomainOpen, SlotsRunOutAndComeBack) {
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 2});
  named_mutex m(d, "m");
  m.lock();
  m.unlock();
  std::atomic<int> step = 0;
  std::thread second([&] {
    named_mutex theirs(d, "m");
    theirs.lock();
    theirs.unlock();
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  std::thread([&] {
    named_mutex theirs(d, "m");
    EXPECT_FALSE(theirs.try_lock());
    EXPECT_FALSE(theirs.try_lock_for(std::chrono::milliseconds(30)));
    EXPECT_EQ(d.sweep(), 0);          // nothing to do
    EXPECT_TRUE(d.remove_lock("m"));  // by the steward
  }).join();
  EXPECT_EQ(d.participants().size(), 2u);
  std::thread waits([&] {
    named_mutex theirs(d, "m");
    theirs.lock();  // once there is a slot
    theirs.unlock();
  });
  step = 2;
  second.join();
  waits.join();
  EXPECT_EQ(d.participants().size(), 1u);
  // Slots of dead holders come back too.
  for (int i = 0; i < 5; ++i) {
    child victim([&] {
      named_mutex theirs(d, "m");
      theirs.lock();
      raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(victim.wait(), 1000 + SIGKILL);
  }
  EXPECT_EQ(d.sweep(), 1);
}

TEST(DomainOpen, RemoveAsksWhoUsesIt) {
  const own_domain own;
  auto d = domain::open(own.name());
  std::atomic<int> step = 0;
  std::thread user([&] {
    named_mutex m(d, "m");
    m.lock();
    step = 1;
    while (step != 2) std::this_thread::yield();
    m.unlock();
  });
  while (step != 1) std::this_thread::yield();
  EXPECT_REFUSED(held, std::to_string(getpid()), domain::remove(own.name()));
  const auto locks = d.locks();
  ASSERT_EQ(locks.size(), 1u);
  ASSERT_EQ(locks[0].users.size(), 1u);
  EXPECT_EQ(locks[0].users[0].pid, getpid());
  EXPECT_EQ(locks[0].users[0].held, mode::exclusive);
  const auto who = d.participants();
  ASSERT_EQ(who.size(), 1u);
  EXPECT_FALSE(who[0].command.empty());
  EXPECT_TRUE(domain::remove(own.name(), true));
  step = 2;
  user.join();
  // Another domain of that name.
  auto other = domain::open(own.name());
  EXPECT_EQ(other.names(), 0u);
  EXPECT_EQ(d.names(), 1u);
}

TEST(DomainOpen, AProcessThatExitsOrExecsGivesItsLocksBack) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex m(d, "m");
  auto& held = shared_words<std::atomic<int>>();
  for (const bool exec : {false, true}) {
    held = 0;
    child one([&] {
      auto* const theirs = new named_mutex(d, "m");  // outlives this function
      theirs->lock();
      held = 1;
      if (exec) execl("/bin/sleep", "sleep", "1000", nullptr);
      exit(0);
      return 0;
    });
    while (held == 0) usleep(1000);
    ASSERT_TRUE(m.try_lock_for(std::chrono::seconds(2)));
    EXPECT_TRUE(m.owner_died());
    m.mark_consistent();
    m.unlock();
    if (exec) one.kill();  // the program that it has become still runs
    EXPECT_EQ(one.wait(), exec ? 1000 + SIGKILL : 0);
  }
}

}  // namespace
}  // namespace lockflight::test
