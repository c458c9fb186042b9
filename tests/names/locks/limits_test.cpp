// Domains without memory, without descriptors, and with descriptors that a program closes.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

TEST(DomainLimits, WithoutDescriptorsThereIsAnErrorAndNoDamage) {
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

TEST(DomainLimits, FullMemoryIsAnErrorAndEndsNobody) {
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

TEST(DomainLimits, ANameTakesTwoKilobytes) {
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

TEST(DomainLimits, NoDescriptorOfOursIsAStandardOne) {
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

TEST(DomainLimits, AProgramMayCloseOurDescriptors) {
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

}  // namespace
}  // namespace lockflight::test
