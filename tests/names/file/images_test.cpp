// A process that becomes another program by exec, which uses the same domain: the image that it was
// before is dead, whoever looks.
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "names/file/layout.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

// What the new image does: it is this program, with these variables.
constexpr const char* task_variable = "LOCKFLIGHT_TEST_IMAGE";
constexpr const char* domain_variable = "LOCKFLIGHT_TEST_DOMAIN";

[[noreturn]] void exec(const char* task, const std::string& domain_name) {
  setenv(task_variable, task, 1);
  setenv(domain_variable, domain_name.c_str(), 1);
  execl("/proc/self/exe", "domain_tests", "--gtest_filter=DomainImages.IsTheNewImage",
        "--gtest_brief=1", nullptr);
  _exit(99);
}

int perform(std::string_view task, const std::string& domain_name) {
  if (task == "copy") {  // as if another copy of the library had the domain open
    const int fd = open(detail::private_place(domain_name).path.c_str(), O_RDWR | O_CLOEXEC);
    CHECK_OR_RETURN(mmap(nullptr, detail::page, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    named_mutex m(domain::attach(domain_name), "a");
    return m.try_lock_for(20ms) ? 1 : 0;
  }
  const auto d = domain::attach(domain_name);
  if (task == "opens") {
    std::puts("ready");
    std::fflush(stdout);
    while (true) pause();
  }
  named_shared_mutex m(d, "a");
  const bool shared = task == "shares";
  CHECK_OR_RETURN(shared ? m.try_lock_shared_for(5s) : m.try_lock_for(5s));
  CHECK_OR_RETURN(shared || m.owner_died());
  shared ? m.unlock_shared() : m.unlock();
  return 0;
}

TEST(DomainImages, IsTheNewImage) {
  const char* const task = getenv(task_variable);
  if (task == nullptr) return;  // it is for the other tests of this file
  int code = 98;
  try {
    code = perform(task, getenv(domain_variable));
  } catch (const std::exception& e) {
    fprintf(stderr, "%s: %s\n", task, e.what());
  }
  _exit(code);
}

/// A holder of "a" that becomes a program of that task.
child holder_that_becomes(const char* task, const own_domain& in, bool shares = false,
                          int output = STDOUT_FILENO) {
  return child([&, task, shares, output] {
    named_shared_mutex m(domain::attach(in.name()), "a");
    shares ? m.lock_shared() : m.lock();
    dup2(output, STDOUT_FILENO);
    exec(task, in.name());
    return 1;
  });
}

TEST(DomainImages, ANewImageDoesNotWaitForItsFormerOne) {
  const own_domain own;
  const auto d = domain::open(own.name());
  EXPECT_EQ(holder_that_becomes("locks", own).wait(), 0);
  EXPECT_EQ(holder_that_becomes("locks", own, true).wait(), 0) << "a reader";
  EXPECT_EQ(holder_that_becomes("shares", own, true).wait(), 0) << "a reader that reads on";
}

// The new image has opened the domain, and has neither a slot nor anything to wait for.
TEST(DomainImages, NobodyWaitsForTheFormerImageOfAProcessThatHasOpenedTheDomain) {
  const own_domain own;
  const auto d = domain::open(own.name());
  for (const bool shares : {false, true}) {
    std::array<int, 2> pipe_ends{};
    ASSERT_EQ(pipe(pipe_ends.data()), 0);
    child it = holder_that_becomes("opens", own, shares, pipe_ends[1]);
    close(pipe_ends[1]);
    std::array<char, 8> line{};
    std::string said;
    while (said.find("ready") == std::string::npos) {
      const ssize_t got = read(pipe_ends[0], line.data(), line.size());
      ASSERT_GT(got, 0);
      said.append(line.data(), static_cast<std::size_t>(got));
    }
    close(pipe_ends[0]);
    named_mutex m(d, "a");
    ASSERT_TRUE(m.try_lock_for(5s));
    EXPECT_EQ(m.owner_died(), !shares);
    m.mark_consistent();
    m.unlock();
  }
  EXPECT_EQ(d.deaths(), 2u);
}

// A thread that is not the first one becomes the process.
TEST(DomainImages, AnyThreadMayBecomeTheNewImage) {
  const own_domain own;
  const auto d = domain::open(own.name());
  child it([&] {
    named_mutex m(domain::attach(own.name()), "a");
    m.lock();
    std::thread([&] {
      named_mutex other(domain::attach(own.name()), "b");
      other.lock();
      exec("locks", own.name());
    }).join();
    return 1;
  });
  EXPECT_EQ(it.wait(), 0);
  named_mutex b(d, "b");
  ASSERT_TRUE(b.try_lock_for(5s));
  EXPECT_TRUE(b.owner_died());
  b.unlock();
}

// Wrong: a second copy of the library in the new image might be the one that holds. It is believed
// to live as /proc says, until the process ends.
TEST(DomainImages, AnImageThatMapsTheFileTwiceCannotKnow) {
  const own_domain own;
  const auto d = domain::open(own.name());
  EXPECT_EQ(holder_that_becomes("copy", own).wait(), 0);
  named_mutex m(d, "a");
  ASSERT_TRUE(m.try_lock_for(5s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
}

}  // namespace
}  // namespace lockflight::test
