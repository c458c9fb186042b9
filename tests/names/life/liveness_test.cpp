// What the kernel says of processes that end.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <atomic>

#include "base/descriptor.hpp"
#include "names/life/liveness.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

// The kernel gives back the memory of a process that was killed before it closes its files. A
// participant that guards the process must not count as dead in between.
TEST(DomainLiveness, AProcessLivesUntilItsFilesAreClosed) {
  const std::string path = testing::TempDir() + "lockflight-files-" + std::to_string(getpid());
  const descriptor ours(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(ours);
  constexpr int times = 4;
  for (int i = 0; i < times; ++i) {
    auto& is_ready = shared_words<std::atomic<bool>>();
    is_ready = false;
    child with_much_memory([&] {
      constexpr std::size_t bytes = std::size_t{256} << 20;
      constexpr std::size_t small_page = 4096;
      const int theirs = open(path.c_str(), O_RDWR | O_CLOEXEC);
      CHECK_OR_RETURN(theirs >= 0 && flock(theirs, LOCK_EX) == 0);
      void* const base =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHECK_OR_RETURN(base != MAP_FAILED);
      // Many small pages take the kernel long enough.
      madvise(base, bytes, MADV_NOHUGEPAGE);
      for (std::size_t at = 0; at < bytes; at += small_page) static_cast<char*>(base)[at] = 1;
      is_ready = true;
      pause();
      return 0;
    });
    const auto who = detail::first_thread_of(with_much_memory.pid());
    while (!is_ready) usleep(1000);
    EXPECT_EQ(detail::life_of(who, detail::extent::process), detail::life::living);
    with_much_memory.kill();
    while (detail::life_of(who, detail::extent::process) != detail::life::gone) {
    }
    EXPECT_EQ(flock(ours.get(), LOCK_EX | LOCK_NB), 0) << "its file is open still";
    flock(ours.get(), LOCK_UN);
    EXPECT_EQ(with_much_memory.wait(), 1000 + SIGKILL);
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace lockflight::test
