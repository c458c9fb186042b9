// Where domains lie: another folder, no /proc, other namespaces.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "tests/names/support.hpp"

namespace {
/// What the folder /tmp says of its file system; 0: the truth.
std::uint32_t type_of_tmp = 0;
}  // namespace

// The library calls this one: so a network file system can be had on every machine.
extern "C" int statfs(const char* path, struct statfs* into) noexcept {
  const auto result = static_cast<int>(syscall(SYS_statfs, path, into));
  if (type_of_tmp != 0 && std::string_view(path) == "/tmp") into->f_type = type_of_tmp;
  return result;
}

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

TEST(DomainPlace, AFolderOfTheNetworkIsRefusedByTheNameOfItsFileSystem) {
  child one([&] {
    setenv("LOCKFLIGHT_DOMAINS", "/tmp", 1);
    const std::pair<std::uint32_t, const char*> types[]{{0x6969, "NFS"},
                                                        {0xFF534D42, "CIFS"},
                                                        {0x01021997, "9p"},
                                                        {0x65735546, "FUSE"},
                                                        {0x0BD00BD0, "Lustre"}};
    for (const auto& [type, name] : types) {
      type_of_tmp = type;
      const auto [reason, text] = refusal_of([] { static_cast<void>(domain::open("remote")); });
      CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::invalid));
      CHECK_OR_RETURN(text.find("LOCKFLIGHT_DOMAINS='/tmp'") != std::string::npos);
      CHECK_OR_RETURN(text.find(name) != std::string::npos);
      CHECK_OR_RETURN(text.find("etcd:NAME") != std::string::npos);
    }
    type_of_tmp = 0x01021994;  // tmpfs
    static_cast<void>(domain::open("remote"));
    CHECK_OR_RETURN(domain::remove("remote"));
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
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
    const std::pair<std::string, const char*> refused[]{
        {"not/absolute", "is not absolute (accepted: the absolute path of a folder"},
        {"/no/such/folder", "does not exist (accepted: a folder that exists"},
        {"/dev/null/below", "does not exist (accepted: a folder that exists"},
        {"/dev/null", "is no folder (accepted: a folder"}};
    for (const auto& [wrong, words] : refused) {
      setenv("LOCKFLIGHT_DOMAINS", wrong.c_str(), 1);
      const auto [reason, text] = refusal_of([&] { static_cast<void>(domain::open("there")); });
      CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::invalid));
      CHECK_OR_RETURN(text.starts_with("LOCKFLIGHT_DOMAINS='" + wrong + "', which " + words));
    }
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "something was left behind";
}

TEST(DomainPlace, AFolderWithoutRightsIsNamedWithItsVariable) {
  constexpr uid_t nobody = 65534;
  const std::string folder = "/tmp/lockflight-place." + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  child one([&] {
    if (is_root() && (setgid(nobody) != 0 || setuid(nobody) != 0)) return not_allowed_here;
    setenv("LOCKFLIGHT_DOMAINS", folder.c_str(), 1);
    for (const unsigned mode : {0600U, 0660U}) {
      const auto [reason, text] =
          refusal_of([&] { static_cast<void>(domain::open("there", {.mode = mode})); });
      CHECK_OR_RETURN(reason == static_cast<int>(domain_error::reason::system));
      CHECK_OR_RETURN(text.find("cannot be made: Permission denied; LOCKFLIGHT_DOMAINS='" + folder +
                                "' (accepted: a folder in which") != std::string::npos);
    }
    return 0;
  });
  const int code = one.wait();
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "something was left behind";
  if (code == not_allowed_here) GTEST_SKIP() << "this process cannot give up its rights";
  EXPECT_EQ(code, 0);
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
