#include "tests/names/deaths/worker_orders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/number.hpp"
#include "tests/names/ways_to_fork.hpp"

namespace lockflight::test {
namespace {

// The first argument of a worker's image. start_of_image() reads the others.
constexpr const char* as_worker = "--as-worker";
constexpr int image_words = 8;

// The worker releases nothing first: the end of this image is the death of a holder.
[[noreturn]] void become_an_image(worker& me) {
  const worker_start& own = me.start;
  if (me.mine.is == where::inside && me.mine.exclusive) ++me.all.left_inside[me.mine.lock];
  me.mine.is = where::outside;
  me.mine.lock = -1;
  std::string numbers;
  for (const int each : own.numbers) numbers += std::to_string(each) + ' ';
  const std::array<std::string, image_words> words{"lockflight_deaths",
                                                   as_worker,
                                                   std::to_string(own.worker),
                                                   std::to_string(own.memory),
                                                   std::to_string(own.seed * 3 + 1),
                                                   own.name,
                                                   std::to_string(own.as.mode) + ' ' + own.as.group,
                                                   numbers};
  std::array<char*, words.size() + 1> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = const_cast<char*>(words[i].c_str());
  // The descriptor names the program: this namespace may have neither /proc nor the path.
  fexecve(own.memory + 1, arguments.data(), environ);
  _exit(4);
}

// The child tries to release each lock that its parent holds, which has to fail.
void make_a_child(worker& me) {
  const pid_t made = ways_to_fork[me.next_way_to_fork++ % ways_to_fork.size()].fork();
  if (made != 0) {
    if (made > 0) waitpid(made, nullptr, 0);
    return;
  }
  for (named_lock& each : me.handles) {
    if (!each.is_held()) continue;
    try {
      me.mine.exclusive ? each.unlock() : each.unlock_shared();
      report(me.all, fmt::format("{}: a child has released what its parent holds", each.name()));
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::wrong_thread) report(me.all, e.what());
    }
  }
  _exit(0);
}

// An empty /proc shows no process at all.
void hide_proc() {
  if (unshare(CLONE_NEWNS) != 0) return;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
    static_cast<void>(mount("none", "/proc", "tmpfs", 0, nullptr));
}

// The start times of processes differ from those that the other workers read.
void shift_boot_time() {
  if (unshare(CLONE_NEWTIME) != 0) return;
  const int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  constexpr std::string_view later = "boottime 100000 0\n";
  static_cast<void>(!::write(offsets, later.data(), later.size()));
  close(offsets);
  const int there = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
  static_cast<void>(setns(there, CLONE_NEWTIME));
  close(there);
}

// The calls fail without the rights of root, and the worker goes on in its namespaces.
void enter_a_namespace(const worker& me) {
  me.start.worker % 2 == 0 ? hide_proc() : shift_boot_time();
}

}  // namespace

void obey(worker& me) {
  int told = me.all.told;
  if (told < 0 || told % most_processes != me.start.worker ||
      !me.all.told.compare_exchange_strong(told, -1))
    return;
  switch (told / most_processes) {
    case to_exit:
      std::exit(0);
    case to_become_an_image:
      become_an_image(me);
    case to_make_a_child:
      return make_a_child(me);
    default:
      return enter_a_namespace(me);
  }
}

bool is_worker_image(int argc, char** argv) {
  return argc == image_words && std::string_view(argv[1]) == as_worker;
}

worker_start start_of_image(char** words) {
  std::istringstream options(words[6]);
  std::istringstream numbers(words[7]);
  worker_start start;
  start.worker = read_number<int>(words[2]).value();
  start.memory = read_number<int>(words[3]).value();
  start.seed = read_number<std::uint64_t>(words[4]).value();
  start.name = words[5];
  options >> start.as.mode >> start.as.group;
  for (int each = 0; numbers >> each;) start.numbers.push_back(each);
  return start;
}

}  // namespace lockflight::test
