#include "names/cluster/client/elsewhere.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/descriptor.hpp"
#include "base/number.hpp"
#include "base/numbers.hpp"
#include "names/cluster/client/order_lines.hpp"

namespace lockflight::detail {
namespace {

constexpr std::size_t longest_answer = std::size_t{16} << 20;

std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '\t')
      made += "\\t";
    else if (c == '\n')
      made += "\\n";
    else if (c == '\\')
      made += "\\\\";
    else
      made += c;
  }
  return made;
}

std::string unescaped(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      made += text[i];
      continue;
    }
    const char c = text[++i];
    made += c == 't' ? '\t' : c == 'n' ? '\n' : c;
  }
  return made;
}

/// True if root or the owner of the domain file listens: in a folder that all can write to, another
/// user could have put the socket there.
bool is_trusted(int fd, const domain_file& file) {
  ucred by{};
  socklen_t size = sizeof by;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &by, &size) != 0) return false;
  struct stat s {};
  return by.uid == 0 || (lstat(file.place().path.c_str(), &s) == 0 && s.st_uid == by.uid);
}

descriptor connect_to(const std::string& path) {
  sockaddr_un to{};
  if (path.size() >= sizeof to.sun_path) return {};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made && connect(made.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return {};
  return made;
}

/// Waits until the socket can be read, or written. False if the time is over.
bool await(int fd, short what, const time_limit& until) {
  constexpr std::uint64_t ms = 1'000'000;
  constexpr std::uint64_t slice_ms = 100;  // after which the caller may interrupt
  for (std::uint64_t now = now_ns(); now < until.until_ns; now = now_ns()) {
    const std::uint64_t left_ms = (until.until_ns - now + ms - 1) / ms;
    pollfd on{fd, what, 0};
    const int ready = poll(&on, 1, static_cast<int>(std::min(left_ms, slice_ms)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    until.check_interrupt();
  }
  return false;
}

bool send_all(int fd, std::string_view text, const time_limit& until) {
  while (!text.empty()) {
    const ssize_t done = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (done > 0) text.remove_prefix(static_cast<std::size_t>(done));
    if (done < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (!text.empty() && !await(fd, POLLOUT, until)) return false;
  }
  return true;
}

/// The bytes that come until the other end closes.
std::optional<std::string> receive_all(int fd, const time_limit& until) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t length = recv(fd, bytes, sizeof bytes, 0);
    if (length == 0) return text;
    if (length > 0) text.append(bytes, static_cast<std::size_t>(length));
    if (text.size() > longest_answer) return std::nullopt;
    if (length < 0 && errno != EAGAIN && errno != EINTR) return std::nullopt;
    if (length < 0 && !await(fd, POLLIN, until)) return std::nullopt;
  }
}

/// The mode that a text of lock_user::use() stands for.
std::optional<mode> mode_from(std::string_view use) {
  for (const mode each : {mode::none, mode::shared, mode::exclusive})
    if (use == lock_user{.held = each}.use()) return each;
  return std::nullopt;
}

}  // namespace

std::string question_path_of(const domain_file& file) { return file.place().path + ".ask"; }

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& each : fields) {
    if (&each != fields.data()) line += '\t';
    line += escaped(each);
  }
  return line + "\n";
}

std::vector<std::vector<std::string>> fields_of(std::string_view lines) {
  std::vector<std::vector<std::string>> all;
  for (std::size_t end = 0; (end = lines.find('\n')) != std::string_view::npos;
       lines.remove_prefix(end + 1)) {
    std::vector<std::string> fields;
    std::string_view line = lines.substr(0, end);
    for (std::size_t tab = 0; (tab = line.find('\t')) != std::string_view::npos;
         line.remove_prefix(tab + 1))
      fields.push_back(unescaped(line.substr(0, tab)));
    fields.push_back(unescaped(line));
    all.push_back(std::move(fields));
  }
  return all;
}

std::optional<std::vector<std::vector<std::string>>> ask_agent(
    const domain_file& file, const std::vector<std::string>& question, const time_limit& until) {
  const descriptor to = connect_to(question_path_of(file));
  if (!to || !is_trusted(to.get(), file) || !send_all(to.get(), line_of(question), until))
    return std::nullopt;
  const auto text = receive_all(to.get(), until);
  if (!text) return std::nullopt;
  auto lines = fields_of(*text);
  if (lines.empty() || lines.back().front() != end_of_answer) return std::nullopt;
  return lines;
}

// ---- uses ----

std::string lines_of(const std::vector<domain_lock>& locks) {
  constexpr std::uint64_t ns_of_ms = 1'000'000;
  std::string lines;
  for (const domain_lock& lock : locks)
    for (const lock_user& each : lock.users)
      lines += line_of({std::string(uses_question), each.host, lock.name, each.use(),
                        std::to_string(each.running_pid()),
                        each.stopped ? "stopped"
                        : each.dead  ? "dead"
                                     : "",
                        std::to_string(each.for_ns / ns_of_ms), each.command,
                        numbers_text(each.units_held)}) +
               line_of_hold(each);
  return lines;
}

std::vector<domain_lock> locks_from(const std::vector<std::vector<std::string>>& lines) {
  constexpr std::size_t fields = 9;
  constexpr std::uint64_t ns_of_ms = 1'000'000;
  std::map<std::string, domain_lock> found;
  lock_user* last = nullptr;  // the line about its hold comes behind its own
  for (const auto& line : lines) {
    if (last != nullptr) add_hold(line, *std::exchange(last, nullptr));
    if (line.size() != fields || line[0] != uses_question) continue;
    const auto held = mode_from(line[3]);
    const auto pid = read_number<int>(line[4]);
    const auto milliseconds = read_number<std::uint64_t>(line[6]);
    if (!held || !pid || !milliseconds) continue;
    domain_lock& lock = found[line[2]];
    lock.name = line[2];
    const std::vector<int> units = read_numbers(line[8]).value_or(std::vector<int>{});
    lock.users.push_back({.host = line[1],
                          .held = *held,
                          .unit = *held == mode::none || units.empty() ? -1 : units.front(),
                          .units_held = units,
                          .pid = *pid,
                          .dead = line[5] == "dead",
                          .stopped = line[5] == "stopped",
                          .for_ns = std::min(*milliseconds, UINT64_MAX / ns_of_ms) * ns_of_ms,
                          .command = line[7]});
    last = &lock.users.back();
  }
  std::vector<domain_lock> all;
  for (auto& [name, lock] : found) all.push_back(std::move(lock));
  return all;
}

}  // namespace lockflight::detail
