// Where domains lie: another folder, no /proc, other namespaces.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>

#include "support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace lockflight::test
