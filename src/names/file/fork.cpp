#include "names/file/fork.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <utility>

#include "lockflight/rma/assert.hpp"

namespace lockflight::detail {
namespace {

enum : std::uint32_t { nothing_done, at_work, all_done };  // image_words::child

// Never destroyed: threads may outlive static objects.
struct of_process {
  std::mutex mutex;
  std::array<void (*)(bool), 4> in_children{};
  std::array<int, 64> to_close{};  // 1 + the descriptor, or 0
};
of_process* forked;
bool kernel_wipes = false;

// Brings the state that the parent has left into order, before anything else of ours is used.
void begin_child(bool owns_descriptors) {
  for (auto* const each : forked->in_children)
    if (each != nullptr) each(owns_descriptors);
  for (int& each : forked->to_close)
    if (const int fd = std::exchange(each, 0) - 1; fd >= 0 && owns_descriptors) close(fd);
}

// clone() with CLONE_FILES makes a child that shares its parent's descriptor table: what it closed,
// the parent would lose, and with it the bytes that the parent has locked. So such a child gets a
// table of its own here. CLONE_THREAD has the kernel refuse this to a process of several threads,
// which share the table on purpose.
bool gets_own_descriptors() { return unshare(CLONE_FILES | CLONE_THREAD) == 0; }

void after_fork_in_child() {
  image_words& page = *image_page.load();
  // Another handler may have used us before this one.
  if (kernel_wipes && page.child.load() == all_done) return;
  page.number.store(0);
  begin_child(true);  // fork() copies the table
  page.child.store(all_done);
  forked->mutex.unlock();
}

image_words* wiped_page() {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rma::ensure(at != MAP_FAILED, "there is memory for a page");
  // qemu-user 7 says yes to any advice and follows none of this kind, so an advice that does not
  // exist is asked for first (as BoringSSL's fork_detect does).
  constexpr int no_advice = -1;
  kernel_wipes = madvise(at, bytes, no_advice) != 0 && madvise(at, bytes, MADV_WIPEONFORK) == 0;
  auto* const made = new (at) image_words{};
  made->child.store(all_done);
  return made;
}

of_process& this_process() {
  static auto* const ours = [] {
    auto* const made = new of_process;
    forked = made;
    image_page.store(wiped_page());
    pthread_atfork([] { process_mutex().lock(); }, [] { forked->mutex.unlock(); },
                   after_fork_in_child);
    return made;
  }();
  return *ours;
}

// Begins a child that no fork handler knows of. One thread does this; others wait until it is done.
void begin_unannounced_child(image_words& page) {
  std::uint32_t found = nothing_done;
  if (page.child.compare_exchange_strong(found, at_work)) {
    new (&forked->mutex) std::mutex;  // another thread of the parent may have had it
    begin_child(gets_own_descriptors());
    page.child.store(all_done);
  }
  while (page.child.load() != all_done) sched_yield();
}

std::uint64_t drawn() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number && number != 0)
    return number;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec) + (static_cast<std::uint64_t>(getpid()) << 40) + 1;
}

}  // namespace

std::uint64_t image() {
  if (const std::uint64_t known = known_image(); known != 0) [[likely]]
    return known;
  static_cast<void>(this_process());
  image_words& page = *image_page.load();
  if (page.child.load() != all_done) begin_unannounced_child(page);
  std::uint64_t none = 0;
  page.number.compare_exchange_strong(none, drawn());
  return page.number.load();
}

void number_this_thread() {
  static std::atomic<std::uint64_t> last{0};
  if (thread_number == 0) thread_number = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::mutex& process_mutex() {
  static_cast<void>(image());
  return this_process().mutex;
}

closed_in_children::closed_in_children(int fd) : fd_(fd) {
  const std::scoped_lock hold(process_mutex());
  auto& all = forked->to_close;
  const auto at = std::find(all.begin(), all.end(), 0);
  if (at != all.end()) *at = fd_ + 1;
}

closed_in_children::~closed_in_children() {
  const std::scoped_lock hold(process_mutex());
  auto& all = forked->to_close;
  const auto at = std::find(all.begin(), all.end(), fd_ + 1);
  if (at != all.end()) *at = 0;
}

void call_in_children(void (*what)(bool)) {
  const std::scoped_lock hold(process_mutex());
  auto& all = forked->in_children;
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](auto* each) { return each == nullptr || each == what; });
  rma::ensure(at != all.end(), "there is room for what is called in children");
  *at = what;
}

}  // namespace lockflight::detail
