// Where domains lie: users, groups, removed and foreign files, full memory, closed descriptors.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "domain/store/file.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

bool is_root() { return geteuid() == 0; }

void become(uid_t user, gid_t group, const std::vector<gid_t>& groups = {}) {
  if (setgroups(groups.size(), groups.data()) != 0 || setgid(group) != 0 || setuid(user) != 0)
    _exit(112);
}

/// The exit code of a child that could not do what the test is about.
constexpr int not_allowed_here = 9;

/// 0, or the line at which it was wrong.
#define CHECK_OR_RETURN(what)               \
  do {                                      \
    if (!(what)) return __LINE__ % 90 + 10; \
  } while (false)

// ---- removed ----

TEST(DomainPlace, AHandleWithoutASlotFindsTheDomainThatIsThereNow) {
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
TEST(DomainPlace, NobodyAcquiresInADomainThatWasRemoved) {
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

TEST(DomainPlace, AFileThatLosesItsNameIsNoticedByAll) {
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

TEST(DomainPlace, ARemoverThatDiesLeavesTheDomainUsable) {
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

TEST(DomainPlace, ARemoverThatStopsIsNamedAndAttemptsReturn) {
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

TEST(DomainPlace, TokensGrowAcrossDomainsOfTheSameName) {
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

// ---- users and groups ----

TEST(DomainPlace, ASharedDomainIsOneForAllOfItsGroup) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be two users";
  const std::string name = "team." + std::to_string(getpid());
  constexpr gid_t team = 61001;
  auto& inside = shared_words<std::atomic<int>>();
  auto& most = shared_words<std::atomic<int>>();
  const domain_options shared{.mode = 0660, .group = std::to_string(team)};
  std::vector<child> users;
  for (const uid_t user : {61001u, 61002u, 61003u})
    users.emplace_back([&, user] {
      become(user, user, {team});
      for (int i = 0; i < 20; ++i) {
        named_mutex m(domain::open(name, shared), "a");
        m.lock();
        if (++inside > 1) most = 2;
        usleep(500);
        --inside;
        m.unlock();
      }
      const auto by_name = domain::attach(name);
      CHECK_OR_RETURN(by_name.options().mode == 0660);
      CHECK_OR_RETURN(domain::open(name).path() == by_name.path());
      // Its maker is told that it exists otherwise; to others it is somebody else's.
      struct stat its {};
      CHECK_OR_RETURN(stat(by_name.path().c_str(), &its) == 0);
      const auto [reason, text] =
          refusal_of([&] { static_cast<void>(domain::open(name, {.mode = 0600})); });
      if (its.st_uid == user) {
        CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::disagrees));
        CHECK_OR_RETURN(text.find("0660") != std::string::npos);
      } else {
        CHECK_OR_RETURN(reason == -1);
        CHECK_OR_RETURN(domain::remove(name, false, 0600));
      }
      return 0;
    });
  for (child& one : users) EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(most, 0) << "two users had a domain each";
  child stranger([&] {
    become(61009, 61009);
    const auto [reason, text] = refusal_of([&] { static_cast<void>(domain::attach(name)); });
    return reason == static_cast<int>(domain_error::reason::missing) ? 0 : 1;
  });
  EXPECT_EQ(stranger.wait(), 0);
  child removes([&] {
    become(61001, 61001, {team});
    return domain::remove(name, true, 0660) ? 0 : 1;
  });
  if (removes.wait() != 0)  // the sticky folder: only its maker can
    unlink(detail::shared_place(name, team).path.c_str());
}

TEST(DomainPlace, RootUsesNoDomainOfAGroupThatItIsNotIn) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be another user";
  const own_domain own(".root");
  constexpr gid_t team = 61001;
  const domain_options shared{.mode = 0660, .group = std::to_string(team)};
  child attacker([&] {
    become(61005, 61005, {team});
    return domain::open(own.name(), shared).options().mode == 0660 ? 0 : 1;
  });
  ASSERT_EQ(attacker.wait(), 0);
  EXPECT_EQ(domain::open(own.name()).options().mode, 0600u);
  EXPECT_EQ(domain::attach(own.name(), 0660).options().group, std::to_string(team));
  EXPECT_TRUE(domain::remove(own.name(), true, 0660));
}

// What a process has open stays what it uses, whatever it may open later.
TEST(DomainPlace, WhoDropsRightsOrChangesTheRootStaysInTheDomain) {
  if (!is_root()) GTEST_SKIP() << "needs root, to have rights";
  const own_domain own;
  named_mutex holder(domain::open(own.name()), "a");
  holder.lock();
  const std::vector<std::function<void()>> ways{[] { become(61001, 61001); },
                                                [] {
                                                  if (chroot("/proc") != 0) _exit(112);
                                                }};
  for (const auto& way : ways) {
    child daemon([&] {
      const auto d = domain::attach(own.name());
      named_mutex b(d, "b");
      b.lock();
      b.unlock();
      way();
      named_mutex a(d, "a");
      CHECK_OR_RETURN(!a.try_lock());
      CHECK_OR_RETURN(!a.try_lock_for(1200ms));
      CHECK_OR_RETURN(b.try_lock());
      b.unlock();
      return 0;
    });
    EXPECT_EQ(daemon.wait(), 0);
  }
  holder.unlock();
}

// A child of a fork in the middle of a removal does not keep the right to remove.
TEST(DomainPlace, AForkBesideARemovalKeepsNothing) {
  const own_domain own;
  static_cast<void>(domain::open(own.name()));
  std::vector<child> children;
  {
    const detail::removal_right right(detail::private_place(own.name()));
    children.emplace_back([] { return pause(); });
  }
  EXPECT_TRUE(domain::remove(own.name()));
}

TEST(DomainPlace, TheDefaultDomainIsTheUsersOwn) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be two users";
  constexpr gid_t team = 61001;
  const std::string shared_path = detail::shared_place("default", team).path;
  child attacker([&] {
    become(61005, 61005, {team});
    return domain::open("default", {.mode = 0660, .group = std::to_string(team)}).options().mode ==
                   0660
               ? 0
               : 1;
  });
  EXPECT_EQ(attacker.wait(), 0);
  child victim([&] {
    become(61008, 61008, {team});
    CHECK_OR_RETURN(domain::open("default").options().mode == 0600);
    CHECK_OR_RETURN(domain::attach("default").options().mode == 0600);
    CHECK_OR_RETURN(domain::remove("default"));
    return 0;
  });
  EXPECT_EQ(victim.wait(), 0);
  unlink(shared_path.c_str());
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
TEST(DomainPlace, TwoRemoversRemoveOneDomain) {
  const own_domain own;
  remove_by_many(own.name(), {.mode = 0600});
}
TEST(DomainPlace, TwoRemoversRemoveOneSharedDomain) {
  const domain_options shared{.mode = 0660};
  const std::string name = "shared." + std::to_string(getpid());
  remove_by_many(name, shared);
  EXPECT_TRUE(domain::remove(name, true, shared.mode));
}

TEST(DomainPlace, ADamagedDomainOfAGroupIsRemovedAndNotThePrivateOne) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be in a group";
  const own_domain own(".group");
  constexpr gid_t team = 61001;
  const domain_options shared{.mode = 0660, .group = std::to_string(team)};
  const std::string path = detail::shared_place(own.name(), team).path;
  child member([&] {
    become(61001, 61001, {team});
    return domain::open(own.name(), shared).path() == path ? 0 : 1;
  });
  ASSERT_EQ(member.wait(), 0);
  static_cast<void>(domain::open(own.name(), {.mode = 0600}));
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_REFUSED(damaged, "too short", domain::remove(own.name(), false, 0660));
  EXPECT_TRUE(domain::remove(own.name(), true, 0660));
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_TRUE(domain::attach(own.name()).still_valid());
}

TEST(DomainPlace, APrivateAndASharedDomainOfOneNameAreToldApart) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be two users";
  const std::string name = "both." + std::to_string(getpid());
  constexpr gid_t team = 61001;
  child one([&] {
    become(61004, 61004, {team});
    CHECK_OR_RETURN(domain::open(name).options().mode == 0600);
    child two([&] {
      return domain::open(name, {.mode = 0600}).path() == domain::attach(name).path() ? 0 : 1;
    });
    CHECK_OR_RETURN(two.wait() == 0);
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  child other([&] {
    become(61005, 61005, {team});
    const domain_options shared{.mode = 0660, .group = std::to_string(team)};
    CHECK_OR_RETURN(domain::open(name, shared).options().mode == 0660);
    return 0;
  });
  EXPECT_EQ(other.wait(), 0);
  child asks([&] {
    become(61004, 61004, {team});
    CHECK_OR_RETURN(domain::open(name).options().mode == 0600);
    CHECK_OR_RETURN(domain::attach(name, 0600).options().mode == 0600);
    CHECK_OR_RETURN(domain::attach(name, 0660).options().mode == 0660);
    CHECK_OR_RETURN(domain::remove(name, false, 0600));
    CHECK_OR_RETURN(domain::attach(name).options().mode == 0660);
    return 0;
  });
  EXPECT_EQ(asks.wait(), 0);
  unlink(detail::shared_place(name, team).path.c_str());
}

TEST(DomainPlace, AFileOfAnotherUserIsRefusedAndNamed) {
  if (!is_root()) GTEST_SKIP() << "needs root, to be two users";
  const std::string folder = "/dev/shm/lockflight-61006";
  child attacker([&] {
    become(61007, 61007);
    return mkdir(folder.c_str(), 0777) == 0 ? 0 : 1;
  });
  EXPECT_EQ(attacker.wait(), 0);
  child victim([&] {
    become(61006, 61006);
    const auto [reason, text] = refusal_of([&] { static_cast<void>(domain::open("mine")); });
    CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::damaged));
    CHECK_OR_RETURN(text.find(folder) != std::string::npos);
    CHECK_OR_RETURN(text.find("owner 61007") != std::string::npos);
    CHECK_OR_RETURN(text.find("LOCKFLIGHT_DOMAINS") != std::string::npos);
    CHECK_OR_RETURN(domain::list().empty());
    return 0;
  });
  EXPECT_EQ(victim.wait(), 0);
  rmdir(folder.c_str());
  // A domain that is shared with a group is nobody's private one.
  const own_domain own;
  const auto d = domain::open(own.name());
  ASSERT_EQ(chmod(own.path().c_str(), 0660), 0);
  EXPECT_REFUSED(damaged, "mode 0600", static_cast<void>(domain::attach(own.name())));
  ASSERT_EQ(chmod(own.path().c_str(), 0600), 0);
  ASSERT_EQ(chown(own.path().c_str(), 61007, 0), 0);
  EXPECT_REFUSED(damaged, "owner 61007", static_cast<void>(domain::open(own.name())));
  ASSERT_EQ(chown(own.path().c_str(), geteuid(), getegid()), 0);
}

TEST(DomainPlace, ATruncatedDomainIsRemovedByForce) {
  const own_domain own;
  static_cast<void>(domain::open(own.name()));
  ASSERT_EQ(truncate(own.path().c_str(), 100), 0);
  EXPECT_REFUSED(damaged, "too short", static_cast<void>(domain::open(own.name())));
  EXPECT_REFUSED(damaged, "too short", domain::remove(own.name()));
  EXPECT_TRUE(domain::remove(own.name(), true));
  EXPECT_FALSE(domain::remove(own.name(), true));
}

TEST(DomainPlace, WithoutDescriptorsThereIsAnErrorAndNoDamage) {
  const own_domain own;
  const auto there = domain::open(own.name());
  child one([&] {
    const rlimit few{3, 3};
    CHECK_OR_RETURN(setrlimit(RLIMIT_NOFILE, &few) == 0);
    const auto [reason, text] = refusal_of([&] { static_cast<void>(domain::open(own.name())); });
    CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::system));
    CHECK_OR_RETURN(text.find(own.path()) != std::string::npos);
    const auto [why, line] = refusal_of([&] { domain::remove(own.name(), true); });
    CHECK_OR_RETURN(why == static_cast<int>(domain_error::reason::system));
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_TRUE(there.still_valid());
}

TEST(DomainPlace, WithoutProcThereAreLocksToo) {
  if (!is_root()) GTEST_SKIP() << "needs root, to take /proc away";
  const own_domain own;
  child one([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, "size=1m") != 0)
      return not_allowed_here;
    named_mutex m(domain::open(own.name()), "a");
    CHECK_OR_RETURN(m.try_lock());
    child other([&] { return named_mutex(domain::attach(own.name()), "a").try_lock() ? 1 : 0; });
    CHECK_OR_RETURN(other.wait() == 0);
    m.unlock();
    return 0;
  });
  const int code = one.wait();
  if (code == not_allowed_here) GTEST_SKIP() << "this system mounts nothing";
  EXPECT_EQ(code, 0);
}

TEST(DomainPlace, AnotherFolderCanBeChosen) {
  const std::string folder = "/tmp/lockflight-place." + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  child one([&] {
    setenv("LOCKFLIGHT_DOMAINS", folder.c_str(), 1);
    const auto d = domain::open("there");
    CHECK_OR_RETURN(d.path().starts_with(folder + "/"));
    named_mutex(d, "a").lock();
    CHECK_OR_RETURN(domain::list() == std::vector<std::string>{"there"});
    CHECK_OR_RETURN(domain::remove("there", true));
    setenv("LOCKFLIGHT_DOMAINS", "not/absolute", 1);
    const auto [reason, text] = refusal_of([&] { static_cast<void>(domain::open("there")); });
    CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::invalid));
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "something was left behind";
}

// ---- memory ----

TEST(DomainPlace, FullMemoryIsAnErrorAndEndsNobody) {
  if (!is_root()) GTEST_SKIP() << "needs root, to mount a small memory";
  const std::string folder = "/tmp/lockflight-full." + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  child one([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", folder.c_str(), "tmpfs", 0, "size=2m") != 0)
      return not_allowed_here;
    setenv("LOCKFLIGHT_DOMAINS", folder.c_str(), 1);
    auto d = domain::open("small", {.names = 100'000});
    int names = 0;
    std::vector<named_mutex> held;
    try {
      for (;; ++names) held.emplace_back(d, "name " + std::to_string(names)).lock();
    } catch (const domain_error& e) {
      CHECK_OR_RETURN(e.why == domain_error::reason::full);
    }
    CHECK_OR_RETURN(names >= 20);
    const std::string filler = folder + "/filler";
    const int fd = open(filler.c_str(), O_CREAT | O_RDWR, 0600);
    while (write(fd, filler.data(), filler.size()) > 0) {
    }
    // What is there is readable, and so are names that are not.
    CHECK_OR_RETURN(d.locks().size() >= 20);
    CHECK_OR_RETURN(!d.remove_lock("no such name"));
    named_mutex again(d, "name 0");
    child newcomer([&] { return named_mutex(d, "name 1").try_lock() ? 1 : 0; });
    CHECK_OR_RETURN(newcomer.wait() == 0);
    held.pop_back();
    return 0;
  });
  const int code = one.wait();
  rmdir(folder.c_str());
  if (code == not_allowed_here) GTEST_SKIP() << "this system mounts nothing";
  EXPECT_EQ(code, 0);
}

TEST(DomainPlace, ANameTakesTwoKilobytes) {
  const own_domain own;
  const auto d = domain::open(own.name());
  struct stat s {};
  const auto bytes = [&] { return stat(own.path().c_str(), &s) == 0 ? s.st_blocks * 512 : -1; };
  constexpr int names = 10'000;
  const auto make = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      named_shared_mutex l(d, "job-" + std::to_string(i));
      l.lock();
      l.unlock();
    }
  };
  make(0, 1000);
  EXPECT_LT(bytes(), 3 << 20);
  const auto before = bytes();
  make(1000, names);
  EXPECT_LE((bytes() - before) / (names - 1000), 2048);
  EXPECT_EQ(d.names(), static_cast<unsigned>(names));
}

// ---- descriptors ----

TEST(DomainPlace, NoDescriptorOfOursIsAStandardOne) {
  const own_domain own;
  child one([&] {
    close(0);
    close(1);
    close(2);
    named_mutex m(domain::open(own.name()), "a");
    m.lock();
    const std::string error = "a message of somebody who has standard error\n";
    CHECK_OR_RETURN(write(2, error.data(), error.size()) < 0);
    m.unlock();
    m.lock();
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  named_mutex m(domain::attach(own.name()), "a");
  m.lock();
}

TEST(DomainPlace, AProgramMayCloseOurDescriptors) {
  const own_domain own;
  auto& step = shared_words<std::atomic<int>>();
  child one([&] {
    auto d = domain::open(own.name());
    named_mutex m(d, "a");
    m.lock();
    for (int fd = 3; fd < 100; ++fd) close(fd);
    const std::string path = "/tmp/lockflight-other." + std::to_string(getpid());
    for (int i = 0; i < 20; ++i) open(path.c_str(), O_CREAT | O_RDWR, 0600);
    step = 1;
    while (step == 1) usleep(1000);
    for (int i = 0; i < 500; ++i) named_mutex(d, "n" + std::to_string(i)).lock();
    struct stat s {};
    CHECK_OR_RETURN(stat(path.c_str(), &s) == 0 && s.st_size == 0);
    unlink(path.c_str());
    CHECK_OR_RETURN(d.names() == 501);
    m.unlock();
    return 0;
  });
  while (step == 0) usleep(1000);
  named_mutex m(domain::attach(own.name()), "a");
  EXPECT_FALSE(m.try_lock()) << "it lives and holds, whatever it has closed";
  EXPECT_FALSE(m.try_lock_for(2500ms));
  step = 2;
  EXPECT_EQ(one.wait(), 0);
  m.lock();
  m.unlock();
}

// ---- namespaces ----

TEST(DomainPlace, ProcessesOfAnotherNamespaceAreNotTakenForDead) {
  if (!is_root()) GTEST_SKIP() << "needs root, to make a namespace";
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child outer([&] {
    if (unshare(CLONE_NEWPID) != 0) {
      step = 9;
      return 0;
    }
    child inner([&] {
      named_mutex m(domain::attach(own.name()), "a");
      m.lock();
      step = 1;
      while (step == 1) usleep(1000);
      if (step == 2) m.unlock();
      return 0;
    });
    return inner.wait();
  });
  while (step == 0) usleep(1000);
  if (step == 9) GTEST_SKIP() << "no namespaces here";
  named_mutex m(d, "a");
  EXPECT_FALSE(m.try_lock_for(2500ms)) << "the living was taken for dead";
  step = 3;  // it ends while it holds
  EXPECT_EQ(outer.wait(), 0);
  ASSERT_TRUE(m.try_lock_for(3s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
}

// ---- a hold that lasts as long as a command ----

TEST(DomainPlace, AHoldLastsAsLongAsTheProcessThatItWasExtendedTo) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child run([&] {
    named_mutex m(d, "a");
    m.lock();
    const pid_t command = fork();
    if (command == 0) {
      m.extend_to_this_process();
      step = 1;
      while (step == 1) usleep(1000);
      _exit(0);
    }
    while (step == 0) usleep(1000);
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(run.wait(), 1000 + SIGKILL);
  named_mutex m(d, "a");
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_for(300ms)) << "its command still runs";
  step = 2;
  ASSERT_TRUE(m.try_lock_for(3s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
}

TEST(DomainPlace, AHandleThatAnotherThreadDropsFreesTheLock) {
  const own_domain own;
  const auto d = domain::open(own.name());
  std::unique_ptr<named_mutex> kept;
  std::atomic<int> step{0};
  std::thread holder([&] {
    kept = std::make_unique<named_mutex>(d, "a");
    kept->lock();
    step = 1;
    while (step == 1) std::this_thread::yield();
    named_mutex again(d, "a");
    again.lock();
    again.unlock();
  });
  while (step == 0) std::this_thread::yield();
  kept.reset();
  named_mutex m(d, "a");
  ASSERT_TRUE(m.try_lock_for(2s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
  step = 2;
  holder.join();
}

}  // namespace
}  // namespace lockflight::test
