#include "domain/membership/liveness.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "domain/store/fork.hpp"

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

/// What /proc/PID/task/TID/stat says.
struct stat_line {
  char state = 0;
  std::uint64_t flags = 0;
  std::uint64_t born = 0;
};

// The fields after the command, which is in parentheses and may contain any.
bool parse(char* text, stat_line& into) {
  constexpr int state_field = 3;
  constexpr int flags_field = 9;
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
    if (field == start_field) {
      into.born = value;
      return true;
    }
  }
  return false;
}

enum class found : std::uint8_t { it, nothing, unreadable };

found read_stat(const char* path, stat_line& into) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT || errno == ESRCH ? found::nothing : found::unreadable;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof text - 1);
  const int error = errno;
  close(fd);
  if (got <= 0) return got < 0 && error == ESRCH ? found::nothing : found::unreadable;
  text[got] = '\0';
  return parse(text, into) ? found::it : found::unreadable;
}

}  // namespace

thread_identity this_thread() noexcept {
  thread_identity mine{getpid(), static_cast<std::int32_t>(syscall(SYS_gettid)), 0,
                       our_process_space()};
  stat_line line;
  short_text path;
  path.add("/proc/self/task/").add(mine.tid).add("/stat");
  if (read_stat(path.c_str(), line) == found::it) mine.born = line.born;
  return mine;
}

// Kept, since it is asked for each slot; a child of a fork may be in another one.
std::uint64_t our_process_space() noexcept {
  static std::atomic<std::uint64_t> known{0};
  static std::atomic<pid_t> of{0};
  if (of.load(std::memory_order_acquire) == process_id())
    return known.load(std::memory_order_relaxed);
  struct stat s {};
  const std::uint64_t now = stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
  known.store(now, std::memory_order_relaxed);
  of.store(getpid(), std::memory_order_release);
  return now;
}

std::optional<bool> maps_file(std::int32_t pid, std::uint64_t device, std::uint64_t inode) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/maps");
  std::array<char, 64> wanted{};
  std::snprintf(wanted.data(), wanted.size(), " %02x:%02x %llu ", major(device), minor(device),
                static_cast<unsigned long long>(inode));
  bool read_any = false;
  for (std::string line; std::getline(lines, line); read_any = true)
    if (line.find(wanted.data()) != std::string::npos) return true;
  return read_any ? std::optional(false) : std::nullopt;
}

bool is_there(const thread_identity& who) noexcept {
  return who.pid > 0 && who.tid > 0 &&
         (syscall(SYS_tgkill, who.pid, who.tid, 0) == 0 || errno != ESRCH);
}

life life_of(const thread_identity& who) noexcept {
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
  constexpr std::uint64_t is_exiting = 0x4;  // PF_EXITING of the kernel's task flags
  if (line.state == 'Z' || line.state == 'X' || (line.flags & is_exiting) != 0) return life::gone;
  if (who.born != 0 && line.born != who.born) return life::gone;  // the number is another thread's
  return line.state == 'T' || line.state == 't' ? life::stopped : life::living;
}

}  // namespace lockflight::detail
