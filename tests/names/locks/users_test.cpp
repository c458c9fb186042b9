// Domains of users and of groups: whose a name means, and whose are refused.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>

#include "names/file/file.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

TEST(DomainUsers, ASharedDomainIsOneForAllOfItsGroup) {
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

TEST(DomainUsers, RootUsesNoDomainOfAGroupThatItIsNotIn) {
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

TEST(DomainUsers, TheGroupTellsTheDomainsOfTwoGroupsApart) {
  if (!is_root()) GTEST_SKIP() << "needs root, to use the domains of any group";
  const own_domain own(".groups");
  const std::vector<std::string> teams{"61001", "61002"};
  for (const std::string& team : teams)
    static_cast<void>(domain::open(own.name(), {.mode = 0660, .group = team}));
  EXPECT_REFUSED(disagrees, "more than once", static_cast<void>(domain::attach(own.name(), 0660)));
  EXPECT_REFUSED(disagrees, "more than once", domain::remove(own.name(), false, 0660));
  std::vector<std::string> found;
  for (const domain_owner& each : domain::owners_of(own.name())) {
    EXPECT_EQ(each.mode, 0660u);
    found.push_back(each.group);
  }
  EXPECT_EQ(found, teams);
  for (const std::string& team : teams) {
    EXPECT_EQ(domain::attach(own.name(), 0660, team).options().group, team);
    EXPECT_TRUE(domain::remove(own.name(), false, 0660, team));
  }
  EXPECT_REFUSED(invalid, "mode 0660",
                 static_cast<void>(domain::attach(own.name(), 0600, "61001")));
  EXPECT_TRUE(domain::owners_of(own.name()).empty());
}

// What a process has open stays what it uses, whatever it may open later.
TEST(DomainUsers, WhoDropsRightsOrChangesTheRootStaysInTheDomain) {
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

TEST(DomainUsers, TheDefaultDomainIsTheUsersOwn) {
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

TEST(DomainUsers, ADamagedDomainOfAGroupIsRemovedAndNotThePrivateOne) {
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

TEST(DomainUsers, APrivateAndASharedDomainOfOneNameAreToldApart) {
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

TEST(DomainUsers, AFileOfAnotherUserIsRefusedAndNamed) {
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

}  // namespace
}  // namespace lockflight::test
