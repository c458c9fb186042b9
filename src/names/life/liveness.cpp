#include "names/life/liveness.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include "base/whole_file.hpp"

namespace lockflight::detail {
namespace {

/// Writes text and numbers without the C library's streams, which are not async-signal-safe.
class short_text {
 public:
  short_text& add(const char* text) {
    while (*text != '\0' && end_ < sizeof text_ - 1) text_[end_++] = *text++;
    return *this;
  }
  short_text& add(std::int32_t number) {
    char digits[12];
    int count = 0;
    for (auto rest = static_cast<std::uint32_t>(number); count == 0 || rest != 0; rest /= 10)
      digits[count++] = static_cast<char>('0' + rest % 10);
    while (count > 0 && end_ < sizeof text_ - 1) text_[end_++] = digits[--count];
    return *this;
  }
  [[nodiscard]] const char* c_str() {
    text_[end_] = '\0';
    return text_;
  }

 private:
  char text_[64];
  std::size_t end_ = 0;
};

/// The fields of /proc/PID/task/TID/stat.
struct stat_line {
  char state = 0;
  std::uint64_t flags = 0;
  std::uint64_t threads = 0;
  std::uint64_t born = 0;
};

// The fields after the command, which is in parentheses and may contain any.
bool parse(char* text, stat_line& into) {
  constexpr int state_field = 3;
  constexpr int flags_field = 9;
  constexpr int threads_field = 20;
  constexpr int start_field = 22;
  char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return false;
  ++at;
  for (int field = state_field; *at == ' '; ++field) {
    ++at;
    if (field == state_field) into.state = *at;
    std::uint64_t value = 0;
    for (; *at != ' ' && *at != '\0' && *at != '\n'; ++at)
      if (*at >= '0' && *at <= '9') value = value * 10 + static_cast<std::uint64_t>(*at - '0');
    if (field == flags_field) into.flags = value;
    if (field == threads_field) into.threads = value;
    if (field == start_field) {
      into.born = value;
      return true;
    }
  }
  return false;
}

enum class found : std::uint8_t { it, nothing, unreadable };

/// A file of /proc, which is short.
struct proc_file {
  char text[4096];
  found what;

  /// With `is_of_kernel`, a file is unreadable that another file system has in that place.
  explicit proc_file(const char* path, bool is_of_kernel = false) : what(found::unreadable) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT || errno == ESRCH) what = found::nothing;
      return;
    }
    const ssize_t got = read(fd, text, sizeof text - 1);
    const int error = errno;
    struct statfs of {};
    const bool is_as_said =
        !is_of_kernel || (fstatfs(fd, &of) == 0 && of.f_type == PROC_SUPER_MAGIC);
    close(fd);
    if (got < 0 && error == ESRCH) what = found::nothing;
    if (got <= 0 || !is_as_said) return;
    text[got] = '\0';
    what = found::it;
  }
};

found read_stat(const char* path, stat_line& into) {
  proc_file file(path);
  if (file.what != found::it) return file.what;
  return parse(file.text, into) ? found::it : found::unreadable;
}

std::uint64_t number_of(const char* space) noexcept {
  struct stat s {};
  return stat(space, &s) == 0 ? s.st_ino : 0;
}
std::uint64_t number_of_both(std::uint64_t of_processes, std::uint64_t of_time) noexcept {
  constexpr std::uint64_t apart = 0x9e3779b1;  // else two that grow together look the same
  return of_processes + of_time * apart;
}
/// True if /proc is that of our namespace of processes: it has our own number for us, and is not
/// that of an outer namespace, which has a number of its own for us. An inner namespace, or one
/// beside ours, does not see us. The result is false if /proc is another machine's, or no /proc.
bool is_proc_ours() noexcept {
  const proc_file status("/proc/self/status", true);
  if (status.what != found::it) return false;
  const char* const own =
      std::strstr(status.text, short_text().add("\nTgid:\t").add(getpid()).add("\n").c_str());
  if (own == nullptr) return false;
  const char* const numbers = std::strstr(status.text, "\nNSpid:\t");
  if (numbers == nullptr) return true;  // a kernel that does not say
  constexpr std::size_t label = sizeof "\nNSpid:\t" - 1;
  return std::strcspn(numbers + label, "\t") > std::strcspn(numbers + label, "\n");
}

/// The offset, the device and the inode of a mapping, as a line of /proc/PID/maps has them, since a
/// file system may give other numbers to stat.
std::string beginning_in(std::string_view line) {
  const std::size_t rights = line.find(' ') + 1;
  const std::size_t offset = line.find(' ', rights);
  const std::size_t device = line.find(' ', offset + 1);
  const std::size_t inode = line.find(' ', device + 1);
  const std::size_t end = line.find(' ', inode + 1);
  return std::string(line.substr(offset, end + 1 - offset));
}

}  // namespace

thread_identity first_thread_of(std::int32_t pid) noexcept {
  thread_identity its{pid, pid, 0, our_space()};
  stat_line line;
  short_text path;
  path.add("/proc/").add(pid).add("/stat");
  if (read_stat(path.c_str(), line) == found::it) its.born = line.born;
  return its;
}

thread_identity this_thread() noexcept {
  thread_identity mine{getpid(), static_cast<std::int32_t>(syscall(SYS_gettid)), 0, our_space()};
  stat_line line;
  short_text path;
  path.add("/proc/self/task/").add(mine.tid).add("/stat");
  if (read_stat(path.c_str(), line) == found::it) mine.born = line.born;
  return mine;
}

std::uint64_t our_space() noexcept {
  const std::uint64_t of_processes = number_of("/proc/self/ns/pid");
  // No other namespace of processes sees those of the first one, and so a /proc that shows us is
  // the first one's.
  constexpr std::uint64_t first_space = 0xEFFFFFFC;  // the kernel's PID_NS_INIT_INO
  if (of_processes == 0 || (of_processes != first_space && !is_proc_ours())) return 0;
  return number_of_both(of_processes, number_of("/proc/self/ns/time"));
}

std::uint64_t recent_space() noexcept {
  static std::atomic<std::uint64_t> known{0};
  static std::atomic<std::int64_t> of{0};
  constexpr std::int64_t tenths = 10;
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  const std::int64_t now = t.tv_sec * tenths + t.tv_nsec / (1'000'000'000 / tenths);
  if (of.load(std::memory_order_acquire) == now) return known.load(std::memory_order_relaxed);
  known.store(our_space(), std::memory_order_relaxed);
  of.store(now, std::memory_order_release);
  return known.load(std::memory_order_relaxed);
}

bool is_numbered_here(std::uint64_t owner) noexcept {
  const std::uint64_t here = recent_space();
  if (here == 0) return owner >> thread_identity::space_at == 0;
  if (thread_identity::is_of(here, owner)) return true;
  // The thread may be in our namespace of processes and in another one of time. Then it has that
  // number in our /proc, which knows the namespaces of the process.
  const std::int32_t pid = thread_identity::from(owner, 0).pid;
  const std::uint64_t of_processes =
      number_of(short_text().add("/proc/").add(pid).add("/ns/pid").c_str());
  return of_processes != 0 && of_processes == number_of("/proc/self/ns/pid") &&
         thread_identity::is_of(
             number_of_both(of_processes,
                            number_of(short_text().add("/proc/").add(pid).add("/ns/time").c_str())),
             owner);
}

std::optional<int> mappings_of(std::int32_t pid, const void* ours) {
  std::array<char, 20> first{};
  std::snprintf(first.data(), first.size(), "%lx-", reinterpret_cast<unsigned long>(ours));
  std::string wanted;
  for_each_line(text_if_readable("/proc/self/maps"), [&](std::string_view line) {
    if (wanted.empty() && line.starts_with(first.data())) wanted = beginning_in(line);
  });
  if (wanted.empty()) return std::nullopt;
  const std::string its = text_if_readable("/proc/" + std::to_string(pid) + "/maps");
  int found = 0;
  for_each_line(its, [&](std::string_view line) {
    if (line.find(wanted) != std::string_view::npos) ++found;
  });
  return its.empty() ? std::nullopt : std::optional(found);
}

bool is_there(const thread_identity& who) noexcept {
  return who.pid > 0 && who.tid > 0 &&
         (syscall(SYS_tgkill, who.pid, who.tid, 0) == 0 || errno != ESRCH);
}

life life_of(const thread_identity& who, extent what) noexcept {
  if (!is_there(who)) return life::gone;
  stat_line line;
  short_text path;
  path.add("/proc/").add(who.pid).add("/task/").add(who.tid).add("/stat");
  switch (read_stat(path.c_str(), line)) {
    case found::it:
      break;
    case found::nothing:
      // Gone since we asked; or /proc hides other users' processes, or is not there at all.
      return is_there(who) ? life::unknown : life::gone;
    case found::unreadable:
      return life::unknown;
  }
  if (who.born != 0 && line.born != who.born) return life::gone;  // the number is another thread's
  const bool has_exited = line.state == 'Z' || line.state == 'X';
  constexpr std::uint64_t is_exiting = 0x4;  // PF_EXITING of the kernel's task flags
  // The kernel gives back memory and then closes files between the flag and the state 'Z'.
  if (what == extent::process ? has_exited && line.threads <= 1
                              : has_exited || (line.flags & is_exiting) != 0)
    return life::gone;
  return line.state == 'T' || line.state == 't' ? life::stopped : life::living;
}

}  // namespace lockflight::detail
